"""Tokens (contract 6.1): immutable but for two marks."""

from __future__ import annotations

import dataclasses

import pytest

from requests_smithy_retry import StandardRetryStrategy, TokenError

TOKEN = StandardRetryStrategy().acquire_initial_retry_token()


def test_a_token_never_changes():
    """No field can be set or added."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        TOKEN.retry_delay = 1.0
    with pytest.raises((AttributeError, TypeError)):
        TOKEN.other = 1


def test_the_first_token_is_free():
    """Retry 0, no delay, nothing taken, and nothing known."""
    assert (0, 0.0, 0) == (TOKEN.retry_count, TOKEN.retry_delay, TOKEN.acquired)
    assert ("backoff", None, None) == (TOKEN.delay_source, TOKEN.token_scope, TOKEN.classification)


def test_a_token_is_good_for_one_use():
    """The second one is refused in words that say what is allowed."""
    strategy = StandardRetryStrategy()
    token = strategy.acquire_initial_retry_token()
    strategy.record_success(token=token)
    with pytest.raises(TokenError, match="was used before: each token is good for one"):
        strategy.record_success(token=token)
