"""Values from text (contract 10.2): what a number of seconds may look like."""

from __future__ import annotations

import pytest

from requests_smithy_retry import RetryConfigError
from requests_smithy_retry.config.sources import parse_text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2", 2),
        ("2.5", 2.5),
        ("1e1", 10),
        ("1E1", 10),
        ("250ms", 0.25),
        ("1.1 ms", 0.0011),
        ("2 s", 2),
        ("2 sec", 2),
        ("2m", 120),
        ("2 MIN", 120),
        ("0.5h", 1800),
        ("none", None),
    ],
)
def test_seconds_may_have_a_unit(text, seconds):
    """Milliseconds to hours, in any case, with a blank or none between."""
    assert seconds == parse_text("operation_timeout", text, "test")


@pytest.mark.parametrize("text", ["2 days", "2 2", "m", "1e400 h", "-1 s"])
def test_what_is_no_time_is_refused(text):
    """The error says what is allowed."""
    with pytest.raises(RetryConfigError, match="a finite number of seconds above 0 or None is allowed"):
        parse_text("operation_timeout", text, "test")


def test_an_item_of_digits_may_be_a_text():
    """Digits stay a text among methods, and become a number among status codes."""
    assert {"GET", "123"} == parse_text("allowed_methods", "GET, 123", "test")
    assert {418, 503} == parse_text("retry_status_codes", "418,503", "test")
