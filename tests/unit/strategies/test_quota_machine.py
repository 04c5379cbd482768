"""The tokens missing from a bucket with a line are those that operations hold, after any sequence of events."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from requests_smithy_retry import Outcome, RetryAction, RetryError, StandardRetryStrategy, TokenBucket, classifier
from requests_smithy_retry.quotas.scopes import FORGET_AFTER
from requests_smithy_retry.strategies.protocol import RetryContext
from requests_smithy_retry.testing.clock import FakeClock
from tests.unit.classifiers.test_http_status import outcome_of

SCOPES = st.sampled_from("abcd")


@classifier(sees_successes=True)
def pending(outcome: Outcome) -> RetryAction | None:
    return RetryAction.transient_error() if outcome.status == 202 else None


class Answered(Exception):
    """Carries a response, as the adapter's errors do."""

    def __init__(self, status: int, clock: FakeClock) -> None:
        super().__init__(status)
        self.retry_context = RetryContext(outcome_of(status), deadline=clock.now() + 1)


class QuotaMachine(RuleBasedStateMachine):
    """Operations of a few scopes, more than are kept, on one strategy that waits."""

    tokens = Bundle("tokens")

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.strategy = StandardRetryStrategy(
            clock=self.clock,
            quota=lambda _: TokenBucket(30, on_empty="wait", clock=self.clock),
            max_attempts=6,
            initial_backoff=0,
            classifiers=[pending],
        )
        self.strategy._quotas._limit = 2
        self.made: list[Any] = []
        self.held: dict[int, Any] = {}
        usual = self.strategy._quotas._make

        def make(name: str) -> Any:
            quota = usual(name)
            self.made.append(quota.plain)
            return quota

        self.strategy._quotas._make = make

    def keep(self, token: Any) -> Any:
        if token.standing.loan is not None:
            self.held[id(token.standing.loan)] = token.standing.loan
        return token

    def give_up(self, token: Any) -> None:
        if token.standing.loan is not None:
            self.held.pop(id(token.standing.loan), None)

    @rule(target=tokens, scope=SCOPES)
    def begin(self, scope: str) -> Any:
        return self.strategy.acquire_initial_retry_token(token_scope=scope)

    @rule(target=tokens, token=consumes(tokens), status=st.sampled_from([202, 429, 503, 404]))
    def again(self, token: Any, status: int) -> Any:
        self.give_up(token)
        error = Answered(status, self.clock)
        try:
            new = self.strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
        except RetryError:
            return multiple()
        return self.keep(new)

    @rule(token=consumes(tokens))
    def succeed(self, token: Any) -> None:
        self.give_up(token)
        self.strategy.record_success(token=token)

    @rule(seconds=st.sampled_from([0.0, 1.0, FORGET_AFTER / 2, FORGET_AFTER]))
    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(scope=SCOPES)
    def look(self, scope: str) -> None:
        assert self.strategy.bucket(scope) in self.made

    @invariant()
    def nothing_is_out_that_nobody_holds(self) -> None:
        for bucket in self.made:
            assert 0 <= bucket.available <= bucket.capacity
            lost = sum(bucket._line._lost)
            held = sum(loan._amount for loan in self.held.values() if loan._bucket is bucket)
            assert held == bucket._line._outstanding - lost


class TestQuota(QuotaMachine.TestCase):  # type: ignore[name-defined,misc]
    """The machine, as a test."""

    settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
