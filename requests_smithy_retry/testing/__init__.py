"""A kit for testing HTTP clients on real sockets: a server, and a proxy, that misbehave as they are told."""

from __future__ import annotations

from .behaviour import DEFAULT_BODY, WELL, Behaviour, ReadSoFar, Reply, try_later
from .catalogue import CataloguedFault, fault_catalogue
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
from .fault_proxy import FaultProxy, Forward
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
from .upload_faults import AnswerBeforeUpload, StopReading
from .wire import HangUp, Wire

__all__ = [
    "DEFAULT_BODY",
    "WELL",
    "AnswerBeforeUpload",
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
    "FaultProxy",
    "FaultServer",
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
    "Stall",
    "StopReading",
    "SwitchProtocols",
    "TwoLengths",
    "Wire",
    "coded_reply",
    "fault_catalogue",
    "gzip_bomb",
    "hanging_port",
    "refusing_port",
    "try_later",
]
