"""A kit for testing HTTP clients on real sockets: a server, and a proxy, that misbehave as they are told."""

from __future__ import annotations

from .behaviour import DEFAULT_BODY, WELL, Behaviour, ReadSoFar, Reply, try_later
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
from .recorded_request import RecordedRequest
from .wire import HangUp, Wire

__all__ = [
    "DEFAULT_BODY",
    "WELL",
    "BadChunkSize",
    "Behaviour",
    "CloseAfterReply",
    "CloseAfterRequest",
    "CloseBeforeRequest",
    "CloseDuringHandshake",
    "CutBody",
    "Drip",
    "EndlessBody",
    "FaultServer",
    "GarbageAfterReply",
    "HalfClose",
    "HangUp",
    "LengthAndChunks",
    "MissingLastChunk",
    "MisstatedLength",
    "ReadSoFar",
    "RecordedRequest",
    "Reply",
    "ResetAfterRequest",
    "ResetBeforeRequest",
    "Stall",
    "TwoLengths",
    "Wire",
    "try_later",
]
