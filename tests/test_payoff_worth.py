"""What a success is worth to a payoff bucket, and how a shortage is written (issue 8)."""

from __future__ import annotations

import pytest

from requests_smithy_retry.payoff_worth import worth_of, written


@pytest.mark.parametrize(
    ("latency", "timeout", "worth"),
    [
        (0.0, 2.0, 1.0),
        (0.5, 2.0, 0.75),
        (0.25, 0.5, 0.5),
        (2.0, 2.0, 0.0),
        (9.0, 2.0, 0.0),
        (0.0, 0.0, 0.0),
        (None, 2.0, 1.0),
        (9.0, None, 1.0),
        (None, None, 1.0),
    ],
)
def test_a_success_is_worth_the_part_of_its_time_that_is_left(
    latency: float | None, timeout: float | None, worth: float
) -> None:
    """And never less than nothing; one that nobody measured, or that had no bound, is worth all."""
    assert worth_of(latency, timeout) == worth


@pytest.mark.parametrize(
    ("tokens", "cost", "text"),
    [
        (0.0, 1.0, "0"),
        (0.999, 1.0, "0.99"),
        (0.4 - 1e-12, 1.0, "0.4"),
        (0.4 - 1e-8, 1.0, "0.39"),
        (0.6 - 1e-12, 0.6, "0.59"),
        (1.0 - 1e-9, 1.0, "0.99"),
        (12.345, 14.0, "12.34"),
    ],
)
def test_too_little_is_never_written_as_enough(tokens: float, cost: float, text: str) -> None:
    """Rounded down, but for what misses two places by a hair and is not enough with it either."""
    assert written(tokens, cost) == text
