"""The options of the limiter: ranges, and the environment where they are plain values."""

from __future__ import annotations

import pytest

from requests_smithy_retry import AdaptiveRetryStrategy, RetryAdapter, RetryConfig, RetryConfigError


def test_they_reach_what_they_are_for():
    """A limiter, and a longest wait."""
    strategy = RetryAdapter(mode="adaptive", max_permit_wait=5).strategy
    assert isinstance(strategy, AdaptiveRetryStrategy)
    assert 5 == strategy.config.max_permit_wait


def test_they_can_come_from_the_environment(monkeypatch):
    """Every one that is a plain value; ``none`` where None is allowed."""
    monkeypatch.setenv("SMITHY_RETRY_MODE", "adaptive")
    monkeypatch.setenv("SMITHY_RETRY_MAX_PERMIT_WAIT", " 2.5 ")
    config = RetryAdapter().retry_config
    assert (config.mode, config.max_permit_wait) == ("adaptive", 2.5)
    monkeypatch.setenv("SMITHY_RETRY_MAX_PERMIT_WAIT", "none")
    assert RetryAdapter().retry_config.max_permit_wait is None


@pytest.mark.parametrize(
    ("name", "bad"),
    [("max_permit_wait", -1), ("max_permit_wait", float("inf"))],
)
def test_a_bad_value_is_refused_by_name(name, bad):
    """The error names the option."""
    with pytest.raises(RetryConfigError, match=f"^{name}="):
        RetryConfig(**{name: bad})


@pytest.mark.parametrize("edge", [0, None])
def test_the_ends_of_the_range_are_allowed(edge):
    """Never wait, and no bound."""
    assert RetryConfig(max_permit_wait=edge).max_permit_wait == edge
