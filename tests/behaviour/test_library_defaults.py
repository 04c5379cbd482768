"""Defaults of a library: below the code and the environment of its users, and above our own (contract 10.2)."""

from __future__ import annotations

import os
from typing import Any

import pytest
import requests
from urllib3.util.retry import Retry

from requests_smithy_retry import (
    RetryAdapter,
    RetryConfig,
    RetryConfigError,
    SimpleRetryStrategy,
    StandardRetryStrategy,
    install,
    mount,
    uninstall,
)

VARIABLE = "SMITHY_RETRY_MAX_ATTEMPTS"
LIBRARY = "the library's defaults"


def policy_of(session: requests.Session) -> RetryConfig:
    adapter = session.get_adapter("https://example.com")
    assert isinstance(adapter, RetryAdapter)
    return adapter.retry_config


FOUR, AWS = {"max_attempts": 4}, "AWS_MAX_ATTEMPTS"
PLAIN, TWO = {"trust_env": False}, {VARIABLE: "2"}
STRATEGY = StandardRetryStrategy()


@pytest.mark.parametrize(
    ("defaults", "options", "environ", "expected"),
    [
        # The first that sets an option wins: code, the environment, the library.
        (FOUR, {}, {}, ("max_attempts", 4, LIBRARY)),
        (FOUR, {}, TWO, ("max_attempts", 2, f"environment variable {VARIABLE}")),
        (FOUR, {"max_attempts": 7}, {}, ("max_attempts", 7, "code")),
        (FOUR, {"config": RetryConfig(max_attempts=7)}, {}, ("max_attempts", 7, "code")),
        (FOUR, {"config": RetryConfig(max_backoff=7)}, {}, ("max_attempts", 4, LIBRARY)),
        # What excludes one of the library's is no error: it holds.
        ({"quota": 100}, {"patience": 9}, {}, ("quota", "payoff", "default")),
        ({"quota": 100}, {}, {"SMITHY_RETRY_PATIENCE": "9"}, ("quota", "payoff", "default")),
        # A Retry is the program's own word on attempts.
        (FOUR, {"max_retries": Retry(2)}, {}, ("max_attempts", 3, "max_retries")),
        ({"timeout": 4}, {"max_retries": Retry(2)}, {}, ("timeout", 4, LIBRARY)),
        # A library may switch the environment off, unless the program says otherwise, and have that of AWS read.
        (PLAIN, {}, TWO, ("max_attempts", None, "default")),
        (PLAIN, {"trust_env": True}, TWO, ("max_attempts", 2, f"environment variable {VARIABLE}")),
        ({"aws_config": True, **FOUR}, {}, {AWS: "6"}, ("max_attempts", 6, f"environment variable {AWS}")),
        # Beside a strategy, the options that the adapter goes by can have defaults.
        ({"timeout": 4}, {"strategy": STRATEGY}, {}, ("timeout", 4, LIBRARY)),
    ],
)
def test_a_librarys_default_is_below_code_and_environment(defaults, options, environ, expected, monkeypatch) -> None:
    """The value in force is that of the first source that has one, and the source is told."""
    for variable, text in {"AWS_CONFIG_FILE": os.devnull, **environ}.items():
        monkeypatch.setenv(variable, text)
    policy = policy_of(mount(requests.Session(), defaults=RetryConfig(**defaults), **options))
    name = expected[0]
    assert expected == (name, getattr(policy, name), policy.source(name))


def test_a_librarys_defaults_are_shown() -> None:
    """The table of the policy has them, with their source, without those that nobody set."""
    policy = RetryAdapter(defaults=RetryConfig(max_attempts=4)).retry_config
    assert [["max_attempts", "4", LIBRARY]] == [
        line.split(None, 2) for line in policy.explain(all=False).splitlines()[1:]
    ]
    assert "max_attempts=4 [the library's defaults]" in repr(policy)


def test_every_session_can_have_defaults_of_a_library(monkeypatch) -> None:
    """``install`` takes them, as ``mount`` and ``RetryAdapter`` do."""
    try:
        assert LIBRARY == install(defaults=RetryConfig(max_attempts=4)).config.source("max_attempts")
        assert 4 == policy_of(requests.Session()).max_attempts
    finally:
        uninstall()


@pytest.mark.parametrize(
    ("defaults", "said"),
    [
        ({"max_attempts": 4}, r"^defaults=\{'max_attempts': 4\} \(from code\): a RetryConfig is allowed"),
        (RetryConfig(quota=4), r"^quota=4 .*belongs to the strategy"),
    ],
)
def test_what_can_be_no_default_is_refused(defaults: Any, said: str) -> None:
    """A dict is refused by name, and beside a strategy an option of the strategy's, as in code."""
    with pytest.raises(RetryConfigError, match=said):
        RetryAdapter(strategy=SimpleRetryStrategy(), defaults=defaults)
