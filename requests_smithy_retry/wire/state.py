"""What one attempt and the connections below it must know of each other (contract 14.1)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..deadline import Deadline
from ..timeouts import LONGEST


class AttemptState(threading.local):
    """The attempt that a thread is making. Reset before each; an attempt stays in its thread."""

    connecting = False
    """A connection was begun and not finished, so that no byte of the request was written."""

    deadline: Deadline | None = None
    """When the attempt must be over; None: nothing bounds it but its timeouts."""

    plain = False
    """Retries are switched off: heads and bodies are taken as a plain ``HTTPAdapter`` takes them (contract 10.2)."""

    def seconds(self, usual: float | None) -> float | None:
        """What a socket may take for the next step.

        :param usual: what it may take by its own timeout; None: for ever.
        :raises TimeoutError: if the deadline has passed.
        """
        if self.deadline is None:
            return usual
        left = self.deadline.left()
        if left <= 0:
            raise TimeoutError("timed out: the deadline has passed")
        return min(left, LONGEST) if usual is None else min(usual, left)

    @contextmanager
    def ending(self, deadline: Deadline) -> Iterator[None]:
        """Put reads under another deadline for a while."""
        outer, self.deadline = self.deadline, deadline
        try:
            yield
        finally:
            self.deadline = outer


def timeout_of(sock: Any) -> float | None:
    """What a socket may take for a step; None: for ever.

    The socket that urllib3 makes of pyOpenSSL's can be told its timeout, but not asked.
    """
    asked = sock if hasattr(sock, "gettimeout") else sock.socket
    seconds: float | None = asked.gettimeout()
    return seconds


attempt: AttemptState = AttemptState()
"""The only one there needs to be."""
