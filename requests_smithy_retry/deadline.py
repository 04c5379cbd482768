"""A moment by which something must be over (contract 8). Pure but for the clock that it carries."""

from __future__ import annotations

from typing import NamedTuple

from .clock import SYSTEM_CLOCK, Clock


class Deadline(NamedTuple):
    """A moment on a clock.

    :param at: the moment, in seconds on the clock.
    :param clock: on which it is measured.
    """

    at: float
    clock: Clock = SYSTEM_CLOCK

    def left(self) -> float:
        """Seconds that are left; negative once it has passed."""
        return self.at - self.clock.now()

    def on(self, clock: Clock) -> Deadline:
        """The same moment on another clock, as far as the two agree from now on."""
        return self if clock is self.clock else Deadline(clock.now() + self.left(), clock)


def after(seconds: float | None, clock: Clock = SYSTEM_CLOCK) -> Deadline | None:
    """The moment that many seconds from now; None for no bound."""
    return None if seconds is None else Deadline(clock.now() + seconds, clock)


def earliest(*deadlines: Deadline | None) -> Deadline | None:
    """The one with the least time left; None where there is none."""
    given = [deadline for deadline in deadlines if deadline is not None]
    return min(given, key=Deadline.left, default=None)
