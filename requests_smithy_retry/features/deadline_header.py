"""A deadline that services pass on (contract 8.8), so that none works for a caller that has left. Each attempt sends
the time that is left, and a service keeps to its caller's deadline.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

from ..checks import BadValue
from ..clock import SYSTEM_CLOCK, Clock, Deadline
from ..config.parsers import is_name
from ..config.retry_config import RetryConfig
from ..core.port import Feature
from ..core.server_hints import parse_decimal, parse_http_date
from ..errors import RetryError, StopReason, seconds_text
from ..observing.events import BeforeAttempt

if TYPE_CHECKING:
    from requests import Response

    from ..core.call import Call
    from ..core.port import Send

NAME = "X-Request-Deadline"
FORMS = ("seconds", "date")
FLOOR = 0.01
"""With fewer seconds left no attempt begins: a round trip within a data centre and a little work take about as long."""
MOST = 1e11
"""The most seconds that are sent, some 3,000 years: the date still has a year of four digits."""
LEAST = 1e-9
"""Seconds for a deadline that has passed: the send of the first request in the block is refused."""


class DeadlineHeader(Feature):
    """The seam, and the listener that sets the header.

    :param form: ``"seconds"`` left, to the millisecond; or the ``"date"`` of RFC 9110, rounded down to a second.
    """

    def __init__(self, name: str, form: str) -> None:
        self.name: str = name
        self.form: str = form

    def around(self, send: Send, call: Call) -> Response:
        """Keep the deadline of a call for the header, and begin no attempt with too little time left."""
        deadline = None if call.limits is None else call.limits.deadline
        if deadline is not None:
            left = deadline.left()
            if left < FLOOR:
                why = f"{seconds_text(max(0.0, left))} are left, too few for an attempt"
                raise RetryError(why, stop_reason=StopReason.DEADLINE)
            assert call.observed is not None  # it is a listener, too
            call.observed.data[NAME] = deadline
        return send(call)

    def before_attempt(self, event: BeforeAttempt) -> None:
        deadline: Deadline | None = event.operation.data.get(NAME)
        if deadline is not None:
            left = min(max(0.0, deadline.left()), MOST)
            until = math.floor(event.operation.adapter.clock.wall() + left)
            text = f"{math.floor(left * 1000) / 1000:.3f}" if self.form == "seconds" else formatdate(until, usegmt=True)
            event.request.headers[self.name] = text


def deadline_of(headers: Mapping[str, Any] | None, name: str = NAME, *, clock: Clock = SYSTEM_CLOCK) -> float | None:
    """Return the seconds that a caller has left, for ``retry_options(deadline=...)``.

    >>> deadline_of({"X-Request-Deadline": "1.5"})
    1.5

    :param headers: of the request that is being answered, or of the task that is being done, or None.
    :param name: of the header.
    :param clock: tells the time, for a date.
    :returns: None without a valid header. A deadline in the past becomes a nanosecond, with which no request is sent.
    """
    text = str((headers or {}).get(name, "")).strip()
    seconds, moment = parse_decimal(text.removeprefix("-")), parse_http_date(text)
    if seconds is not None:
        return max(LEAST, -seconds if text.startswith("-") else seconds)
    return None if moment is None else max(LEAST, moment - clock.wall())


def parse(value: Any) -> tuple[str, str]:
    name, form = value if isinstance(value, tuple) and len(value) == 2 else (value, FORMS[0])
    if not is_name(name) or form not in FORMS:
        raise BadValue("a header's name, a pair of it and 'seconds' or 'date', or None is allowed")
    return name, form


def listeners_of(config: RetryConfig, given: Iterable[Any]) -> tuple[DeadlineHeader, ...]:
    return () if config.deadline_header is None else (feature(config, SYSTEM_CLOCK),)


def feature(config: RetryConfig, clock: Clock) -> DeadlineHeader:
    assert isinstance(config.deadline_header, tuple)
    return DeadlineHeader(*config.deadline_header)
