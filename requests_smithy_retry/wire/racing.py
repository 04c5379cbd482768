"""Connecting to one of several addresses (RFC 8305): attempts begin staggered, and the first that connects wins.

An address gets 250 ms before the next one is tried beside it; where an attempt fails, the next begins at once. If the
second one does not answer either, the others follow in waves: two after 10 ms, four after another 10 ms. So one well
address among eight is found within 300 ms.

While addresses answer at once, there is one blocking socket at a time, as in urllib3. A selector is made only for the
first address that does not.
"""

from __future__ import annotations

import itertools
import os
import selectors
import socket
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..clock import SYSTEM_CLOCK
from ..interruptions import is_interruption
from .state import this_thread

FIRST_DELAY = 0.25
"""Seconds after the first attempt at which the next one begins, unless the first has ended (RFC 8305 section 5)."""
LATER_DELAY = 0.01
"""The seconds between later waves."""

_now = SYSTEM_CLOCK.now
# `tuple.__new__` saves the frame of a named tuple's own constructor, for every connection.
_candidate: Any = tuple.__new__


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
    options: Sequence[Any]


class _Pending(NamedTuple):
    """An attempt under way: its address, its beginning, and the moment at which its own time is over."""

    candidate: Candidate
    began: float
    until: float | None


def candidates(found: Iterable[Any]) -> list[Candidate]:
    """Return the resolver's addresses in its order, families alternating (RFC 8305 section 4), each once."""
    named: dict[str, Candidate] = {}
    for family, _, proto, _, sockaddr in found:
        name = sockaddr[0] if len(sockaddr) == 2 else address_text(sockaddr)
        if name not in named:
            named[name] = _candidate(Candidate, (name, family, proto, sockaddr))
    if len(named) < 3:
        return list(named.values())
    families: dict[int, list[Candidate]] = {}
    for candidate in named.values():
        families.setdefault(candidate.family, []).append(candidate)
    rows = itertools.zip_longest(*families.values())
    return [candidate for row in rows for candidate in row if candidate is not None]


def address_text(sockaddr: Sequence[Any]) -> str:
    """Return an address as text. A link-local address of IPv6 needs its scope, the interface's number."""
    host = str(sockaddr[0])
    scope = sockaddr[3] if len(sockaddr) == 4 and "%" not in host else 0
    return f"{host}%{scope}" if scope else host


def open_socket(family: int, proto: int, sockaddr: Any, seconds: float | None, how: How) -> Any:
    """Return a connected socket."""
    sock: Any = None
    try:
        sock = socket.socket(family, socket.SOCK_STREAM, proto)
        connect_socket(sock, sockaddr, seconds, how)
        return sock
    except BaseException:
        if sock is not None:
            sock.close()
        raise


def connect_socket(sock: Any, sockaddr: Any, seconds: float | None, how: How) -> None:
    """Connect a socket, with everything that is to be said to it before."""
    for option in how.options:
        sock.setsockopt(*option)
    sock.settimeout(seconds)
    if how.source_address:
        sock.bind(how.source_address)
    sock.connect(sockaddr)


def can_stagger(source_address: Any) -> bool:
    """Return False where attempts have to follow each other.

    That is the case with a fixed source port, which only one socket can have, and with a foreign socket class (PySocks,
    a recorder), which need not know of non-blocking sockets.
    """
    if source_address and source_address[1]:
        return False
    made_by, waited_by = socket.socket.__module__, selectors.DefaultSelector.__module__
    if made_by == "socket":
        return waited_by == "selectors"
    return made_by.startswith("gevent.") and waited_by.startswith("gevent.")


class Race:
    """One connection to be made to one of several addresses, which are tried in their order."""

    _error: OSError | None = None

    def __init__(self, addresses: Sequence[Candidate], how: How) -> None:
        self._ahead = [*addresses]
        self._how = how
        self._staggers = can_stagger(how.source_address)
        self._pending: dict[Any, _Pending] = {}
        self._socks: list[Any] = []
        self.failed: dict[str, str] = {}
        """Each address that failed or was outrun, and the name of its exception. Complete once the race is over."""

    def run(self) -> tuple[Any, Candidate]:
        """Return the connected socket and its address; close all other sockets.

        :raises OSError: the last failure, where every address failed; ``TimeoutError`` once the deadline has passed.
        """
        won = None
        try:
            won = self._one_by_one() or self._side_by_side()
        except OSError:
            self._outrun(began_by=_now() - FIRST_DELAY)
            raise
        finally:
            self.close(won and won[0])
            if self.failed:
                self._error = None  # its traceback refers to this race
        return won

    def close(self, but: Any = None) -> None:
        """Close all sockets.

        :param but: the winner, unless an interruption came before somebody had it.
        """
        for sock in self._socks:
            if sock is not but:
                sock.close()

    def _one_by_one(self) -> tuple[Any, Candidate] | None:
        """Try until an address connects; return None if one does not answer soon."""
        while self._ahead and not self._pending:
            candidate = self._ahead.pop(0)
            most = this_thread.seconds(self._how.timeout)
            sock = self._begin(candidate, self._patience(most), most)
            if sock is not None:
                return sock, candidate
        return None

    def _patience(self, most: float | None) -> float | None:
        """Return the time after which the next address is tried, in seconds."""
        if not self._ahead:
            return most
        left = None if this_thread.deadline is None else this_thread.seconds(None)
        if not self._staggers:
            return most if left is None else left / (len(self._ahead) + 1)
        delay = FIRST_DELAY if left is None else min(FIRST_DELAY, left / 4)
        return delay if most is None or delay < most else most

    def _side_by_side(self) -> tuple[Any, Candidate]:
        """Wait for the first address, and try the others beside it."""
        with selectors.DefaultSelector() as selector:
            for sock in self._pending:
                selector.register(sock, selectors.EVENT_WRITE)
            size, next_at = 1, _now()
            while self._pending or self._ahead:
                if self._ahead and (not self._pending or _now() >= next_at):
                    won = self._begin_wave(selector, size)
                    size, next_at = 2 * size, _now() + LATER_DELAY
                else:
                    failures = len(self.failed)
                    won = self._wait(selector, next_at if self._ahead else None)
                    if len(self.failed) > failures:
                        next_at = _now()
                if won is not None:
                    return won
        assert self._error is not None
        raise self._error

    def _begin_wave(self, selector: selectors.BaseSelector, size: int) -> tuple[Any, Candidate] | None:
        """Begin ``size`` attempts, or as many as there are addresses left; return one that connects at once."""
        before = len(self._pending)
        while self._ahead and len(self._pending) < before + size:
            candidate, known = self._ahead.pop(0), set(self._pending)
            sock = self._begin(candidate, 0.0, this_thread.seconds(self._how.timeout))
            if sock is not None:
                self._outrun(began_by=_now())
                return sock, candidate
            for begun in self._pending.keys() - known:
                selector.register(begun, selectors.EVENT_WRITE)
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

    def _begin(self, candidate: Candidate, seconds: float | None, most: float | None) -> Any:
        """Begin an attempt; return its socket if that is connected.

        One that failed is noted, and so is one that is still under way.

        :param seconds: how long to wait for the connection; None for no limit.
        :param most: the time that the address has in all, in seconds; None for no limit.
        """
        began, sock = _now(), None
        try:
            self._socks.append(socket.socket(candidate.family, socket.SOCK_STREAM, candidate.proto))
            sock = self._socks[-1]
            connect_socket(sock, candidate.sockaddr, seconds, self._how)
        except OSError as error:
            if sock is not None and self._is_under_way(error, seconds, most):
                self._pending[sock] = _Pending(candidate, began, None if most is None else began + most)
                return None
            if sock is not None:
                sock.close()
            if is_interruption(error):
                raise
            self._fail(candidate, error)
            return None
        return sock

    def _is_under_way(self, error: OSError, seconds: float | None, most: float | None) -> bool:
        if isinstance(error, BlockingIOError):
            return True
        # The kernel's own time-out has a number: then the attempt is over.
        is_ours = isinstance(error, TimeoutError) and error.errno is None and not is_interruption(error)
        return is_ours and self._staggers and seconds != most

    def _fail(self, candidate: Candidate, error: OSError) -> None:
        self._error, self.failed[candidate.name] = error, type(error).__name__

    def _outrun(self, *, began_by: float) -> None:
        """Take note of the attempts under way that had begun by a moment: they lost to one that began later."""
        for item in self._pending.values():
            if item.began <= began_by:
                self.failed[item.candidate.name] = TimeoutError.__name__
