"""The table of options by itself; with the config that is made of it: test_config.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from requests_smithy_retry import RateLimiterSettings, RetryConfigError
from requests_smithy_retry.config.retry_config import (
    ADAPTER_OPTIONS,
    CLASSIFIER_OPTIONS,
    OPTIONS,
    check_names,
    unknown_option,
)


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option_says_what_it_allows_and_refuses_the_rest(name: str) -> None:
    """In one phrase, which its error has beside name, value and source; its meaning is one line."""
    option = OPTIONS[name]
    assert option.name == name
    assert option.meaning
    assert "\n" not in option.meaning
    bad = object()
    with pytest.raises(RetryConfigError) as caught:
        option.read(bad, "somewhere")
    assert str(caught.value).startswith(f"{name}={bad!r} (from somewhere): {option.allowed} is allowed")


DEFAULTS = {
    "mode": "standard",
    "max_attempts": 3,
    "retry_spec": "2.1",
    "initial_backoff": None,
    "throttling_backoff": None,
    "max_backoff": 20.0,
    "jitter": "full",
    "quota": "payoff",
    "patience": 5.0,
    "quota_url": None,
    "refill_rate": 0.0,
    "on_empty": "fail",
    "success_reward": 1,
    "max_permit_wait": None,
    "rate_limiter": RateLimiterSettings(),
    "max_retry_after": 120.0,
    "operation_timeout": None,
    "operation_attempt_timeout": None,
    "timeout": None,
    "preload_content": True,
    "resume": True,
    "stall_timeout": None,
    "verify_digests": True,
    "allowed_methods": frozenset(
        ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "LIST", "PROPFIND", "REPORT", "SEARCH"]
    ),
    "strict_methods": False,
    "retry_status_codes": frozenset({408, 425, 429, 500, 502, 503, 504}),
    "idempotency_header": "Idempotency-Key",
    "idempotency_key": False,
    "raise_on_status": False,
    "scope": None,
    "enabled": True,
    "classifiers": (),
    "default_classifiers": True,
    "error_parser": None,
    "listeners": (),
    "sdk_headers": False,
    "models": (),
    "urllib3_rules": None,
    "trust_env": True,
    "aws_config": False,
}


def test_the_defaults_are_the_promised_ones() -> None:
    """Those of the contract, and nothing that nobody asked for."""
    defaults = {name: option.default for name, option in OPTIONS.items()}
    assert defaults == DEFAULTS
    assert {name: type(value) for name, value in defaults.items()} == {
        name: type(value) for name, value in DEFAULTS.items()
    }
    assert {name for name, option in OPTIONS.items() if option.by_spec} == {"initial_backoff", "throttling_backoff"}


def test_some_options_cannot_be_set_by_the_environment() -> None:
    """Those that take objects, and whether to read it at all; it can set all others."""
    objects = {name for name, option in OPTIONS.items() if option.not_from_environment}
    assert objects == {
        *("rate_limiter", "idempotency_key", "scope", "classifiers", "error_parser", "listeners", "models"),
        *("urllib3_rules", "trust_env"),
    }


def test_the_reference_page_says_what_the_table_says() -> None:
    """One row for each option, in the same order, with what is allowed and what it is for."""
    lines = (Path(__file__).resolve().parents[3] / "docs/reference/options.md").read_text("utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.count(" | ") == 3][2:]
    assert [(row[0], row[2], row[3]) for row in rows] == [
        (f"`{name}`", option.allowed.rstrip(","), option.meaning) for name, option in OPTIONS.items()
    ]


def test_sets_of_options_name_options() -> None:
    """What is the adapter's and what is the classifiers' is in the table, and no option is both."""
    assert OPTIONS.keys() >= ADAPTER_OPTIONS | CLASSIFIER_OPTIONS
    assert not ADAPTER_OPTIONS & CLASSIFIER_OPTIONS


def test_names_are_checked() -> None:
    """All of them; the options come back as they are."""
    options = {"max_attempts": 2, "jitter": "none"}
    assert check_names(options) is options
    with pytest.raises(TypeError, match="did you mean 'max_backoff'"):
        check_names({"jitter": "none", "max_backof": 3})


def test_far_from_any_name_all_are_listed() -> None:
    """There is no nearest one then."""
    assert all(name in unknown_option("qqqqq") for name in OPTIONS)
