"""The simple strategy, driven by hand (contract 1, 2.6, 6.1)."""

from __future__ import annotations

import copy
from dataclasses import replace
from email.utils import formatdate

import pytest
import requests

from requests_smithy_retry import (
    AdaptiveRetryStrategy,
    AttemptFailed,
    ErrorKind,
    Outcome,
    RetryAction,
    RetryAdapter,
    RetryConfig,
    RetryConfigError,
    RetryConfigWarning,
    RetryError,
    RetryReason,
    SimpleRetryStrategy,
    StandardRetryStrategy,
    StopReason,
    TokenBucket,
    TokenError,
    classifier,
    only,
    retry_options,
)
from requests_smithy_retry.testing import FakeClock


class Safe(Exception):
    """Says of itself that it may be retried."""

    def __init__(self, *, safe=True, retry_after=None, throttling=False, timeout=False):
        super().__init__("safe")
        self.is_retry_safe = safe
        self.retry_after = retry_after
        self.is_throttling_error = throttling
        self.is_timeout_error = timeout


def strategy(**options) -> SimpleRetryStrategy:
    options.setdefault("jitter", "none")
    return SimpleRetryStrategy(clock=FakeClock(), **options)


def refresh(of, token, error=None):
    return of.refresh_retry_token_for_retry(token_to_renew=token, error=Safe() if error is None else error)


def refusal(of, token, error=None) -> RetryError:
    with pytest.raises(RetryError) as caught:
        refresh(of, token, error)
    return caught.value


def in_context(error=None, **given):
    """An error as the adapter makes one."""
    error = Safe() if error is None else error
    outcome = given.pop("outcome", None) or Outcome(error=error)
    clock = given.setdefault("clock", FakeClock())
    return AttemptFailed(replace(outcome, ended=clock.now(), wall=clock.wall()), **given)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_attempts": 1}, StopReason.MAX_ATTEMPTS),
        ({"enabled": False}, StopReason.DISABLED),
        ({"deadline": 0.04}, StopReason.DEADLINE),
        ({"classifiers": only()}, StopReason.NOT_RETRYABLE),
        ({"deadline": 60}, None),
        ({}, None),
    ],
)
def test_driven_by_hand_the_options_of_the_block_hold(options, reason):
    """An error that carries no context of the adapter's is judged by what ``retry_options`` says around."""
    of = strategy(max_attempts=5)
    with retry_options(**options, clock=of.clock):
        if reason is None:
            assert 0.05 == refresh(of, of.acquire_initial_retry_token()).retry_delay
        else:
            assert reason is refusal(of, of.acquire_initial_retry_token()).stop_reason


def test_a_token_says_how_often_after_which_delay_and_why():
    """Attempts count from 0, delays double from the base of the failure's kind, and the verdict has its votes."""
    of = strategy(max_attempts=5)
    token = of.acquire_initial_retry_token(token_scope="a")
    assert (0, 0.0, "a") == (token.retry_count, token.retry_delay, token.token_scope)
    seen = []
    for error in (Safe(), Safe(throttling=True), Safe()):
        token = refresh(of, token, error)
        seen.append((token.retry_count, token.retry_delay, token.token_scope))
    assert [(1, 0.05, "a"), (2, 2.0, "a"), (3, 0.2, "a")] == seen
    reason = RetryReason(ErrorKind.TRANSIENT, not_applied=True)
    assert RetryAction.retry_indicated(reason) == token.classification.action
    assert token.classification.votes


def test_a_quota_is_nowhere():
    """Without a quota a retry costs nothing, and neither token nor snapshot shows a bucket."""
    of = strategy()
    token = refresh(of, of.acquire_initial_retry_token())
    of.record_success(token=token)
    assert (0, None, {}) == (token.acquired, of.bucket(), dict(of.snapshot().buckets))


@pytest.mark.parametrize("name", ["buckets", "limiters"])
def test_a_snapshot_cannot_be_changed(name):
    """A snapshot cannot be changed, neither as a whole nor in its parts, even if they are empty."""
    of = strategy().snapshot()
    assert {} == getattr(of, name)
    with pytest.raises(TypeError):
        getattr(of, name)["a"] = 1
    with pytest.raises(AttributeError):
        setattr(of, name, {})


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyError("a"), StopReason.NOT_RETRYABLE),
        (Safe(safe=None), StopReason.NOT_RETRYABLE),
        (Safe(safe=False), StopReason.FORBIDDEN),
    ],
    ids=["plain", "unknown", "unsafe"],
)
def test_what_is_not_to_be_retried(error, reason):
    """The refusal names the rule and carries the classification."""
    of = strategy()
    refused = refusal(of, of.acquire_initial_retry_token(), error)
    assert reason is refused.stop_reason
    assert refused.classification.votes


def test_an_error_that_carries_a_response_is_judged_by_it():
    """As those of ``raise_for_status`` do, read or not; its hint counts."""
    of = strategy()
    error = requests.HTTPError(response=response(503, **{"Retry-After": "7"}))
    token = refresh(of, of.acquire_initial_retry_token(), error)
    assert (1, 7) == (token.retry_count, token.retry_delay)
    assert StopReason.NOT_RETRYABLE is refusal(of, token, requests.HTTPError(response=response(404))).stop_reason


def test_an_attempt_that_was_only_looked_at_leaves_the_token_good():
    """One that must not be retried does not."""
    forbidding = classifier(lambda outcome: RetryAction.retry_forbidden("no"), sees_successes=True)
    for status, options, good in ((200, {}, True), (404, {}, True), (200, {"classifiers": [forbidding]}, False)):
        of = strategy(**options)
        token = of.acquire_initial_retry_token()
        refusal(of, token, in_context(KeyError(), outcome=Outcome(response=response(status))))
        if good:
            of.record_success(token=token)
        else:
            with pytest.raises(TokenError, match="used before"):
                of.record_success(token=token)


def response(status: int, **headers: str) -> requests.Response:
    made = requests.Response()
    made.status_code = status
    made.headers.update(headers)
    return made


OPTIONS_OF = {
    SimpleRetryStrategy: {"mode": "standard", "quota": None},
    StandardRetryStrategy: {"mode": "standard"},
    AdaptiveRetryStrategy: {"mode": "adaptive"},
}


@pytest.mark.parametrize(("kind", "options"), OPTIONS_OF.items(), ids=lambda each: getattr(each, "__name__", ""))
def test_a_strategys_policy_says_what_it_is(kind, options):
    """A strategy's config has its options, and so has that of its adapter, with the worst case of those."""
    of = kind(operation_attempt_timeout=5)
    by_option = RetryAdapter(**options, operation_attempt_timeout=5).retry_config
    by_strategy = RetryAdapter(strategy=of).retry_config
    assert options == {name: getattr(of.config, name) for name in options}
    assert (by_option.mode, by_option.worst_case()) == (by_strategy.mode, by_strategy.worst_case())
    if kind is AdaptiveRetryStrategy:
        assert "strategy AdaptiveRetryStrategy" == of.config.source("mode")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quota": 5}, "^quota=5 .from code.: SimpleRetryStrategy has none, so None is allowed"),
        ({"patience": 9}, "^patience=9.* only one of patience and quota=None .from code. is allowed"),
    ],
)
def test_the_simple_strategy_refuses_a_quota(options, message):
    """It has none, so that the option would do nothing."""
    with pytest.raises(RetryConfigError, match=message):
        SimpleRetryStrategy(**options)


@pytest.mark.parametrize(("variable", "name"), [("SMITHY_RETRY_QUOTA", "quota"), ("SMITHY_RETRY_PATIENCE", "patience")])
@pytest.mark.filterwarnings("ignore:.*it has no effect:requests_smithy_retry.RetryConfigWarning")
def test_the_environments_quota_is_none_of_the_simple_strategys(variable, name, monkeypatch):
    """A fleet's variable stops no program, and the config does not show it."""
    monkeypatch.setenv(variable, "7")
    config = SimpleRetryStrategy(config=RetryConfig.from_environment()).config
    assert (None, {"quota": "code", "patience": "default"}[name]) == (config.quota, config.source(name))


MODES = {kind: options["mode"] for kind, options in OPTIONS_OF.items()}


@pytest.mark.parametrize(("kind", "mode"), MODES.items(), ids=lambda each: getattr(each, "__name__", each))
@pytest.mark.parametrize("asked", ["standard", "adaptive"])
def test_a_strategy_is_in_no_other_mode(kind, mode, asked):
    """Another mode is refused, as an option and in a config; the error names both modes."""
    for how in ({"mode": asked}, {"config": RetryConfig(mode=asked)}):
        if asked == mode:
            assert mode == kind(**how).config.mode
        else:
            with pytest.raises(RetryConfigError, match=f"^mode={asked!r} .*: {kind.__name__} is mode {mode!r}"):
                kind(**how)


def test_the_environments_mode_is_none_of_a_strategys_that_code_chose(monkeypatch):
    """A fleet's variable stops no program."""
    monkeypatch.setenv("SMITHY_RETRY_MODE", "adaptive")
    config = RetryConfig.from_environment()
    with pytest.warns(RetryConfigWarning, match=r"mode='standard' \(from strategy StandardRetryStrategy\) wins$"):
        strategy = StandardRetryStrategy(config=config)
    assert ("adaptive", "standard") == (config.mode, strategy.config.mode)


def asking_for(seconds: float) -> RetryAction:
    return RetryAction.retryable_error_with_explicit_delay(ErrorKind.TRANSIENT, seconds)


def floor(seconds: float, source: str | None = None) -> RetryAction:
    return RetryAction.retry_indicated(RetryReason(ErrorKind.TRANSIENT, seconds, source))


IN_NINE_SECONDS = formatdate(FakeClock().wall() + 9, usegmt=True)


@pytest.mark.parametrize(
    ("verdict", "headers", "delay", "source"),
    [
        (asking_for(3), {}, 3, "classifier"),
        (floor(3), {}, 3, "classifier"),  # a floor whose reason names no source
        (floor(9, "retry-after"), {}, 9, "retry-after"),
        (floor(9, "x-amz-retry-after"), {}, 5.05, "x-amz-retry-after"),  # five seconds are added at most (contract 7.2)
        (asking_for(3), {"Retry-After": "7"}, 7, "retry-after"),
        (asking_for(7), {"Retry-After": "3"}, 7, "classifier"),
        (asking_for(6), {"x-amz-retry-after": "10000"}, 6, "classifier"),
        (None, {"Retry-After": IN_NINE_SECONDS}, 9, "retry-after"),  # by the wall clock of the strategy
    ],
)
def test_the_wait_that_a_classifier_or_a_header_asks_for(verdict, headers, delay, source):
    """Of a classifier's floor and the hint in the response's headers, the one that makes the longer wait counts."""
    of = strategy(classifiers=[classifier(lambda outcome: verdict)])
    error = in_context(KeyError(), outcome=Outcome(response=response(503, **headers))) if headers else KeyError()
    token = refresh(of, of.acquire_initial_retry_token(), error)
    assert (delay, source) == (token.retry_delay, token.delay_source)


@pytest.mark.parametrize(("after", "delay", "source"), [(3, 3, "error"), (0.01, 0.05, "backoff"), (120, 120, "error")])
def test_a_floor_is_a_floor(after, delay, source):
    """An error's ``retry_after`` lengthens the delay and never shortens it, and its source is kept."""
    of = strategy()
    token = refresh(of, of.acquire_initial_retry_token(), Safe(retry_after=after))
    assert (delay, source) == (token.retry_delay, token.delay_source)


def test_a_floor_above_the_limit_is_refused():
    """More than ``max_retry_after`` is neither slept nor shortened (contract 7.3)."""
    of = strategy(max_retry_after=10)
    refused = refusal(of, of.acquire_initial_retry_token(), Safe(retry_after=10.001))
    assert StopReason.HINT_TOO_LONG is refused.stop_reason
    assert "max_retry_after is 10 s" in str(refused)


def test_a_token_of_another_strategy_is_refused():
    """A token that another strategy issued is refused, and so is an object that is not a token."""
    of, other = strategy(), StandardRetryStrategy()
    for token in (other.acquire_initial_retry_token(), object()):
        with pytest.raises(TokenError, match="issued by another strategy"):
            refresh(of, token)
        with pytest.raises(TokenError, match="issued by another strategy"):
            of.record_success(token=token)


def test_after_a_classifiers_bug_the_token_is_still_good():
    """An exception of a classifier propagates, and leaves the token usable."""
    broken = [True]

    @classifier
    def sometimes(outcome):
        if broken[0]:
            raise ZeroDivisionError

    of = strategy(classifiers=[sometimes])
    token = of.acquire_initial_retry_token()
    with pytest.raises(ZeroDivisionError):
        refresh(of, token)
    broken[0] = False
    assert 1 == refresh(of, token).retry_count


def test_classifiers_of_an_operation_hold():
    """They are asked beside the strategy's own."""
    of, yes = strategy(), classifier(lambda outcome: RetryAction.transient_error())
    with retry_options(classifiers=(yes,)):
        assert 1 == refresh(of, of.acquire_initial_retry_token(), KeyError()).retry_count


def test_it_shows_how_many_attempts_it_allows():
    """The repr is short."""
    assert "<SimpleRetryStrategy max_attempts=5>" == repr(strategy(max_attempts=5))
    assert "<SimpleRetryStrategy max_attempts=None>" == repr(strategy())


def test_a_copy_has_the_very_policy():
    """A copy has the same config, except that it gets a bucket of its own if the config holds one."""
    of, bucket = strategy(), TokenBucket(28)
    assert copy.copy(of).config is of.config
    assert copy.copy(StandardRetryStrategy(quota=bucket)).config.quota is not bucket


def test_a_callable_without_a_signature_takes_one_argument():
    """A callable without a signature is called with the protocol's single argument."""

    class Opaque:
        compute_next_backoff_delay = type("C", (), {"__signature__": "no", "__call__": lambda self, retry: 7.0})()

    of = strategy(backoff=Opaque())
    assert 7.0 == refresh(of, of.acquire_initial_retry_token()).retry_delay
