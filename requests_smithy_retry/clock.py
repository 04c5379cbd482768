"""The clocks and deadlines (contract 8.5).

Everything that measures or waits is given a :class:`Clock`; nothing else in the package imports :mod:`time`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .errors import RetryConfigError, RetryError, StopReason

NAP = 30.0
"""Seconds after which a wait looks at the clock again: a sleep stands still while the machine is suspended."""
LEAP = 5.0
"""If the wall clock gains more seconds than this on a monotonic clock, the machine was suspended: time servers correct
by less."""


class Clock(Protocol):
    """The interface of a clock: the wall clock, a monotonic clock, and sleep."""

    def now(self) -> float:
        """Return seconds on a clock that never goes back, and runs on while the machine sleeps; zero is arbitrary."""

    def wall(self) -> float:
        """Return seconds since the epoch, for servers' dates and for logs; it may be set back."""

    def sleep(self, seconds: float) -> None:
        """Wait. A signal handler's exception interrupts it."""


def checked_clock(clock: Clock) -> Clock:
    """Return a clock; refuse an object that lacks its methods."""
    if not all(callable(getattr(clock, name, None)) for name in ("now", "wall", "sleep")):
        raise RetryConfigError("clock", clock, "code", "an object with now(), wall() and sleep(seconds) is allowed")
    return clock


class Wait(NamedTuple):
    """Look again at ``until``, or when woken.

    :param expected: the moment at which the wait is likely to be over; None: ``until``.
    """

    until: float
    expected: float | None = None


class Place(Protocol):
    """The place of one thread among those that wait for something shared. Its methods are called with the lock held."""

    @property
    def changed(self) -> threading.Condition:
        """Notified when it is worth looking again; its lock guards what is shared."""

    def look(self, now: float) -> Any:
        """Return a :class:`Wait`, or the answer, which gives up the place. The first call joins."""

    def leave(self, now: float) -> None:
        """Give the place up without an answer: the thread was interrupted."""


class RunningOn:
    """A clock that never goes back, built from a monotonic clock, which stops while the machine sleeps, and the wall
    clock.

    If the wall clock gains more than :data:`LEAP`, the machine slept, or somebody set the clock forward: both count as
    time that passed. Setting the clock back changes nothing, except that it hides as much of the next sleep.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._monotonic, self._wall = monotonic, wall
        # In this order, here and below, a thread that is held up between the two sees less sleep, never more.
        now = monotonic()
        self._apart: float = wall() - now
        self._slept = 0.0

    def __call__(self) -> float:
        wall = self._wall()
        now = self._monotonic()
        slept = wall - now - self._apart
        if slept > self._slept + LEAP:
            self._slept = slept
        return now + self._slept


def running_on(boot_clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)) -> Callable[[], float]:
    """Return the clock that runs on while the machine sleeps: the kernel's, if it has one."""
    if boot_clock is not None:
        with suppress(OSError):  # the name may exist although the kernel refuses it
            time.clock_gettime(boot_clock)
            return partial(time.clock_gettime, boot_clock)
    return RunningOn()


class SystemClock:
    """The machine's clocks. ``sleep`` is looked up at call time, so that gevent's patch takes effect."""

    __slots__ = ()

    if TYPE_CHECKING:

        @staticmethod
        def now() -> float:
            """Return seconds on a clock that runs on while the machine sleeps."""

    else:  # pragma: no branch - typing.get_type_hints does not support staticmethod[[], float]
        now = staticmethod(running_on())

    def wall(self) -> float:
        """Return seconds since the epoch."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Sleep, as measured by :meth:`now`."""
        until = self.now() + seconds
        while seconds > NAP:
            time.sleep(NAP)
            seconds = min(seconds - NAP, until - self.now())  # a test may have replaced time.sleep
        time.sleep(max(0.0, seconds))

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Wait with the lock released, perhaps for less time."""
        condition.wait(min(seconds, NAP))


def wait_on(clock: Clock, condition: threading.Condition, seconds: float) -> None:
    """Wait on a held condition for at most this long, with the clock's ``wait`` or else its ``sleep``."""
    own: Any = getattr(clock, "wait", None)
    if own is not None:
        own(condition, seconds)
        return
    condition.release()
    try:
        clock.sleep(seconds)
    finally:
        take_back(condition)


def take_back(condition: threading.Condition) -> None:
    """Acquire a condition's lock again, even if a signal comes meanwhile: its ``with`` block releases it."""
    try:
        condition.acquire()
    except BaseException:
        take_back(condition)
        raise


def wait_in(place: Place, clock: Clock, waits: Callable[[Wait], object] = bool) -> Any:
    """Wait in a place until it has an answer, and return that. A thread that is interrupted leaves the place.

    :param waits: called before each wait, with the lock held.
    """
    with place.changed:
        is_answered = False
        try:
            while isinstance(seen := place.look(clock.now()), Wait):
                waits(seen)
                wait_on(clock, place.changed, max(0.0, seen.until - clock.now()))
            is_answered = True
            return seen
        finally:
            if not is_answered:
                place.leave(clock.now())


def rest_until_permitted(
    ask: Callable[..., Any], strategy: object, token: object, deadline: float | None, clock: Clock
) -> float:
    """Wait until a strategy permits an attempt; return the seconds that took, 0 if it did so at once."""
    began, waited = clock.now(), 0.0
    while True:
        wait = ask(token=token, deadline=deadline, waited=waited)
        if wait is None:
            return waited
        if not hasattr(type(wait), "rest"):  # else this loop would not end (a Mock has any attribute)
            raise TypeError(f"send_permit of {strategy!r}: None or an object to rest on, not {wait!r}")
        if deadline is not None and clock.now() >= deadline:  # the strategy may ignore it
            raise RetryError(f"{strategy!r} gave no send permit in time", stop_reason=StopReason.RATE_LIMITED)
        try:
            wait.rest(clock)
        except RetryError as late:  # the clock of a call does not begin a wait that would pass the deadline
            raise RetryError(str(late), stop_reason=StopReason.RATE_LIMITED) from None
        waited = clock.now() - began


SYSTEM_CLOCK = SystemClock()


class Deadline(NamedTuple):
    """A moment on a clock."""

    at: float
    clock: Clock = SYSTEM_CLOCK

    def left(self) -> float:
        """Return the seconds left; negative once the moment has passed."""
        return self.at - self.clock.now()

    def on(self, clock: Clock) -> Deadline:
        """Return the same moment on another clock, as if both ran at the same rate from now on."""
        return self if clock is self.clock else Deadline(clock.now() + self.left(), clock)


def after(seconds: float | None, clock: Clock = SYSTEM_CLOCK) -> Deadline | None:
    return None if seconds is None else Deadline(clock.now() + seconds, clock)


def earliest(one: Deadline | None, other: Deadline | None) -> Deadline | None:
    if one is None:
        return other
    return one if other is None or one.left() <= other.left() else other
