"""The facts that the adapter must know about a strategy that was given to it (contract 1)."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from requests_smithy_retry import (
    AdaptiveRetryStrategy,
    ClientRateLimiter,
    Outcome,
    RetryAction,
    RetryConfig,
    RetryConfigError,
    RetryError,
    SimpleRetryStrategy,
    StandardRetryStrategy,
    StopReason,
    classifier,
)
from requests_smithy_retry.classifiers.outcome import ResendFacts
from requests_smithy_retry.config.retry_config import ADAPTER_OPTIONS, CLASSIFIER_OPTIONS, OPTIONS
from requests_smithy_retry.config.retry_options import NOTHING, OperationOptions
from requests_smithy_retry.strategies.foreign import (
    ForeignStrategy,
    adapt,
    check_beside_strategy,
    check_for_foreign,
)
from requests_smithy_retry.testing.clock import FakeClock
from tests.support import ScriptedAdapter, scripted, send


class Foreign:
    """Three methods, no base class."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Any: ...
    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Exception) -> Any: ...
    def record_success(self, *, token: Any) -> None: ...

    def __repr__(self) -> str:
        return "<Foreign>"


class Taught(StandardRetryStrategy):
    """Changes nothing that concerns a first try."""

    def _refund(self) -> None: ...


class Acquiring(StandardRetryStrategy):
    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Any:
        return super().acquire_initial_retry_token(token_scope=token_scope)


class Recording(SimpleRetryStrategy):
    def record_success(self, *, token: Any) -> None:
        super().record_success(token=token)


class Borrowing(Foreign):
    """A strategy that borrows our methods, without the bookkeeping that they need."""

    acquire_initial_retry_token = SimpleRetryStrategy.acquire_initial_retry_token  # type: ignore[assignment]
    record_success = SimpleRetryStrategy.record_success  # type: ignore[assignment]


def patched() -> SimpleRetryStrategy:
    """Return a strategy with a method that is written in C, and so belongs to no module."""
    strategy: Any = SimpleRetryStrategy()
    strategy.record_success = [].append
    return strategy


@pytest.mark.parametrize(
    ("strategy", "free"),
    [
        *((SimpleRetryStrategy(), True), (StandardRetryStrategy(), True), (AdaptiveRetryStrategy(), True)),
        *((Taught(), True), (Acquiring(), False), (Recording(), False), (patched(), False), (Foreign(), False)),
        (Borrowing(), False),
    ],
)
def test_a_first_try_needs_no_bookkeeping_where_the_methods_are_ours(strategy: Any, free: bool) -> None:
    """A strategy that overrides the first token or the record of a success is asked."""
    assert adapt(strategy, RetryConfig()).needs_first_token is not free


class Permitting(Foreign):
    """A foreign strategy that wants to be asked."""

    def send_permit(self, *, token: Any, deadline: float | None = None, waited: float = 0.0) -> None: ...


class OwnPermits(AdaptiveRetryStrategy):
    """A limiter of its own before the limiter."""

    asked: list[int]

    def send_permit(self, *, token: Any, deadline: float | None = None, waited: float = 0.0) -> Any:
        self.asked.append(token.retry_count)
        return super().send_permit(token=token, deadline=deadline, waited=waited)


class OwnLimiter(AdaptiveRetryStrategy):
    """A strategy with one limiter for all scopes."""

    def limiter(self, token_scope: str | None = None) -> ClientRateLimiter:
        return super().limiter("all")


@pytest.mark.parametrize(
    ("strategy", "needed"),
    [
        *((Foreign(), False), (StandardRetryStrategy(), set()), (Permitting(), True), (OwnPermits(), True)),
        *((OwnLimiter(), True), (AdaptiveRetryStrategy(), set())),
    ],
)
def test_whose_leave_a_first_attempt_needs(strategy: Any, needed: Any) -> None:
    """A strategy with permits or a limiter of its own is always asked; a built-in one once a server has throttled."""
    assert adapt(strategy, RetryConfig()).needs_permits == needed


def test_a_subclass_gives_leave_before_each_attempt() -> None:
    """The first one too."""
    strategy = OwnPermits(clock=FakeClock())
    strategy.asked = []
    send(scripted(503, 503, 200, strategy=strategy))
    assert [0, 1, 2] == strategy.asked


def test_a_limiter_of_a_subclass_is_asked_and_told() -> None:
    """The subclass's limiter is used for all permits and records; the scopes' own limiters are never made."""
    strategy = OwnLimiter(clock=FakeClock())
    adapter = scripted(200, 429, 200, strategy=strategy, clock=strategy.clock)
    send(adapter)
    send(adapter, url="https://b.example.com/")
    assert ["all"] == list(strategy.snapshot().limiters)
    assert strategy.limiter().enabled


class OneBucket(StandardRetryStrategy):
    """A strategy with one bucket for all scopes, which notes who asked."""

    def bucket(self, token_scope: str | None = None) -> Any:
        return super().bucket("all")


@pytest.mark.parametrize("quota", [28, None])
def test_a_bucket_of_a_subclass_is_asked(quota: int | None) -> None:
    """The subclass's bucket pays for retries, and gets what comes back and the rewards of every scope."""
    strategy = OneBucket(clock=FakeClock(), quota=quota)
    adapter = scripted(503, 404, 200, 503, 200, strategy=strategy, clock=strategy.clock)
    send(adapter)
    assert quota is None or strategy.bucket().available == 14
    send(adapter, url="https://b.example.com/")
    send(adapter, url="https://c.example.com/")
    assert quota is None or strategy.bucket().available == 15
    assert [] == [scope for scope in strategy.snapshot().buckets if scope != "all"]


class ByTenant(ScriptedAdapter):
    """An adapter whose scopes are named by a header."""

    def scope_of(self, request: Any) -> str:
        return str(request.headers.get("X-Tenant"))


def test_an_adapters_own_scopes_hold_for_first_try_successes() -> None:
    """In adaptive mode, the successes of each scope are counted by a limiter of its own."""
    adapter = ByTenant(script=[200] * 4, mode="adaptive")
    for tenant in "abab":
        send(adapter, headers={"X-Tenant": tenant})
    assert ["a", "b"] == sorted(adapter.strategy.snapshot().limiters)


@classifier
def mine(outcome: Outcome) -> RetryAction | None:
    return None


def test_the_adapter_asks_the_configured_classifiers_for_a_foreign_strategy() -> None:
    """The defaults, with the config's own statuses, and what was added; or that alone."""
    fold = ForeignStrategy(Foreign(), RetryConfig(retry_status_codes={418}, classifiers=[mine])).fold
    assert fold[-1] is mine
    assert [item.codes for item in fold if item.name == "HttpStatusCodeClassifier"] == [frozenset({418})]
    alone = ForeignStrategy(Foreign(), RetryConfig(default_classifiers=False, classifiers=[mine]))
    assert alone.fold == (mine,)


def ended(status: int | None, *, attempt: int = 1, error: Exception | None = None, **facts: Any) -> Outcome:
    """Return the outcome of an attempt."""
    response = None
    if status is not None:
        response = requests.Response()
        response.status_code = status
    return Outcome(error=error, response=response, attempt=attempt, resend=ResendFacts("POST", **facts))


def saying(action: RetryAction) -> Any:
    """Classifiers that say so, of successes too."""
    return (classifier(sees_successes=True)(lambda outcome: action),)


NO, TRANSIENT = RetryAction.no_action_indicated(), RetryAction.transient_error()
MAY = {"idempotent": True}


@pytest.mark.parametrize(
    ("action", "outcome", "stop_reason", "words"),
    [
        (NO, ended(200), StopReason.NOT_RETRYABLE, StopReason.NOT_RETRYABLE.value),
        (NO, ended(200, **MAY), StopReason.NOT_RETRYABLE, StopReason.NOT_RETRYABLE.value),
        (RetryAction.retry_forbidden("never"), ended(200, **MAY), StopReason.FORBIDDEN, "never"),
        (RetryAction.retry_forbidden(), ended(200, **MAY), StopReason.FORBIDDEN, StopReason.FORBIDDEN.value),
        (
            TRANSIENT,
            ended(503),
            StopReason.NOT_RESENDABLE,
            "POST is not idempotent and the server may have applied it",
        ),
        (
            NO,
            ended(503, idempotent=True, replayable=False),
            StopReason.BODY_NOT_REPLAYABLE,
            "the body cannot be replayed: some of it was read",
        ),
        (TRANSIENT, ended(503, attempt=2, **MAY), StopReason.MAX_ATTEMPTS, "2 of 2 attempts were made"),
        (NO, ended(404, attempt=3, **MAY), StopReason.MAX_ATTEMPTS, "3 of 2 attempts were made"),
    ],
)
def test_what_a_foreign_strategy_is_not_asked(
    action: RetryAction, outcome: Outcome, stop_reason: StopReason, words: str
) -> None:
    """A success that nobody wants repeated, what cannot be sent again, and one attempt more than the block allows."""
    error = OSError()
    with pytest.raises(RetryError) as refused:
        check_for_foreign(saying(action), outcome, OperationOptions(max_attempts=2), error)
    assert (refused.value.stop_reason, str(refused.value)) == (stop_reason, words)
    assert refused.value.classification is not None
    assert refused.value.classification.votes[0].action == action
    assert not hasattr(error, "is_retry_safe")


@pytest.mark.parametrize(
    ("action", "outcome", "safe"),
    [
        (TRANSIENT, ended(503, **MAY), True),
        (TRANSIENT, ended(200, **MAY), True),
        (TRANSIENT, ended(408), True),
        (RetryAction.throttling_error(), ended(400), True),
        (NO, ended(503, **MAY), None),
        (NO, ended(None, error=OSError(), **MAY), None),
        (RetryAction.retry_forbidden("never"), ended(503, **MAY), False),
    ],
)
@pytest.mark.parametrize("options", [NOTHING, OperationOptions(max_attempts=2)])
def test_whatever_else_a_foreign_strategy_decides(
    action: RetryAction, outcome: Outcome, safe: bool | None, options: OperationOptions
) -> None:
    """A foreign strategy is shown an error that says what the classifiers say."""
    error: Any = OSError()
    check_for_foreign(saying(action), outcome, options, error)
    assert error.is_retry_safe is safe


THREE = "an object with acquire_initial_retry_token, refresh_retry_token_for_retry and record_success is allowed"


@pytest.mark.parametrize("strategy", [object(), 5, StandardRetryStrategy, Foreign])
def test_what_is_no_strategy_is_refused(strategy: Any) -> None:
    """A class that was not called is not a strategy."""
    with pytest.raises(RetryConfigError) as error:
        check_beside_strategy(strategy, None, {})
    assert str(error.value) == f"strategy={strategy!r} (from code): {THREE}"


def test_a_config_is_not_taken_beside_a_strategy_that_has_one() -> None:
    """A foreign strategy has no config, so a config may go beside it."""
    config = RetryConfig()
    with pytest.raises(RetryConfigError) as error:
        check_beside_strategy(SimpleRetryStrategy(), config, {})
    assert str(error.value) == f"config={config!r} (from code): only one of config and a built-in strategy is allowed"
    assert check_beside_strategy(Foreign(), config, {}) is None


@pytest.mark.parametrize(
    ("strategy", "taken"),
    [(StandardRetryStrategy(), ADAPTER_OPTIONS), (Foreign(), ADAPTER_OPTIONS | CLASSIFIER_OPTIONS)],
)
@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_of_the_strategys_is_not_taken_beside_it(strategy: Any, taken: frozenset[str], name: str) -> None:
    """An option of the strategy is refused, because it would have no effect; a foreign one may have classifiers."""
    if name in taken:
        check_beside_strategy(strategy, None, {name: 1})
    else:
        with pytest.raises(RetryConfigError) as error:
            check_beside_strategy(strategy, None, {name: 1})
        words = f"{name}=1 (from code): it belongs to the strategy: give it to {strategy!r} instead"
        assert str(error.value) == words


def test_a_foreign_strategys_token_is_given_back_to_it() -> None:
    """The loop's token wraps the strategy's own, which alone the strategy is shown."""

    class Own:
        retry_count, retry_delay = 0, 0.0

    class Strategy:
        max_attempts = 7

        def __init__(self) -> None:
            self.seen: list[object] = []

        def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Own:
            return Own()

        def refresh_retry_token_for_retry(self, *, token_to_renew: Own, error: Exception) -> Own:
            self.seen.append(type(token_to_renew))
            return Own()

        def record_success(self, *, token: Own) -> None:
            self.seen.append(type(token))

    strategy = Strategy()
    adapted = adapt(strategy, RetryConfig())
    assert adapted.strategy.max_attempts == 7
    assert adapted.send_permit is None
    token = adapted.strategy.acquire_initial_retry_token()
    adapted.strategy.record_success(token=token)
    assert (token.retry_count, token.retry_delay, token.delay_source, strategy.seen) == (0, 0.0, "strategy", [Own])


@pytest.mark.parametrize(("said", "expected"), [(7, 7), (None, None), (object(), None), ("7", None)])
def test_a_foreign_strategys_number_of_attempts_is_a_number_or_none(said: object, expected: int | None) -> None:
    """What a strategy has under that name may be anything; a Mock has any attribute."""

    class Strategy:
        max_attempts = said

        def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> None: ...

        def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Exception) -> None: ...

        def record_success(self, *, token: Any) -> None: ...

    assert expected == adapt(Strategy(), RetryConfig()).strategy.max_attempts  # type: ignore[arg-type]
