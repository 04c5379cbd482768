"""The meaning of ``max_retries`` here; with an adapter around it: test_adapter.py and test_urllib3_retry.py."""

from __future__ import annotations

from typing import Any

import pytest
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter, RetryConfig, RetryConfigError
from requests_smithy_retry.features.urllib3_retry.shown import INNER_RETRY, UNSET, translate, with_translated
from requests_smithy_retry.features.urllib3_retry.translation import UNLIMITED


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (UNSET, {}),
        (0, {"max_attempts": 1}),
        (False, {"max_attempts": 1}),
        (1, {"max_attempts": 2}),
        (10, {"max_attempts": 11}),
        (2.0, {"max_attempts": 3}),
        (float("inf"), {"max_attempts": UNLIMITED}),
        (None, {"max_attempts": 4}),
    ],
)
def test_numbers_of_retries(value: Any, expected: dict[str, Any]) -> None:
    """A number of retries gives one attempt more; None is urllib3's three retries, not zero."""
    assert translate(value) == expected


@pytest.mark.parametrize(("total", "attempts"), [(0, 1), (False, 1), (5, 6), (None, UNLIMITED)])
def test_none_goes_by_the_default_that_there_is(
    monkeypatch: pytest.MonkeyPatch, total: int | None, attempts: int
) -> None:
    """A program that changed ``Retry.DEFAULT`` gets its retries, as with ``HTTPAdapter``."""
    monkeypatch.setattr(Retry, "DEFAULT", Retry(total))
    assert translate(None) == {"max_attempts": attempts}


def test_a_retry_is_translated() -> None:
    """A ``Retry`` is translated by its own module."""
    assert translate(Retry(total=4))["max_attempts"] == 5


@pytest.mark.parametrize("value", [True, -1, 2.5, float("-inf"), float("nan"), "2", (3,)])
def test_what_is_no_number_of_retries(value: Any) -> None:
    """The error names option, value, source and what is allowed."""
    with pytest.raises(RetryConfigError) as caught:
        translate(value)
    assert str(caught.value) == (
        f"max_retries={value!r} (from code): "
        "a whole number of retries (0 or more), False, None or a urllib3 Retry is allowed"
    )


def test_another_assignment_takes_the_place_of_the_first() -> None:
    """Options from an earlier ``max_retries`` go with it; an empty translation changes nothing."""
    config = RetryConfig(jitter="none")
    five = with_translated(config, {"max_attempts": 5, "raise_on_status": True})
    two = with_translated(config, {"max_attempts": 2})
    assert with_translated(config, {}) is config
    assert with_translated(five, {}) is five
    assert with_translated(five, {"max_attempts": 2}) == two
    assert (two.max_attempts, two.raise_on_status, two.jitter) == (2, False, "none")


def test_a_config_says_that_it_came_from_max_retries() -> None:
    """Each option that ``max_retries`` sets has it as its source."""
    config = with_translated(RetryConfig(jitter="none"), {"max_attempts": 5, "raise_on_status": True})
    assert ["max_retries", "max_retries", "code"] == [
        config.source(name) for name in ("max_attempts", "raise_on_status", "jitter")
    ]


def test_urllib3_is_told_to_retry_nothing() -> None:
    """urllib3 is given a ``Retry`` without any retries, not even after a failed read."""
    assert (INNER_RETRY.total, INNER_RETRY.read) == (0, False)


def test_not_given_says_so() -> None:
    """The default for "not given" has a readable repr, for signatures."""
    assert repr(UNSET) == "<not given>"


def test_a_subclass_with_its_own_max_retries_is_refused() -> None:
    """The constructor refuses, because urllib3 would retry each attempt."""
    own: Any = type("Own", (RetryAdapter,), {"max_retries": Retry(3)})
    with pytest.raises(RetryConfigError, match=r"max_retries=Retry\(total=3.*class Own.*urllib3 would retry beneath"):
        own()
