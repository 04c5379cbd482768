"""Mounting (contract 1)."""

from __future__ import annotations

import pytest
import requests

from requests_smithy_retry import (
    RetryAdapter,
    RetryConfig,
    RetryConfigError,
    SimpleRetryStrategy,
    mount,
)


def test_one_shared_adapter_on_both_schemes():
    """``mount`` returns the session it was given, with one adapter for http and https."""
    session = requests.Session()
    assert mount(session) is session
    adapter = session.get_adapter("https://example.com")
    assert isinstance(adapter, RetryAdapter)
    assert adapter is session.get_adapter("http://example.com")
    assert "standard" == adapter.strategy.mode


@pytest.mark.parametrize(
    ("options", "attempts"),
    [
        ({"max_attempts": 5}, 5),
        ({"config": RetryConfig(max_attempts=7)}, 7),
        ({"config": RetryConfig(max_attempts=7, max_backoff=1), "max_attempts": 2}, 2),
        ({"strategy": SimpleRetryStrategy(max_attempts=4)}, 4),
    ],
)
def test_options_config_and_strategy_reach_the_adapter(options, attempts):
    """``mount`` takes the options, the config, which is their base, or the strategy that ``RetryAdapter`` takes."""
    adapter = mount(requests.Session(), **options).adapters["http://"]
    assert attempts == adapter.strategy.max_attempts
    assert options.get("config", RetryConfig()).max_backoff == adapter.retry_config.max_backoff
    assert options.get("strategy", adapter.strategy) is adapter.strategy


def test_a_more_specific_adapter_wins():
    """An adapter that the caller mounted for a longer prefix is left alone."""
    session = requests.Session()
    own = RetryAdapter(max_attempts=1)
    session.mount("https://api.example.com/", own)
    mount(session)
    assert own is session.get_adapter("https://api.example.com/v1")


def test_a_bad_option_mounts_nothing():
    """When the options are refused, the session is as it was."""
    session = requests.Session()
    before = dict(session.adapters)
    with pytest.raises(RetryConfigError, match="max_attempts=0"):
        mount(session, max_attempts=0)
    assert before == dict(session.adapters)
