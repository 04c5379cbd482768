"""Waits that are not made (contract 8.6): a worker has other tasks, so a long wait ends its call, with the number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import requests.exceptions

from ..core.port import Feature, WaitEnded
from ..errors import StopReason

if TYPE_CHECKING:
    from ..clock import Clock
    from ..config.retry_config import RetryConfig
    from ..core.plan import Call


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


class MaxWait(Feature):
    """The hook."""

    def wait(self, call: Call, seconds: float, waited: float, what: str) -> float:
        """End a call whose wait before the next attempt is longer than its option allows, all parts together."""
        own = call.options.max_wait
        most = call.config.max_wait if own is None else own
        if most is not None and waited + seconds > most:
            raise RetryLater(f"the wait for {what} takes {seconds:.3g} s more, and max_wait is {most:g} s", seconds)
        return seconds


def feature(config: RetryConfig, clock: Clock) -> MaxWait:
    """Return the feature for a configuration."""
    return MaxWait()
