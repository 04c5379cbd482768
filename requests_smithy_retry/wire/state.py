"""The state that one attempt and the connections below it share (contract 14.1)."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import urllib3

from ..clock import Deadline
from .timeouts import LONGEST

if TYPE_CHECKING:
    from .addresses import Peer


IS_FUTURE = hasattr(urllib3, "AsyncPoolManager")
"""True where urllib3-future has taken the place of urllib3: below its pools, all is different."""


class AttemptState(threading.local):
    """The attempt that a thread is making. Reset before each; an attempt stays in its thread."""

    connecting: bool | Peer | None = False
    """None until the attempt connects or sends; True while its first connection is being made.

    As long as it is True, no byte of the request was written. From then on it is the far end of the connection, or
    False where that is not known. It does not become True again: the caller's body may make connections of its own.
    """

    peer: Peer | None = None
    """The far end, as far as it is known, while :attr:`connecting` is True."""

    tried: Collection[tuple[str, str]] = ()
    """The addresses at which earlier attempts of the operation failed, each with its origin."""

    deadline: Deadline | None = None
    """The end of the attempt; None: only its timeouts bound it."""

    plain = False
    """True while retries are off: heads and bodies are read as a plain ``HTTPAdapter`` reads them (contract 10.2)."""

    def reached(self) -> Peer | None:
        """Return the far end of the attempt's connection; None if it is not known."""
        if self.connecting is True:
            return self.peer
        return self.connecting or None

    def seconds(self, usual: float | None) -> float | None:
        """Return the timeout of a socket's next step, in seconds; None for no limit.

        :param usual: the socket's own timeout; None for no limit.
        :raises TimeoutError: if the deadline has passed.
        """
        deadline = self.deadline
        if deadline is None:
            return usual
        left = deadline.at - deadline.clock.now()
        if left <= 0:
            raise TimeoutError("timed out: the deadline has passed")
        if usual is None:
            return left if left < LONGEST else LONGEST
        return usual if usual < left else left

    def rest(self, usual: float | None) -> float | None:
        """Return the same, and the shortest timeout once the deadline has passed, so that the next step fails at once.

        :param usual: the socket's own timeout; None for no limit.
        """
        try:
            return self.seconds(usual)
        except TimeoutError:
            return 1e-3

    def bound(self, sock: Any) -> float | None:
        """Bound a socket's next step by the deadline; return its own timeout, to be restored.

        :raises TimeoutError: if the deadline has passed.
        """
        try:
            usual: float | None = sock.gettimeout()
        except AttributeError:  # urllib3's wrapper of a pyOpenSSL socket has no gettimeout
            usual = sock.socket.gettimeout()
        sock.settimeout(self.seconds(usual))
        return usual

    @contextmanager
    def under(self, deadline: Deadline | None) -> Iterator[None]:
        """Put reads under another deadline inside the block."""
        outer, self.deadline = self.deadline, deadline
        try:
            yield
        finally:
            self.deadline = outer


def timeout_of(sock: Any) -> float | None:
    """Return a socket's timeout in seconds; None for no limit."""
    try:
        seconds: float | None = sock.gettimeout()
    except AttributeError:  # as above
        seconds = sock.socket.gettimeout()
    return seconds


this_thread: AttemptState = AttemptState()
