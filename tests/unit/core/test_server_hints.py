"""A server's hints on the wait (contract 7.2, 7.3): tables, then properties."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from requests_smithy_retry.core.server_hints import (
    AMZ_HEADER,
    MILLISECOND_HEADERS,
    Hint,
    delay_for,
    is_too_long,
    parse_http_date,
    parse_integer,
    parse_retry_after,
    read_hint,
)
from tests.support import Reply, scripted, send

DOCS = Path(__file__).resolve().parents[3] / "docs"
WALL = 784_111_777.0
DATES = ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
DIGITS = {
    "0": 0,
    "5": 5,
    " 5\t": 5,
    "007": 7,
    "0" * 4000 + "7": 7,
    "0.5": 0.5,
    "0.5" + "0" * 4000: 0.5,
    "1.25": 1.25,
    "1.12345678901234567890": 1.123456789012345,
    "86400": 86400,
    "123456789012345": 123456789012345.0,
}
NO_NUMBERS = ["", " ", "soon", "nan", "inf", "1e309", "0x10", "1_000", "٣", "5s", "X5", "5X", "\xa05", "\x0b5", "5\x0c"]
NO_SECONDS = ["-5", "+5", "1,5", "5 5", ".5", "5.", "1.2.3"]


@pytest.mark.parametrize(("text", "expected"), DIGITS.items())
def test_seconds(text, expected):
    """Digits and decimals are seconds; leading zeros do not count, and fifteen digits of a fraction do."""
    assert expected == parse_retry_after(text, date=None, wall=WALL)


@pytest.mark.parametrize("text", NO_NUMBERS + NO_SECONDS)
def test_malformed(text):
    """Anything else is no hint."""
    assert parse_retry_after(text, date=None, wall=WALL) is None
    assert parse_integer(text) is None


@pytest.mark.parametrize("text", ["1234567890123456", "1" + "0" * 15, "9" * 4000, "1" + "0" * 4000])
def test_from_16_digits_on_every_number_is_the_same(text):
    """It is past any limit, and parsing thousands of digits is cheap."""
    assert 1e15 == parse_integer(text)
    assert 1e15 <= parse_retry_after(text, date=None, wall=WALL)
    assert 1e15 <= parse_retry_after(f"{text}.{text}", date=None, wall=WALL)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[(text, WALL) for text in DATES],
        ("Sun, 01 Jan 2017 00:00:00 GMT", 1_483_228_800),
        ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),  # the leap second before it
        ("Sun, 06 Nov 1994 08:49:37", None),
        ("Sun, 06 Nov 1994 08:49:37 +0000", None),
        ("Sun, 6 Nov 1994 08:49:37 GMT", None),
        ("06 Nov 1994 08:49:37 GMT", None),
        ("Sun, 06 Abc 1994 08:49:37 GMT", None),
        ("Sun, 00 Nov 1994 08:49:37 GMT", None),
        ("Sun, 32 Nov 1994 08:49:37 GMT", None),
        ("Thu, 31 Nov 1994 08:49:37 GMT", None),
        ("Wed, 29 Feb 2023 08:49:37 GMT", None),
        ("Sun, 06 Nov 1994 24:49:37 GMT", None),
        ("Sun, 06 Nov 1994 08:60:37 GMT", None),
        ("Sun, 06 Nov 1994 08:49:61 GMT", None),
        ("Sun, 06 Nov 0000 08:49:37 GMT", None),
    ],
)
def test_dates(text, expected):
    """RFC 9110's three formats name the same moment; a text that is not an HTTP-date gives no hint."""
    assert expected == parse_http_date(text)


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        (None, 60.0),
        ("Sun, 06 Nov 1994 08:49:27 GMT", 10.0),
        ("Sun, 06 Nov 1994 09:49:37 GMT", 0.0),
        ("garbage", 60.0),
        (" Sun, 06 Nov 1994 08:49:27 GMT\t", 10.0),
        ("\x0bSun, 06 Nov 1994 08:49:27 GMT", 60.0),
        ("XSun, 06 Nov 1994 08:49:27 GMT", 60.0),
    ],
)
def test_a_date_is_measured_against_the_responses_own(date, expected):
    """Clocks differ: the response's ``Date`` counts where there is one; a moment in the past is no wait."""
    assert expected == parse_retry_after(DATES[0], date=date, wall=WALL - 60)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"X-Amz-Retry-After": "1500", "Retry-After": "9"}, Hint(1.5, "x-amz-retry-after")),
        ({"x-amz-retry-after": "soon", "Retry-After-Ms": "20", "Retry-After": "9"}, Hint(0.02, "retry-after-ms")),
        ({"retry-after-ms": "0.5", "x-ms-retry-after-ms": "30"}, Hint(0.03, "x-ms-retry-after-ms")),
        ({"retry-after-ms": "-1", "x-ms-retry-after-ms": "", "Retry-After": "9"}, Hint(9, "retry-after")),
        ({"x-amz-retry-after": "1.5", "Retry-After": "soon"}, None),
    ],
)
def test_the_order_of_headers(headers, expected):
    """The first well-formed hint counts; a malformed one is passed over."""
    assert expected == read_hint(CaseInsensitiveDict(headers), wall=WALL)


IN_4 = "Sun, 06 Nov 1994 08:49:41 GMT"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Retry-After": "2, 2"}, Hint(2, "retry-after")),
        ({"Retry-After": "1, 2"}, Hint(2, "retry-after")),
        ({"Retry-After": "2,1.5"}, Hint(2, "retry-after")),
        ({"Retry-After": "2, soon"}, Hint(2, "retry-after")),
        ({"Retry-After": ", ,2,"}, Hint(2, "retry-after")),
        ({"Retry-After": f"{DATES[0]}, {IN_4}"}, Hint(4, "retry-after")),
        ({"Retry-After": f"{IN_4}, {DATES[1]}, {DATES[2]}"}, Hint(4, "retry-after")),
        ({"Retry-After": f"3, {IN_4}, 2"}, Hint(4, "retry-after")),
        ({"Retry-After": f"5, {IN_4}"}, Hint(5, "retry-after")),
        ({"Retry-After": f"Sun, {IN_4}"}, None),
        ({"Retry-After": "Sun, 2"}, None),
        ({"Retry-After": "2, Sun"}, Hint(2, "retry-after")),
        ({"Retry-After": "soon, later"}, None),
        ({"retry-after-ms": "20, 30", "Retry-After": "9"}, Hint(0.03, "retry-after-ms")),
        ({"x-amz-retry-after": "1500, 1000"}, Hint(1.5, "x-amz-retry-after")),
        ({"x-ms-retry-after-ms": "soon, 40"}, Hint(0.04, "x-ms-retry-after-ms")),
        ({"Retry-After": "2, " * 30_000 + "9"}, Hint(2, "retry-after")),
    ],
)
def test_the_longest_of_several_counts(headers, expected):
    """Of several fields or members of one name, a proxy's own among them, the longest well-formed one counts."""
    assert expected == read_hint(CaseInsensitiveDict(headers), wall=WALL)


@pytest.mark.parametrize(
    ("computed", "hint", "expected"),
    [
        (0.05, Hint(3, "retry-after"), 3),
        (4.0, Hint(3, "retry-after"), 4.0),
        (0.05, Hint(3, "x-amz-retry-after"), 3),
        (0.05, Hint(10, "x-amz-retry-after"), 5.05),
        (4.0, Hint(3, "x-amz-retry-after"), 4.0),
        (0.0, Hint(0, "x-amz-retry-after"), 0.0),
    ],
)
def test_the_delay(computed, hint, expected):
    """``x-amz-retry-after`` is clamped to [t, t+5], the others are a floor."""
    assert expected == delay_for(computed, hint)


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (Hint(120, "retry-after"), False),
        (Hint(120.001, "retry-after"), True),
        (Hint(1e15, "x-amz-retry-after"), False),
    ],
)
def test_too_long(hint, expected):
    """Above the limit is too long; ``x-amz-retry-after`` never is."""
    assert expected == is_too_long(hint, 120)


texts = st.one_of(st.text(max_size=40), st.text(string.digits + ".- :,GMTSunov", max_size=40), st.sampled_from(DATES))


@pytest.mark.once
@given(st.dictionaries(st.sampled_from(["x-amz-retry-after", "retry-after-ms", "retry-after", "date"]), texts))
def test_nothing_from_the_network_raises(headers):
    """For any headers there is no exception, and never a negative or endless wait."""
    hint = read_hint(headers, wall=WALL)
    assert hint is None or 0 <= hint.seconds < float("inf")


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.sampled_from(["x-amz-retry-after", "retry-after"]))
def test_a_delay_is_never_shorter_than_the_backoff(computed, seconds, source):
    """A hint only lengthens; ``x-amz-retry-after`` by 5 s at most."""
    delay = delay_for(computed, Hint(seconds, source))
    assert computed <= delay
    assert source == "retry-after" or delay <= computed + 5


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "0"}, 0.05),
        ({"Retry-After": "Tue, 14 Nov 2023 22:13:30 GMT"}, 10),
        ({"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 08:49:34 GMT"}, 3),
        ({"retry-after-ms": "250"}, 0.25),
        ({"Retry-After": "120"}, 120),
        ({"Retry-After": "7, 3"}, 7),
    ],
)
def test_through_the_adapter(headers, expected, stream):
    """The wait is the hint, or the backoff where that is longer."""
    adapter = scripted(Reply(503, headers), 200)
    send(adapter, stream=stream)
    assert [expected] == adapter.clock.sleeps


@pytest.mark.parametrize("value", ["1700000000", "9" * 4000, "121", "Wed, 14 Nov 2035 22:13:30 GMT"])
def test_a_long_hint_through_the_adapter(value):
    """Epoch seconds, thousands of digits and far dates end the operation at once, unless more is allowed."""
    adapter = scripted(Reply(429, {"Retry-After": value}))
    assert (429, []) == (send(adapter).status_code, adapter.clock.sleeps)
    assert 200 == send(scripted(Reply(429, {"Retry-After": value}), 200, max_retry_after=1e16)).status_code


def test_every_year_is_a_moment():
    """The years from 1000 to 9999 can be read, leap seconds included, and no date raises."""
    for year in range(1000, 10_000):
        first = parse_http_date(f"Sun, 01 Jan {year} 00:00:00 GMT")
        assert 0 < parse_http_date(f"Sun, 31 Dec {year} 23:59:60 GMT") - first <= 366 * 86_400


@pytest.mark.parametrize("name", [AMZ_HEADER, *MILLISECOND_HEADERS, "retry-after"])
def test_each_header_is_read_and_documented(name):
    """Each header gives a hint by itself, and the contract names it."""
    assert name == read_hint({name: "2"}, wall=WALL).source
    contract = (DOCS / "explanation/contract.md").read_text(encoding="utf-8")
    assert f"`{name}`" in contract.replace("`Retry-After`", "`retry-after`")
