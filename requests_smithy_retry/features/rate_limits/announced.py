"""The rate limits that servers announce in headers (contract 7.4): one table with a row for each dialect. Pure.

A malformed header is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ...core.server_hints import parse_decimal, parse_http_date, parse_reset

SAME_CLOCK = 2.0
"""Seconds by which a ``Date``, which has whole ones, may differ from a clock that goes like the server's."""
LONGEST_VALUE, MOST_ITEMS = 512, 8
"""The characters of a header's value, and the limits in one, that are read."""


class Announced(NamedTuple):
    """A rate limit as a response announced it.

    :param remaining: the requests (or other units) that are left; None: the response does not say.
    :param reset: seconds until more are allowed; None: the response does not say.
    :param limit: the requests of a whole window, or None.
    :param source: the header behind it.
    :param name: tells it from others that are announced in the same response.
    :param counts_requests: one request costs one unit. False for tokens, bytes and the like, of which only the end
        tells something.
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
        resets = (self.reset,) if isinstance(self.reset, str) else self.reset
        for name, value in (("remaining", self.remaining.lower()), ("limit", self.limit.lower())):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "reset", tuple(name.lower() for name in resets))


def _counts(row: RateLimitDialect, value: Callable[[str], str], now: float) -> Iterator[Announced]:
    """Read a header for each number."""
    remaining = parse_decimal(value(row.remaining))
    resets = ((name, parse_reset(value(name), now)) for name in row.reset)
    source, reset = next((found for found in resets if found[1] is not None), (row.remaining, None))
    if remaining is not None or reset is not None:
        # A limit may be followed by its policy: "100, 100;w=60".
        limit = parse_decimal(re.split("[,;]", value(row.limit))[0].strip())
        yield Announced(remaining, reset, limit, source, row.remaining, row.counts_requests)


def _structured(row: RateLimitDialect, value: Callable[[str], str], now: float) -> Iterator[Announced]:  # noqa: ARG001
    """Read the ``RateLimit`` of the IETF draft with its ``RateLimit-Policy``, or the dictionary of an older version."""
    told = value(row.remaining)
    if "remaining=" in told:
        old = _numbers(told.split(","))
        yield Announced(old.get("remaining"), old.get("reset"), old.get("limit"), row.remaining, row.remaining)
        return
    policies = dict(_items(value(row.limit)))
    for name, parts in _items(told):
        numbers, policy = _numbers(parts), policies.get(name, [])
        if "r" in numbers:
            is_counted = all(part == 'qu="requests"' for part in policy if part.startswith("qu="))
            yield Announced(numbers["r"], numbers.get("t"), _numbers(policy).get("q"), row.remaining, name, is_counted)


def _items(value: str) -> list[tuple[str, list[str]]]:
    """Return the items of a structured list (RFC 9651), each with its parameters; a string with a comma is none."""
    items = ([part.strip(" \t") for part in item.split(";")] for item in value.split(",")[:MOST_ITEMS])
    return [(name, parts) for name, *parts in items]


def _numbers(parts: Collection[str]) -> dict[str, float]:
    pairs = ((name.strip(), parse_decimal(text.strip())) for name, _, text in (part.partition("=") for part in parts))
    return {name: number for name, number in pairs if number is not None}


def _used_of(row: RateLimitDialect, value: Callable[[str], str], now: float) -> Iterator[Announced]:  # noqa: ARG001
    """Read a leaky bucket as ``32/40``, used and allowed. It empties in 20 s, so its next place is free in a moment."""
    used, _, allowed = value(row.remaining).partition("/")
    taken, size = parse_decimal(used), parse_decimal(allowed)
    if taken is not None and size:
        yield Announced(max(0.0, size - taken), 20.0 / size, None, row.remaining, row.remaining)


DIALECTS: tuple[RateLimitDialect, ...] = (
    # IETF draft-ietf-httpapi-ratelimit-headers: structured fields, and the sixth version's dictionary.
    RateLimitDialect("ratelimit", limit="ratelimit-policy"),
    # Its older versions; GitLab, with a moment as the reset.
    RateLimitDialect("ratelimit-remaining", "ratelimit-reset", "ratelimit-limit"),
    # GitHub, Discord (which has the seconds, too), Reddit, Okta and most others.
    RateLimitDialect("x-ratelimit-remaining", ("x-ratelimit-reset-after", "x-ratelimit-reset"), "x-ratelimit-limit"),
    # X (Twitter).
    RateLimitDialect("x-rate-limit-remaining", "x-rate-limit-reset", "x-rate-limit-limit"),
    # OpenAI and those that copy it; Anthropic, whose reset is a date.
    *(
        RateLimitDialect(name.format("remaining"), name.format("reset"), name.format("limit"), "requests" in name)
        for name in (
            *("x-ratelimit-{}-requests", "x-ratelimit-{}-tokens"),
            *("anthropic-ratelimit-requests-{}", "anthropic-ratelimit-tokens-{}"),
        )
    ),
    RateLimitDialect("x-shopify-shop-api-call-limit"),
)
"""The dialects that are known without being told. Add yours with the option ``pacing``."""
_READ = {"ratelimit": _structured, "x-shopify-shop-api-call-limit": _used_of}


def announced_in(
    headers: Mapping[str, str], *, wall: float, dialects: Collection[RateLimitDialect] = DIALECTS
) -> tuple[Announced, ...]:
    """Return the rate limits that the headers of a response announce. Never raise.

    :param headers: the response's; looked up by lower-case name, so give a case-insensitive mapping.
    :param wall: the current time in seconds since the epoch.
    """

    def value(name: str) -> str:
        found = headers.get(name) if name else None
        return found.strip(" \t") if isinstance(found, str) and len(found) <= LONGEST_VALUE else ""

    if parse_decimal(value("age")):
        return ()  # from a cache, so the numbers are those of another time
    # Moments are compared with the server's own clock, where that goes otherwise than ours.
    sent = parse_http_date(value("date"))
    now = wall if sent is None or abs(sent - wall) <= SAME_CLOCK else sent
    rows = (row for row in dialects if row.remaining in headers or any(name in headers for name in row.reset))
    return tuple(found for row in rows for found in _READ.get(row.remaining, _counts)(row, value, now))
