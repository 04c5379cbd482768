"""A transport without sockets: it plays a script, and records what it was given to send."""

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

    :param status: of the response.
    :param headers: of the response.
    :param body: what it says.
    :param cut: the body breaks off after what it says.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: bool = False


@dataclass
class SentRequest:
    """What the transport was given at one attempt.

    :param method: of the request.
    :param url: of the request.
    :param headers: a copy.
    :param body: all bytes that a wire would have carried; None for no body.
    :param options: the other arguments of ``send``.
    :param request: the object itself.
    """

    method: str | None
    url: str | None
    headers: dict[str, str]
    body: bytes | None
    options: dict[str, Any]
    request: PreparedRequest


Step = int | ScriptedReply | BaseException | Callable[[PreparedRequest], Any]


class _Cut(io.RawIOBase):
    """A stream that breaks off after its last byte."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        data = self._data.read(size)
        if not data:
            raise http.client.IncompleteRead(b"", 10)
        return data


class ScriptedTransport(HTTPAdapter):
    """Stands behind :class:`RetryAdapter` in the MRO and plays a script instead of opening sockets.

    :param script: a status, a :class:`ScriptedReply`, an exception to raise, or a function of the request that
        gives one of these; one per attempt.
    """

    def __init__(self, *args: Any, script: Iterable[Step] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.script: list[Step] = list(script)
        self.sent: list[SentRequest] = []
        self.responses: list[Response] = []

    def send(self, request: PreparedRequest, **options: Any) -> Response:  # type: ignore[override]
        """Play the next step. The body is read to its end first, as a wire would, unless nothing would be written."""
        if not self.script:
            raise AssertionError(f"attempt {len(self.sent) + 1} was not in the script")
        step = self.script.pop(0)
        body = None if _is_unwritten(step) else wire_bytes(request.body)
        headers: dict[str, Any] = dict(request.headers.items())
        self.sent.append(SentRequest(request.method, request.url, headers, body, options, request))
        while callable(step) and not isinstance(step, BaseException):
            step = step(request)
        if isinstance(step, BaseException):
            try:
                raise step
            finally:
                del step  # else the exception's traceback would refer to the exception
        reply = ScriptedReply(step) if isinstance(step, int) else step
        response = self.build_response(request, _raw(reply, request))
        self.responses.append(response)
        return response


class ScriptedAdapter(RetryAdapter, ScriptedTransport):  # type: ignore[misc]  # it hands keywords on
    """A :class:`RetryAdapter` with a scripted transport beneath it."""

    clock: FakeClock
    """What :func:`scripted` gives it, unless it was told to take another."""


def scripted(*script: Step, **options: Any) -> ScriptedAdapter:
    """An adapter that plays these steps on a :class:`FakeClock`, without jitter unless asked for.

    :param options: of the adapter; ``clock`` and ``jitter`` too.
    """
    options.setdefault("clock", FakeClock())
    if "strategy" not in options and "config" not in options:
        options.setdefault("jitter", "none")
    return ScriptedAdapter(script=script, **options)  # type: ignore[call-arg]  # the transport takes it


def _is_unwritten(step: Any) -> bool:
    """Whether a step is an exception after which nothing was written."""
    inner = step.args[0] if isinstance(step, RequestsConnectionError) and step.args else None
    return isinstance(inner, EmptyPoolError)


def wire_bytes(body: Any) -> bytes | None:
    """What a wire would carry of a body, drawing on it as a wire would."""
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


def _raw(reply: ScriptedReply, request: PreparedRequest) -> HTTPResponse:
    return HTTPResponse(
        body=_Cut(reply.body) if reply.cut else io.BytesIO(reply.body),
        headers=dict(reply.headers),
        status=reply.status,
        preload_content=False,
        request_method=request.method,
        retries=Retry(0, read=False),
    )
