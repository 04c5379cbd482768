"""Tokens (contract 6.1): immutable but for one atomic mark."""

from __future__ import annotations

import dataclasses
import threading
from dataclasses import replace

import pytest

from requests_smithy_retry import RetryToken, StandardRetryToken, TokenError
from requests_smithy_retry.strategies.protocol import NEW


def test_a_token_never_changes():
    """No field can be set or added."""
    token = StandardRetryToken(issuer=None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        token.retry_count = 1
    with pytest.raises((AttributeError, TypeError)):
        token.other = 1


def test_the_protocol_is_checked_at_run_time():
    """``isinstance`` checks for the two attributes of the protocol."""
    assert isinstance(StandardRetryToken(issuer=None), RetryToken)
    assert not isinstance(object(), RetryToken)


def test_the_first_token_is_free():
    """Retry 0, no delay, nothing taken."""
    token = StandardRetryToken(issuer=None)
    assert (token.retry_count, token.retry_delay, token.acquired, token.waited) == (0, 0.0, 0, 0.0)


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
    """128 threads, one token, one success; five times."""
    issuer = object()
    for _ in range(5):
        token = StandardRetryToken(issuer=issuer)
        together = threading.Barrier(128)
        through: list[bool] = []

        def work(token=token, together=together, through=through) -> None:
            together.wait(60)
            try:
                token.redeem(issuer)
            except TokenError:
                return
            through.append(True)

        threads = [threading.Thread(target=work) for _ in range(128)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert through == [True]


def test_its_representation_keeps_out_what_is_long():
    """No issuer, no mark, no loan."""
    assert "issuer" not in repr(StandardRetryToken(issuer=object()))
    assert "_unused" not in repr(StandardRetryToken(issuer=object()))


def test_a_token_that_knows_nothing_says_so():
    """Quota, verdict and time that a token does not know are None, not values."""
    token = StandardRetryToken(issuer=None)
    assert "backoff" == token.delay_source
    unknown = ("token_scope", "previous_delay", "quota_before", "quota_after", "quota_source", "classification")
    assert [None] * 7 == [getattr(token, name) for name in (*unknown, "timeout")]


def test_a_token_shows_what_a_reader_can_use():
    """The repr shows neither the objects that a token refers to nor its mark."""
    shown = repr(StandardRetryToken(issuer=object(), retry_count=1))
    assert "retry_count=1" in shown
    assert not [
        name for name in ("issuer", "classification", "standing", "terms", "failures", "_unused") if f"{name}=" in shown
    ]


def test_tokens_are_equal_by_what_they_say():
    """Neither a token's use nor its loan counts for equality."""
    issuer = object()
    one, other = (
        StandardRetryToken(issuer=issuer),
        StandardRetryToken(issuer=issuer, standing=replace(NEW, loan=object())),
    )
    other.redeem(issuer)
    assert one == other


def test_a_token_that_was_answered_knows_the_time_it_took():
    """Latency and timeout are replaced, and the copy shares the mark of use with the token."""
    issuer = object()
    token = StandardRetryToken(issuer=issuer, retry_count=2)
    answered = replace(token, latency=0.5, timeout=2.0)
    assert (0.5, 2.0, 2) == (answered.latency, answered.timeout, answered.retry_count)
