"""Tokens (contract 6.1): immutable but for one atomic mark."""

from __future__ import annotations

import dataclasses
import threading

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


def test_another_strategys_token_is_refused_and_stays_good():
    """Only its issuer may redeem it."""
    issuer = object()
    token = StandardRetryToken(issuer=issuer)
    with pytest.raises(TokenError, match="issued by another strategy"):
        token.redeem(object())
    token.redeem(issuer)


def test_a_token_that_was_only_looked_at_is_good_again():
    """A token that was only looked at can be redeemed once more, but not twice."""
    issuer = object()
    token = StandardRetryToken(issuer=issuer)
    token.redeem(issuer)
    token.unredeem()
    token.redeem(issuer)
    with pytest.raises(TokenError):
        token.redeem(issuer)


def test_of_many_threads_one_gets_through():
    """32 threads, one token, one success; five times."""
    issuer = object()
    for _ in range(5):
        token = StandardRetryToken(issuer=issuer)
        together = threading.Barrier(32)
        through: list[bool] = []

        def work(token=token, together=together, through=through) -> None:
            together.wait(60)
            try:
                token.redeem(issuer)
            except TokenError:
                return
            through.append(True)

        threads = [threading.Thread(target=work) for _ in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert through == [True]
