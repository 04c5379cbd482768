"""Helpers for tests: an adapter whose transport is a script, so that no socket is opened and no time passes."""

from __future__ import annotations

import http.client
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import requests
import requests.exceptions
import urllib3.exceptions
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter
from requests_smithy_retry.testing.clock import FakeClock

URL = "https://api.example.com/things"


@dataclass
class Reply:
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
class Sent:
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


Step = int | Reply | BaseException | Callable[[PreparedRequest], Any]


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

    :param script: a status, a :class:`Reply`, an exception to raise, or a function of the request that gives one of
        these; one per attempt.
    """

    def __init__(self, *args: Any, script: Iterable[Step] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.script = list(script)
        self.sent: list[Sent] = []
        self.responses: list[Response] = []

    def send(self, request: PreparedRequest, **options: Any) -> Response:  # type: ignore[override]
        """Play the next step. The body is read to its end first, as a wire would, unless nothing would be written."""
        if not self.script:
            raise AssertionError(f"attempt {len(self.sent) + 1} was not in the script")
        step = self.script.pop(0)
        body = None if is_unwritten(step) else wire_bytes(request.body)
        self.sent.append(Sent(request.method, request.url, dict(request.headers), body, options, request))
        while callable(step) and not isinstance(step, BaseException):
            step = step(request)
        if isinstance(step, BaseException):
            try:
                raise step
            finally:
                del step  # else the exception's traceback would refer to the exception
        reply = Reply(step) if isinstance(step, int) else step
        response = self.build_response(request, _raw(reply, request))
        self.responses.append(response)
        return response


class ScriptedAdapter(RetryAdapter, ScriptedTransport):
    """The adapter under test with a scripted transport beneath it."""


def scripted(*script: Step, **options: Any) -> ScriptedAdapter:
    """An adapter that plays these steps on a :class:`FakeClock`, without jitter unless asked for.

    :param options: of the adapter; ``clock`` and ``jitter`` too.
    """
    options.setdefault("clock", FakeClock())
    if "strategy" not in options and "config" not in options:
        options.setdefault("jitter", "none")
    return ScriptedAdapter(script=script, **options)


def prepare(method: str = "GET", url: str = URL, *, data: Any = None, headers: Any = None) -> PreparedRequest:
    """A prepared request."""
    return requests.Request(method, url, data=data, headers=headers).prepare()


def send(
    adapter: HTTPAdapter,
    method: str = "GET",
    url: str = URL,
    *,
    data: Any = None,
    headers: Any = None,
    **options: Any,
) -> Response:
    """Prepare a request and send it through the adapter."""
    return adapter.send(prepare(method, url, data=data, headers=headers), **options)


def session_with(adapter: HTTPAdapter) -> requests.Session:
    """A session with the adapter on both schemes, blind to the environment."""
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


def pin_random(strategy: Any, value: float) -> None:
    """Have the backoff draw this number each time."""
    for backoff in (strategy.backoff_strategy, strategy.throttling_backoff_strategy):
        backoff.random = lambda: value


def reset_error() -> requests.exceptions.ConnectionError:
    """A connection that was reset after the request was written."""
    inner = urllib3.exceptions.ProtocolError("Connection aborted.", ConnectionResetError(104, "reset"))
    return requests.exceptions.ConnectionError(inner)


def read_timeout() -> requests.exceptions.ReadTimeout:
    """An answer that did not come in time."""
    return requests.exceptions.ReadTimeout(urllib3.exceptions.ReadTimeoutError(None, URL, "timed out"))  # type: ignore[arg-type]


def pool_timeout() -> requests.exceptions.ConnectionError:
    """No connection was free in time, so nothing was written."""
    return requests.exceptions.ConnectionError(urllib3.exceptions.EmptyPoolError(None, "full"))  # type: ignore[arg-type]


def is_unwritten(step: Any) -> bool:
    """Whether a step is an exception after which nothing was written."""
    inner = step.args[0] if isinstance(step, requests.exceptions.ConnectionError) and step.args else None
    return isinstance(inner, urllib3.exceptions.EmptyPoolError)


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


def _raw(reply: Reply, request: PreparedRequest) -> HTTPResponse:
    return HTTPResponse(
        body=_Cut(reply.body) if reply.cut else io.BytesIO(reply.body),
        headers=dict(reply.headers),
        status=reply.status,
        preload_content=False,
        request_method=request.method,
        retries=Retry(0, read=False),
    )
