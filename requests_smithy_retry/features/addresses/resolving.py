"""Resolving a name by a deadline (contract 8.5). The system's resolver cannot be interrupted, so it gets a thread.

There are at most eight threads, each for one name, and only under a deadline. The caller leaves in time. The thread
ends when the resolver answers; until then, other callers for the same name wait for the same answer.
"""

from __future__ import annotations

import contextvars
import socket
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import urllib3.exceptions as uex

from ...forksafe import renew_lock_after_fork
from ...interruptions import is_interruption
from ...wire.state import this_thread

MOST_LOOKUPS = 8
"""The most threads of a process that resolve names."""

FAILED = "Failed to establish a new connection"
"""The beginning of urllib3's message."""

Found = list[tuple[Any, ...]]


class Stuck(Exception):
    """Every thread is occupied by an abandoned name. The message names them."""


class Late(Exception):
    """The deadline passed before the name was resolved."""


class Question(NamedTuple):
    """A call of a resolver. Of equal ones, one runs at a time."""

    resolver: Callable[..., Any]
    host: str
    rest: tuple[Any, ...]


class Lookup:
    """One question, while a thread resolves it."""

    waiters: int = 0
    answer: Any = None
    error: BaseException | None = None

    def __init__(self) -> None:
        self.done: threading.Event = threading.Event()


class Lookups:
    """The questions that this process resolves in threads."""

    def __init__(self, most: int = MOST_LOOKUPS) -> None:
        self._most = most
        self.renew_lock()
        renew_lock_after_fork(self)

    def renew_lock(self) -> None:
        """Start over in a forked child, which has no thread of its parent."""
        # It is held for a few steps that do not block, so it does not matter whether gevent has patched it.
        self._lock = threading.Lock()
        self._running: dict[Question, Lookup] = {}
        self._line: list[threading.Event] = []

    def find(self, question: Question, seconds_left: Callable[[], float | None]) -> tuple[Any, BaseException | None]:
        """Return the answer to a question, or the resolver's exception.

        :param seconds_left: returns the time left; raises ``TimeoutError`` once there is none.
        :raises Late: if the time is over.
        :raises Stuck: at once, if every thread is occupied by an abandoned name.
        """
        lookup = self._join(question, seconds_left)
        try:
            _wait(lookup.done, seconds_left)
            return lookup.answer, lookup.error
        finally:
            self._leave(lookup)

    def _join(self, question: Question, seconds_left: Callable[[], float | None]) -> Lookup:
        """Join the callers that wait for an answer; ask the question if there are none."""
        joined, is_new = None, False
        try:
            while True:
                with self._lock:
                    lookup = self._running.get(question)
                    is_new = lookup is None and len(self._running) < self._most
                    if is_new:
                        lookup = self._running[question] = Lookup()
                    if lookup is not None:
                        joined, lookup.waiters = lookup, lookup.waiters + 1
                        break
                    if not any(other.waiters for other in self._running.values()):
                        raise Stuck(", ".join(sorted({other.host for other in self._running})))
                    turn = threading.Event()
                    self._line.append(turn)
                _wait(turn, seconds_left)
            if is_new:
                self._start(question, lookup)
            return lookup
        except BaseException:
            # After an interruption this question is not asked, so no other thread may wait for its answer.
            if is_new:
                self._give_up(question)
            if joined is not None:
                self._leave(joined)
            raise

    def _give_up(self, question: Question) -> None:
        with self._lock:
            lookup = self._running.pop(question, None)
        if lookup is not None:
            lookup.error = socket.gaierror(socket.EAI_AGAIN, "the look-up was interrupted")
            lookup.done.set()

    def _start(self, question: Question, lookup: Lookup) -> None:
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=context.run, args=(self._ask, question, lookup), name=f"resolves {question.host}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            if is_interruption(error):
                raise  # it came while the thread's lock was taken, which could not be released then
            # No thread can be started: the interpreter exits, or the machine is out of threads.
            self._ask(question, lookup)

    def _ask(self, question: Question, lookup: Lookup) -> None:
        try:
            lookup.answer = question.resolver(question.host, *question.rest)
        except BaseException as error:
            lookup.error = error.with_traceback(None)
        with self._lock:
            if self._running.get(question) is lookup:  # not so in a child that was forked meanwhile
                del self._running[question]
            self._call_next()
        lookup.done.set()

    def _leave(self, lookup: Lookup) -> None:
        with self._lock:
            lookup.waiters -= 1
            if not lookup.waiters:
                self._call_next()

    def _call_next(self) -> None:
        """Wake the callers that wait for a thread."""
        for turn in self._line:
            turn.set()
        self._line.clear()


def _wait(event: threading.Event, seconds_left: Callable[[], float | None]) -> None:
    try:
        seconds = seconds_left()
    except TimeoutError:
        raise Late from None
    if not event.wait(seconds):
        raise Late


_lookups = Lookups()


def resolve(connection: Any, host: str, port: int, family: int = 0) -> Found:
    """Return the addresses of a host as ``socket.getaddrinfo`` does, but by the attempt's deadline.

    Without a deadline, and for a numeric address, that function is called directly.

    :raises urllib3.exceptions.HTTPError: as urllib3 raises it, under a deadline: ``ConnectTimeoutError`` if it passed.
    """
    getaddrinfo: Any = socket.getaddrinfo  # looked up now, because programs replace it
    rest = port, family, socket.SOCK_STREAM
    found: Found
    if this_thread.deadline is None or is_numeric(host):
        found = getaddrinfo(host, *rest)
    else:
        found = in_time(connection, Question(getaddrinfo, host, rest))
    if not found:
        raise uex.NewConnectionError(connection, f"{FAILED}: getaddrinfo returns an empty list")
    return found


def in_time(connection: Any, question: Question) -> Any:
    """Return the answer to a question about a name, by the attempt's deadline; raise as urllib3 does."""
    host = question.host
    try:
        answer, error = _lookups.find(question, lambda: this_thread.seconds(None))
    except Late:
        late = f"Connection to {host} timed out: the name was not resolved before the deadline"
        raise uex.ConnectTimeoutError(connection, late) from None
    except Stuck as stuck:
        why = f"all {MOST_LOOKUPS} threads that resolve names wait for a resolver that does not answer ({stuck})"
        raise uex.ConnectTimeoutError(connection, f"Connection to {host} is not tried: {why}") from None
    try:
        if isinstance(error, OSError):
            raise not_connected(connection, host, error) from error
        if error is not None:
            raise error
        return answer
    finally:
        del error  # its traceback refers to this frame


def not_connected(connection: Any, host: str, error: OSError) -> Exception:
    """Return urllib3's exception for a name without addresses, or a connection that was not made."""
    if isinstance(error, TimeoutError):
        return uex.ConnectTimeoutError(connection, f"Connection to {host} timed out: {error}")
    if isinstance(error, socket.gaierror) and hasattr(uex, "NameResolutionError"):
        return uex.NameResolutionError(host, connection, error)
    return uex.NewConnectionError(connection, f"{FAILED}: {error}")


def is_numeric(host: str) -> bool:
    """Return True for an IPv4 or IPv6 address: resolving it is only parsing."""
    for family, text in (socket.AF_INET, host), (socket.AF_INET6, host.partition("%")[0]):
        try:
            socket.inet_pton(family, text)
        except (OSError, ValueError):
            continue
        return True
    return False
