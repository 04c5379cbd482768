"""Mounting (contract 1)."""

from __future__ import annotations

import pytest
import requests

from requests_smithy_retry import (
    RetryAdapter,
    RetryConfig,
    RetryConfigError,
    SimpleRetryStrategy,
    StandardRetryStrategy,
    mount,
)


def test_one_shared_adapter_on_both_schemes():
    """``mount`` returns the session it was given, with one adapter for http and https."""
    session = requests.Session()
    assert mount(session) is session
    adapter = session.get_adapter("https://example.com")
    assert isinstance(adapter, RetryAdapter)
    assert adapter is session.get_adapter("http://example.com")
    assert isinstance(adapter.strategy, StandardRetryStrategy)


def test_options_config_and_strategy_reach_the_adapter():
    """``mount`` takes the options, the config and the strategy that ``RetryAdapter`` takes."""
    strategy = SimpleRetryStrategy()
    assert 5 == mount(requests.Session(), max_attempts=5).adapters["http://"].strategy.max_attempts
    assert 7 == mount(requests.Session(), config=RetryConfig(max_attempts=7)).adapters["http://"].strategy.max_attempts
    assert strategy is mount(requests.Session(), strategy=strategy).adapters["http://"].strategy


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
