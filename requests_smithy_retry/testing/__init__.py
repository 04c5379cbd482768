"""A kit for testing HTTP clients and their retries.

On real sockets: a server and a proxy with scripted faults. Without sockets: a transport that plays a script. Around
code under test: waits that take no time, a log of attempts, and switches for retries.
"""

from __future__ import annotations

from .attempt_log import AttemptLog, watched_attempts
from .behaviour import DEFAULT_BODY, WELL, Behaviour, ReadSoFar, Reply, try_later
from .catalogue import CataloguedFault, fault_catalogue
from .clock import FakeClock
from .coded_replies import coded_reply, gzip_bomb
from .connection_faults import (
    CloseAfterReply,
    CloseAfterRequest,
    CloseBeforeRequest,
    CloseDuringHandshake,
    Drip,
    HalfClose,
    ResetAfterRequest,
    ResetBeforeRequest,
    Stall,
)
from .dead_ports import hanging_port, refusing_port
from .fault_proxy import FaultProxy, Forget, Forward
from .fault_server import FaultServer
from .framing_faults import (
    BadChunkSize,
    CutBody,
    EndlessBody,
    GarbageAfterReply,
    LengthAndChunks,
    MissingLastChunk,
    MisstatedLength,
    TwoLengths,
)
from .head_faults import BadStatusLine, CutHead, EndlessHeaders, HugeHeader, Interim, SwitchProtocols
from .recorded_request import RecordedRequest
from .retry_clock import RetryClock, skipped_waits
from .scripted import ScriptedAdapter, ScriptedReply, ScriptedTransport, SentRequest, scripted
from .switches import cap_attempts, retries_disabled
from .upload_faults import AnswerBeforeUpload, StopReading
from .wire import HangUp, Wire

__all__ = [
    "DEFAULT_BODY",
    "WELL",
    "AnswerBeforeUpload",
    "AttemptLog",
    "BadChunkSize",
    "BadStatusLine",
    "Behaviour",
    "CataloguedFault",
    "CloseAfterReply",
    "CloseAfterRequest",
    "CloseBeforeRequest",
    "CloseDuringHandshake",
    "CutBody",
    "CutHead",
    "Drip",
    "EndlessBody",
    "EndlessHeaders",
    "FakeClock",
    "FaultProxy",
    "FaultServer",
    "Forget",
    "Forward",
    "GarbageAfterReply",
    "HalfClose",
    "HangUp",
    "HugeHeader",
    "Interim",
    "LengthAndChunks",
    "MissingLastChunk",
    "MisstatedLength",
    "ReadSoFar",
    "RecordedRequest",
    "Reply",
    "ResetAfterRequest",
    "ResetBeforeRequest",
    "RetryClock",
    "ScriptedAdapter",
    "ScriptedReply",
    "ScriptedTransport",
    "SentRequest",
    "Stall",
    "StopReading",
    "SwitchProtocols",
    "TwoLengths",
    "Wire",
    "cap_attempts",
    "coded_reply",
    "fault_catalogue",
    "gzip_bomb",
    "hanging_port",
    "refusing_port",
    "retries_disabled",
    "scripted",
    "skipped_waits",
    "try_later",
    "watched_attempts",
]
