"""The rate limits that servers announce in headers (contract 7.4): one table with a row for each dialect. Pure.

A row names headers and says how to read them. The meaning of a reset is told by its value, not by its vendor: epoch
seconds, epoch milliseconds, seconds from now, a duration such as ``1m30s``, or a date. A malformed header is passed
over.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ..checks import Refused
from .server_hints import Hint, is_a_time, parse_decimal, parse_http_date

EPOCH_SECONDS = 1e8
"""A larger number is a moment, in seconds since the epoch: 1973 or later. A smaller one is seconds from now."""
EPOCH_MILLISECONDS = 1e11
"""A larger number is a moment in milliseconds since the epoch."""
LONGEST_VALUE = 512
"""Characters of a header's value that are read; a longer value is malformed."""
MOST_ITEMS = 8
"""Limits that are read from one header."""

# Patterns are compiled when the first one is used: the first mount does not wait for them.
_UNITS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION = r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ms|d|h|m|s))+"
_PART = r"([0-9.]+)(ms|d|h|m|s)"
_ISO_DATE = (
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]{1,9})?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
# Structured fields (RFC 9651), as much of them as is needed: an item is a string or a token with parameters.
_STRING = r'"[^"\\]*"'
_VALUE = rf"(?:{_STRING}|:[A-Za-z0-9+/=]*:|[A-Za-z0-9_.?-]+)"
_ITEM = (
    rf"[ \t]*({_STRING}|[A-Za-z*][A-Za-z0-9_:.*/%-]*)"
    rf"((?:[ \t]*;[ \t]*[a-z*][a-z0-9_.*-]*(?:={_VALUE})?)*)[ \t]*(?:,|$)"
)
_OTHER_UNIT = r';[ \t]*qu="(?!requests")'
_PARAMETER = r"([a-z*][a-z0-9_.*-]*)=([0-9]+(?:\.[0-9]+)?)(?=[ \t]*(?:;|$))"
_MEMBER = r"[ \t]*(limit|remaining|reset)=([0-9]+)[ \t]*(?:,|$)"


class Announced(NamedTuple):
    """A rate limit as a response announced it.

    :param remaining: the requests (or other units) that are left; None: the response does not say.
    :param reset: seconds until more are allowed; None: the response does not say.
    :param limit: the requests of a whole window, or None.
    :param window: the length of a window in seconds, or None.
    :param source: the header behind it.
    :param counts_requests: one request costs one unit. False for tokens, bytes and the like, of which only the end
        tells something.
    """

    remaining: float | None
    reset: float | None = None
    limit: float | None = None
    window: float | None = None
    source: str = ""
    counts_requests: bool = True

    @property
    def is_used_up(self) -> bool:
        return self.remaining is not None and self.remaining < 1


class Message(NamedTuple):
    """The part of a response that a row reads; for the fields see ``announced_in``."""

    headers: Mapping[str, str]
    wall: float

    def value(self, name: str) -> str:
        """Return the value of a header without blanks around it; nothing for none, and for one that is too long."""
        value = self.headers.get(name) if name else None
        return value.strip(" \t") if isinstance(value, str) and len(value) <= LONGEST_VALUE else ""

    def now(self) -> float:
        """Return the moment at which the response was sent, by the server's own clock where it tells."""
        sent = parse_http_date(self.value("date"))
        return self.wall if sent is None else sent


Read = Callable[["RateLimitDialect", Message], Iterator[Announced]]


@dataclass(frozen=True, slots=True)
class RateLimitDialect:
    """One row: the headers in which a server announces a rate limit, and how to read them.

    >>> acme = RateLimitDialect("acme-calls-left", reset="acme-next-window")
    >>> announced_in({"acme-calls-left": "7", "acme-next-window": "30s"}, wall=0.0, dialects=[acme])[0].reset
    30.0

    :param remaining: the header with what is left.
    :param reset: the headers with the time until more is allowed, the best one first.
    :param limit: the header with what a whole window allows.
    :param window: the length of a window in seconds, where no header tells.
    :param counts_requests: False if the numbers are not requests but tokens, bytes or the like.
    :param read: reads the row; by default, each header holds one number.
    """

    remaining: str
    reset: str | tuple[str, ...] = ()
    limit: str = ""
    window: float | None = None
    counts_requests: bool = True
    read: Read | None = None

    @property
    def resets(self) -> tuple[str, ...]:
        """The headers with the time until more is allowed."""
        return (self.reset,) if isinstance(self.reset, str) else tuple(self.reset)

    def __post_init__(self) -> None:
        for name in ("remaining", "limit"):
            object.__setattr__(self, name, getattr(self, name).lower())
        object.__setattr__(self, "reset", tuple(name.lower() for name in self.resets))


def _counts(row: RateLimitDialect, message: Message) -> Iterator[Announced]:
    """Read a header for each number."""
    remaining = parse_decimal(message.value(row.remaining))
    for name in row.resets:
        value = message.value(name)
        reset = parse_reset(value, message) if value else None
        if reset is not None:
            source = name
            break
    else:
        if remaining is None:
            return
        source, reset = row.remaining, None
    # A limit may be followed by its policy: "100, 100;w=60".
    limit = parse_decimal(message.value(row.limit).partition(",")[0].partition(";")[0].strip(" \t"))
    yield Announced(remaining, reset, limit, row.window, source, row.counts_requests)


def _structured(row: RateLimitDialect, message: Message) -> Iterator[Announced]:
    """Read the ``RateLimit`` of the IETF draft with its ``RateLimit-Policy``, or the dictionary of an older version."""
    value, told_policies = message.value(row.remaining), message.value(row.limit)
    members = dict(_matches(_MEMBER, value))
    if members:
        named = {name: parse_decimal(number) for name, number in members.items()}
        yield Announced(named.get("remaining"), named.get("reset"), named.get("limit"), None, row.remaining)
        return
    policies = dict(_items(told_policies))
    others = {item[1] for item in re.finditer(_ITEM, told_policies) if re.search(_OTHER_UNIT, item[2])}
    for name, told in _items(value):
        policy = policies.get(name, {})
        if "r" in told:
            unit = policy.get("q"), policy.get("w")
            yield Announced(told["r"], told.get("t"), *unit, row.remaining, name not in others)


def _items(value: str) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the items of a structured list with their numeric parameters; none of a malformed list."""
    for name, parameters in _matches(_ITEM, value):
        yield name, {key: parse_decimal(number) or 0.0 for key, number in re.findall(_PARAMETER, parameters)}


def _matches(pattern: str, value: str) -> list[tuple[str, str]]:
    """Return the two groups of each match, if the matches follow each other up to the end; at most a few."""
    found: list[tuple[str, str]] = []
    at, match_at = 0, re.compile(pattern).match
    while at < len(value):
        match = match_at(value, at)
        if match is None:
            return []
        found.append((match[1], match[2]))
        at = match.end()
    return found[:MOST_ITEMS]


def _used_of(row: RateLimitDialect, message: Message) -> Iterator[Announced]:
    """Read a leaky bucket as ``32/40``: used, and allowed; it empties in the row's window."""
    used, _, allowed = message.value(row.remaining).partition("/")
    taken, limit = parse_decimal(used), parse_decimal(allowed)
    if taken is None or not limit:
        return
    window = row.window or 0.0
    # The reset of an empty bucket is when its first place is free; of any other one, when all of it is.
    is_full = taken >= limit
    reset = window / limit if is_full else window * taken / limit
    yield Announced(max(0.0, limit - taken), reset, limit, row.window, row.remaining)


def _rate(row: RateLimitDialect, message: Message) -> Iterator[Announced]:
    """Read requests per second. What is left of a burst is not announced: only a throttled request goes by it."""
    rate = parse_decimal(message.value(row.remaining))
    if rate:
        yield Announced(None, 1 / max(rate, 1e-6), rate, 1.0, row.remaining)


DIALECTS: tuple[RateLimitDialect, ...] = (
    # IETF draft-ietf-httpapi-ratelimit-headers: structured fields, and the sixth version's dictionary.
    RateLimitDialect("ratelimit", limit="ratelimit-policy", read=_structured),
    # Its older versions; GitLab, with a moment as the reset.
    RateLimitDialect("ratelimit-remaining", "ratelimit-reset", "ratelimit-limit"),
    # GitHub, Discord (which has the seconds, too), Reddit, Okta and most others.
    RateLimitDialect("x-ratelimit-remaining", ("x-ratelimit-reset-after", "x-ratelimit-reset"), "x-ratelimit-limit"),
    # Twitter.
    RateLimitDialect("x-rate-limit-remaining", "x-rate-limit-reset", "x-rate-limit-limit"),
    # OpenAI and those that copy it.
    RateLimitDialect("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests", "x-ratelimit-limit-requests"),
    RateLimitDialect(
        "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens", "x-ratelimit-limit-tokens", counts_requests=False
    ),
    # Anthropic: the reset is a date.
    RateLimitDialect(
        "anthropic-ratelimit-requests-remaining",
        "anthropic-ratelimit-requests-reset",
        "anthropic-ratelimit-requests-limit",
    ),
    RateLimitDialect(
        "anthropic-ratelimit-tokens-remaining",
        "anthropic-ratelimit-tokens-reset",
        "anthropic-ratelimit-tokens-limit",
        counts_requests=False,
    ),
    # Shopify: a leaky bucket that empties in 20 s, whatever its size.
    RateLimitDialect("x-shopify-shop-api-call-limit", window=20.0, read=_used_of),
    # AWS (Selling Partner API and others): requests per second.
    RateLimitDialect("x-amzn-ratelimit-limit", read=_rate),
)
"""The dialects that are known without being told. Add yours with the option ``pacing``."""


def announced_in(
    headers: Mapping[str, str], *, wall: float, dialects: Collection[RateLimitDialect] = DIALECTS
) -> tuple[Announced, ...]:
    """Return the rate limits that the headers of a response announce. Never raise.

    :param headers: the response's; looked up by lower-case name, so give a case-insensitive mapping.
    :param wall: the current time in seconds since the epoch, for a response without a ``Date`` of its own.
    """
    message = Message(headers, wall)
    return tuple(found for row in dialects for found in (row.read or _counts)(row, message))


def speaks(
    headers: Mapping[str, str], dialects: Collection[RateLimitDialect] = DIALECTS
) -> tuple[RateLimitDialect, ...]:
    """Return the rows of which the headers have something, well-formed or not."""
    return tuple(row for row in dialects if row.remaining in headers or any(name in headers for name in row.resets))


def probe_for(dialects: Collection[RateLimitDialect]) -> Callable[[str], object]:
    """Return a search for any name of the rows in a text, which finds nothing where none of them is spoken."""
    names = {name for row in dialects for name in (row.remaining, *row.resets)}
    return re.compile("|".join(map(re.escape, sorted(names))), re.IGNORECASE).search


def limit_hint(limits: Collection[Announced]) -> Hint | None:
    """Return the wait after which a throttled request is allowed again, as its response announces it; else None.

    It is the longest reset of a limit of which nothing is left, or of which the response does not say what is left.
    """
    waits = [
        Hint(found.reset, found.source)
        for found in limits
        if found.reset is not None and (found.is_used_up or found.remaining is None)
    ]
    return max(waits, key=lambda hint: hint.seconds, default=None)


def parse_reset(text: str, message: Message) -> float | None:
    """Return the seconds until a reset: a number, a moment since the epoch, a duration or a date. None: malformed."""
    number = parse_decimal(text)
    if number is not None:
        if number < EPOCH_SECONDS:
            return number
        return max(0.0, (number if number < EPOCH_MILLISECONDS else number / 1000) - message.now())
    duration = parse_duration(text)
    if duration is not None:
        return duration
    moment = parse_http_date(text)
    if moment is None:
        moment = parse_iso_date(text)
    return None if moment is None else max(0.0, moment - message.now())


def parse_duration(text: str) -> float | None:
    """Return the seconds of a duration such as ``1m30s``, ``850ms`` or ``1h``; None for anything else.

    >>> parse_duration("1m30.5s"), parse_duration("1 minute")
    (90.5, None)
    """
    if re.fullmatch(_DURATION, text) is None:
        return None
    return float(sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, text)))


def parse_iso_date(text: str) -> float | None:
    """Return the seconds since the epoch of a date of RFC 3339, which has a time zone; None for anything else."""
    match = re.fullmatch(_ISO_DATE, text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    if not (1 <= month <= 12 and year >= 1) or not is_a_time(year, month, day, hour, minute, second):
        return None
    fraction, sign, hours, minutes = match.groups()[6:]
    ahead = 0 if sign is None else (3600 * int(hours) + 60 * int(minutes)) * (-1 if sign == "-" else 1)
    return float(timegm((year, month, day, hour, minute, second)) - ahead) + float(f"0{fraction or '.0'}")


def dialects_of(value: object) -> tuple[RateLimitDialect, ...] | None:
    """Return the rows that a value of the option ``pacing`` asks for; None for ``"off"``.

    :param value: ``"announced"``, ``"off"``, a :class:`RateLimitDialect`, or several, which come before the known ones.
    :raises Refused: for anything else.
    """
    if value == "off":
        return None
    if value == "announced":
        return DIALECTS
    own = (value,) if isinstance(value, RateLimitDialect) else value
    if isinstance(own, (tuple, list)) and own and all(isinstance(row, RateLimitDialect) for row in own):
        return (*own, *DIALECTS)
    raise Refused("'announced', 'off', a RateLimitDialect or a list of them is allowed")
