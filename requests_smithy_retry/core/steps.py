"""The steps of an operation: what the machine asks of its driver, and what it decides. Values: nothing here acts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..errors import StopReason

if TYPE_CHECKING:
    from ..classifiers.fold import Classification
    from .line import Progress
    from .server_hints import Hint


class Wait(NamedTuple):
    """Look again at ``until``, or when woken."""

    until: float


class Refused(NamedTuple):
    """No, for a reason, and in a phrase if the reason's own is not enough."""

    reason: StopReason
    waited: float = 0.0
    why: str = ""


class Place(Protocol):
    """One thread's place among those that wait for something that is shared. Its methods are called with its lock."""

    @property
    def changed(self) -> threading.Condition:
        """Notified when it is worth to look again, on the lock that guards what is shared."""

    def look(self, now: float) -> Any:
        """Return a :class:`Wait`, or the answer, with which the place is given up. The first look joins."""

    def leave(self, now: float) -> None:
        """Give the place up without an answer: the thread was interrupted."""


class Before(NamedTuple):
    """The waits before an attempt, as its :class:`~requests_smithy_retry.AttemptRecord` has them."""

    delay: float = 0.0
    delay_source: str = "backoff"
    permit_wait: float = 0.0
    gate_wait: float = 0.0
    gate_source: str = ""
    line_wait: float = 0.0
    line_why: str = ""


class Send(NamedTuple):
    """Make an attempt. Answer: its outcome, or a :class:`Stop` where there is no time left for it.

    :param number: of the attempt, from 1.
    :param before: the waits before it.
    :param headers: to be sent in place of those of the same names.
    """

    number: int
    before: Before
    headers: Mapping[str, str] | None = None


class Pause(NamedTuple):
    """Wait for some seconds. No answer."""

    seconds: float


class Join(NamedTuple):
    """Wait in a place, with no connection. Answer: that of the place.

    :param verdict: on the attempt that failed, which is recorded first; None: nothing is recorded.
    """

    place: Place
    verdict: Classification | None = None


class Ask(NamedTuple):
    """Call a function that may take a while, or is the program's. Answer: its result."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


class AskProgram(NamedTuple):
    """Call a function of the program's that may send requests, so nothing is held. Answer: its result, or None if it
    cannot be called; and the time after it.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


class ReadOn(NamedTuple):
    """Read the long or late rest of the last response. Answer: the outcome, if that broke off; or None."""


class Payment(NamedTuple):
    """The tokens of a bucket before and after a retry was paid, and which bucket it was; as the record has them."""

    quota_before: float
    quota_after: float
    quota_source: str


class Again(NamedTuple):
    """Another attempt follows, after ``delay`` seconds by the rule ``source``.

    :param line_wait: seconds that it waited for the service to be back, until the event ``line_why``.
    :param headers: to be sent from now on, in place of those of the same names.
    """

    progress: Progress
    delay: float = 0.0
    source: str = "backoff"
    verdict: Classification | None = None
    payment: Payment | None = None
    line_wait: float = 0.0
    line_why: str = ""
    headers: Mapping[str, str] | None = None


class Stop(NamedTuple):
    """The operation is over.

    :param why: one phrase for histories and logs.
    :param delay: seconds to wait before the outcome is handed over; a long poll has some.
    :param unmade: the wait that another bound forbids, if that is why it is over.
    """

    reason: StopReason
    why: str = ""
    verdict: Classification | None = None
    delay: float = 0.0
    unmade: Hint | None = None


class Noted(NamedTuple):
    """Record what was decided about the last attempt, and let go of it, or keep it for the caller. No answer."""

    decision: Again | Stop


Step = Send | Pause | Join | Ask | AskProgram | ReadOn | Noted
Steps = Generator[Step, Any, Any]
