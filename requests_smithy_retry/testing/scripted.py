"""A transport without sockets, which plays a script and records the requests."""

from __future__ import annotations

import http.client
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from requests.exceptions import ConnectionError as RequestsConnectionError
from urllib3 import HTTPResponse
from urllib3.exceptions import EmptyPoolError
from urllib3.util.retry import Retry

from ..adapter import RetryAdapter
from .clock import FakeClock


@dataclass
class ScriptedReply:
    """A scripted response.

    :param cut: True if the connection breaks after the body.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: bool = False


@dataclass
class SentRequest:
    """The request that the transport received for one attempt.

    :param headers: a copy of the headers.
    :param body: all bytes that would have been sent; None without a body.
    :param options: the other arguments of ``send``.
    """

    method: str | None
    url: str | None
    headers: dict[str, str]
    body: bytes | None
    options: dict[str, Any]
    request: PreparedRequest


Step = int | ScriptedReply | BaseException | Callable[[PreparedRequest], Any]


class _Cut(io.RawIOBase):
    """A stream that breaks after its last byte."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        data = self._data.read(size)
        if not data:
            raise http.client.IncompleteRead(b"", 10)
        return data


class ScriptedTransport(HTTPAdapter):
    """A transport behind :class:`RetryAdapter` in the MRO, which plays a script instead of opening sockets.

    :param script: one item per attempt: a status, a :class:`ScriptedReply`, an exception to raise, or a function of the
        request that returns one of these.
    """

    def __init__(self, *args: Any, script: Iterable[Step] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.script: list[Step] = list(script)
        self.sent: list[SentRequest] = []
        self.responses: list[Response] = []

    def send(self, request: PreparedRequest, **options: Any) -> Response:  # type: ignore[override]
        """Play the next step. The body is read to its end first, unless nothing would be written."""
        if not self.script:
            raise AssertionError(f"attempt {len(self.sent) + 1} was not in the script")
        step = self.script.pop(0)
        inner = step.args[:1] if isinstance(step, RequestsConnectionError) else ()
        is_unwritten = bool(inner) and isinstance(inner[0], EmptyPoolError)
        body = None if is_unwritten else wire_bytes(request.body)
        headers: dict[str, Any] = dict(request.headers.items())
        self.sent.append(SentRequest(request.method, request.url, headers, body, options, request))
        while callable(step) and not isinstance(step, BaseException):
            step = step(request)
        if isinstance(step, BaseException):
            try:
                raise step
            finally:
                del step  # avoids a cycle through the traceback
        reply = ScriptedReply(step) if isinstance(step, int) else step
        raw = HTTPResponse(
            body=_Cut(reply.body) if reply.cut else io.BytesIO(reply.body),
            headers=dict(reply.headers),
            status=reply.status,
            preload_content=False,
            request_method=request.method,
            retries=Retry(0, read=False),
        )
        response = self.build_response(request, raw)
        self.responses.append(response)
        return response


class ScriptedAdapter(RetryAdapter, ScriptedTransport):  # type: ignore[misc]  # it passes keywords on
    """A :class:`RetryAdapter` with a scripted transport beneath it."""

    clock: FakeClock
    """The clock from :func:`scripted`, unless the caller gave another."""


def scripted(*script: Step, **options: Any) -> ScriptedAdapter:
    """Make an adapter that plays these steps on a :class:`FakeClock`, by default without jitter.

    :param options: the adapter's options, ``clock`` and ``jitter`` included. A built-in ``strategy`` needs a fake
        clock, which the adapter then uses, too; the same goes for a wrapper with ``self.clock = inner.clock``.
    """
    theirs = getattr(options.get("strategy"), "clock", None)
    options.setdefault("clock", theirs if isinstance(theirs, FakeClock) else FakeClock())
    if "strategy" not in options and "config" not in options:
        options.setdefault("jitter", "none")
    return ScriptedAdapter(script=script, **options)  # type: ignore[call-arg]  # the transport takes it


def wire_bytes(body: Any) -> bytes | None:
    """Return the bytes of a body as they would be sent; read or iterate it."""
    if body is None:
        return None
    if hasattr(body, "read"):
        body = body.read()
    if isinstance(body, str):
        return body.encode()
    try:
        return bytes(memoryview(body))
    except TypeError:
        return b"".join(part.encode() if isinstance(part, str) else bytes(part) for part in body)
