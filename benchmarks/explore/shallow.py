"""The shallow depth: a plan's faults as urllib3 tells of them, without urllib3. Faster; ``wire`` is out of it."""

from __future__ import annotations

import io
from typing import Any

import requests
import urllib3.exceptions as uex
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse

from requests_smithy_retry.wire.state import this_thread

from .server import NO_BODY, Exchange, content, error_content, request_body
from .tasks import tasks

_BEGUN = object()


def _passes(seconds: float, patience: float) -> bool:
    """Wait for something that takes so long; return False if it takes too long."""
    most = this_thread.rest(patience)
    assert most is not None
    tasks.wait(min(seconds, most))
    return seconds < most


class _Stream(io.RawIOBase):
    """A body that stalls or breaks at a byte."""

    def __init__(self, data: bytes, exchange: Exchange, patience: float) -> None:
        self._data, self._at, self._exchange, self._patience = data, 0, exchange, patience

    def read(self, size: int = -1) -> bytes:
        met = self._exchange.met
        end = len(self._data) if size is None or size < 0 else min(len(self._data), self._at + size)
        cut = min(met.at, len(self._data)) if met.fault else None
        if cut is not None and self._at <= cut < max(end, 1):
            if met.fault in ("end", "reset"):
                raise ConnectionResetError(104, "Connection reset by peer")
            if not _passes(met.seconds, self._patience):
                raise TimeoutError("timed out")
        part, self._at = self._data[self._at : end], end
        return part


def send(adapter: HTTPAdapter, request: Any, call: Any, exchange: Exchange, timeout: Any, report: Any) -> Any:
    """Return the response of an attempt, or raise as ``requests`` does."""
    met = exchange.met
    connect, read = timeout if isinstance(timeout, tuple) else (timeout, timeout)
    connect = getattr(connect, "_connect", connect) or 60.0
    read = getattr(read, "_read", read) or 60.0
    this_thread.connecting = True
    if met.resolve == "unknown" or met.connect == "refused":
        tasks.wait(0.001)
        raise requests.ConnectionError(uex.NewConnectionError(_BEGUN, "refused"), request=request)
    if (met.connect or met.resolve) and not _passes(met.seconds, connect):
        raise requests.ConnectTimeout(uex.ConnectTimeoutError("late"), request=request)
    this_thread.connecting = False
    exchange.written = 1 + min(met.request_at, 100) * bool(met.request)
    _read_body(request, call, report)
    exchange.was_whole = not met.request
    if not _passes(met.seconds if met.request == "stall" else met.latency, read):
        raise requests.ReadTimeout(uex.ReadTimeoutError(None, None, "late"), request=request)
    if met.request or (met.fault in ("end", "reset") and met.at < 90):
        inner = uex.ProtocolError("Connection aborted.", ConnectionResetError(104, "reset"))
        raise requests.ConnectionError(inner, request=request)
    if met.status >= 300 or met.status in NO_BODY:
        body = b"" if met.status in NO_BODY else error_content(call.number, exchange.number, met.size)
    else:
        body = content(call.number, met.version, call.op.answer)
    body = b"" if call.op.method == "HEAD" else body
    exchange.answer = met.status, body
    raw = HTTPResponse(
        body=_Stream(body, exchange, read) if met.fault else io.BytesIO(body),
        headers=dict(met.headers),
        status=met.status,
        preload_content=False,
        request_method=request.method,
    )
    return adapter.build_response(request, raw)


def _read_body(request: Any, call: Any, report: Any) -> None:
    body = request.body
    if body is None:
        return
    if hasattr(body, "read"):
        body = body.read()
    elif not isinstance(body, bytes):
        body = b"".join(body)
    if body != request_body(call.number, call.op.length):
        report(f"spliced: the body of operation {call.number} is another one: {body[:40]!r}, {len(body)} bytes")
