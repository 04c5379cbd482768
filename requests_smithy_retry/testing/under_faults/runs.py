"""One run of a test: every send that reached the service or a fault, and the place in the client that made it."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from types import FrameType
from typing import Any

from requests import PreparedRequest, Response

from .faults import SendFault
from .virtual_wire import NoBound, VirtualTime

BELOW = frozenset(
    {"requests", "urllib3", "http", "requests_smithy_retry", "responses", "requests_mock", "unittest", "threading"}
)
"""The packages between a client and the wire, and those that stand in for it."""


@dataclass
class Sent:
    """One request on the wire.

    :param method: the method.
    :param url: the URL.
    :param keyed: it carries an idempotency key.
    :param where: the place in the client's code that sent it.
    :param asked: it reached the service, which may have refused it, as a recording does for want of another answer.
    :param struck: it met the fault.
    :param is_well: the service acted on it, going by the status of its answer.
    :param answer: the service's answer.
    """

    method: str
    url: str
    keyed: bool
    where: str
    struck: bool
    asked: bool = False
    is_well: bool = False
    answer: Response | None = None

    @property
    def is_unsafe(self) -> bool:
        """True if the service may not act on it twice."""
        return self.method in ("POST", "PATCH") and not self.keyed

    @property
    def path(self) -> str:
        """The URL without its query."""
        return self.url.partition("?")[0]

    @property
    def size(self) -> int:
        """The bytes of the answer's body that the client read."""
        content: Any = getattr(self.answer, "_content", None)
        return len(content) if isinstance(content, bytes) else 0


class Run:
    """One run of a test.

    :param fault: the fault, or None.
    :param at: the number of the send that meets it, from 0.
    :param most: sends after which the run is ended.
    :param clock: the time in it.
    """

    def __init__(
        self, fault: SendFault | None = None, at: int = 0, *, most: int = 1_000_000, clock: VirtualTime | None = None
    ) -> None:
        self.fault = fault
        self.at = at
        self.clock: VirtualTime = clock or VirtualTime()
        self.sends: list[Sent] = []
        self.has_raised: bool = False
        """An exception of the client reached the test."""
        self.passed: bool = False
        self._most = most
        self._lock = threading.Lock()

    def begin(self, request: PreparedRequest) -> Sent:
        """Take note of a send.

        :raises NoBound: if there are too many.
        """
        keyed = any("idempoten" in str(name).lower() for name in request.headers)
        where = _place(sys._getframe(1))
        with self._lock:
            number = len(self.sends)
            sent = Sent(str(request.method), str(request.url), keyed, where, self._is_struck(number))
            self.sends.append(sent)
        if number >= self._most:
            self.clock.end(NoBound(f"it sent more than {self._most} requests"))
        return sent

    def _is_struck(self, number: int) -> bool:
        if self.fault is None:
            return False
        return number >= self.at if self.fault.lasting else number == self.at

    @property
    def struck(self) -> Sent | None:
        """The first send that met the fault."""
        return next((sent for sent in self.sends if sent.struck), None)

    def asked(self, like: Sent) -> int:
        """Return the number of such requests that reached the service."""
        return sum(sent.asked for sent in self._alike(like))

    def answered(self, like: Sent) -> int:
        """Return the number of such requests whose good answer the client got, whole."""
        return sum(sent.is_well and not sent.struck for sent in self._alike(like))

    def was_ridden_out(self, like: Sent) -> bool:
        """Return True if the client sent a request again after its fault, and got a good answer."""
        after = self.sends[self.at + 1 :]
        return any(
            sent.is_well and not sent.struck for sent in after if (sent.method, sent.url) == (like.method, like.url)
        )

    def _alike(self, like: Sent) -> list[Sent]:
        return [sent for sent in self.sends if (sent.method, sent.path) == (like.method, like.path)]


def _place(frame: FrameType | None) -> str:
    """Return the innermost place outside the packages between the client and the wire."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in BELOW:
            return f"{name}:{frame.f_lineno} in {frame.f_code.co_name}"
        frame = frame.f_back
    return "a thread"
