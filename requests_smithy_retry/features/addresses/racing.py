"""Connecting to one of several addresses (RFC 8305): attempts begin staggered, and the first that connects wins.

An address gets 250 ms before the next one is tried beside it; if an attempt fails, the next begins at once. If the
second one does not answer either, the others follow in waves: two after 10 ms, four after another 10 ms. So one healthy
address among eight is found within 300 ms.

Sockets that may not work with selectors are tried one after another, as in urllib3.
"""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...clock import SYSTEM_CLOCK
from ...interruptions import is_interruption
from ...wire.state import this_thread

FIRST_DELAY = 0.25
"""Seconds after the first attempt at which the next one begins, unless the first has ended (RFC 8305 section 5)."""
LATER_DELAY = 0.01
"""The seconds between later waves."""

_now = SYSTEM_CLOCK.now


class Candidate(NamedTuple):
    """An address to connect to."""

    name: str
    family: int
    proto: int
    sockaddr: Any


class How(NamedTuple):
    """The parameters of the sockets; the timeout is each address's, in seconds, None for no limit."""

    timeout: float | None
    source_address: Any
    socket_options: Sequence[Any]


class _Pending(NamedTuple):
    """An attempt under way: its address, its beginning, and the moment at which its own time is over."""

    candidate: Candidate
    began: float
    until: float | None


def connect_socket(sock: Any, sockaddr: Any, seconds: float | None, how: Any) -> None:
    """Connect a socket, after setting its options.

    :param how: a :class:`How`, or a connection, which has the same attributes.
    """
    for option in how.socket_options or ():
        sock.setsockopt(*option)
    sock.settimeout(seconds)
    if how.source_address:
        sock.bind(how.source_address)
    sock.connect(sockaddr)


def can_stagger(source_address: Any) -> bool:
    """Return False if attempts must run one after another.

    That is so with a fixed source port, which only one socket can have, and with a foreign socket class (PySocks, a
    recorder), which may not support non-blocking sockets.
    """
    if source_address and source_address[1]:
        return False
    made_by, waited_by = socket.socket.__module__, selectors.DefaultSelector.__module__
    if made_by == "socket":
        return waited_by == "selectors"
    return made_by.startswith("gevent.") and waited_by.startswith("gevent.")


class Race:
    """Makes one connection to one of several addresses, which are tried in order."""

    def __init__(self, ahead: list[Candidate], how: How) -> None:
        self.ahead = ahead
        self.how = how
        self.failed: dict[str, str] = {}
        """Each address that failed or was outrun, and the name of its exception; complete at the end."""
        self._pending: dict[Any, _Pending] = {}
        self._socks: list[Any] = []
        self._error: OSError | None = None

    def run(self) -> tuple[Any, Candidate]:
        """Return the connected socket and its address; close all other sockets.

        :raises OSError: the last failure, if every address failed; ``TimeoutError`` once the deadline has passed.
        """
        won = None
        try:
            won = self._side_by_side() if can_stagger(self.how.source_address) else self._one_by_one()
            if won is None:
                assert self._error is not None
                raise self._error
        except OSError:
            self._outrun(began_by=_now() - FIRST_DELAY)
            raise
        finally:
            self.close(won and won[0])
            if self.failed:
                self._error = None  # its traceback refers to this race
        return won

    def close(self, but: Any = None) -> None:
        """Close all sockets but the winner, if there is one."""
        for sock in self._socks:
            if sock is not but:
                sock.close()

    def _one_by_one(self) -> tuple[Any, Candidate] | None:
        while self.ahead:
            candidate = self.ahead.pop(0)
            seconds = this_thread.seconds(self.how.timeout)
            left = this_thread.seconds(None) if self.ahead else None
            if left is not None:
                seconds = min(seconds or left, left / (len(self.ahead) + 1))
            sock = self._begin(candidate, seconds)
            if sock is not None:
                return sock, candidate
        return None

    def _side_by_side(self) -> tuple[Any, Candidate] | None:
        waves, next_at = 0, 0.0
        with selectors.DefaultSelector() as selector:
            while self._pending or self.ahead:
                failures = len(self.failed)
                if self.ahead and (not self._pending or _now() >= next_at):
                    waves = waves + 1 if self._pending else 0
                    won = self._begin_wave(selector, max(1, 2**waves // 2))
                    next_at = _now() + (LATER_DELAY if waves else _patience())
                else:
                    won = self._wait(selector, next_at if self.ahead else None)
                if won is not None:
                    return won
                if len(self.failed) > failures:
                    next_at = _now()
        return None

    def _begin_wave(self, selector: selectors.BaseSelector, size: int) -> tuple[Any, Candidate] | None:
        """Begin ``size`` attempts, or as many as there are addresses left; return one that connects at once."""
        for candidate in self.ahead[:size]:
            self.ahead.remove(candidate)
            sock = self._begin(candidate, this_thread.seconds(self.how.timeout), selector)
            if sock is not None:
                self._outrun(began_by=_now())
                return sock, candidate
        return None

    def _wait(self, selector: selectors.BaseSelector, until: float | None) -> tuple[Any, Candidate] | None:
        """Wait until an attempt ends, at most until a moment; return the first that is connected."""
        ends = [moment for moment in (until, *(item.until for item in self._pending.values())) if moment is not None]
        wait = max(0.0, min(ends) - _now()) if ends else None
        for key, _ in selector.select(this_thread.seconds(wait)):
            sock: Any = key.fileobj
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if not code:
                won = self._pending.pop(sock)
                self._outrun(began_by=won.began)
                return sock, won.candidate
            self._drop(selector, sock, OSError(code, os.strerror(code)))
        for sock, item in list(self._pending.items()):
            if item.until is not None and item.until <= _now():
                self._drop(selector, sock, TimeoutError("timed out"))
        return None

    def _drop(self, selector: selectors.BaseSelector, sock: Any, error: OSError) -> None:
        selector.unregister(sock)
        self._fail(self._pending.pop(sock).candidate, error)
        sock.close()

    def _begin(
        self, candidate: Candidate, seconds: float | None, selector: selectors.BaseSelector | None = None
    ) -> Any:
        """Begin an attempt; return its socket if that is connected. A failure is noted.

        :param seconds: the time that the address has; None for no limit.
        :param selector: reports a connection that is not made at once; None: wait for it here.
        """
        began = _now()
        sock: Any = None
        try:
            self._socks.append(socket.socket(candidate.family, socket.SOCK_STREAM, candidate.proto))
            sock = self._socks[-1]
            connect_socket(sock, candidate.sockaddr, seconds if selector is None else 0.0, self.how)
        except OSError as error:
            if selector is not None and isinstance(error, BlockingIOError):
                self._pending[sock] = _Pending(candidate, began, None if seconds is None else began + seconds)
                selector.register(sock, selectors.EVENT_WRITE)
                return None
            if sock is not None:
                sock.close()
            if is_interruption(error):
                raise
            self._fail(candidate, error)
            return None
        return sock

    def _fail(self, candidate: Candidate, error: OSError) -> None:
        self._error, self.failed[candidate.name] = error, type(error).__name__

    def _outrun(self, *, began_by: float) -> None:
        """Record the attempts under way that had begun by a moment: they lost to one that began later."""
        for item in self._pending.values():
            if item.began <= began_by:
                self.failed[item.candidate.name] = TimeoutError.__name__


def _patience() -> float:
    """Return the time after which the next address is tried beside the first, in seconds."""
    left = this_thread.seconds(None)
    return FIRST_DELAY if left is None else min(FIRST_DELAY, left / 4)
