"""What the adapter must know of a strategy that was given to it (contract 1)."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from requests_smithy_retry import (
    AdaptiveRetryStrategy,
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
from requests_smithy_retry.given_strategy import (
    check_beside_strategy,
    check_for_foreign,
    foreign_fold,
    gives_free_first_token,
)
from requests_smithy_retry.operation_options import NOTHING, OperationOptions
from requests_smithy_retry.options import ADAPTER_OPTIONS, CLASSIFIER_OPTIONS, OPTIONS
from requests_smithy_retry.resend import ResendFacts


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
    """Has our methods, and none of the books that they keep."""

    acquire_initial_retry_token = SimpleRetryStrategy.acquire_initial_retry_token  # type: ignore[assignment]
    record_success = SimpleRetryStrategy.record_success  # type: ignore[assignment]


def patched() -> SimpleRetryStrategy:
    """One whose method is written in C, and so is in no module."""
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
    """Whoever has a say of their own in a first token, or in a success, is asked."""
    assert gives_free_first_token(strategy) is free


@classifier
def mine(outcome: Outcome) -> RetryAction | None:
    return None


def test_the_adapter_asks_the_configured_classifiers_for_a_foreign_strategy() -> None:
    """The defaults, with the config's own statuses, and what was added; or that alone."""
    fold = foreign_fold(RetryConfig(retry_status_codes={418}, classifiers=[mine]))
    assert fold[-1] is mine
    assert [item.codes for item in fold if item.name == "HttpStatusCodeClassifier"] == [frozenset({418})]
    assert foreign_fold(RetryConfig(default_classifiers=False, classifiers=[mine])) == (mine,)


def ended(status: int | None, *, attempt: int = 1, error: Exception | None = None, **facts: Any) -> Outcome:
    """What an attempt ended with."""
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
    """It is shown an error that says what the classifiers say."""
    error: Any = OSError()
    check_for_foreign(saying(action), outcome, options, error)
    assert error.is_retry_safe is safe


THREE = "an object with acquire_initial_retry_token, refresh_retry_token_for_retry and record_success is allowed"


@pytest.mark.parametrize("strategy", [object(), 5, StandardRetryStrategy, Foreign])
def test_what_is_no_strategy_is_refused(strategy: Any) -> None:
    """A class is none: it was not called."""
    with pytest.raises(RetryConfigError) as error:
        check_beside_strategy(strategy, None, {})
    assert str(error.value) == f"strategy={strategy!r} (from code): {THREE}"


def test_a_config_is_not_taken_beside_a_strategy_that_has_one() -> None:
    """A foreign one has none of ours."""
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
    """It would be connected to nothing; the classifiers are asked for a foreign strategy as well."""
    if name in taken:
        check_beside_strategy(strategy, None, {name: 1})
    else:
        with pytest.raises(RetryConfigError) as error:
            check_beside_strategy(strategy, None, {name: 1})
        words = f"{name}=1 (from code): it belongs to the strategy: give it to {strategy!r} instead"
        assert str(error.value) == words
