"""The way of every send while a test runs under faults: to its service, or over a virtual wire.

The service is whatever answers beneath the client: a mock (``responses``, ``requests-mock``, an adapter of the suite's
own) or a server behind ``HTTPAdapter``. A send that meets a fault gets the service's answer over a virtual connection,
through the real code of requests and urllib3, retries of urllib3 included, and beneath a :class:`RetryAdapter`.
"""

from __future__ import annotations

import copy
import errno
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import FrameType, SimpleNamespace
from typing import Any
from unittest import mock

from requests import PreparedRequest, Response, Session
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.exceptions import RequestException
from urllib3.connection import HTTPConnection
from urllib3.util import connection as urllib3_connection

from ..behaviour import Reply
from .runs import Run, SendFault, Sent
from .virtual_wire import VirtualSocket, taped

Service = Callable[[PreparedRequest], Response]

_real_send = HTTPAdapter.send
_SENDING = Session.send.__code__
_OPTIONS = ("stream", "timeout", "verify", "cert", "proxies")
_FRAMING = frozenset({"content-length", "transfer-encoding", "content-encoding", "connection"})


class _Here(threading.local):
    """The place of a thread between a client and its service."""

    is_below: bool = False
    """The service is being asked: what it sends by itself is no send of the client's."""
    wire: _Wire | None = None
    """New connections are virtual, and lead here."""
    service: Service | None = None
    """The stand-in that answers an adapter's sends, and in whose place the adapter sends now."""


_here = _Here()


class _Wire:
    """The virtual connections of one send, of which urllib3 may make several."""

    def __init__(self, run: Run, sent: Sent, request: PreparedRequest, service: Service) -> None:
        self._run = run
        self._request = request
        self._service = service
        self.is_used: bool = False
        """A connection was made: the adapter does send over one of urllib3's."""
        self._next: tuple[SendFault | None, Reply] | None = self._prepared(sent)

    def _prepared(self, sent: Sent) -> tuple[SendFault | None, Reply]:
        """Ask the service first: an error of its own is no fault of the wire."""
        fault = self._run.fault if sent.struck else None
        if fault is not None and not fault.applied:
            return fault, Reply()
        response = asked(self._service, self._request, sent)
        raw_headers: Any = getattr(response.raw, "headers", None) or response.headers
        headers = [(name, value) for name, value in raw_headers.items() if name.lower() not in _FRAMING]
        return fault, Reply(response.status_code, headers, response.content or b"")

    def connect(self) -> VirtualSocket:
        """Return the next connection, or raise ``ConnectionRefusedError`` if that is the fault."""
        fault, reply = self._next or self._prepared(self._run.begin(self._request))
        self._next, self.is_used = None, True
        if fault is not None and fault.behaviour is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        behaviour: Any = reply if fault is None or fault.behaviour is None else fault.behaviour(reply)
        return VirtualSocket(taped(behaviour, str(self._request.method)), self._run.clock)


def asked(service: Service, request: PreparedRequest, sent: Sent) -> Response:
    """Return the service's answer to a request, whose body is left as it was as far as that is possible."""
    body: Any = request.body
    position = body.tell() if hasattr(body, "tell") and hasattr(body, "seek") else None
    _here.is_below = sent.asked = True
    try:
        response = service(request)
    finally:
        _here.is_below = False
        if position is not None and sent.struck:
            body.seek(position)
    sent.is_well, sent.answer = response.status_code < 400, response
    return response


def _passed(adapter: Any, request: PreparedRequest, options: dict[str, Any], service: Service) -> Response:
    """Make one send of a client."""
    run = run_under_way()
    if run is None or _here.is_below or _here.wire is not None:
        return service(request)
    service = _here.service or service
    if run.strikes_next and not isinstance(adapter, HTTPAdapter):
        mounted = _mounted(sys._getframe(1), request)
        if mounted is not None:
            with mock.patch.object(_here, "service", service):
                return mounted.send(request, **options)
    sent = run.begin(request)
    if not sent.struck:
        return asked(service, request, sent)
    return _over_the_wire(_Wire(run, sent, request, service), sent, adapter, request, options)


def _mounted(frame: FrameType | None, request: PreparedRequest) -> HTTPAdapter | None:
    """Return the adapter whose place a stand-in took, as requests-mock does; None if the stand-in itself is mounted."""
    while frame is not None and frame.f_code is not _SENDING:
        frame = frame.f_back
    if frame is None:
        return None
    adapter = Session.get_adapter(frame.f_locals["self"], str(request.url))
    return adapter if isinstance(adapter, HTTPAdapter) else None


def _over_the_wire(
    wire: _Wire, sent: Sent, adapter: Any, request: PreparedRequest, options: dict[str, Any]
) -> Response:
    """Send over a virtual connection, without TLS, through the adapter's own pools and retries."""
    plain = request.copy()
    url = str(plain.url)
    plain.url = f"http{url[5:]}" if url.startswith("https") else url
    _here.wire = wire
    try:
        response = _real_send(_with_new_pools(adapter), plain, **{**options, "proxies": None})
    except RequestException as error:
        error.request = request
        raise
    finally:
        _here.wire = None
        sent.struck = wire.is_used
    response.url, response.request = url, request
    return response


def _with_new_pools(adapter: Any) -> HTTPAdapter:
    """Return a copy of an adapter without the connections of its pools, and with none of a recorder's."""
    made = copy.copy(adapter) if isinstance(adapter, HTTPAdapter) else HTTPAdapter()
    classes: dict[str, Any] = made.poolmanager.pool_classes_by_scheme
    pool_class = type("VirtualPool", (classes["http"],), {"ConnectionCls": HTTPConnection})
    made.poolmanager.pool_classes_by_scheme = {**classes, "http": pool_class}
    return made


_here_and_now = SimpleNamespace(run=None)
"""The run under way, in every thread; None: sends are let pass."""


def run_under_way() -> Run | None:
    """Return the run by which sends pass now."""
    run: Run | None = _here_and_now.run
    return run


def watched_sends(run: Run) -> AbstractContextManager[object]:
    """Have every send of the process pass by a run inside the block, in every thread."""
    return mock.patch.object(_here_and_now, "run", run)


class Detour:
    """Leads every send past the run under way, around what mocks of the suite replace: one for a session."""

    def __init__(self) -> None:
        self._replaced: dict[tuple[Any, str], Any] = {}

    def install(self) -> None:
        """Find the ways to send that there are by now, and lead those past that are not yet."""
        for adapter_class in (HTTPAdapter, *_stand_ins(BaseAdapter)):
            self._replace(adapter_class, "send", _send)
        responses: Any = sys.modules.get("responses")
        if responses is not None:
            self._replace(responses.RequestsMock, "_on_request", _on_request)
        self._replace(urllib3_connection, "create_connection", _create_connection)

    def _replace(self, owner: Any, name: str, stand_in: Callable[[Any], Any]) -> None:
        if (owner, name) not in self._replaced:
            real = self._replaced[owner, name] = owner.__dict__[name]
            setattr(owner, name, stand_in(real))

    def remove(self) -> None:
        """Put everything back."""
        for (owner, name), real in self._replaced.items():
            setattr(owner, name, real)
        self._replaced.clear()


def _stand_ins(base: type[BaseAdapter]) -> Iterator[type[BaseAdapter]]:
    """Yield the adapters that are not built on requests' own: those of mocks, as a rule."""
    for adapter_class in base.__subclasses__():
        if not issubclass(adapter_class, HTTPAdapter):
            if "send" in adapter_class.__dict__:
                yield adapter_class
            yield from _stand_ins(adapter_class)


def _send(real: Any) -> Any:
    @functools.wraps(real)
    def send(self: Any, request: PreparedRequest, *args: Any, **options: Any) -> Response:
        named = {**dict(zip(_OPTIONS, args, strict=False)), **options}
        return _passed(self, request, named, lambda asked: real(self, asked, **named))

    return send


def _on_request(real: Any) -> Any:
    """Stand in for the method with which a mock of ``responses`` answers, in place of ``HTTPAdapter.send``."""

    @functools.wraps(real)
    def on_request(self: Any, adapter: Any, request: PreparedRequest, **options: Any) -> Response:
        named = {name: value for name, value in options.items() if name in _OPTIONS}
        return _passed(adapter, request, named, lambda asked: real(self, adapter, asked, **options))

    return on_request


def _create_connection(real: Any) -> Any:
    @functools.wraps(real)
    def create_connection(*args: Any, **options: Any) -> Any:
        wire = None if _here.is_below else _here.wire
        return real(*args, **options) if wire is None else wire.connect()

    return create_connection
