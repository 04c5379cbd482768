"""The table of options by itself; with the config that is made of it: test_config.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from requests_smithy_retry import RateLimiterSettings, RetryConfigError
from requests_smithy_retry.config.names import WORDS
from requests_smithy_retry.config.retry_config import (
    ADAPTER_OPTIONS,
    CLASSIFIER_OPTIONS,
    OPTIONS,
    check_names,
    unknown_option,
)


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option_says_what_it_allows_and_refuses_the_rest(name: str) -> None:
    """Each option states its allowed values in one phrase, which its error repeats, and its meaning in one line."""
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
    "max_attempts": None,
    "retry_spec": "2.1",
    "initial_backoff": None,
    "throttling_backoff": None,
    "max_backoff": 20.0,
    "jitter": "full",
    "quota": "payoff",
    "patience": 5.0,
    "max_permit_wait": None,
    "rate_limiter": RateLimiterSettings(),
    "max_retry_after": 120.0,
    "pacing": "announced",
    "operation_timeout": None,
    "operation_attempt_timeout": None,
    "timeout": None,
    "resume": True,
    "allowed_methods": frozenset(
        ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "LIST", "PROPFIND", "REPORT", "SEARCH"]
    ),
    "retry_status_codes": frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}),
    "idempotency_header": "Idempotency-Key",
    "idempotency_key": False,
    "on_unauthorized": None,
    "raise_on_status": False,
    "scope": None,
    "enabled": True,
    "classifiers": (),
    "default_classifiers": True,
    "error_parser": None,
    "listeners": (),
    "telemetry": (),
    "sdk_headers": False,
    "models": (),
    "trust_env": True,
    "aws_config": False,
}


def test_the_defaults_are_the_promised_ones() -> None:
    """The options and their defaults are those of the contract, and no others."""
    defaults = {name: option.default for name, option in OPTIONS.items()}
    assert defaults == DEFAULTS
    assert {name: type(value) for name, value in defaults.items()} == {
        name: type(value) for name, value in DEFAULTS.items()
    }
    assert {name for name, option in OPTIONS.items() if option.by_spec} == {"initial_backoff", "throttling_backoff"}


def test_some_options_cannot_be_set_by_the_environment() -> None:
    """Options that take objects, and the one that says whether to read the environment, have no variable."""
    objects = {name for name, option in OPTIONS.items() if option.not_from_environment}
    assert objects == {
        *("rate_limiter", "idempotency_key", "scope", "classifiers", "error_parser", "listeners", "models"),
        *("trust_env", "on_unauthorized"),
    }


def test_the_reference_page_says_what_the_table_says() -> None:
    """The page has one row for each option, in the same order, with its allowed values and its purpose."""
    lines = (Path(__file__).resolve().parents[3] / "docs/reference/options.md").read_text("utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.count(" | ") == 3][2:]
    assert [(row[0], row[2], row[3]) for row in rows] == [
        (f"`{name}`", option.allowed.rstrip(","), option.meaning) for name, option in OPTIONS.items()
    ]


def test_sets_of_options_name_options() -> None:
    """The table has each option of the adapter and of the classifiers, and no option is both."""
    assert OPTIONS.keys() >= ADAPTER_OPTIONS | CLASSIFIER_OPTIONS
    assert not ADAPTER_OPTIONS & CLASSIFIER_OPTIONS


def test_words_of_others_stand_for_options() -> None:
    """Each word stands for one option that there is, and none of them is an option itself."""
    words = " ".join(WORDS.values()).split()
    assert set() == WORDS.keys() - OPTIONS.keys()
    assert len(set(words)) == len(words)
    assert set() == OPTIONS.keys() & set(words)


def test_names_are_checked() -> None:
    """All of them; the options come back as they are."""
    options = {"max_attempts": 2, "jitter": "none"}
    assert check_names(options) is options
    with pytest.raises(TypeError, match="did you mean 'max_backoff'"):
        check_names({"jitter": "none", "max_backof": 3})


def test_far_from_any_name_all_are_listed() -> None:
    """A name that resembles no option leads to a list of all options."""
    assert all(name in unknown_option("qqqqq") for name in OPTIONS)
