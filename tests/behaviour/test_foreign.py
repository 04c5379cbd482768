"""A strategy of the program's (contract 1): what it is shown, what it is not asked, and what its answers do."""

from __future__ import annotations

import dataclasses
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import requests.exceptions as rex

from requests_smithy_retry import (
    AdaptiveRetryStrategy,
    AttemptFailed,
    ErrorKind,
    ErrorRetryInfo,
    RetryAction,
    RetryAdapter,
    RetryConfig,
    RetryConfigError,
    RetryError,
    RetryReason,
    SimpleRetryStrategy,
    StandardRetryStrategy,
    StopReason,
    classifier,
    retry_history,
    retry_options,
)
from requests_smithy_retry.classifiers import HasFault
from requests_smithy_retry.testing import FakeClock
from tests.support import Guide, ScriptedAdapter, ended, reset_error, scripted, send

SCOPE = "https://api.example.com:443"
NO, TRANSIENT = RetryAction.no_action_indicated(), RetryAction.transient_error()
FINAL = RetryAction.retry_forbidden("final")


def saying(action: RetryAction) -> Any:
    """Classifiers that say so, of successes too."""
    return [classifier(sees_successes=True)(lambda outcome: action)]


@pytest.mark.parametrize("name", ["acquire_initial_retry_token", "refresh_retry_token_for_retry", "record_success"])
@pytest.mark.parametrize("is_patched", [False, True])
def test_a_strategy_with_methods_of_its_own_is_asked(name: str, is_patched: bool) -> None:
    """One of ours with a method that is overridden or patched is the program's."""
    asked = []

    def own(self: Any, **given: Any) -> Any:
        asked.append(name)
        return getattr(StandardRetryStrategy, name)(self, **given)

    kind: Any = StandardRetryStrategy if is_patched else type("Own", (StandardRetryStrategy,), {name: own})
    strategy = kind(clock=FakeClock())
    if is_patched:
        setattr(strategy, name, partial(own, strategy))
    assert send(scripted(503, 200, strategy=strategy)).status_code == 200
    assert asked == [name]


def test_a_subclass_gives_leave_before_each_attempt() -> None:
    """The first one too."""

    class OwnPermits(AdaptiveRetryStrategy):
        def send_permit(self, *, token: Any, deadline: float | None = None, waited: float = 0.0) -> Any:
            asked.append(token.retry_count)
            return super().send_permit(token=token, deadline=deadline, waited=waited)

    asked: list[int] = []
    send(scripted(503, 503, 200, strategy=OwnPermits(clock=FakeClock())))
    assert [0, 1, 2] == asked


def test_an_adapters_own_scopes_hold_for_first_try_successes() -> None:
    """In adaptive mode, the successes of each scope are counted by a limiter of its own."""

    class ByTenant(ScriptedAdapter):
        def scope_of(self, request: Any) -> str:
            return str(request.headers.get("X-Tenant"))

    adapter = ByTenant(script=[200] * 4, mode="adaptive")
    for tenant in "abab":
        send(adapter, headers={"X-Tenant": tenant})
    assert ["a", "b"] == sorted(adapter.strategy.snapshot().limiters)


def test_an_exception_of_record_success_is_no_refusal() -> None:
    """The request succeeded: nobody says that it was not sent. The strategy's exception reaches the caller."""

    class Bug(StandardRetryStrategy):
        def record_success(self, *, token: Any) -> None:
            raise error

    error = RetryError("a bug")
    adapter = scripted(200, strategy=Bug(clock=FakeClock()))
    with pytest.raises(RetryError) as caught:
        send(adapter, "POST", data=b"pay")
    assert (error, None, 1) == (caught.value, retry_history(error), len(adapter.sent))


# What it cannot overrule


APPLIED = "POST is not idempotent and the server may have applied it"


@pytest.mark.parametrize(
    ("action", "method", "step", "stop_reason", "words"),
    [
        (RetryAction.retry_forbidden("never"), "GET", 200, StopReason.FORBIDDEN, "never"),
        (RetryAction.retry_forbidden(), "GET", 200, StopReason.FORBIDDEN, StopReason.FORBIDDEN.value),
        (TRANSIENT, "POST", 503, StopReason.NOT_RESENDABLE, APPLIED),
        (TRANSIENT, "POST", 200, StopReason.NOT_RESENDABLE, APPLIED),
        (NO, "PUT", 503, StopReason.BODY_NOT_REPLAYABLE, "the body cannot be replayed: some of it was read"),
        (NO, "GET", rex.InvalidURL(), StopReason.REQUEST_FAULT, StopReason.REQUEST_FAULT.value),
    ],
)
def test_what_a_foreign_strategy_cannot_overrule(
    action: RetryAction, method: str, step: Any, stop_reason: StopReason, words: str
) -> None:
    """What must not be sent again is not, whatever it says: a retry would not help, or would harm."""
    strategy = Guide()
    adapter = scripted(step, strategy=strategy, classifiers=saying(action))
    history = retry_history(ended(adapter, method, data=iter([b"a"]) if method == "PUT" else None))
    assert (stop_reason, words, 1) == (history.stop_reason, history.why, len(history.attempts))
    if not isinstance(step, Exception):
        assert action in [vote.action for vote in history.attempts[0].votes]


def test_a_blocks_number_of_attempts_holds_for_it() -> None:
    """No attempt more is made than the block allows."""
    strategy = Guide()
    with retry_options(max_attempts=2):
        history = retry_history(send(scripted(503, 503, strategy=strategy)))
    assert (StopReason.MAX_ATTEMPTS, "no attempts are left") == (history.stop_reason, history.why)
    assert 2 == len(history.attempts)


# What it is shown


LATE = RetryAction.retry_indicated(RetryReason(ErrorKind.TRANSIENT, retry_after=2.5, timeout=True))


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (RetryAction.throttling_error(), (True, None, True, False)),
        (TRANSIENT, (True, None, False, False)),
        (LATE, (True, 2.5, False, True)),
        (RetryAction.retry_forbidden("never"), (False, None, False, False)),
    ],
)
@pytest.mark.parametrize("step", [503, 400, reset_error], ids=["server", "client", "exception"])
@pytest.mark.parametrize("most", [None, 2])
def test_an_error_is_made_to_say_what_the_classifiers_said(
    action: RetryAction, said: tuple[Any, ...], step: Any, most: int | None
) -> None:
    """The strategy needs no more than the attributes of ``ErrorRetryInfo``."""
    strategy = Guide(RetryError("no"))
    with retry_options(max_attempts=most):
        ended(scripted(step() if callable(step) else step, strategy=strategy, classifiers=saying(action)))
    (error,) = strategy.shown
    assert said == (error.is_retry_safe, error.retry_after, error.is_throttling_error, error.is_timeout_error)


@pytest.mark.parametrize(
    ("status", "fault", "safe"),
    [
        *((399, None, True), (500, "server", True), (501, "server", None), (429, "client", True)),
        *((400, "client", False), (401, "client", False), (404, "client", False), (499, "client", False)),
    ],
)
def test_a_clients_fault_without_an_opinion_is_no_maybe(status: int, fault: str | None, safe: bool | None) -> None:
    """The Smithy guide: NO for client errors that nothing marks as retryable, MAYBE for a server's."""
    strategy = Guide(RetryError("no"))
    response = send(scripted(status, strategy=strategy, classifiers=saying(TRANSIENT if status < 400 else NO)))
    (error,) = strategy.shown
    assert isinstance(error, ErrorRetryInfo)
    assert isinstance(error, HasFault)
    assert isinstance(error, AttemptFailed)
    assert (fault, f"the server answered {status}") == (error.fault, str(error))
    assert safe is error.is_retry_safe
    assert response.request is error.request


class Safe(rex.ConnectionError):
    """Says of itself that it may be retried."""

    is_retry_safe, retry_after, is_throttling_error, is_timeout_error = True, 7.0, False, False


class Computed(rex.ConnectionError):
    """An exception that computes its floor."""

    @property
    def retry_after(self) -> float:
        return 3.0


@pytest.mark.parametrize(
    ("error", "after", "is_throttling"), [(Safe(), 7.0, False), (Computed(), 3.0, True), (reset_error(), None, True)]
)
def test_what_an_error_says_of_itself_is_not_replaced(error: Any, after: float | None, is_throttling: bool) -> None:
    """The verdict tells what the error leaves open, if it is a property or not; the error itself is the cause."""
    strategy = Guide(RetryError("no"))
    assert error is ended(scripted(error, strategy=strategy, classifiers=saying(RetryAction.throttling_error())))
    (shown,) = strategy.shown
    assert error is shown.__cause__
    assert (True, after, is_throttling) == (shown.is_retry_safe, shown.retry_after, shown.is_throttling_error)


# What its answers do


ASKED = [SCOPE, (True, "server")]
DENIED = [SCOPE, (False, "client")]
BANNED = [SCOPE, (False, "server")]
NO_MORE = RetryError("no more", stop_reason=StopReason.MAX_ATTEMPTS)
ENOUGH = RetryError("enough")


@pytest.mark.parametrize(
    ("strategy", "script", "options", "seen", "stop", "words"),
    [
        (Guide(), [200], {}, [SCOPE, 0], StopReason.SUCCESS, ""),
        (Guide(), [200], {"classifiers": saying(NO)}, [SCOPE, 0], StopReason.SUCCESS, ""),
        (Guide(), [503, 200], {}, [*ASKED, 1], StopReason.SUCCESS, ""),
        (Guide(NO_MORE), [404], {}, DENIED, StopReason.NOT_RETRYABLE, ""),
        (Guide(NO_MORE), [503], {}, ASKED, StopReason.MAX_ATTEMPTS, "no more"),
        (Guide(ENOUGH), [503], {}, ASKED, StopReason.STRATEGY_REFUSED, "enough"),
        (Guide(KeyError()), [503], {}, ASKED, StopReason.STRATEGY_REFUSED, ""),
        (Guide(KeyError()), [404], {}, DENIED, StopReason.NOT_RETRYABLE, ""),
        (Guide(ENOUGH), [404], {}, DENIED, StopReason.NOT_RETRYABLE, ""),
        (Guide(ENOUGH), [404], {"classifiers": saying(FINAL)}, DENIED, StopReason.FORBIDDEN, "final"),
        (Guide(ENOUGH), [503], {"classifiers": saying(FINAL)}, BANNED, StopReason.STRATEGY_REFUSED, "enough"),
        (Guide(delay=9.0), [503], {"operation_timeout": 5}, ASKED, StopReason.DEADLINE, "9 s (strategy) would not end"),
        (Guide(first=NO_MORE), [503], {}, [], StopReason.MAX_ATTEMPTS, "no more"),
        (Guide(first=NO_MORE), [200], {}, [], StopReason.SUCCESS, ""),
        (Guide(first=NO_MORE), [reset_error()], {}, [], StopReason.MAX_ATTEMPTS, "no more"),
    ],
)
def test_its_answers_decide(
    strategy: Guide, script: list[Any], options: dict[str, Any], seen: list[Any], stop: StopReason, words: str
) -> None:
    """Its refusal, in whichever way, ends the operation; without a first token exactly one attempt is made (2.1)."""
    adapter = scripted(*script, strategy=strategy, **options)
    history = retry_history(ended(adapter))
    assert (seen, stop) == (strategy.seen, history.stop_reason)
    assert words in history.why
    assert history.gave_up == (stop not in (StopReason.SUCCESS, StopReason.NOT_RETRYABLE, StopReason.FORBIDDEN))
    assert [] == adapter.script


@pytest.mark.parametrize(("first", "delay", "sleeps"), [(3.0, 2.0, [3, 2, 2]), (None, 0.5, [0.5, 0.5])])
def test_its_delays_are_waited(first: float | None, delay: float, sleeps: list[float]) -> None:
    """It may hold back the first attempt too."""
    adapter = scripted(429, reset_error(), 200, strategy=Guide(first=first, delay=delay))
    assert 200 == send(adapter).status_code
    assert sleeps == adapter.clock.sleeps


def test_the_error_that_it_propagates_is_the_last_one() -> None:
    """The caller gets the very object of the last attempt."""
    errors = [reset_error() for _ in range(3)]
    assert errors[-1] is ended(scripted(*errors, strategy=Guide(None, None, KeyError())))


def test_a_bug_of_a_foreign_strategy_comes_through() -> None:
    """Only the error that it was shown, and RetryError, are refusals."""
    with pytest.raises(ZeroDivisionError):
        send(scripted(503, strategy=Guide(ZeroDivisionError())))


def test_a_permit_may_be_refused() -> None:
    """The attempt before is handed over."""

    class Permits(Guide):
        def send_permit(self, *, token: Any, deadline: float | None, waited: float) -> None:
            if token.retry_count:
                raise RetryError("slow down", stop_reason=StopReason.RATE_LIMITED)

    response = send(scripted(503, strategy=Permits()))
    assert (503, StopReason.RATE_LIMITED) == (response.status_code, retry_history(response).stop_reason)


@pytest.mark.parametrize("said", [object(), "7"])
def test_its_number_of_attempts_is_a_number_or_none(said: object) -> None:
    """What a strategy of the program's has under that name may be anything; a Mock has any attribute."""
    strategy: Any = Guide()
    strategy.max_attempts = said
    assert retry_history(send(scripted(503, 200, strategy=strategy))).max_attempts is None


# What may be beside a strategy


THREE = (
    "'shared', or an object with acquire_initial_retry_token, refresh_retry_token_for_retry and record_success, "
    "is allowed"
)
OF_THE_ADAPTER = {
    *("allowed_methods", "deadline_header", "enabled", "idempotency_key", "listeners", "max_wait", "on_unauthorized"),
    *("operation_attempt_timeout", "operation_timeout", "raise_on_status", "resume", "scope", "telemetry", "timeout"),
    *("trust_env", "max_idle", "pacing"),
}
OF_THE_BUDGET = {"mode", "quota", "retry_spec", "aws_config"}
OF_CLASSIFIERS = {"classifiers", "retry_status_codes", "validate"}


@pytest.mark.parametrize("strategy", [object(), 5, "standard", StandardRetryStrategy, Guide])
def test_what_is_no_strategy_is_refused(strategy: Any) -> None:
    """A class that was not called is not a strategy."""
    for give in (lambda: RetryAdapter(strategy=strategy), lambda: setattr(RetryAdapter(), "strategy", strategy)):
        with pytest.raises(RetryConfigError) as error:
            give()
        assert str(error.value) == f"strategy={strategy!r} (from code): {THREE}"


def test_a_config_is_not_taken_beside_a_strategy_that_has_one() -> None:
    """One of the program's that has none leaves it to the adapter, so a config may go beside it."""
    config = RetryConfig(raise_on_status=True)
    with pytest.raises(RetryConfigError) as error:
        RetryAdapter(strategy=SimpleRetryStrategy(), config=config)
    assert (
        str(error.value) == f"config={config!r} (from code): only one of config and a strategy that has one is allowed"
    )
    assert RetryAdapter(strategy=Guide(), config=config).retry_config.raise_on_status


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(RetryConfig) if field.init])
def test_an_option_of_the_strategys_is_not_taken_beside_it(name: str) -> None:
    """What would have no effect is refused: a budget beside a built-in one, options of ours beside any other."""
    options: Any = {name: 1}
    budget = {field.name for field in dataclasses.fields(RetryConfig) if field.init} - OF_THE_BUDGET
    for strategy, taken in ((StandardRetryStrategy(), budget), (Guide(), OF_CLASSIFIERS)):
        said = ""
        try:
            RetryAdapter(strategy=strategy, **options)
        except RetryConfigError as error:
            said = str(error)
        words = f"{name}=1 (from code): it belongs to the strategy: give it to {strategy!r} instead"
        assert (name not in OF_THE_ADAPTER | taken) == (words == said)


def test_max_retries_cannot_be_assigned_past_a_strategy() -> None:
    """A strategy that was given counts its own attempts, and is not replaced in silence."""
    for strategy in (StandardRetryStrategy(), Guide()):
        adapter = RetryAdapter(strategy=strategy)
        with pytest.raises(RetryConfigError, match="belongs to the strategy"):
            adapter.max_retries = 2
        assert strategy is adapter.strategy


class Renaming(Guide):
    """Raises a failure of another attempt than the one that it is shown."""

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Any) -> Any:
        raise AttemptFailed(error.outcome)


def test_a_failure_that_nobody_showed_it_comes_through() -> None:
    """Only what the strategy was shown is its way to refuse."""
    with pytest.raises(AttemptFailed, match="the server answered 503"):
        send(scripted(503, 200, strategy=Renaming()))


class WallClock(Guide):
    """Notes the time of day by the clock of the call."""

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Any) -> Any:
        self.seen.append(error.clock.wall())
        return super().refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)


def test_the_clock_of_a_call_tells_the_time_of_day() -> None:
    """It is that of the adapter."""
    strategy, clock = WallClock(), FakeClock()
    send(scripted(503, 200, strategy=strategy, clock=clock))
    assert clock.wall() in strategy.seen


class Shut(AdaptiveRetryStrategy):
    """Gives no first token."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Any:
        raise RetryError("closed")


def test_without_a_token_no_permit_is_asked_for() -> None:
    """The first attempt is made without both, and is the last."""
    response = send(scripted(503, 200, strategy=Shut(clock=FakeClock())))
    assert (503, 1) == (response.status_code, len(retry_history(response).attempts))


class Sleeper(Guide):
    """Waits by the clock of the call for so many seconds before it says yes."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Any) -> Any:
        error.clock.sleep(self.seconds)
        return super().refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)


def test_a_wait_of_a_strategy_that_would_not_end_in_time_does_not_begin() -> None:
    """The caller gets the last answer at once, and the history names the deadline."""
    adapter = scripted(503, 200, strategy=Sleeper(10), operation_timeout=3)
    response = send(adapter)
    assert (response.status_code, adapter.clock.sleeps) == (503, [])
    assert retry_history(response).stop_reason is StopReason.DEADLINE


def test_a_wait_of_no_seconds_is_none() -> None:
    """Nobody is told of it, and nothing is let go for it."""
    begun: list[Any] = []
    adapter = scripted(503, 200, strategy=Sleeper(0), listeners=[SimpleNamespace(wait_began=begun.append)])
    assert (send(adapter).status_code, begun) == (200, [])


class Careless(Guide):
    """Returns whatever it was made with."""

    def __init__(self, token: Any) -> None:
        super().__init__()
        self.token = token

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Any) -> Any:
        return self.token


@pytest.mark.parametrize("token", [None, 5, "token"])
def test_what_is_no_token_is_an_error(token: Any) -> None:
    """It says what is allowed."""
    allowed = "a token with a retry_delay is allowed, or RetryError is to be raised"
    with pytest.raises(TypeError, match=f"returned {token!r}: {allowed}"):
        send(scripted(503, 200, strategy=Careless(token)))


class Paid(NamedTuple):
    """A token that somebody has paid for."""

    back: list[int]
    retry_count: int = 0
    retry_delay: float = 0.0

    def give_back(self) -> None:
        self.back.append(self.retry_count)


class Paying(Guide):
    """Has a budget of its own."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Any:
        return Paid(self.seen)

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Any) -> Any:
        return Paid(self.seen, token_to_renew.retry_count + 1, self.delay)


@pytest.mark.parametrize(
    ("method", "delay", "options", "back"),
    [
        ("GET", 0, {}, [2]),
        ("POST", 0, {}, [1]),
        ("GET", 5, {"operation_timeout": 3}, [1]),
        ("GET", 5, {"max_wait": 3}, [1]),
    ],
)
def test_a_token_of_the_programs_gives_back_what_an_unsent_retry_cost(
    method: str, delay: float, options: dict[str, Any], back: list[int]
) -> None:
    """The resend rule, a number of attempts or a bound on time came between; what was sent is paid."""
    strategy = Paying(delay=delay)
    with retry_options(max_attempts=2):
        ended(scripted(503, 503, strategy=strategy, **options), method)
    assert back == strategy.seen


def stopping(*_: Any) -> None:
    raise OSError("stopped")


@pytest.mark.parametrize("where", ["after_attempt", "retry_scheduled", "before_attempt", "sleep"])
def test_a_retry_that_an_exception_stops_before_it_is_sent_costs_nothing(where: str) -> None:
    """A listener's, or that of a signal's handler in the middle of the wait."""
    clock, strategy, listener = FakeClock(), Paying(delay=5), SimpleNamespace(gave_up=print)
    if where == "before_attempt":
        listener.before_attempt = lambda event: stopping() if event.number == 2 else None
    else:
        setattr(clock if where == "sleep" else listener, where, stopping)
    with pytest.raises(OSError, match="stopped"):
        send(scripted(503, 200, strategy=strategy, clock=clock, listeners=[listener]))
    assert strategy.seen == [1]


class Raises(Guide):
    """Refuses by raising what it is shown."""

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Any) -> Any:
        raise error


@pytest.mark.parametrize(
    ("method", "status", "reason"),
    [
        ("POST", 503, StopReason.NOT_RESENDABLE),
        ("GET", 503, StopReason.STRATEGY_REFUSED),
        ("GET", 404, StopReason.NOT_RETRYABLE),
    ],
)
def test_raising_what_was_shown_refuses_for_the_reason_of_the_classifiers(
    method: str, status: int, reason: StopReason
) -> None:
    """Where they have one; otherwise it is the strategy's own refusal."""
    response = send(scripted(status, 200, strategy=Raises()), method)
    assert retry_history(response).stop_reason is reason


def test_a_subclass_may_have_any_private_attribute() -> None:
    """The private names of the base are not among them."""

    class Counting(StandardRetryStrategy):
        def __init__(self, **options: Any) -> None:
            self._refused = self._counted = self._delay = self._token = self._scopes = self._clock = self._config = 0
            super().__init__(**options)

    adapter = scripted(*[503] * 9, strategy=Counting(clock=FakeClock(), patience=0))
    assert [503] * 3 == [send(adapter).status_code for _ in range(3)]
