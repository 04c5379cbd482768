"""The rate limits that servers announce in headers (contract 7.4): one table with a row for each dialect. Pure.

The value of a reset shows its unit, whoever the vendor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from ...checks import BadValue, safe_repr
from ...config.parsers import is_name
from ...core.server_hints import Hint, longest_in, names_in, parse_decimal, parse_http_date

OLD_DATE = 2.0
"""The most seconds that a ``Date``, in whole seconds, is old if the clocks agree; it is never ahead."""
LONGEST_VALUE, MOST_ITEMS = 512, 8
"""The most characters of a header's value, and the most limits in it, that are read."""
EPOCH_SECONDS, EPOCH_MILLISECONDS = 1e8, 1e11
"""Larger numbers are moments since the epoch, of 1973 or later; smaller ones are seconds from now."""

PAUSE = "backoff"
"""The header by which a server asks for a pause."""

_UNITS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION = r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ms|d|h|m|s))+"


class Announced(NamedTuple):
    """A rate limit as a response announced it.

    :param remaining: the requests (or other units) that are left; None: the response does not say.
    :param reset: seconds until more are allowed; None: the response does not say.
    :param limit: the requests of a whole window, or None.
    :param source: the header behind it.
    :param name: distinguishes it from others in the same response.
    :param counts_requests: one request costs one unit. For tokens or bytes it matters only that none are left.
    """

    remaining: float | None
    reset: float | None = None
    limit: float | None = None
    source: str = ""
    name: str = ""
    counts_requests: bool = True

    @property
    def is_used_up(self) -> bool:
        return self.remaining is not None and self.remaining < 1


@dataclass(frozen=True, slots=True)
class RateLimitDialect:
    """One row: the headers in which a server announces a rate limit, each with one number.

    >>> acme = RateLimitDialect("acme-calls-left", reset="acme-next-window")
    >>> announced_in({"acme-calls-left": "7", "acme-next-window": "30s"}, wall=0.0, dialects=[acme])[0].reset
    30.0

    :param remaining: the header with what is left.
    :param reset: the headers with the time until more is allowed, the best one first.
    :param limit: the header with what a whole window allows.
    :param counts_requests: False if the numbers are not requests but tokens, bytes or the like.
    """

    remaining: str
    reset: str | tuple[str, ...] = ()
    limit: str = ""
    counts_requests: bool = True

    def __post_init__(self) -> None:
        resets: Any = (self.reset,) if isinstance(self.reset, str) else self.reset
        if not is_name(self.remaining):
            raise BadValue(f"remaining={safe_repr(self.remaining)}: a header's name is allowed")
        if not isinstance(resets, (tuple, list)) or not all(map(is_name, resets)):
            raise BadValue(f"reset={safe_repr(self.reset)}: a header's name, or a tuple of names, is allowed")
        if self.limit != "" and not is_name(self.limit):
            raise BadValue(f"limit={safe_repr(self.limit)}: a header's name is allowed, or '' for none")
        object.__setattr__(self, "reset", tuple(map(str.lower, resets)))
        for name in ("remaining", "limit"):
            object.__setattr__(self, name, getattr(self, name).lower())


def _counts(row: RateLimitDialect, value: Callable[[str], str], now: float) -> Iterator[Announced]:
    """Read a header for each number."""
    remaining = parse_decimal(value(row.remaining))
    resets = ((name, parse_reset(value(name), now)) for name in row.reset)
    source, reset = next((found for found in resets if found[1] is not None), (row.remaining, None))
    if remaining is not None or reset is not None:
        # A limit may be followed by its policy: "100, 100;w=60".
        limit = parse_decimal(re.split("[,;]", value(row.limit))[0].strip())
        yield Announced(remaining, reset, limit, source, row.remaining, row.counts_requests)


def _structured(row: RateLimitDialect, value: Callable[[str], str], now: float) -> Iterator[Announced]:
    """Read the ``RateLimit`` of the IETF draft with its ``RateLimit-Policy``, or the dictionary of an older version."""
    told = value(row.remaining)
    old = _numbers(told)
    if "remaining" in old:
        yield Announced(old["remaining"], old.get("reset"), old.get("limit"), row.remaining, row.remaining)
        return
    policies = {item.partition(";")[0].strip(): item for item in value(row.limit).split(",")}
    for item in told.split(",")[:MOST_ITEMS]:
        name, numbers = item.partition(";")[0].strip(), _numbers(item)
        policy = policies.get(name, "")
        # A limit on concurrent requests is not a rate: it has no reset.
        if "r" in numbers and 'qu="concurrent-requests"' not in policy:
            is_counted = "qu=" not in policy or 'qu="requests"' in policy
            yield Announced(numbers["r"], numbers.get("t"), _numbers(policy).get("q"), row.remaining, name, is_counted)


def _numbers(text: str) -> dict[str, float]:
    """Return the numbers among parameters (RFC 9651), or in a dictionary of them."""
    found = re.findall(r"(?:^|[;, \t])([a-z]+)=([0-9.]+)(?=[;, \t]|$)", text)
    pairs = ((name, parse_decimal(number)) for name, number in found)
    return {name: number for name, number in pairs if number is not None}


def _used_of(row: RateLimitDialect, value: Callable[[str], str], now: float) -> Iterator[Announced]:
    """Read a leaky bucket as ``32/40``, used and allowed. It empties in 20 s, so its next place is free in a moment."""
    used, _, allowed = value(row.remaining).partition("/")
    taken, size = parse_decimal(used), parse_decimal(allowed)
    if taken is not None and size:
        yield Announced(max(0.0, size - taken), 20.0 / size, None, row.remaining, row.remaining)


DIALECTS: tuple[RateLimitDialect, ...] = (
    # IETF draft-ietf-httpapi-ratelimit-headers: structured fields, and the seventh version's dictionary.
    RateLimitDialect("ratelimit", limit="ratelimit-policy"),
    RateLimitDialect("ratelimit-remaining", "ratelimit-reset", "ratelimit-limit"),  # its older versions, GitLab
    # GitHub, Discord (which has the seconds, too), Reddit, Okta and most others.
    RateLimitDialect("x-ratelimit-remaining", ("x-ratelimit-reset-after", "x-ratelimit-reset"), "x-ratelimit-limit"),
    RateLimitDialect("x-rate-limit-remaining", "x-rate-limit-reset", "x-rate-limit-limit"),  # X (Twitter)
    # OpenAI and those that copy it; Anthropic, whose reset is a date.
    *(
        RateLimitDialect(name.format("remaining"), name.format("reset"), name.format("limit"), unit == "requests")
        for unit in ("requests", "tokens")
        for name in (f"x-ratelimit-{{}}-{unit}", f"anthropic-ratelimit-{unit}-{{}}")
    ),
    RateLimitDialect("x-shopify-shop-api-call-limit"),
)
"""The dialects that are always known. The option ``pacing`` adds yours."""
_READ = {"ratelimit": _structured, "x-shopify-shop-api-call-limit": _used_of}


def announced_in(
    headers: Mapping[str, str], *, wall: float, dialects: Collection[RateLimitDialect] = DIALECTS
) -> tuple[Announced, ...]:
    """Return the rate limits that the headers of a response announce. Never raise; skip what is malformed.

    :param headers: the response's; looked up by lower-case name, so give a case-insensitive mapping.
    :param wall: the current time in seconds since the epoch.
    """
    fields = names_in(headers)
    rows = [row for row in dialects if row.remaining in fields or any(name in fields for name in row.reset)]
    if not rows:
        return ()

    def value(name: str) -> str:
        found = headers.get(name) if name else None
        return found.strip(" \t") if isinstance(found, str) and len(found) <= LONGEST_VALUE else ""

    if parse_decimal(value("age")):
        return ()  # from a cache, so the numbers are old
    # Moments are compared with the server's own clock, if that differs from ours.
    sent = parse_http_date(value("date"))
    now = wall if sent is None or sent <= wall <= sent + OLD_DATE else sent
    return tuple(found for row in rows for found in _READ.get(row.remaining, _counts)(row, value, now))


def pause_in(headers: Mapping[str, str]) -> float:
    """Return the seconds for which ``Backoff`` asks all clients to send nothing; 0 if it does not.

    Zotero and Kinto send it with any answer. Of several fields or members, the longest counts.
    """
    text: object = headers.get(PAUSE, "")
    if not isinstance(text, str) or len(text) > LONGEST_VALUE or parse_decimal(headers.get("age", "0").strip(" \t")):
        return 0.0
    return longest_in(text, parse_decimal) or 0.0


def parse_reset(text: str, now: float) -> float | None:
    """Return the seconds until a reset: a number, a moment since the epoch, a duration or a date.

    None: it is malformed, or further in the past than rounding explains.

    >>> parse_reset("1m30.5s", 0.0), parse_reset("1767225660", 1767225600.0), parse_reset("1 minute", 0.0)
    (90.5, 60.0, None)
    """
    if not text:
        return None
    number = parse_decimal(text)
    if number is not None and number <= EPOCH_SECONDS:
        return number
    if re.fullmatch(_DURATION, text):
        return float(sum(float(part) * _UNITS[unit] for part, unit in re.findall(r"([0-9.]+)([a-z]+)", text)))
    if number is not None:
        moment: float | None = number if number < EPOCH_MILLISECONDS else number / 1000
    else:
        moment = parse_http_date(text) or _iso_date(text)
    return None if moment is None or moment < now - 1.0 else max(0.0, moment - now)


def _iso_date(text: str) -> float | None:
    """Return the seconds since the epoch of a date of RFC 3339, which has a time zone."""
    try:
        text = re.sub(r"\.\d+", lambda digits: digits[0].ljust(7, "0")[:7], text)  # as many as Python 3.10 reads
        date = datetime.fromisoformat(text.upper().replace("Z", "+00:00"))
        return None if date.tzinfo is None else date.timestamp()
    except (ValueError, OverflowError):
        return None


def limit_hint(limits: Collection[Announced]) -> Hint | None:
    """Return the wait after which a throttled request is allowed again, as its response announces it; else None.

    It is the longest reset of a limit of which nothing is left, or of which the response does not say what is left.
    """
    used_up = [found for found in limits if found.is_used_up or found.remaining is None]
    waits = [Hint(found.reset, found.source) for found in used_up if found.reset is not None]
    return max(waits, key=lambda hint: hint.seconds, default=None)
