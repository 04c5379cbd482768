"""The clocks and deadlines (contract 8.5).

Everything that measures or waits is given a :class:`Clock`; nothing else in the package imports :mod:`time`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .core.steps import Join, Wait
from .errors import RetryError, StopReason

if TYPE_CHECKING:
    from .core.steps import Place, Steps

LONGEST_SLEEP = 1e9
"""The longest sleep in seconds (31 years): a server may ask for more than a platform's clock can sleep."""


class Clock(Protocol):
    """The interface of a clock: the wall clock, a monotonic clock, and sleep."""

    def now(self) -> float:
        """Return seconds on a clock that never goes back; its zero is arbitrary."""
        ...

    def wall(self) -> float:
        """Return seconds since the epoch, for servers' dates and for logs; it may be set back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait. A signal handler's exception interrupts it."""
        ...


class SystemClock:
    """The machine's clocks. ``sleep`` is looked up at call time, so that gevent's patch takes effect."""

    __slots__ = ()

    now: staticmethod[[], float] = staticmethod(time.monotonic)

    def wall(self) -> float:
        """Return seconds since the epoch."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Sleep, 31 years at most."""
        time.sleep(min(seconds, LONGEST_SLEEP))

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Wait with the lock released."""
        condition.wait(min(seconds, threading.TIMEOUT_MAX))


def wait_on(clock: Clock, condition: threading.Condition, seconds: float) -> None:
    """Wait on a condition whose lock is held, by the clock's ``wait(condition, seconds)``, or else by its ``sleep``.

    A clock that can only sleep is not woken early.

    :param seconds: the longest wait.
    """
    own: Any = getattr(clock, "wait", None)
    if own is not None:
        own(condition, seconds)
        return
    condition.release()
    try:
        clock.sleep(seconds)
    finally:
        condition.acquire()


def wait_in(place: Place, clock: Clock) -> Any:
    """Wait in a place until it has an answer, and return that. A thread that is interrupted leaves the place."""
    with place.changed:
        is_answered = False
        try:
            while isinstance(seen := place.look(clock.now()), Wait):
                wait_on(clock, place.changed, max(0.0, seen.until - clock.now()))
            is_answered = True
            return seen
        finally:
            if not is_answered:
                place.leave(clock.now())


def drive(steps: Steps, clock: Clock) -> Any:
    """Drive a decision that needs no attempt, and return its result: ask and wait, as it says.

    :param steps: of a strategy's token, or of one that a program drives by hand.
    """
    answer: Any = None
    try:
        while True:
            step = steps.send(answer)
            answer = wait_in(step.place, clock) if isinstance(step, Join) else step.function(*step.arguments)  # type: ignore[union-attr]
    except StopIteration as ended:
        return ended.value
    finally:
        steps.close()


def rest_until_permitted(
    ask: Callable[..., Any], strategy: object, token: object, deadline: float | None, clock: Clock
) -> float:
    """Wait until a strategy of the program's permits an attempt; return the seconds that took."""
    began = clock.now()
    while True:
        waited = clock.now() - began
        wait = ask(token=token, deadline=deadline, waited=waited)
        if wait is None:
            return clock.now() - began
        if not hasattr(type(wait), "rest"):  # asking it without end would not be a wait (a Mock has any attribute)
            raise TypeError(f"send_permit of {strategy!r}: None or an object to rest on, not {wait!r}")
        if deadline is not None and clock.now() >= deadline:  # it need not look at it
            raise RetryError(f"{strategy!r} gave no send permit in time", stop_reason=StopReason.RATE_LIMITED)
        wait.rest(clock)


SYSTEM_CLOCK = SystemClock()
"""The default clock."""


class Deadline(NamedTuple):
    """A moment on a clock.

    :param at: the moment, in seconds on the clock.
    :param clock: measures it.
    """

    at: float
    clock: Clock = SYSTEM_CLOCK

    def left(self) -> float:
        """Return the seconds left; negative once the moment has passed."""
        return self.at - self.clock.now()

    def on(self, clock: Clock) -> Deadline:
        """Return the same moment on another clock, as if the two ran alike from now on."""
        return self if clock is self.clock else Deadline(clock.now() + self.left(), clock)


def after(seconds: float | None, clock: Clock = SYSTEM_CLOCK) -> Deadline | None:
    """Return the moment ``seconds`` from now; None for no limit."""
    return None if seconds is None else Deadline(clock.now() + seconds, clock)


def earliest(one: Deadline | None, other: Deadline | None) -> Deadline | None:
    """Return the deadline with less time left; None without one."""
    if one is None:
        return other
    return one if other is None or one.left() <= other.left() else other
