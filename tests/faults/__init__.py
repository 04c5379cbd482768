"""Faults that few users of retries need, but their library does: a server, a proxy, and a table of them all.

It stands on the public server of :mod:`requests_smithy_retry.testing`, and has its names, too.
"""
# ruff: noqa: F401 - these are its names

from requests_smithy_retry.testing import (
    WELL,
    Behaviour,
    CloseAfterReply,
    CloseAfterRequest,
    CutBody,
    Drip,
    RecordedRequest,
    Reply,
    ResetAfterRequest,
    Wire,
    refusing_port,
)

from .catalogue import CataloguedFault, fault_catalogue
from .connection import AnswerBeforeUpload, CloseBeforeRequest, HalfClose, ResetBeforeRequest, Stall, StopReading
from .proxy import FaultProxy, Forget, Forward
from .reply import (
    DEFAULT_BODY,
    BadChunkSize,
    BadStatusLine,
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
    coded_reply,
    gzip_bomb,
    try_later,
)
from .server import EarlyFault, FaultServer, ReadSoFar, hanging_port
