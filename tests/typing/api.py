"""The public signatures, pinned for type checkers. This file is checked (mypy, pyright) and never executed."""

from __future__ import annotations

from collections.abc import Mapping

import requests
from typing_extensions import assert_type

from requests_smithy_retry import (
    AttemptRecord,
    Classification,
    Clock,
    ErrorKind,
    ErrorRetryInfo,
    ExponentialRetryBackoffStrategy,
    HasFault,
    Jitter,
    NoActionIndicated,
    Outcome,
    RetryAction,
    RetryAdapter,
    RetryBackoffStrategy,
    RetryClassifier,
    RetryConfig,
    RetryError,
    RetryForbidden,
    RetryHistory,
    RetryIndicated,
    RetryQuota,
    RetryReason,
    RetryStrategy,
    RetryToken,
    SimpleRetryStrategy,
    StandardRetryStrategy,
    StandardRetryToken,
    StopReason,
    SystemClock,
    TokenBucket,
    TokenBucketSnapshot,
    classifier,
    classify,
    mount,
    retry_history,
    retry_options,
)
from requests_smithy_retry.testing.clock import FakeClock


class MySession(requests.Session):
    """A session of one's own: ``mount`` gives back its type."""


def mounting() -> None:
    assert_type(mount(requests.Session()), requests.Session)
    assert_type(mount(MySession(), max_attempts=5, mode="simple", quota=None), MySession)
    adapter = RetryAdapter(10, 10, 0, False, max_attempts=3, quota=TokenBucket(10), allowed_methods=None)
    RetryAdapter(max_retries=False)
    RetryAdapter(config=RetryConfig(max_attempts=2), clock=FakeClock(), initial_backoff=0.1, timeout=(1, None))
    assert_type(adapter.strategy, RetryStrategy)
    assert_type(adapter.retry_config, RetryConfig)
    request = requests.Request("GET", "https://example.com").prepare()
    assert_type(adapter.send(request, stream=True, timeout=3), requests.Response)
    assert_type(adapter.scope_of(request), str)
    adapter.strategy = StandardRetryStrategy(max_attempts=2)


def driving_by_hand(strategy: RetryStrategy, quota: RetryQuota) -> None:
    token = strategy.acquire_initial_retry_token(token_scope="jobs")
    assert_type(token, RetryToken)
    assert_type(token.retry_count, int)
    assert_type(token.retry_delay, float)
    try:
        token = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=OSError())
    except RetryError as refusal:
        assert_type(refusal.stop_reason, StopReason)
        assert_type(refusal.delay, float | None)
    strategy.record_success(token=token)
    assert_type(quota.acquire(14), bool)
    assert_type(quota.available, float)


def built_in_strategies_are_strategies() -> None:
    for strategy in (SimpleRetryStrategy(), StandardRetryStrategy(quota=None)):
        driving_by_hand(strategy, TokenBucket())
        assert_type(strategy.acquire_initial_retry_token(), StandardRetryToken)
    snapshot = StandardRetryStrategy().snapshot()
    assert_type(snapshot.buckets, Mapping[str | None, TokenBucketSnapshot])


class Fixed:
    """A backoff of one's own."""

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        return float(retry_attempt)


def backoff() -> None:
    own: RetryBackoffStrategy = Fixed()
    StandardRetryStrategy(backoff_strategy=own)
    steps = ExponentialRetryBackoffStrategy(backoff_scale_value=1, max_backoff=2, jitter_type=Jitter.EQUAL)
    assert_type(steps.compute_next_backoff_delay(1, 0.5), float)


@classifier
def bare(outcome: Outcome) -> RetryAction | None:
    return RetryAction.transient_error() if outcome.status == 423 else None


@classifier(name="polling", sees_successes=True)
def polling(outcome: Outcome, previous: RetryAction) -> RetryAction | None:
    return previous


class Own:
    """A classifier of one's own, without a base class."""

    @property
    def name(self) -> str:
        return "own"

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        return RetryAction.retryable_error_with_explicit_delay(ErrorKind.THROTTLING, 1.5)


def classification() -> None:
    items: list[RetryClassifier] = [bare, polling, Own()]
    verdict = classify(items, Outcome(error=OSError()))
    assert_type(verdict, Classification)
    assert_type(verdict.action, RetryAction)
    assert_type(RetryAction.no_action_indicated(), NoActionIndicated)
    assert_type(RetryAction.retry_forbidden("no"), RetryForbidden)
    indicated = RetryAction.retry_indicated(RetryReason(ErrorKind.SERVER))
    assert_type(indicated, RetryIndicated)
    assert_type(indicated.reason.retry_after, float | None)
    RetryAdapter(classifiers=items)


class Modelled(Exception):
    """An error that says of itself what a strategy wants to know."""

    is_retry_safe: bool | None = True
    retry_after: float | None = None
    is_throttling_error = False
    is_timeout_error = False


def protocols() -> None:
    info: ErrorRetryInfo = Modelled()
    clock: Clock = SystemClock()
    fake: Clock = FakeClock()
    error: object = info
    if isinstance(error, HasFault):
        error.fault  # noqa: B018
    del clock, fake


def history(response: requests.Response) -> None:
    record = retry_history(response)
    assert_type(record, RetryHistory | None)
    if record is not None:
        assert_type(record.attempts, tuple[AttemptRecord, ...])
        assert_type(record.stop_reason, StopReason)
        assert_type(record.sentence, str)
    with retry_options(max_attempts=1, idempotent=True, long_poll=True, classifiers=[bare]) as options:
        assert_type(options.max_attempts, int | None)
