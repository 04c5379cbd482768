"""``quota="payoff"`` as a whole: chosen by name, in both modes, fed by the adapter, seen in history and snapshots."""

from __future__ import annotations

import copy
import pickle

import pytest
import requests.exceptions
from urllib3.util import Timeout

from requests_smithy_retry import (
    AdaptiveRetryStrategy,
    PayoffTokenBucket,
    RetryConfig,
    RetryConfigError,
    RetryError,
    StandardRetryStrategy,
    mount,
    retry_history,
)
from requests_smithy_retry.payoff_quota import PayoffSnapshot
from requests_smithy_retry.scopes import MAX_SCOPES
from requests_smithy_retry.testing.clock import FakeClock

from .support import Reply, prepare, read_timeout, scripted, send

SCOPE = "https://api.example.com:443"
MODES = pytest.mark.parametrize("mode", ["standard", "adaptive"])


def slow(clock, seconds, status=200):
    """A step that takes its time."""

    def step(_request):
        clock.advance(seconds)
        return status

    return step


def level(adapter):
    return adapter.strategy.snapshot().buckets[SCOPE]


@pytest.mark.parametrize("name", ["payoff", "PAYOFF", "Payoff-Settling"])
def test_it_is_chosen_by_name_in_any_case(name):
    """In code."""
    assert name.lower() == RetryConfig(quota=name).quota


def numbers(bucket):
    """The bucket's arguments, as its copies get them."""
    return bucket.__reduce__()[1][1]


@pytest.mark.parametrize(
    ("name", "settling", "rewards"), [("payoff", None, (0.5, 0.4)), ("payoff-settling", 200.0, (0.75, 0.5))]
)
@MODES
def test_each_name_has_its_numbers(name, settling, rewards, mode):
    """Those of the one that settles are the documented ones; everything else is the same."""
    found = numbers(scripted(mode=mode, quota=name).strategy.bucket(SCOPE))
    assert (
        numbers(PayoffTokenBucket())
        | {
            "settling": settling,
            "retry_reward": rewards[0],
            "first_try_reward": rewards[1],
        }
        == found
    )


@pytest.mark.parametrize(("value", "name"), [("Payoff", "payoff"), (" payoff-settling ", "payoff-settling")])
def test_it_is_chosen_by_the_environment(monkeypatch, value, name):
    """By SMITHY_RETRY_QUOTA."""
    monkeypatch.setenv("SMITHY_RETRY_QUOTA", value)
    adapter = mount(requests.Session()).get_adapter("https://api.example.com")
    assert name == adapter.retry_config.quota
    assert isinstance(adapter.strategy.bucket(SCOPE), PayoffTokenBucket)
    assert "environment variable SMITHY_RETRY_QUOTA" == adapter.retry_config.source("quota")


def test_another_word_is_refused():
    """With what is allowed."""
    with pytest.raises(RetryConfigError, match="'payoff-settling', 'payoff', a bucket, or None"):
        RetryConfig(quota="payof")


@pytest.mark.parametrize("quota", ["payoff", "payoff-settling", PayoffTokenBucket()])
@pytest.mark.parametrize("other", [{"refill_rate": 1}, {"on_empty": "wait"}, {"success_reward": 2}])
def test_options_that_it_does_not_go_by_are_refused(quota, other):
    """Rather than connected to nothing."""
    with pytest.raises(RetryConfigError, match="is allowed"):
        RetryConfig(quota=quota, **other)


@pytest.mark.parametrize("quota", ["payoff", "payoff-settling"])
def test_it_is_not_shared_between_processes(quota):
    """quota_url beside it is refused."""
    with pytest.raises(RetryConfigError, match="it is not shared between processes"):
        RetryConfig(quota=quota, quota_url="memory://")


@MODES
def test_a_vain_time_out_costs_one_and_a_second_is_refused(mode):
    """One operation, one retry, and the history says why there is no other."""
    adapter = scripted(read_timeout(), read_timeout(), mode=mode, quota="payoff")
    with pytest.raises(requests.exceptions.ReadTimeout) as caught:
        send(adapter, timeout=1)
    history = retry_history(caught.value)
    why = "retries are not paying on https://api.example.com: 0.55 of 1.55 tokens, a time-out costs 1"
    assert why == history.why
    assert (1.55, 0.55) == (history.attempts[0].quota_before, pytest.approx(history.attempts[0].quota_after))
    assert "quota 1.55 -> 0.55" in history.explain()
    assert pytest.approx(0.55) == level(adapter).available


@MODES
def test_a_success_after_two_retries_gives_back_what_both_spent(mode):
    """And half of its worth: it took a quarter of its time-out."""
    clock = FakeClock()
    adapter = scripted(429, 503, slow(clock, 1.0), mode=mode, quota="payoff", clock=clock, throttling_backoff=0)
    assert 200 == send(adapter, timeout=4).status_code
    assert pytest.approx(1.55 + 0.5 * 0.75) == level(adapter).available


@pytest.mark.parametrize("timeout", [2, 2.0, (9, 2), Timeout(connect=9, read=2)])
def test_a_first_try_is_worth_what_is_left_of_its_read_timeout(timeout):
    """In each shape that requests takes a timeout in."""
    clock = FakeClock()
    adapter = scripted(503, 503, 503, slow(clock, 0.5), quota="payoff", clock=clock, initial_backoff=0)
    send(adapter, timeout=timeout)
    before = level(adapter)
    assert pytest.approx(1.55 - 1.2) == before.available
    send(adapter, timeout=timeout)
    after = level(adapter)
    grown = after.capacity - before.capacity
    assert pytest.approx(before.available + grown + 0.4 * 0.75) == after.available


def test_the_attempts_own_bound_is_its_timeout():
    """operation_attempt_timeout, where it is the shorter one; the retry here took half of it."""
    clock = FakeClock()
    adapter = scripted(
        503, slow(clock, 1.0), quota="payoff", clock=clock, initial_backoff=0, operation_attempt_timeout=2
    )
    send(adapter, timeout=9)
    assert pytest.approx(1.55 + 0.5 * 0.5) == level(adapter).available


@MODES
def test_every_operation_is_counted_once(mode):
    """First tries, retried ones and failed ones; with and without anything that needs an operation."""
    for options in ({}, {"operation_timeout": 9}, {"listeners": [type("Idle", (), {"gave_up": lambda *_: None})()]}):
        adapter = scripted(200, 404, 503, 200, 200, mode=mode, quota="payoff", initial_backoff=0, **options)
        for _ in range(4):
            send(adapter)
        assert pytest.approx(0.4) == level(adapter).rate


@MODES
def test_scopes_of_ones_own_are_not_remembered_by_url(mode):
    """The function is asked each time."""
    adapter = scripted(200, 200, 200, mode=mode, quota="payoff", scope=lambda request: request.url[-1])
    for scope in "abb":
        send(adapter, url=f"https://api.example.com/{scope}")
    rates = {scope: snapshot.rate for scope, snapshot in adapter.strategy.snapshot().buckets.items()}
    assert {"a": pytest.approx(0.1), "b": pytest.approx(0.2)} == rates


def test_the_limiter_of_adaptive_mode_still_measures():
    """Each first try reaches it too."""
    clock = FakeClock()
    adapter = scripted(*[200] * 4, mode="adaptive", quota="payoff", clock=clock)
    for _ in range(4):
        clock.advance(0.5)
        send(adapter)
    assert adapter.strategy.snapshot().limiters[SCOPE].measured_rate > 0


def test_a_scope_that_was_given_up_is_asked_for_again():
    """Touching many hosts gives up idle ones; whoever remembered one of them finds the new one."""
    adapter = scripted(*[200] * (MAX_SCOPES + 2), quota="payoff")
    send(adapter)
    for number in range(MAX_SCOPES):
        send(adapter, url=f"https://h{number}.example.com/")
    assert SCOPE not in adapter.strategy.snapshot().buckets
    send(adapter)
    assert pytest.approx(0.1) == level(adapter).rate


def test_a_bucket_can_be_shared_on_purpose():
    """By passing one object: the strategies spend and earn together."""
    clock = FakeClock()
    bucket = PayoffTokenBucket(clock=clock)
    one = scripted(read_timeout(), read_timeout(), 200, quota=bucket, clock=clock, initial_backoff=0)
    other = scripted(read_timeout(), quota=bucket, clock=clock)
    for adapter in (one, other):
        with pytest.raises(requests.exceptions.ReadTimeout):
            send(adapter)
    assert (0, 1) == (len(other.script), len(one.script))
    assert pytest.approx(0.2) == bucket.snapshot().rate
    send(one)
    assert pytest.approx(0.3) == bucket.snapshot().rate


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda strategy: pickle.loads(pickle.dumps(strategy))])
@pytest.mark.parametrize("make", [StandardRetryStrategy, AdaptiveRetryStrategy])
def test_a_copy_of_a_strategy_starts_anew(make, copied):
    """With the same kind of quota."""
    strategy = make(quota="payoff")
    strategy.acquire_initial_retry_token(token_scope="a")
    other = copied(strategy)
    assert {} == other.snapshot().buckets
    assert isinstance(other.bucket("a"), PayoffTokenBucket)


def test_by_hand_a_success_counts_as_instant():
    """Nobody measures; whoever does, says so with the token."""
    strategy = StandardRetryStrategy(quota="payoff", clock=FakeClock(), default_classifiers=True)
    error = type("Busy", (Exception,), {"is_retry_safe": True, "retry_after": None, "is_timeout_error": False})
    error.is_throttling_error = False
    first = strategy.acquire_initial_retry_token()
    token = strategy.refresh_retry_token_for_retry(token_to_renew=first, error=error())
    strategy.record_success(token=token)
    assert pytest.approx(2.05) == strategy.bucket().available
    token = strategy.acquire_initial_retry_token()
    assert strategy.bucket().acquire(1.6)
    with pytest.raises(RetryError, match=r"^retries are not paying: 0\.5 of 1.6 tokens, an error costs 0\.6$"):
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error())


def test_a_token_that_was_told_its_latency_is_still_used_once():
    """It shares its mark with the token it was made from."""
    strategy = StandardRetryStrategy(quota="payoff")
    token = strategy.acquire_initial_retry_token()
    strategy.record_success(token=token.answered(0.5, 1.0))
    with pytest.raises(Exception, match="used before"):
        strategy.record_success(token=token)


def test_a_retry_without_a_permit_is_refunded():
    """Adaptive: paid, not sent, and so given back."""
    adapter = scripted(429, mode="adaptive", quota="payoff", max_permit_wait=0, throttling_backoff=0)
    response = send(adapter)
    assert (429, "RATE_LIMITED") == (response.status_code, retry_history(response).stop_reason.name)
    assert pytest.approx(1.55) == level(adapter).available


def test_a_snapshot_made_by_hand_has_no_rate():
    """Unless one is given."""
    assert 0.0 == PayoffSnapshot(1.5, 1.5).rate


def test_a_404_costs_and_gives_nothing():
    """It is counted, and that is all."""
    adapter = scripted(Reply(404), quota="payoff")
    adapter.send(prepare())
    assert (pytest.approx(0.1), 1.55) == (level(adapter).rate, level(adapter).available)
