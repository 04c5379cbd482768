"""The facts that the adapter must know about a strategy that was given to it (contract 1)."""

from __future__ import annotations

from types import SimpleNamespace
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
    retry_history,
)
from requests_smithy_retry.checks import most_attempts
from requests_smithy_retry.classifiers.outcome import ResendFacts
from requests_smithy_retry.config.retry_config import ADAPTER_OPTIONS, CLASSIFIER_OPTIONS, OPTIONS
from requests_smithy_retry.config.retry_options import NOTHING, OperationOptions
from requests_smithy_retry.core.foreign import (
    check_beside_strategy,
    check_for_foreign,
    is_built_in,
)
from requests_smithy_retry.testing import FakeClock
from tests.support import ScriptedAdapter, reset_error, scripted, send

SCOPE = "https://api.example.com:443"


class Foreign:
    """Three methods, no base class."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Any: ...
    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Exception) -> Any: ...
    def record_success(self, *, token: Any) -> None: ...

    def __repr__(self) -> str:
        return "<Foreign>"


class Taught(StandardRetryStrategy):
    """Changes nothing that decides."""


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
    ("strategy", "ours"),
    [
        *((SimpleRetryStrategy(), True), (StandardRetryStrategy(), True), (AdaptiveRetryStrategy(), True)),
        *((Taught(), True), (Acquiring(), False), (Recording(), False), (patched(), False), (Foreign(), False)),
        (Borrowing(), False),
    ],
)
def test_a_strategy_with_methods_of_its_own_is_asked(strategy: Any, ours: bool) -> None:
    """One that overrides a method by which it decides, or has it patched, is the program's; any other one is ours."""
    assert ours is is_built_in(strategy)


class OwnPermits(AdaptiveRetryStrategy):
    """A limiter of its own before the limiter."""

    asked: list[int]

    def send_permit(self, *, token: Any, deadline: float | None = None, waited: float = 0.0) -> Any:
        self.asked.append(token.retry_count)
        return super().send_permit(token=token, deadline=deadline, waited=waited)


def test_a_subclass_gives_leave_before_each_attempt() -> None:
    """The first one too."""
    strategy = OwnPermits(clock=FakeClock())
    strategy.asked = []
    send(scripted(503, 503, 200, strategy=strategy))
    assert [0, 1, 2] == strategy.asked


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


@classifier(sees_successes=True)
def looks(outcome: Outcome) -> RetryAction | None:
    return None


class Guide:
    """A strategy as in the Smithy guide, which knows only the attributes of errors; its tokens are its own."""

    def __init__(self, *refusals: Exception | None, delay: Any = 0.0, first: Exception | None = None) -> None:
        self.refusals = list(refusals)
        self.delay = delay
        self.first = first
        self.seen: list[Any] = []

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Any:
        if self.first is not None:
            raise self.first
        self.seen.append(token_scope)
        return SimpleNamespace(retry_count=0, retry_delay=None)

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Any) -> Any:
        self.seen.append((error.is_retry_safe, getattr(error, "fault", None)))
        refusal = self.refusals.pop(0) if self.refusals else None
        if isinstance(refusal, KeyError):
            raise error
        if refusal is not None:
            raise refusal
        return SimpleNamespace(retry_count=1, retry_delay=self.delay)

    def record_success(self, *, token: Any) -> None:
        self.seen.append(token.retry_count)


NO_MORE = RetryError("no more", stop_reason=StopReason.MAX_ATTEMPTS)


@pytest.mark.parametrize(
    ("strategy", "script", "options", "seen", "stop"),
    [
        (Guide(), [200], {}, [SCOPE, 0], StopReason.SUCCESS),
        (Guide(), [503, 200], {}, [SCOPE, (True, "server"), 1], StopReason.SUCCESS),
        (Guide(delay=0.5), [503, 200], {}, [SCOPE, (True, "server"), 1], StopReason.SUCCESS),
        (Guide(NO_MORE), [404], {}, [SCOPE, (False, "client")], StopReason.MAX_ATTEMPTS),
        (Guide(NO_MORE), [503], {}, [SCOPE, (True, "server")], StopReason.MAX_ATTEMPTS),
        (Guide(KeyError()), [503], {}, [SCOPE, (True, "server")], StopReason.STRATEGY_REFUSED),
        (Guide(delay=9.0), [503], {"operation_timeout": 5}, [SCOPE, (True, "server")], StopReason.DEADLINE),
        (Guide(first=NO_MORE), [503], {}, [], StopReason.MAX_ATTEMPTS),
        (Guide(first=NO_MORE), [200], {}, [], StopReason.SUCCESS),
        (Guide(), [200], {"classifiers": [looks]}, [SCOPE, 0], StopReason.SUCCESS),
    ],
)
def test_what_a_foreign_strategy_is_shown(
    strategy: Guide, script: list[Any], options: dict[str, Any], seen: list[Any], stop: StopReason
) -> None:
    """Errors say of themselves what the classifiers say; its refusal, in whichever way, ends the operation."""
    history = retry_history(send(scripted(*script, strategy=strategy, **options)))
    assert (seen, stop) == (strategy.seen, history.stop_reason)


class Safe(ConnectionError):
    """Says of itself that it may be retried."""

    is_retry_safe, retry_after, is_throttling_error, is_timeout_error = True, 7.0, False, False


def test_an_error_that_says_so_itself_is_left_alone() -> None:
    """What it says of itself is not replaced by the verdict."""
    error = Safe()
    check_for_foreign(saying(TRANSIENT), ended(None, error=error, **MAY), NOTHING, error)
    assert ({}, 7.0) == (vars(error), error.retry_after)


def test_about_a_request_that_cannot_be_sent_nobody_is_asked() -> None:
    """A retry would not help."""
    strategy = Guide()
    with pytest.raises(requests.exceptions.InvalidURL):
        send(scripted(requests.exceptions.InvalidURL(), strategy=strategy))
    assert [SCOPE] == strategy.seen


def test_a_bug_of_a_foreign_strategy_comes_through() -> None:
    """Only the error that it was shown, and RetryError, are refusals."""
    with pytest.raises(ZeroDivisionError):
        send(scripted(503, strategy=Guide(ZeroDivisionError())))


def test_an_exception_is_shown_as_it_is() -> None:
    """The context is gone afterwards."""
    strategy, error = Guide(NO_MORE), reset_error()
    with pytest.raises(requests.ConnectionError) as caught:
        send(scripted(error, strategy=strategy))
    assert (error, False) == (caught.value, hasattr(error, "retry_context"))


@pytest.mark.parametrize("delay", ["1", True, float("nan")])
def test_a_delay_that_is_no_number_is_refused(delay: Any) -> None:
    """It is said whose token has it."""
    with pytest.raises(TypeError, match="a finite number of seconds or None is allowed"):
        send(scripted(503, strategy=Guide(delay=delay)))


class Permits(Guide):
    """Refuses the permit of the second attempt."""

    def send_permit(self, *, token: Any, deadline: float | None, waited: float) -> None:
        if token.retry_count:
            raise RetryError("slow down", stop_reason=StopReason.RATE_LIMITED)


def test_a_permit_may_be_refused() -> None:
    """The attempt before is handed over."""
    response = send(scripted(503, strategy=Permits()))
    assert (503, StopReason.RATE_LIMITED) == (response.status_code, retry_history(response).stop_reason)


class Stubborn(Guide):
    """Never gives a permit, whatever the deadline."""

    def send_permit(self, *, token: Any, deadline: float | None, waited: float) -> Any:
        return self

    def rest(self, clock: Any) -> None:
        clock.sleep(1)


def test_a_deadline_ends_the_wait_for_a_permit() -> None:
    """Also with a strategy that does not look at it."""
    with pytest.raises(requests.exceptions.ConnectTimeout) as caught:
        send(scripted(strategy=Stubborn(), operation_timeout=3))
    assert StopReason.RATE_LIMITED is retry_history(caught.value).stop_reason


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


@pytest.mark.parametrize(("said", "expected"), [(7, 7), (None, None), (object(), None), ("7", None)])
def test_a_strategys_number_of_attempts_is_a_number_or_none(said: object, expected: int | None) -> None:
    """What a strategy of the program's has under that name may be anything; a Mock has any attribute."""
    assert expected == most_attempts(SimpleNamespace(max_attempts=said))
