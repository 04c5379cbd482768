"""Mounting (contract 1)."""

from __future__ import annotations

import time
from functools import partial
from types import SimpleNamespace

import pytest
import requests

from requests_smithy_retry import (
    AdaptiveRetryStrategy,
    RetryAdapter,
    RetryConfig,
    RetryConfigError,
    SimpleRetryStrategy,
    StandardRetryStrategy,
    mount,
    retry_options,
)
from requests_smithy_retry.quotas import ClientRateLimiter, TokenBucket


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


@pytest.mark.parametrize("at", ["api.example.com", "https", "", 5, b"https://"])
def test_a_place_that_matches_no_url_is_refused(at):
    """Requests compares it with the beginning of each URL, so an adapter without a scheme would never be used."""
    session = requests.Session()
    before = dict(session.adapters)
    with pytest.raises(RetryConfigError, match=r"^at=.* \(from code\): a URL, or its beginning, with a scheme"):
        mount(session, at=at)
    assert before == session.adapters
    mount(session, at="http+docker://")


@pytest.mark.parametrize(
    "make",
    [
        RetryAdapter,
        StandardRetryStrategy,
        AdaptiveRetryStrategy,
        retry_options,
        partial(TokenBucket, 5),
        ClientRateLimiter,
    ],
)
@pytest.mark.parametrize("clock", [5, SimpleNamespace(now=time.monotonic), time])
def test_what_is_no_clock_is_refused(make, clock):
    """Where it is given, and not only when a call first asks for the time."""
    with pytest.raises(RetryConfigError, match=r"^clock=.*: an object with now\(\), wall\(\) and sleep"):
        make(clock=clock)
