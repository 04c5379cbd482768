"""Defaults of a library: below the code and the environment of its users, and above our own (contract 10.2)."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    ("options", "variable", "expected"),
    [
        ({}, "", (4, LIBRARY)),
        ({}, "2", (2, f"environment variable {VARIABLE}")),
        ({"max_attempts": 7}, "", (7, "code")),
        ({"config": RetryConfig(max_attempts=7)}, "", (7, "code")),
        ({"config": RetryConfig(max_backoff=7)}, "", (4, LIBRARY)),
    ],
)
def test_a_librarys_default_is_below_code_and_environment(options, variable, expected, monkeypatch) -> None:
    """The first that sets an option wins: code, the environment, the library; and its source is told."""
    monkeypatch.setenv(VARIABLE, variable)
    policy = policy_of(mount(requests.Session(), defaults=RetryConfig(max_attempts=4), **options))
    assert expected == (policy.max_attempts, policy.source("max_attempts"))


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
    ("options", "variables"),
    [({"patience": 9}, {}), ({}, {"SMITHY_RETRY_PATIENCE": "9"})],
)
def test_a_librarys_default_gives_way_to_what_it_contradicts(options, variables, monkeypatch) -> None:
    """An option of the program or of its environment that excludes one of the library's is no error: it holds."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    policy = RetryAdapter(defaults=RetryConfig(quota=100), **options).retry_config
    assert ("payoff", "default") == (policy.quota, policy.source("quota"))


def test_a_retry_beside_a_librarys_defaults_has_its_own_counts() -> None:
    """``max_retries`` is the program's, so its number of attempts holds."""
    policy = RetryAdapter(max_retries=Retry(2), defaults=RetryConfig(max_attempts=9, timeout=4)).retry_config
    assert (3, 4) == (policy.max_attempts, policy.timeout)


def test_a_library_may_switch_the_environment_off(monkeypatch) -> None:
    """``trust_env=False`` in a library's defaults holds unless the program says otherwise."""
    monkeypatch.setenv(VARIABLE, "2")
    defaults = RetryConfig(trust_env=False)
    assert RetryAdapter(defaults=defaults).retry_config.max_attempts is None
    assert 2 == RetryAdapter(defaults=defaults, trust_env=True).retry_config.max_attempts


def test_a_library_may_go_by_the_settings_of_aws(monkeypatch, tmp_path) -> None:
    """``aws_config`` in a library's defaults has them read, and they are above its other defaults."""
    (tmp_path / "config").write_text("[default]\nmax_attempts = 6\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    assert 6 == RetryAdapter(defaults=RetryConfig(aws_config=True, max_attempts=4)).retry_config.max_attempts


def test_beside_a_strategy_the_adapters_own_defaults_count() -> None:
    """A library's default of an option that the adapter goes by holds; one of the strategy's is refused, as in code."""
    strategy = StandardRetryStrategy(max_attempts=2)
    assert 4 == RetryAdapter(strategy=strategy, defaults=RetryConfig(timeout=4)).retry_config.timeout
    with pytest.raises(RetryConfigError, match=r"^max_attempts=4 .*belongs to the strategy"):
        RetryAdapter(strategy=SimpleRetryStrategy(), defaults=RetryConfig(max_attempts=4))


def test_what_is_no_config_is_no_default() -> None:
    """A dict is refused by name."""
    bad: Any = {"max_attempts": 4}
    with pytest.raises(
        RetryConfigError, match=r"^defaults=\{'max_attempts': 4\} \(from code\): a RetryConfig is allowed"
    ):
        RetryAdapter(defaults=bad)
