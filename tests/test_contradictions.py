"""Options that cannot be had together are refused with both named; what nobody set contradicts nothing."""

from __future__ import annotations

from typing import Any

import pytest

from requests_smithy_retry import PayoffTokenBucket, RetryConfig, RetryConfigError, TokenBucket
from requests_smithy_retry.resolve import resolve

BUCKET = TokenBucket(5)
PAYOFF_BUCKET = PayoffTokenBucket()

OWN_RULES = "a bucket has rules of its own"
PAYS = "a quota that goes by what pays has rules of its own"
ONE_PLACE = "a bucket is where it is"
NOT_SHARED = "it is not shared between processes"
DEFAULTS_ONLY = "only the default classifiers go by it"
NO_SETTINGS = "without trust_env no AWS settings are read"

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"refill_rate": 1, "quota": BUCKET}, OWN_RULES),
    ({"on_empty": "wait", "quota": BUCKET}, OWN_RULES),
    ({"quota_url": "memory://", "quota": BUCKET}, ONE_PLACE),
    ({"quota_url": "memory://", "quota": PAYOFF_BUCKET}, ONE_PLACE),
    ({"refill_rate": 1, "quota": "payoff"}, PAYS),
    ({"on_empty": "wait", "quota": "payoff-settling"}, PAYS),
    ({"success_reward": 2, "quota": PAYOFF_BUCKET}, PAYS),
    ({"quota_url": "memory://", "quota": "payoff"}, NOT_SHARED),
    ({"retry_status_codes": frozenset({503}), "default_classifiers": False}, DEFAULTS_ONLY),
    ({"error_parser": len, "default_classifiers": False}, DEFAULTS_ONLY),
    ({"aws_config": True, "trust_env": False}, NO_SETTINGS),
    ({"aws_config": "fleet", "trust_env": False}, NO_SETTINGS),
]


@pytest.mark.parametrize(("options", "why"), REFUSED)
def test_options_that_contradict_each_other_are_refused(options, why):
    """The error has both, each with its value and source, and says why only one of them can be had."""
    (name, value), (other, other_value) = options.items()
    with pytest.raises(RetryConfigError) as caught:
        RetryConfig(**options)
    error = caught.value
    said = f"only one of {name} and {other}={other_value!r} (from code) is allowed: {why}"
    assert (name, value, "code", said) == (error.option, error.value, error.source, error.allowed)


@pytest.mark.parametrize(("options", "why"), REFUSED)
def test_neither_does_the_second_one_come_in_later(options, why):
    """One in the constructor and the other one in replace() is no way round, whichever comes first."""
    (first, second) = options.items()
    for now, later in ((first, second), (second, first)):
        with pytest.raises(RetryConfigError, match=why):
            RetryConfig(**dict([now])).replace(**dict([later]))


@pytest.mark.parametrize(
    "options",
    [
        {"quota": BUCKET},
        {"quota": BUCKET, "success_reward": 2},
        {"quota": "payoff"},
        {"quota": None, "quota_url": "memory://"},
        {"quota": 10, "quota_url": "memory://", "refill_rate": 1, "on_empty": "wait", "success_reward": 2},
        {"default_classifiers": False},
        {"default_classifiers": True, "retry_status_codes": {503}, "error_parser": len},
        {"trust_env": False},
        {"trust_env": False, "aws_config": False},
        {"trust_env": True, "aws_config": True},
    ],
)
def test_what_goes_together_is_allowed(options):
    """Only what somebody set can contradict, and only with the value that makes the other one void."""
    config = RetryConfig(**options)
    assert all(config.is_given(name) for name in options)


@pytest.mark.parametrize(
    ("code", "option", "text", "value"),
    [
        ({"quota": BUCKET}, "quota_url", "memory://", "memory://"),
        ({"quota": PAYOFF_BUCKET}, "quota_url", "memory://", "memory://"),
        ({"quota": "payoff"}, "quota_url", "memory://", "memory://"),
        ({"quota": BUCKET}, "refill_rate", "1.5", "1.5"),
        ({"quota": BUCKET}, "on_empty", "wait", "wait"),
        ({"quota": "payoff"}, "success_reward", "2.5", "2.5"),
        ({"default_classifiers": False}, "retry_status_codes", "503", "frozenset({503})"),
    ],
)
def test_a_variable_for_a_fleet_may_meet_something_in_the_code(code, option, text, value):
    """A variable is for those who brought nothing of their own along; it stops no program that has."""
    config = resolve(RetryConfig(**code), {f"SMITHY_RETRY_{option.upper()}": text})
    assert value == str(getattr(config, option))
    assert code == {name: getattr(config, name) for name in code}


URL = {"SMITHY_RETRY_QUOTA_URL": "memory://"}
NAMED = {"SMITHY_RETRY_QUOTA": "payoff"}


@pytest.mark.parametrize(
    ("code", "environ", "sources"),
    [
        (
            {},
            {**URL, **NAMED},
            ("environment variable SMITHY_RETRY_QUOTA_URL", "environment variable SMITHY_RETRY_QUOTA"),
        ),
        ({"quota_url": "memory://"}, NAMED, ("code", "environment variable SMITHY_RETRY_QUOTA")),
    ],
)
def test_a_named_quota_of_a_variable_does_not_void_a_url(code, environ, sources):
    """Who set both, or the URL in the code, is told that one of them would do nothing."""
    with pytest.raises(RetryConfigError, match=NOT_SHARED) as caught:
        resolve(RetryConfig(**code), environ)
    assert f"quota_url='memory://' (from {sources[0]}): only one of quota_url and quota='payoff'" in str(caught.value)
    assert f"(from {sources[1]})" in str(caught.value)
