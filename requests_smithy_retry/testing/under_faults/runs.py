"""One run of a test: its fault, every send that reached the service or the fault, and what a reviewer says of it."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, Literal

from requests import PreparedRequest, Response

from ..behaviour import Behaviour, Reply, coded_reply, try_later
from ..connection_faults import ResetAfterRequest, Stall
from ..reply_faults import CutBody, CutHead
from .virtual_wire import NO_BOUND, VirtualTime

Kind = Literal["error", "status", "data"]
"""The client gets an exception of the wire; a response that says no; or a part of the service's answer."""


@dataclass(frozen=True)
class SendFault:
    """A fault of one send, by its name in the report and its kind."""

    name: str
    kind: Kind
    behaviour: Callable[[Reply], Behaviour] | None
    """Made of the service's own reply; None: the connection is refused."""
    applied: bool = False
    """The service acts on the request all the same."""
    lasting: bool = False
    """Every send from then on has it, so that no client can ride it out."""

    def suits(self, method: str, size: int) -> bool:
        """Return True if an answer with a body of ``size`` bytes can have this fault."""
        return self.kind != "data" or (method != "HEAD" and size >= 8)  # a shorter one is not worth cutting


def _gzip_cut(reply: Reply) -> Behaviour:
    coded = coded_reply("gzip", reply.body, cut_to=len(coded_reply("gzip", reply.body).body) // 2, status=reply.status)
    return replace(coded, headers=(*reply.headers, *coded.headers))


SEND_FAULTS = (
    SendFault("connection refused", "error", None),
    SendFault("reset after the request", "error", lambda _: ResetAfterRequest(), applied=True),
    SendFault("silence after the request", "error", lambda reply: Stall("status", reply=reply), applied=True),
    SendFault("503", "status", lambda _: Reply(503)),
    SendFault("504 after it was applied", "status", lambda _: Reply(504), applied=True),
    SendFault("429 with Retry-After", "status", lambda _: try_later(429, "2")),
    SendFault("body cut", "data", CutBody, applied=True),
    SendFault("head cut before its blank line", "data", CutHead, applied=True),
    SendFault("gzip body cut", "data", _gzip_cut, applied=True),
    SendFault("connection refused for good", "error", None, lasting=True),
    SendFault("503 for good", "status", lambda _: Reply(503), lasting=True),
)
"""The faults of the kit that tell a careful client from a careless one."""

BELOW = frozenset(
    {"requests", "urllib3", "http", "requests_smithy_retry", "responses", "requests_mock", "unittest", "threading"}
)
"""The packages between a client and the wire, and those that stand in for it."""


@dataclass
class Sent:
    """One request on the wire."""

    method: str
    url: str
    keyed: bool
    """It carries an idempotency key."""
    where: str
    """The place in the client's code that sent it."""
    struck: bool
    """It met the fault."""
    asked: bool = False
    """It reached the service, which may have refused it, as a recording does for want of another answer."""
    is_well: bool = False
    """The service acted on it, going by the status of its answer."""
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


@dataclass
class Run:
    """One run of a test, in which the send number ``at`` meets a fault, and which ends after ``most`` sends."""

    fault: SendFault | None = None
    at: int = 0
    most: float = math.inf
    clock: VirtualTime = field(default_factory=VirtualTime)
    file: str = ""
    """The file of the test."""
    sends: list[Sent] = field(default_factory=list)
    has_raised: bool = False
    """An exception of the client reached the test."""
    passed: bool = True
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def strikes_next(self) -> bool:
        """True if the next send meets the fault."""
        number = len(self.sends)
        return self.fault is not None and (number == self.at or (self.fault.lasting and number > self.at))

    def begin(self, request: PreparedRequest) -> Sent:
        """Take note of a send; end the run if there are too many."""
        keyed = any("idempoten" in str(name).lower() for name in request.headers)
        where = _place(sys._getframe(1))
        with self._lock:
            sent = Sent(str(request.method), str(request.url), keyed, where, self.strikes_next)
            self.sends.append(sent)
        if len(self.sends) > self.most:
            self.clock.end(NO_BOUND, f"it sent more than {self.most} requests")
        return sent

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
        again = (sent for sent in self.sends[self.at + 1 :] if (sent.method, sent.url) == (like.method, like.url))
        return any(sent.is_well and not sent.struck for sent in again)

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


TWICE = "sent twice: the service acted on a request that is not idempotent, and got it again"
SWALLOWED = "error swallowed: the client got no answer, and told nobody"
WRONG_DATA = "wrong data accepted: a part of the answer came, and the client told nobody"


@dataclass(frozen=True)
class Finding:
    """One thing that a reviewer would name."""

    what: str
    where: str
    """The place in the client's code that sent."""
    test: str
    fault: str
    """Its name, and the send that met it."""
    noticed: bool = False
    """The test itself failed by an assertion of its own, so its author would have seen it."""


def judge(test: str, plain: Run, run: Run) -> Finding | None:
    """Return the gravest finding of a run beside the plain one; None if a reviewer would be content."""
    sent, fault = run.struck, run.fault
    if sent is None or fault is None:
        return None
    what = _what(plain, run, sent, fault)
    return None if what is None else Finding(what, sent.where, test, f"{fault.name}, send {run.at + 1}", not run.passed)


def _what(plain: Run, run: Run, sent: Sent, fault: SendFault) -> str | None:
    before = plain.sends[run.at]  # the same request, which may have another URL
    if sent.is_unsafe and sent.is_well and run.asked(sent) > plain.asked(before):
        return TWICE
    if run.clock.ending is not None:
        return run.clock.ending.what
    if run.has_raised or run.was_ridden_out(sent) or run.answered(sent) >= plain.answered(before):
        return None
    if fault.kind == "data":
        return WRONG_DATA if sent.method == "GET" else None
    # A client that hands responses on as they are leaves it to the test to look at the status.
    return SWALLOWED if fault.kind == "error" or run.passed else None
