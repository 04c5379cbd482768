"""The public signatures, pinned for type checkers. This file is checked (mypy, pyright) and never executed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import requests
from typing_extensions import Unpack, assert_type

from requests_smithy_retry import (
    AdaptiveRetryStrategy,
    AttemptFailed,
    AttemptRecord,
    Clock,
    ErrorInBodyClassifier,
    ErrorKind,
    ErrorRetryInfo,
    Outcome,
    RateLimitDialect,
    RetryAction,
    RetryAdapter,
    RetryClassifier,
    RetryClassifierPriority,
    RetryConfig,
    RetryError,
    RetryHistory,
    RetryListener,
    RetryOptions,
    RetryReason,
    RetryStrategy,
    RetryToken,
    SimpleRetryStrategy,
    StandardRetryStrategy,
    StandardRetryToken,
    StopReason,
    SystemClock,
    TokenBucket,
    classifier,
    default_classifiers,
    install,
    mount,
    retry_history,
    retry_options,
    uninstall,
)
from requests_smithy_retry.classifiers import (
    Classification,
    HasFault,
    NoActionIndicated,
    RetryForbidden,
    RetryIndicated,
    classify,
    with_priority,
)
from requests_smithy_retry.events import (
    AfterAttempt,
    BeforeAttempt,
    GaveUp,
    ObservedOperation,
    RetryScheduled,
    Succeeded,
    Throttled,
    WaitBegan,
)
from requests_smithy_retry.quotas import (
    ClientRateLimiter,
    ExponentialRetryBackoffStrategy,
    Jitter,
    PayoffTokenBucket,
    PermitWait,
    RateLimiterSettings,
    RetryBackoffStrategy,
    RetryQuota,
    TokenBucketSnapshot,
)
from requests_smithy_retry.smithy import SmithyEndpoint, SmithyModel, SmithyModelClassifier
from requests_smithy_retry.testing import FakeClock, scripted


class MySession(requests.Session):
    """A session of one's own: ``mount`` gives back its type."""


def mounting() -> None:
    assert_type(mount(requests.Session()), requests.Session)
    assert_type(mount(MySession(), max_attempts=5, mode="standard", quota=None, pool_maxsize=32), MySession)
    adapter = RetryAdapter(10, 10, 0, False, max_attempts=3, quota=TokenBucket(10), allowed_methods=None)
    RetryAdapter(max_retries=False)
    RetryAdapter(config=RetryConfig(max_attempts=2), clock=FakeClock(), backoff=0.1, timeout=(1, None))
    assert_type(adapter.strategy, RetryStrategy)
    assert_type(adapter.retry_config, RetryConfig)
    request = requests.Request("GET", "https://example.com").prepare()
    assert_type(adapter.send(request, stream=True, timeout=3), requests.Response)
    assert_type(adapter.scope_of(request), str)
    adapter.strategy = StandardRetryStrategy(max_attempts=2)


class Client:
    """A library's client, which hands its users' options on, above defaults of its own."""

    def __init__(self, url: str, **retries: Unpack[RetryOptions]) -> None:
        defaults = RetryConfig(max_attempts=4)
        self.session = mount(requests.Session(), at=url, defaults=defaults, **retries)
        RetryAdapter(defaults=defaults, **retries)
        install(defaults=defaults, **retries)


def handing_options_on() -> None:
    Client("https://api.example.com/", max_attempts=2, patience=10)
    Client("https://api.example.com/", max_attempts="2")  # type: ignore[arg-type]
    Client("https://api.example.com/", patiance=10)  # type: ignore[call-arg]


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


class OwnToken(NamedTuple):
    """A token of one's own."""

    retry_count: int = 0
    retry_delay: float = 0.0


class OwnStrategy:
    """A strategy of one's own, whose parameters are of the types that it is called with."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> OwnToken:
        return OwnToken()

    def refresh_retry_token_for_retry(self, *, token_to_renew: OwnToken, error: AttemptFailed) -> OwnToken:
        assert_type(error.retry_after, float | None)
        return OwnToken(token_to_renew.retry_count + 1, error.clock.now())

    def record_success(self, *, token: OwnToken) -> None:
        pass


class Subclass(StandardRetryStrategy):
    """A strategy that looks at the attempt that failed."""

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: AttemptFailed) -> StandardRetryToken:
        assert_type(error.outcome, Outcome)
        return super().refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)


def strategies_of_ones_own() -> None:
    mount(requests.Session(), strategy=OwnStrategy(), pacing="off")
    mount(requests.Session(), strategy=Subclass(max_attempts=2))
    mount(requests.Session(), strategy=Fixed())  # type: ignore[arg-type]


class Fixed:
    """A backoff of one's own."""

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        return float(retry_attempt)


def backoff() -> None:
    own: RetryBackoffStrategy = Fixed()
    StandardRetryStrategy(backoff=own)
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


class Told(RetryListener):
    """A listener that looks at every event."""

    def before_attempt(self, event: BeforeAttempt, /) -> None:
        assert_type(event.operation, ObservedOperation)
        assert_type(event.number, int)
        assert_type(event.request, requests.PreparedRequest)

    def after_attempt(self, event: AfterAttempt, /) -> None:
        assert_type(event.response, requests.Response | None)
        assert_type(event.error, BaseException | None)
        assert_type(event.duration, float)
        assert_type(event.record, AttemptRecord)

    def wait_began(self, event: WaitBegan, /) -> None:
        assert_type(event.what, str)
        assert_type(event.seconds, float | None)

    def retry_scheduled(self, event: RetryScheduled, /) -> None:
        assert_type(event.delay, float)
        assert_type(event.record, AttemptRecord)

    def throttled(self, event: Throttled, /) -> None:
        assert_type(event.record, AttemptRecord)

    def gave_up(self, event: GaveUp, /) -> None:
        assert_type(event.history, RetryHistory)

    def succeeded(self, event: Succeeded, /) -> None:
        assert_type(event.operation.max_attempts, int | None)


class HearsOneThing:
    """A listener without the base class, and with one method."""

    def gave_up(self, event: GaveUp, /) -> None: ...


def listeners_and_quotas() -> None:
    RetryAdapter(listeners=[Told(), HearsOneThing()])
    mount(requests.Session(), quota="payoff")
    bucket: RetryQuota = PayoffTokenBucket()
    StandardRetryStrategy(quota=bucket)
    assert_type(PayoffTokenBucket().available, float)


def the_adaptive_mode() -> None:
    strategy = AdaptiveRetryStrategy(rate_limiter=RateLimiterSettings(beta=0.5), max_permit_wait=3)
    token = strategy.acquire_initial_retry_token(token_scope="jobs")
    assert_type(strategy.send_permit(token=token, deadline=None), PermitWait | None)
    assert_type(strategy.limiter("jobs"), ClientRateLimiter)
    assert_type(strategy.snapshot().limiters, Mapping[str | None, Any])


def models_and_priorities() -> None:
    model = SmithyModel.from_dict({})
    assert_type(model.for_endpoint("https://example.com"), SmithyEndpoint)
    mount(requests.Session(), classifiers=[SmithyModelClassifier([model.for_endpoint("https://example.com")])])
    later = RetryClassifierPriority.run_after(RetryClassifierPriority.default())
    RetryAdapter(classifiers=[with_priority(item, later) for item in default_classifiers()])


def every_session() -> None:
    assert_type(install(max_attempts=2).config, RetryConfig)
    assert_type(install(mounted="all").left_alone, tuple[str, ...])
    uninstall()


def a_transport_without_sockets() -> None:
    adapter = scripted(503, 200, max_attempts=2)
    assert_type(adapter.clock.sleeps, list[float])
    RetryAdapter(jitter=Jitter.NONE)


def a_name_that_there_is_not() -> None:
    # Names are handed on when they are asked for; a checker must know them all the same, and no other.
    import requests_smithy_retry

    requests_smithy_retry.RetryAdaptor  # type: ignore[attr-defined]  # noqa: B018


def rate_limits(session: requests.Session) -> None:
    """Limits that servers announce, credentials, and errors inside a 200."""
    dialect = RateLimitDialect("acme-left", reset=("acme-next", "acme-until"), limit="acme-most")
    assert_type(dialect.remaining, str)
    found = ErrorInBodyClassifier(lambda body: body["wait"] > 0, "wait", kind=ErrorKind.SERVER)

    def renew(response: requests.Response) -> Mapping[str, str] | None:
        return {"Authorization": "new"} if response.ok else None

    adapter = RetryAdapter(pacing=[dialect], classifiers=[found], on_unauthorized=renew)
    assert_type(adapter.retry_config.on_unauthorized is None, bool)
    session.mount("https://", RetryAdapter(pacing="off"))
