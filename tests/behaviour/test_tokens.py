"""Tokens (contract 6.1): immutable but for one atomic mark."""

from __future__ import annotations

import dataclasses

import pytest

from requests_smithy_retry import StandardRetryStrategy, StandardRetryToken, TokenError
from requests_smithy_retry.testing import FakeClock


def test_a_token_never_changes():
    """No field can be set or added."""
    token = StandardRetryToken(issuer=None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        token.retry_delay = 1.0
    with pytest.raises((AttributeError, TypeError)):
        token.other = 1


def test_the_first_token_is_free():
    """Retry 0, no delay, nothing taken, and nothing known."""
    token = StandardRetryToken(issuer=None)
    assert (0, 0.0, 0) == (token.retry_count, token.retry_delay, token.acquired)
    assert ("backoff", None, None) == (token.delay_source, token.token_scope, token.classification)


def test_a_retrys_token_says_what_it_costs():
    """Number, delay, price and verdict of the retry."""
    strategy = StandardRetryStrategy(quota=500, jitter="none", clock=FakeClock())
    first = strategy.acquire_initial_retry_token(token_scope="a")
    token = strategy.refresh_retry_token_for_retry(token_to_renew=first, error=ConnectionError())
    assert ("a", 1, 0.05, 14) == (token.token_scope, token.retry_count, token.retry_delay, token.acquired)
    assert token.classification is not None


def test_a_token_is_good_for_one_use():
    """The second one is refused in words that say what is allowed."""
    issuer = object()
    token = StandardRetryToken(issuer=issuer)
    token.redeem(issuer)
    with pytest.raises(TokenError, match="was used before: each token is good for one"):
        token.redeem(issuer)
