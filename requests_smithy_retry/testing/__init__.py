"""A kit for testing HTTP clients and their retries.

On real sockets: a server and a proxy with scripted faults. Without sockets: a transport that plays a script. Around
code under test: waits that take no time, a log of attempts, and switches for retries.
"""

from __future__ import annotations

from .behaviour import DEFAULT_BODY, WELL, Behaviour, ReadSoFar, Reply, coded_reply, gzip_bomb, try_later
from .catalogue import CataloguedFault, fault_catalogue
from .clock import FakeClock, RetryClock, skipped_waits
from .connection_faults import (
    AnswerBeforeUpload,
    CloseAfterReply,
    CloseAfterRequest,
    CloseBeforeRequest,
    CloseDuringHandshake,
    Drip,
    HalfClose,
    ResetAfterRequest,
    ResetBeforeRequest,
    Stall,
    StopReading,
)
from .every_send import AttemptLog, cap_attempts, retries_disabled, watched_attempts
from .fault_proxy import FaultProxy, Forget, Forward
from .fault_server import FaultServer, hanging_port, refusing_port
from .recorded_request import RecordedRequest
from .reply_faults import (
    BadChunkSize,
    BadStatusLine,
    CutBody,
    CutHead,
    EndlessBody,
    EndlessHeaders,
    GarbageAfterReply,
    HugeHeader,
    Interim,
    LengthAndChunks,
    MissingLastChunk,
    MisstatedLength,
    SwitchProtocols,
    TwoLengths,
)
from .scripted import ScriptedAdapter, ScriptedReply, ScriptedTransport, SentRequest, scripted
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
