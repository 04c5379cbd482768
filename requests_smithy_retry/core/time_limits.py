"""The time that one operation and each of its attempts may take (contract 8.1, 8.4)."""

from __future__ import annotations

import warnings
from typing import Any

import requests.exceptions
import urllib3.exceptions as uex
from requests import PreparedRequest, Response

from ..checks import is_first
from ..classifiers.transport_faults import is_timeout
from ..clock import Clock, Deadline, after, earliest
from ..config.retry_config import RetryConfig
from ..config.retry_options import OperationOptions
from ..errors import TOO_LATE, RetryConfigWarning
from ..interruptions import causes, is_foreign, is_interruption
from ..wire import private
from ..wire.response import set_read_timeout
from ..wire.state import capped_timeout, read_timeout_of, this_thread

SLACK = 0.005
"""A timeout this many seconds before the deadline counts as the deadline's: a socket may wake a little early."""


BUGS = (AssertionError, AttributeError, ImportError, LookupError, NameError, NotImplementedError, TypeError)
"""Errors that no bytes of a server raise: a bug of a program, of this library, or of a release that renamed
something."""
CHALLENGES = frozenset({401, 407})
"""Statuses after which an authentication sends the request again."""


_warned: dict[str, object] = {}
"""The packages that were warned about, so that each is warned about once."""
UNBOUND = (
    "urllib3-future has replaced urllib3: there a deadline bounds each wait for a connection, an answer or a part of "
    "it, but no peer that drips, and no name resolution. To have deadlines that hold, uninstall urllib3-future and "
    "install urllib3 again"
)


class TimeLimits:
    """The deadlines of one operation, from now on."""

    allowed: Any = None
    """The timeout of the attempt under way, or of the last one."""
    _bound: Deadline | None = None
    _timeout: Any = None

    def __init__(self, config: RetryConfig, options: OperationOptions, clock: Clock) -> None:
        self.outer: Deadline | None = this_thread.deadline
        """The deadline of the attempt around this operation, which an adapter behind ours makes, for instance."""
        given = earliest(options.deadline, self.outer)
        self.deadline: Deadline | None = earliest(
            after(config.operation_timeout, clock), None if given is None else given.on(clock)
        )
        """The deadline of the operation, on its clock; None for no limit."""
        self._clock = clock
        self._attempt_timeout = config.operation_attempt_timeout
        if private.IS_FUTURE and (self.deadline or self._attempt_timeout) and is_first(_warned, "urllib3-future"):
            warnings.warn(UNBOUND, RetryConfigWarning, stacklevel=2)

    def begin(self, timeout: Any) -> Any:
        """Begin an attempt in this thread, and return its timeout. The attempt ends when ``this_thread.deadline`` is
        ``outer`` again.

        :raises requests.exceptions.ConnectTimeout: if no time is left; nothing is sent then.
        """
        bound = self.deadline
        if self._attempt_timeout is not None:
            bound = earliest(bound, after(self._attempt_timeout, self._clock))
        assert bound is not None  # limits are made where one of the options bounds the time
        self._bound, self._timeout = bound, timeout
        this_thread.deadline = self.bound
        left = bound.at - self._clock.now()
        if left <= 0:
            this_thread.connecting, self.allowed = True, timeout
            raise requests.exceptions.ConnectTimeout(TOO_LATE)
        self.allowed = allowed = capped_timeout(timeout, left)
        return allowed

    @property
    def bound(self) -> Deadline | None:
        """The end of the attempt under way, or of the last one; before the first, that of the attempt around it."""
        return self.outer if self._bound is None else self._bound

    def lift(self, response: Response) -> None:
        """Restore the usual timeout of a response that is handed over unread: its body has no deadline (contract 8.1).

        The body of a redirect or a challenge keeps it, because requests reads that body before it sends again.
        """
        assert self._bound is not None  # its attempt has begun
        is_read_next = response.is_redirect or response.status_code in CHALLENGES
        set_read_timeout(response.raw, read_timeout_of(self._timeout), self._bound.left() if is_read_next else None)

    def translated(self, error: Exception, request: PreparedRequest) -> Exception:
        """Return an attempt's failure for the caller: a ``ConnectTimeout`` or ``ReadTimeout`` if time ran out."""
        if self._bound is None or self._bound.left() > SLACK:
            return error
        if isinstance(error, (requests.exceptions.ConnectTimeout, requests.exceptions.ReadTimeout)):
            return error
        if any(isinstance(cause, uex.EmptyPoolError) for cause in causes(error)):
            return requests.exceptions.ConnectTimeout(error, request=request)
        if not is_timeout(error):
            return error
        if this_thread.connecting is True:
            return requests.exceptions.ConnectTimeout(error, request=request)
        return requests.exceptions.ReadTimeout(error, request=request)


def as_body_failure(error: Exception, request: PreparedRequest) -> Exception:
    """Return a failure to read a body as a requests exception (contract 13): no input raises anything else.

    A foreign exception, or a bug, did not come from the input: it is raised as it is, like Ctrl-C.
    """
    is_not_of_the_input = isinstance(error, BUGS) or is_foreign(error) or is_interruption(error)
    if isinstance(error, requests.exceptions.RequestException) or is_not_of_the_input:
        return error
    return requests.exceptions.ChunkedEncodingError(error, request=request)
