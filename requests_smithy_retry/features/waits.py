"""Waits that end a call in their place: one that is too long for a worker with other tasks (contract 8.6), and any once
the program has set an event, as in the handler of SIGTERM (contract 8.9).
"""

from __future__ import annotations

import requests.exceptions

from ..clock import Clock
from ..config.retry_config import RetryConfig
from ..core.plan import Call
from ..core.port import Feature, WaitEnded
from ..errors import StopReason

LOOK_EVERY = 0.05
"""Seconds after which a wait looks at the event: no thread can wait for an event and for others at the same time."""


class RetryLater(WaitEnded, requests.exceptions.RetryError):
    """A call ended in place of a wait that is longer than ``max_wait``; the message says which one.

    Its ``response`` is the last answer, if there was one and it could be kept, and its ``__cause__`` the last
    attempt's exception. :func:`retry_history` tells of the attempts.

    :param seconds: of the wait that was not made, or of its rest: when it is worth to call again. Where the end of a
        wait is not known, as with a service that is down, the time at which the call would have asked again.
    """

    stop_reason = StopReason.WAIT_TOO_LONG

    def __init__(self, message: str = "", seconds: float = 0.0) -> None:
        super().__init__(message)
        self.seconds: float = seconds


class RetryCancelled(WaitEnded, requests.exceptions.RetryError):
    """A call ended in place of a wait, or of its rest, because the event of ``retry_options(cancel=...)`` is set.

    Its ``response`` is the last answer, if there was one and it could be kept, and its ``__cause__`` the last
    attempt's exception. :func:`retry_history` tells of the attempts.
    """

    stop_reason = StopReason.CANCELLED


class Waits(Feature):
    """The hook."""

    def __init__(self, config: RetryConfig) -> None:
        self.only_in_blocks: bool = config.max_wait is None

    def wait(self, call: Call, seconds: float, waited: float, what: str) -> float:
        event, own = call.options.cancel, call.options.max_wait
        most = call.config.max_wait if own is None else own
        if event is not None and event.is_set():
            raise RetryCancelled(f"cancelled before or during the wait for {what}")
        if most is not None and waited + seconds > most:
            raise RetryLater(f"the wait for {what} takes {seconds:.3g} s more, and max_wait is {most:g} s", seconds)
        return seconds if event is None else min(seconds, LOOK_EVERY)


def feature(config: RetryConfig, clock: Clock) -> Waits:
    return Waits(config)
