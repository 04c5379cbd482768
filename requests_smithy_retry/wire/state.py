"""The state that one attempt and the connections below it share (contract 14.1): its far end, and its time-outs."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from urllib3.util import Timeout

from ..checks import LONGEST_TIMEOUT
from ..clock import Deadline

PAIR = 2
"""The length of a timeout tuple: one to connect, and one to read."""


class Peer(Protocol):
    """The far end of a connection, as its opener knows it."""

    @property
    def address(self) -> str:
        """The IP address; all that were tried, if no connection was made."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """All addresses of its host, as they were when the connection was made."""

    def is_avoided(self, tried: Collection[tuple[str, str]]) -> bool:
        """Return True if another address is better."""


class AttemptState(threading.local):
    """The attempt that a thread is making. Reset before each; an attempt stays in its thread."""

    connecting: bool | None = False
    """None until the attempt connects or sends; True while its first connection is being made.

    As long as it is True, no byte of the request was written. It does not become True again: the caller's body may make
    connections of its own.
    """

    peer: Peer | None = None
    """The far end of its connection, as far as it is known."""

    answer: int = 0
    """The status of the proxy's answer to CONNECT, while :attr:`connecting` is True; 0 if there was none."""

    is_misdirected: bool = False
    """The last answer was a 421: the next request goes over a fresh connection, whatever its pool has."""

    tried: Collection[tuple[str, str]] = ()
    """The addresses at which earlier attempts of the operation failed, each with its origin."""

    deadline: Deadline | None = None
    """The end of the attempt; None: only its timeouts bound it."""

    sender: object = None
    """The adapter whose attempt it is: it hides its own retries from urllib3 below it."""

    retries_off = False
    """True while retries are off: heads and bodies are read as a plain ``HTTPAdapter`` reads them (contract 10.2)."""

    def seconds(self, usual: float | None) -> float | None:
        """Return the timeout of a socket's next step in seconds, given its ``usual`` one; None for no limit.

        :raises TimeoutError: if the deadline has passed.
        """
        deadline = self.deadline
        if deadline is None:
            return usual
        left = deadline.at - deadline.clock.now()
        if left <= 0:
            raise TimeoutError("timed out: the deadline has passed")
        if usual is None:
            usual = LONGEST_TIMEOUT
        return min(usual, left)

    def seconds_or_least(self, usual: float | None) -> float | None:
        """Return the same, or a millisecond once the deadline has passed: the next step fails at once."""
        try:
            return self.seconds(usual)
        except TimeoutError:
            return 1e-3

    def set_timeout(self, sock: Any) -> float | None:
        """Bound a socket's next step by the deadline, if that is not over; return its own timeout, to be restored."""
        usual = timeout_of(sock)
        sock.settimeout(self.seconds(usual))
        return usual

    @contextmanager
    def under(self, deadline: Deadline | None) -> Iterator[None]:
        """Put reads under another deadline inside the block."""
        outer = self.deadline
        try:
            self.deadline = deadline  # within: an interruption may come after any statement
            yield
        finally:
            self.deadline = outer


this_thread: AttemptState = AttemptState()


LATE_PATCH = (
    "threading was patched (by gevent or eventlet) after requests_smithy_retry had been imported, so greenlets share "
    "the state of their attempts: a deadline or an attempt of one may be taken for that of another. Patch first"
)


def is_patched_late() -> bool:
    """Return True if threads have become greenlets, which share one state."""
    return threading.local not in AttemptState.__mro__


def timeout_of(sock: Any) -> float | None:
    """Return a socket's timeout in seconds; None for no limit."""
    try:
        seconds: float | None = sock.gettimeout()
    except AttributeError:  # urllib3's wrapper of a pyOpenSSL socket has no gettimeout
        seconds = sock.socket.gettimeout()
    return seconds


def capped_timeout(timeout: Any, left: float) -> Any:
    """Return a timeout in the shape that ``requests`` was given, with no part above ``left`` seconds (above 0).

    A ``Timeout`` gets a smaller total: it bounds connecting and reading together.
    """
    left = min(left, LONGEST_TIMEOUT)
    if isinstance(timeout, Timeout):
        copy = timeout.clone()
        copy.total = _least(timeout.total, left)
        return copy
    if isinstance(timeout, tuple):
        return tuple(_least(part, left) for part in timeout)
    return _least(timeout, left)


def read_timeout_of(timeout: Any) -> float | None:
    """Return the read timeout in seconds from a timeout of any shape; None for no limit.

    Never raise: requests and urllib3 reject an invalid timeout themselves, and a mock may ignore it.
    """
    part: Any = timeout
    if isinstance(timeout, Timeout):
        copy = timeout.clone()
        copy.start_connect()
        part = copy.read_timeout
    elif isinstance(timeout, tuple):
        part = timeout[1] if len(timeout) == PAIR else None
    seconds: Any = Timeout.resolve_default_timeout(part)
    return seconds if _is_number(seconds) else None


def _least(part: Any, left: float) -> Any:
    if part is None or part is Timeout.DEFAULT_TIMEOUT:
        return left
    # Leave non-numbers for urllib3 to reject.
    return min(part, left) if _is_number(part) else part


def _is_number(part: Any) -> bool:
    return isinstance(part, (int, float)) and not isinstance(part, bool)
