"""The numbers of the payoff quotas: what the option ``quota`` means by name, and what is allowed. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .finite import is_finite, shown

PAYOFF = "payoff"
"""The option ``quota`` by this name: each scope has a :class:`~requests_smithy_retry.PayoffTokenBucket`."""

PAYOFF_SETTLING = "payoff-settling"
"""The same with buckets that forget, in a time of health, what they hold above their capacity."""

PAYOFF_NUMBERS: dict[object, dict[str, float]] = {
    PAYOFF: {},
    # Of those tried by benchmarks/payoff_table.py, 200 s lose least where a service is flaky for what they forget in
    # health; the rewards make up for nearly all of that.
    PAYOFF_SETTLING: {"settling": 200.0, "retry_reward": 0.75, "first_try_reward": 0.5},
}
"""What a bucket of each name is made with, beside the defaults."""


@lru_cache(maxsize=64)
def shared(**numbers: Any) -> dict[str, Any]:
    """The same dict for the same numbers, so that the buckets of many scopes have one between them."""
    return numbers


def check_number(name: str, value: float | None, least: float) -> None:
    """Refuse a number that a bucket cannot go by.

    :param name: the argument of the bucket.
    :param least: its argument of that name.
    :raises ValueError: with the name and what is allowed.
    """
    if name == "settling" and value is None:
        return
    lowest, is_above = least if name == "most" else 0.0, name in ("memory", "shortest", "settling")
    if not is_finite(value) or value < lowest or (is_above and value == 0):
        span = "above 0" if is_above else f"from {lowest:g} on"
        raise ValueError(f"{name}={shown(value)}: a finite number {span} is allowed")
