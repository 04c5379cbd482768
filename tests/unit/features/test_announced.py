"""The rate limits that servers announce (contract 7.4): recorded answers, then tables."""

from __future__ import annotations

import pytest
from requests.structures import CaseInsensitiveDict

from requests_smithy_retry.features.rate_limits.announced import (
    Announced,
    announced_in,
    limit_hint,
    parse_reset,
)

WALL = 1_767_225_600.0
DATE = "Thu, 01 Jan 2026 00:00:00 GMT"


def family(prefix: str, **values: str) -> dict[str, str]:
    """Headers whose names begin alike."""
    return {f"{prefix}-{name}".replace("_", "-"): value for name, value in values.items()}


X = ("x-ratelimit-reset", "x-ratelimit-remaining")
PLAIN = ("ratelimit-reset", "ratelimit-remaining")
REQUESTS = ("x-ratelimit-reset-requests", "x-ratelimit-remaining-requests")
TOKENS = ("x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens", False)
ANTHROPIC = ("anthropic-ratelimit-requests-reset", "anthropic-ratelimit-requests-remaining")
SHOPIFY = ("x-shopify-shop-api-call-limit",) * 2

RECORDED = {
    "github": (
        family("X-RateLimit", limit="5000", remaining="4987", reset="1767229200"),
        [Announced(4987, 3600, 5000, *X)],
    ),
    "gitlab": (
        family("RateLimit", limit="2000", remaining="1995", reset="1767225660"),
        [Announced(1995, 60, 2000, *PLAIN)],
    ),
    "ietf, version 10": (
        {"RateLimit": '"burst";r=50;t=30, "daily";r=900;t=36000', "RateLimit-Policy": '"burst";q=100;w=60'},
        [Announced(50, 30, 100, "ratelimit", '"burst"'), Announced(900, 36000, None, "ratelimit", '"daily"')],
    ),
    "ietf, version 10, bytes": (
        {"RateLimit": "peak;r=0", "RateLimit-Policy": 'peak;q=65535;qu="content-bytes";w=10;pk=:YWJj:'},
        [Announced(0, None, 65535, "ratelimit", "peak", False)],
    ),
    "ietf, version 10, requests": (
        {"RateLimit": "peak; r=0; t=3", "RateLimit-Policy": 'low;q=1, peak; q=10; qu="requests"; w=10'},
        [Announced(0, 3, 10, "ratelimit", "peak")],
    ),
    "ietf, version 10, requests at a time": (
        {"RateLimit": "busy;r=0;t=3", "RateLimit-Policy": 'busy;q=10;qu="concurrent-requests"'},
        [],
    ),
    "ietf, version 7": (
        {"RateLimit": "limit=100, remaining=50, reset=5"},
        [Announced(50, 5, 100, "ratelimit", "ratelimit")],
    ),
    "ietf, version 3": (
        family("RateLimit", limit="100, 100;w=60", remaining="99", reset="50"),
        [Announced(99, 50, 100, *PLAIN)],
    ),
    "discord": (
        family("X-RateLimit", limit="5", remaining="0", reset="1767225601.250", reset_after="1.25"),
        [Announced(0, 1.25, 5, "x-ratelimit-reset-after", "x-ratelimit-remaining")],
    ),
    "reddit": (family("x-ratelimit", remaining="597.0", used="3", reset="284"), [Announced(597, 284, None, *X)]),
    "twitter": (
        family("x-rate-limit", limit="900", remaining="0", reset="1767226500"),
        [Announced(0, 900, 900, "x-rate-limit-reset", "x-rate-limit-remaining")],
    ),
    "openai": (
        family("x-ratelimit", limit_requests="60", remaining_requests="59", reset_requests="1s")
        | family("x-ratelimit", limit_tokens="150000", remaining_tokens="149984", reset_tokens="6m0s"),
        [Announced(59, 1, 60, *REQUESTS), Announced(149984, 360, 150000, *TOKENS)],
    ),
    "anthropic": (
        family("anthropic-ratelimit-requests", limit="50", remaining="49", reset="2026-01-01T00:00:01Z"),
        [Announced(49, 1, 50, *ANTHROPIC)],
    ),
    "shopify": ({"X-Shopify-Shop-Api-Call-Limit": "10/40"}, [Announced(30, 0.5, None, *SHOPIFY)]),
    "shopify, full": ({"X-Shopify-Shop-Api-Call-Limit": "40/40"}, [Announced(0, 0.5, None, *SHOPIFY)]),
    "milliseconds since the epoch": (
        family("X-RateLimit", remaining="3", reset="1767225601500"),
        [Announced(3, 1.5, None, *X)],
    ),
    "a date": (
        family("X-RateLimit", remaining="3", reset="Thu, 01 Jan 2026 00:00:30 GMT"),
        [Announced(3, 30, None, *X)],
    ),
    "no reset": ({"X-RateLimit-Remaining": "3"}, [Announced(3, None, None, X[1], X[1])]),
    "from a cache": ({**family("X-RateLimit", remaining="3", reset="30"), "Age": "5"}, []),
    "from a cache that has just got it": (
        {**family("X-RateLimit", remaining="3", reset="30"), "Age": "0"},
        [Announced(3, 30, None, *X)],
    ),
}


@pytest.mark.parametrize("vendor", RECORDED)
def test_a_recorded_answer(vendor):
    """Each vendor's recorded headers are read as the vendor means them."""
    headers, expected = RECORDED[vendor]
    assert expected == list(announced_in(CaseInsensitiveDict({**headers, "Date": DATE}), wall=0.0))


@pytest.mark.parametrize(
    ("date", "wall", "expected"),
    [
        (DATE, WALL - 9999, 10),
        (DATE, WALL + 9999, 10),
        (DATE, WALL - 0.1, 10),
        (DATE, WALL + 1.5, 8.5),
        (DATE, WALL + 2.5, 10),
        ("soon", WALL + 6, 4),
        (None, WALL + 6, 4),
        (None, WALL + 10.9, 0),
        (None, WALL + 11.1, None),
    ],
)
def test_a_moment_is_compared_with_the_clock_of_the_server(date: str | None, wall, expected):
    """Clocks differ. Ours is used without a ``Date``, or if it is as good. A moment of another time says nothing."""
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1767225610", **({"date": date} if date else {})}
    (found,) = announced_in(headers, wall=wall)
    assert expected == (found.reset if found.reset is None else pytest.approx(found.reset))


MALFORMED = {
    "X-RateLimit-Remaining": ["many", "-1", "1, 2", "1" * 600],
    "X-RateLimit-Reset": ["soon"],
    "RateLimit": ["50", '"a";r=x;t=3', '"a";r=1.2.3', "limit=100, remaining=many", '"a";t=3'],
    "X-Shopify-Shop-Api-Call-Limit": ["32", "x/40", "1/0"],
    "x-amzn-RateLimit-Limit": ["5"],
    "Content-Type": ["text/html"],
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_header_is_passed_over(name):
    """A malformed header announces nothing and raises nothing."""
    for value in MALFORMED[name]:
        assert () == announced_in(CaseInsensitiveDict({name: value}), wall=WALL)


def test_only_the_first_limits_of_a_header_are_read():
    """A hostile server may write many."""
    headers = {"ratelimit": ", ".join(f'"{number}";r=1' for number in range(50))}
    assert [f'"{number}"' for number in range(8)] == [limit.name for limit in announced_in(headers, wall=WALL)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("59.5", 59.5),
        ("86400", 86_400),
        *((text, 60) for text in ("1767225660", "1767225660000", "2026-01-01T00:01:00Z", "2025-12-31 23:01:00-01:00")),
        ("1767225660.5", 60.5),
        ("1m30s", 90),
        ("6m0s", 360),
        ("850ms", 0.85),
        ("1d2h", 93_600),
        ("2026-01-01T01:01:00.25+01:00", 60.25),
        ("Thu, 01 Jan 2026 00:01:00 GMT", 60),
        ("2025-12-31T23:59:59.5Z", 0),
        *((text, None) for text in ("2025-12-31T23:59:58Z", "1m 30s", "2026-13-01T00:00:00Z", "0000-01-01T00:00:00Z")),
        *((text, None) for text in ("2026-02-30T00:00:00Z", "2026-01-01T00:00:00", "tomorrow", "")),
    ],
)
def test_a_reset_is_told_apart_by_its_value(text, expected):
    """Seconds, moments in seconds or milliseconds, durations and dates."""
    found = parse_reset(text, WALL)
    assert expected == (found if found is None else pytest.approx(found))


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ([], None),
        ([Announced(5, 30, source="a")], None),
        ([Announced(0, None, source="a")], None),
        ([Announced(0, 30, source="a")], (30, "a")),
        ([Announced(None, 2, source="b")], (2, "b")),
        ([Announced(0, 30, source="a"), Announced(0.5, 90, source="c"), Announced(1, 99, source="d")], (90, "c")),
    ],
)
def test_the_hint_of_a_throttled_response(limits, expected):
    """It is the longest reset of what is used up, or of what is said to be limited without a number left."""
    assert expected == limit_hint(limits)
