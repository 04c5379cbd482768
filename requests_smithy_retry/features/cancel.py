"""Waits that a program ends (contract 8.9): a set ``threading.Event``, as by the handler of SIGTERM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import requests.exceptions

from ..core.port import Feature, WaitEnded
from ..errors import StopReason

if TYPE_CHECKING:
    from ..clock import Clock
    from ..config.retry_config import RetryConfig
    from ..core.plan import Call

LOOK_EVERY = 0.05
"""Seconds after which a wait looks at the event: no thread can wait for an event and for others at the same time."""


class RetryCancelled(WaitEnded, requests.exceptions.RetryError):
    """A call ended in place of a wait, or of its rest, because the event of ``retry_options(cancel=...)`` is set.

    Its ``response`` is the last answer, if there was one and it could be kept, and its ``__cause__`` the last
    attempt's exception. :func:`retry_history` tells of the attempts.
    """

    stop_reason = StopReason.CANCELLED


class Cancel(Feature):
    """The hook."""

    def wait(self, call: Call, seconds: float, waited: float, what: str) -> float:
        """End a call whose event is set; else look again soon."""
        event = call.options.cancel
        if event is None:
            return seconds
        if event.is_set():
            raise RetryCancelled(f"cancelled before or during the wait for {what}")
        return min(seconds, LOOK_EVERY)


def feature(config: RetryConfig, clock: Clock) -> Cancel:
    """Return the feature for a configuration."""
    return Cancel()
