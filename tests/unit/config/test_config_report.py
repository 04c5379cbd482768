"""A config shows each option with its source (contract 10.3)."""

from __future__ import annotations

import pytest

from requests_smithy_retry import RetryConfig
from requests_smithy_retry.config.report import Setting, as_table, summary

SETTINGS = [
    Setting("mode", "standard", "default"),
    Setting("retry_status_codes", frozenset({503, 429}), "code"),
    Setting("max_attempts", 3, "default"),
    Setting("initial_backoff", 0.05, "from retry_spec 2.1"),
    Setting("timeout", (1, None), "environment variable SMITHY_RETRY_TIMEOUT"),
]


def test_a_table_has_a_title_and_a_row_for_each_setting() -> None:
    """Three columns, each as wide as its widest entry; words are shown without quotes, a set in order."""
    assert as_table(SETTINGS).splitlines() == [
        "option              value      source",
        "mode                standard   default",
        "retry_status_codes  429, 503   code",
        "max_attempts        3          default",
        "initial_backoff     0.05       from retry_spec 2.1",
        "timeout             (1, None)  environment variable SMITHY_RETRY_TIMEOUT",
    ]
    assert as_table(SETTINGS[2:3]).splitlines() == ["option        value  source", "max_attempts  3      default"]


def test_one_line_has_what_somebody_set_and_what_matters_most() -> None:
    """The mode and the number of attempts are shown even where nobody said anything."""
    assert summary(SETTINGS) == (
        f"mode='standard' [default], retry_status_codes={frozenset({503, 429})!r} [code], max_attempts=3 [default], "
        "timeout=(1, None) [environment variable SMITHY_RETRY_TIMEOUT]"
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"initial_backoff": 0.05, "throttling_backoff": 1.0}),
        ({"retry_spec": "2.0"}, {"initial_backoff": 1.0, "throttling_backoff": 1.0}),
        ({"throttling_backoff": 3}, {"initial_backoff": 0.05, "throttling_backoff": 3}),
    ],
)
def test_what_the_specification_decides_is_shown_as_it_is_in_force(
    options: dict[str, object], expected: dict[str, float]
) -> None:
    """The settings show the value in force, not the None that stands for it."""
    shown = {item.name: item.value for item in RetryConfig(**options).settings()}
    assert {name: shown[name] for name in expected} == expected
