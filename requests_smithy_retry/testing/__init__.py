"""A kit for testing HTTP clients and their retries.

On real sockets: a server with scripted faults. Without sockets: a transport that plays a script. Around code under
test: waits that take no time, a log of attempts, and switches for retries.
"""

from __future__ import annotations

from ..forksafe import forget_everything
from .attempts import AttemptLog, cap_attempts, retries_disabled, watched_attempts
from .clock import FakeClock, RetryClock, skipped_waits
from .fault_server import (
    WELL,
    Behaviour,
    CloseAfterReply,
    CloseAfterRequest,
    CutBody,
    Drip,
    FaultServer,
    RecordedRequest,
    Reply,
    ResetAfterRequest,
    Wire,
    refusing_port,
)
from .scripted import ScriptedAdapter, ScriptedReply, ScriptedTransport, SentRequest, scripted

__all__ = [
    "WELL",
    "AttemptLog",
    "Behaviour",
    "CloseAfterReply",
    "CloseAfterRequest",
    "CutBody",
    "Drip",
    "FakeClock",
    "FaultServer",
    "RecordedRequest",
    "Reply",
    "ResetAfterRequest",
    "RetryClock",
    "ScriptedAdapter",
    "ScriptedReply",
    "ScriptedTransport",
    "SentRequest",
    "Wire",
    "cap_attempts",
    "forget_everything",
    "refusing_port",
    "retries_disabled",
    "scripted",
    "skipped_waits",
    "watched_attempts",
]
