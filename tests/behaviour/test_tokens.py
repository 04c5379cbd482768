"""Tokens (contract 6.1): immutable but for one atomic mark."""

from __future__ import annotations

import dataclasses

import pytest

from requests_smithy_retry import StandardRetryToken, TokenError


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


def test_a_token_is_good_for_one_use():
    """The second one is refused in words that say what is allowed."""
    issuer = object()
    token = StandardRetryToken(issuer=issuer)
    token.redeem(issuer)
    with pytest.raises(TokenError, match="was used before: each token is good for one"):
        token.redeem(issuer)
