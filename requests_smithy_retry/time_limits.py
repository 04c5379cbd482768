"""The time that one operation and each of its attempts may take (contract 8.1, 8.2, 8.4)."""

from __future__ import annotations

from typing import Any

import requests.exceptions
import urllib3.exceptions as uex
from requests import PreparedRequest, Response

from .clock import Clock
from .config import RetryConfig
from .deadline import Deadline, after, earliest
from .foreign import is_foreign
from .operation_options import OperationOptions
from .timeouts import read_part, shrunk
from .transport_faults import causes, is_timeout
from .wire import attempt, set_read_timeout

SLACK = 0.005
"""A timeout this close before the deadline, in seconds, was the deadline's: a socket may wake a little early."""


class TimeLimits:
    """The deadlines of one operation, from now on.

    :param config: has ``operation_timeout`` and ``operation_attempt_timeout``.
    :param options: has the deadline of ``retry_options``.
    :param clock: of the operation.
    """

    def __init__(self, config: RetryConfig, options: OperationOptions, clock: Clock) -> None:
        given = None if options.deadline is None else options.deadline.on(clock)
        self.deadline: Deadline | None = earliest(after(config.operation_timeout, clock), given)
        self._attempt_timeout = config.operation_attempt_timeout
        self._clock = clock
        self._now: Deadline | None = None
        self._outer: Deadline | None = None
        self._timeout: Any = None
        self.allowed: Any = None
        """The timeout of the attempt under way, or of the last one."""

    @property
    def at(self) -> float | None:
        """The operation's deadline on its clock; None: there is none."""
        return None if self.deadline is None else self.deadline.at

    def forbids(self, wait: float) -> bool:
        """Whether a wait of so many seconds would not end before the operation's deadline."""
        return self.deadline is not None and wait >= self.deadline.left()

    def begin(self, timeout: Any) -> Any:
        """Begin an attempt in this thread. Returns its timeout.

        :param timeout: what the caller, or the option ``timeout``, allows.
        :raises requests.exceptions.ConnectTimeout: if no time is left; nothing is sent then.
        """
        bound = earliest(self.deadline, after(self._attempt_timeout, self._clock))
        self.allowed = timeout
        if bound is None:
            return timeout
        self._outer, self._now, self._timeout = attempt.deadline, bound, timeout
        # An operation within another one, in a generator that makes a body for instance, has no more time than that.
        attempt.deadline = earliest(bound, self._outer)
        left = bound.left()
        if left <= 0:
            attempt.connecting = True
            raise requests.exceptions.ConnectTimeout("the deadline had passed before the request was sent")
        self.allowed = shrunk(timeout, left)
        return self.allowed

    def end(self) -> None:
        """End the attempt. Can be called again."""
        if self._now is not None:
            attempt.deadline, self._outer, self._now = self._outer, None, None

    def hand_on(self, response: Response) -> None:
        """Give a response that is handed on unread back its usual timeout: its body has no deadline (contract 8.1)."""
        if self._now is not None:
            set_read_timeout(response.raw, read_part(self._timeout))

    def translated(self, error: Exception, request: PreparedRequest) -> Exception:
        """What an attempt's failure is called: running out of time is a ``ConnectTimeout`` or a ``ReadTimeout``."""
        if self._now is None or self._now.left() > SLACK:
            return error
        if isinstance(error, (requests.exceptions.ConnectTimeout, requests.exceptions.ReadTimeout)):
            return error
        if any(isinstance(cause, uex.EmptyPoolError) for cause in causes(error)):
            return requests.exceptions.ConnectTimeout(error, request=request)
        if not is_timeout(error):
            return error
        if attempt.connecting:
            return requests.exceptions.ConnectTimeout(error, request=request)
        return requests.exceptions.ReadTimeout(error, request=request)


def as_body_failure(error: Exception, request: PreparedRequest) -> Exception:
    """What went wrong in reading a body as a requests exception (contract 13): no input raises anything else.

    A foreign one did not come from the input. It is handed on, like Ctrl-C.
    """
    if isinstance(error, requests.exceptions.RequestException) or is_foreign(error):
        return error
    return requests.exceptions.ChunkedEncodingError(error, request=request)
