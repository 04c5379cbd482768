"""The waits that servers ask for (contract 7.2, 7.3): parsing, and the resulting delay. Pure.

In order: ``x-amz-retry-after`` (ms), ``retry-after-ms`` and ``x-ms-retry-after-ms`` (ms), ``Retry-After`` (seconds or
an HTTP-date, RFC 9110 10.2.3). A malformed one is skipped. Of several fields of one name, or members in one field, the
longest wait counts: a proxy may have added its own.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache, partial
from typing import NamedTuple

AMZ_HEADER = "x-amz-retry-after"
MILLISECOND_HEADERS = ("retry-after-ms", "x-ms-retry-after-ms")
HINTS = frozenset({AMZ_HEADER, *MILLISECOND_HEADERS, "retry-after"})
ASKED_BY_SERVERS: frozenset[str] = HINTS | {"error", "secondary rate limit"}
"""The sources in a verdict for a wait that a server asks for, by a header, a modelled error or GitHub's words. A wait
with any other source is the rule of the program's own classifier (contract 7.3).
"""
AMZ_MAX_EXTRA = 5.0
"""The most that ``x-amz-retry-after`` adds to the computed backoff, in seconds (Retries 2.1)."""

_INTEGER = r"[0-9]+"
_DECIMAL = r"[0-9]+(?:\.[0-9]+)?"
# The three formats of RFC 9110 5.6.7. The standard library's parser is laxer, so the shape is checked first.
_HTTP_DATE = (
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-9]{2} [A-Z][a-z]{2} [1-9][0-9]{3} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT"
    r"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, [0-9]{2}-[A-Z][a-z]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT"
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2} [1-9][0-9]{3}"
)
_DAY_NAME = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)"
_MOST_PARTS = 200
"""The maximum number of comma-separated parts that are read of one header."""
_HUGE_DIGITS = 15
"""The most digits that are converted: a longer number exceeds any limit, and Python refuses thousands of digits."""


class Hint(NamedTuple):
    """A wait that a server asked for, in seconds (0 or more), and the name of the header."""

    seconds: float
    source: str


def names_in(headers: Mapping[str, str]) -> Collection[str]:
    """Return the lower-case names of the fields of a response."""
    names: Collection[str] | None = getattr(headers, "_store", None)  # the dict in a CaseInsensitiveDict
    return {str(name).lower() for name in headers} if names is None else names


def read_hint(headers: Mapping[str, str], *, wall: float) -> Hint | None:
    """Return the first well-formed hint among the headers, or None. Never raise.

    :param headers: the response's; looked up by lower-case name, so give a case-insensitive mapping.
    :param wall: the current time in seconds since the epoch, for a response without a ``Date`` of its own.
    """
    if HINTS.isdisjoint(names_in(headers)):
        return None
    for name in (AMZ_HEADER, *MILLISECOND_HEADERS):
        milliseconds = longest_in(headers.get(name), parse_integer)
        if milliseconds is not None:
            return Hint(milliseconds / 1000, name)
    parse = partial(parse_retry_after, date=headers.get("date"), wall=wall)
    seconds = longest_in(headers.get("retry-after"), parse)
    return None if seconds is None else Hint(seconds, "retry-after")


def longest_in(value: str | None, parse: Callable[[str], float | None]) -> float | None:
    """Return the largest number among the well-formed members of a header; None: there is none."""
    found = () if value is None else map(parse, members_of(value))
    return max((number for number in found if number is not None), default=None)


def members_of(value: str) -> Iterator[str]:
    """Return the members of a header, as ``requests`` joins several fields of one name; a date keeps its comma.

    >>> list(members_of("2, Sun, 06 Nov 1994 08:49:37 GMT, soon"))
    ['2', 'Sun, 06 Nov 1994 08:49:37 GMT', 'soon']
    """
    day = ""
    for part in value.split(",", _MOST_PARTS):
        if day:
            yield f"{day},{part}"
            day = ""
        elif re.fullmatch(_DAY_NAME, text := part.strip(" \t")):
            day = text
        else:
            yield text


def parse_integer(value: str) -> float | None:
    """Return a whole number of 0 or more, at most 1e15; None for anything else."""
    text = value.strip(" \t")
    return None if re.fullmatch(_INTEGER, text) is None else _number(text)


def _number(text: str) -> float:
    digits = text.lstrip("0")
    return float(digits or "0") if len(digits) <= _HUGE_DIGITS else 1e15


def parse_retry_after(value: str, *, date: str | None, wall: float) -> float | None:
    """Return the seconds that a ``Retry-After`` value asks for, or None if it is malformed.

    :param value: ``1*DIGIT``, a decimal such as ``0.5``, or an HTTP-date.
    :param date: the response's own ``Date``: an HTTP-date is compared with it, because clocks differ.
    :param wall: the current time in seconds since the epoch, used without a well-formed ``Date``.
    """
    text = value.strip(" \t")
    seconds = parse_decimal(text)
    if seconds is not None:
        return seconds
    moment = parse_http_date(text)
    if moment is None:
        return None
    sent = None if date is None else parse_http_date(date.strip(" \t"))
    return max(0.0, moment - (wall if sent is None else sent))


def parse_decimal(text: str) -> float | None:
    """Return a number of 0 or more without an exponent, at most about 1e15; None for anything else."""
    if re.fullmatch(_DECIMAL, text) is None:
        return None
    whole, _, fraction = text.partition(".")
    return _number(whole) + float(f"0.{fraction[:_HUGE_DIGITS]}")


@lru_cache(maxsize=64)
def parse_http_date(text: str) -> float | None:
    """Return the seconds since the epoch of an HTTP-date in any of its three formats, or None."""
    if re.fullmatch(_HTTP_DATE, text) is None:
        return None
    from email.utils import mktime_tz, parsedate_tz  # imported here: it loads socket, which strategies do without

    parsed = parsedate_tz(text)
    if parsed is None or not is_a_time(*parsed[:6]):
        return None
    return float(mktime_tz(parsed))


def is_a_time(year: int, month: int, day: int, hour: int, minute: int, second: int) -> bool:
    """Return True for a valid date and time; the parser checks only the month's name."""
    return 1 <= day <= monthrange(year, month)[1] and hour <= 23 and minute <= 59 and second <= 60


def delay_for(computed: float, hint: Hint) -> float:
    """Combine a computed backoff and a hint into a delay, in seconds."""
    if hint.source == AMZ_HEADER:
        return min(max(computed, hint.seconds), computed + AMZ_MAX_EXTRA)
    return max(computed, hint.seconds)


def until_text(hint: Hint, wall: float) -> str:
    """Return the moment until which a hint asks to wait, as readable text.

    >>> until_text(Hint(90.0, "retry-after"), 1767225600.0)
    'Thu, 01 Jan 2026 00:01:30 GMT'
    """
    from email.utils import formatdate  # as above

    try:
        return formatdate(wall + hint.seconds, usegmt=True)
    except (ValueError, OverflowError, OSError):
        return "a moment beyond the calendar"


def is_too_long(hint: Hint, limit: float) -> bool:
    """Return True if a hint asks for a longer wait than ``max_retry_after`` allows, in seconds (contract 7.3)."""
    return hint.source != AMZ_HEADER and hint.seconds > limit
