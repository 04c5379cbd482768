"""The adaptive mode (contract 9) driven by hand, and through the adapter with a scripted transport."""

from __future__ import annotations

import pickle
from unittest.mock import Mock

import pytest
import requests

from requests_smithy_retry import AdaptiveRetryStrategy, Outcome, RetryError, StopReason, classifier, retry_history
from requests_smithy_retry.clock import SYSTEM_CLOCK
from requests_smithy_retry.testing import FakeClock
from tests.support import Reply, scripted, send
from tests.unit.core.test_strategy import Safe, in_context, refresh, response

SCOPE = "https://api.example.com:443"


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def strategy(clock):
    return AdaptiveRetryStrategy(clock=clock, jitter="none")


def throttle(strategy: AdaptiveRetryStrategy, scope: str | None = None):
    """Let one attempt be throttled; the retry's token."""
    return refresh(strategy, strategy.acquire_initial_retry_token(token_scope=scope), Safe(throttling=True))


def test_no_permit_is_needed_before_the_first_throttling(strategy):
    """Successes and transient failures only measure."""
    token = refresh(strategy, strategy.acquire_initial_retry_token())
    assert strategy.send_permit(token=token) is None
    strategy.record_success(token=token)
    assert not strategy.limiter().enabled


def test_a_permit_that_comes_at_once_is_no_wait():
    """The history says that nobody waited, by the machine's clock as well."""
    (attempt,) = retry_history(send(scripted(200, mode="adaptive", clock=SYSTEM_CLOCK))).attempts
    assert attempt.permit_wait == 0.0


def test_a_body_that_cannot_be_replayed_is_still_throttled(clock):
    """429 to a one-shot body: no retry, and the limiter knows."""
    adapter = scripted(429, mode="adaptive", clock=clock)
    history = retry_history(send(adapter, "POST", data=iter([b"x"])))
    assert history.stop_reason is StopReason.BODY_NOT_REPLAYABLE
    assert adapter.strategy.limiter(SCOPE).enabled


def test_backoff_comes_first_then_the_permit(clock):
    """A throttled first attempt: 1 s of backoff brings half a permit, the other half is waited for."""
    adapter = scripted(429, 200, mode="adaptive", clock=clock)
    assert send(adapter).status_code == 200
    assert clock.sleeps == [1.0, pytest.approx(1.0)]


def test_who_gets_no_permit_in_time_has_the_last_outcome_or_connect_timeout(clock):
    """A retry's price is given back; a first attempt is not sent, and the exception says so, with a history."""
    strategy = AdaptiveRetryStrategy(clock=clock, max_permit_wait=0.5, quota=500)
    adapter = scripted(Reply(429, body=b"slow down"), 200, strategy=strategy, clock=clock)
    response = send(adapter)
    assert (response.status_code, response.content) == (429, b"slow down")
    assert retry_history(response).stop_reason is StopReason.RATE_LIMITED
    assert strategy.bucket(SCOPE).available == 500
    slept = list(clock.sleeps)
    with pytest.raises(requests.exceptions.ConnectTimeout, match=r"not sent: .* max_permit_wait is 0.5 s") as caught:
        send(adapter)
    history = retry_history(caught.value)
    assert (history.stop_reason, history.attempts) == (StopReason.RATE_LIMITED, ())
    assert history.sentence.startswith("nothing was sent: the client's rate limiter has no send permit")
    assert pickle.loads(pickle.dumps(history)).to_dict()["attempts"] == []
    assert (len(adapter.sent), clock.sleeps) == (1, slept)


@pytest.mark.parametrize("given", [True, 1.0, object(), Mock()])
def test_what_is_no_permit_and_cannot_be_rested_on_is_refused(given):
    """Asking again at once, without end, would hang: a strategy that is a bare Mock would do that."""
    strategy = AdaptiveRetryStrategy(clock=FakeClock())
    strategy.send_permit = lambda **_: given
    with pytest.raises(TypeError, match=r"^send_permit of <Adaptive.*: None or an object to rest on, not "):
        send(scripted(503, 200, strategy=strategy))


def test_a_deadline_bounds_the_wait_for_a_permit(clock):
    """A permit that would come at 2 s is past the operation's 1.5 s, so the 429 is handed over at once."""
    adapter = scripted(429, mode="adaptive", clock=clock, operation_timeout=1.5, backoff=0.5)
    response = send(adapter)
    assert (429, StopReason.RATE_LIMITED) == (response.status_code, retry_history(response).stop_reason)
    assert clock.sleeps == [0.5]


def test_an_interrupt_while_waiting_for_a_permit_comes_through(clock, monkeypatch):
    """Ctrl-C: nobody is left waiting, and the next operation asks anew."""
    adapter = scripted(429, 200, mode="adaptive", clock=clock, max_attempts=1)
    send(adapter)
    with monkeypatch.context() as patch:
        patch.setattr(clock, "wait", Mock(side_effect=KeyboardInterrupt), raising=False)
        with pytest.raises(KeyboardInterrupt):
            send(adapter)
    assert list(adapter.strategy.limiter(SCOPE)._waiting) == []
    assert send(adapter).status_code == 200


@pytest.mark.parametrize(("scope", "whose"), [(None, ""), (SCOPE, " for https://api.example.com")])
def test_a_permit_that_comes_at_the_deadline_is_refused_in_words(strategy, clock, scope, whose):
    """A permit at the deadline could only be used after it; the sentence names the scope as people write it."""
    token = throttle(strategy, scope)
    wait = strategy.send_permit(token=token)
    assert strategy.send_permit(token=token, deadline=clock.now() + wait.seconds + 0.001) is not None
    with pytest.raises(RetryError) as caught:
        strategy.send_permit(token=token, deadline=clock.now() + wait.seconds)
    assert str(caught.value) == (
        f"the client's rate limiter has no send permit{whose}: the next one comes in {wait.seconds:.3g} s, "
        "that is past the deadline"
    )


@pytest.mark.parametrize(("status", "counted"), [(404, 1), (200, 0)])
def test_a_failure_that_is_not_retried_is_counted_as_well(clock, status, counted):
    """A success that was only looked at is counted when it is recorded, and not before."""
    strategy = AdaptiveRetryStrategy(clock=clock, classifiers=[classifier(sees_successes=True)(lambda outcome: None)])
    limiter, token = strategy.limiter(), strategy.acquire_initial_retry_token()
    error = in_context(KeyError(), outcome=Outcome(response=response(status)))
    with pytest.raises(RetryError):
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
    clock.advance(0.5)
    limiter.record_response(throttled=False)
    assert limiter.snapshot().measured_rate == pytest.approx(0.8 * (counted + 1) / 0.5)


def test_a_success_whose_body_broke_off_is_counted_once(clock):
    """The server answered twice: the first answer was counted before its body was read, and not again as a failure."""
    adapter = scripted(Reply(200, body=b"x", cut=True), 200, mode="adaptive", clock=clock)
    assert 2 == len(retry_history(send(adapter)).attempts)
    clock.advance(1)
    limiter = adapter.strategy.limiter(SCOPE)
    limiter.record_response(throttled=False)
    assert limiter.snapshot().measured_rate == pytest.approx(0.8 * 3)


def test_a_permit_that_is_too_late_for_a_token_of_another_strategy_is_refused(clock):
    """There is no price to give back."""
    strategy = AdaptiveRetryStrategy(clock=clock, jitter="none", max_permit_wait=0)
    throttle(strategy)
    with pytest.raises(RetryError) as caught:
        strategy.send_permit(token=object())
    assert caught.value.stop_reason is StopReason.RATE_LIMITED
