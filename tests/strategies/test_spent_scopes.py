"""Which scopes a success owes something to: few marks, and none lost."""

from __future__ import annotations

from typing import Any

from requests_smithy_retry import StandardRetryStrategy, TokenBucket
from requests_smithy_retry.scopes import MAX_SCOPES, OVERFLOW, ScopeTable
from requests_smithy_retry.strategies.spent_scopes import MOST_MARKS, SpentScopes
from requests_smithy_retry.testing.clock import FakeClock
from tests.strategies.test_simple import Safe, refresh


def begin(of: Any, scope: str) -> Any:
    return of.acquire_initial_retry_token(token_scope=scope)


def test_ten_thousand_origins_leave_few_marks() -> None:
    """Scopes that share the bucket of newcomers share its mark."""
    of = StandardRetryStrategy(clock=FakeClock(), quota=10**6)
    for number in range(10_000):
        refresh(of, begin(of, f"https://host-{number}"), Safe())
    assert {OVERFLOW} == of.spent_scopes - {scope for scope, _ in of._scopes}
    assert MAX_SCOPES + 1 == len(of.spent_scopes)


def test_ten_thousand_origins_that_recover_leave_few_marks() -> None:
    """A bucket that refilled by itself is given up with no word to anybody; its mark does not stay for ever."""
    clock = FakeClock()
    of = StandardRetryStrategy(clock=clock, quota=14, refill_rate=14)
    for number in range(10_000):
        refresh(of, begin(of, f"https://host-{number}"), Safe())
        clock.advance(1)
        assert len(of.spent_scopes) <= MOST_MARKS


def test_the_bucket_of_newcomers_is_paid_back() -> None:
    """By what its retries took, and by the rewards of any scope that has no bucket of its own."""
    of = StandardRetryStrategy(clock=FakeClock(), quota=100)
    for number in range(MAX_SCOPES):
        refresh(of, begin(of, f"kept {number}"), Safe())
    late = refresh(of, begin(of, "late"), Safe())
    assert 86 == of.bucket("late").available
    of.record_success(token=begin(of, "another"))
    assert 87 == of.bucket("late").available
    of.record_success(token=late)
    assert 100 == of.bucket("another").available
    assert OVERFLOW not in of.spent_scopes


def test_what_a_retry_took_comes_back_whether_or_not_its_scope_is_marked() -> None:
    """A mark spares first-try successes a look, and decides nothing else."""
    of = StandardRetryStrategy(clock=FakeClock())
    token = refresh(of, begin(of, "a"), Safe())
    of.spent_scopes.clear()
    of.record_success(token=token)
    assert 500 == of.bucket("a").available


class SpentOnce(TokenBucket):
    """Full at the first look; at the second one, somebody has paid for a retry."""

    looks = 0

    @property
    def available(self) -> float:
        self.looks += 1
        return self.capacity if self.looks == 1 else 0.0


def test_a_payment_between_two_looks_keeps_its_mark() -> None:
    """Removing a mark is no atomic step, so the bucket is looked at again."""
    bucket = SpentOnce(10)
    marks = SpentScopes(ScopeTable(lambda: bucket, lambda _: True))
    marks.given_back("a", bucket)
    assert marks == {"a"}


class ComesBack(ScopeTable[Any]):
    """A table in which a scope is missing at the first look only."""

    looks = 0

    def __contains__(self, scope: object) -> bool:
        self.looks += 1
        return self.looks != 1


def test_a_scope_that_comes_back_while_marks_go_keeps_its_mark() -> None:
    """Pruning takes no lock, so the table is looked at again."""
    marks = SpentScopes(ComesBack(lambda: TokenBucket(1), lambda _: True))
    marks.update(str(number) for number in range(MOST_MARKS))
    marks.spent("one more", TokenBucket(1))
    assert len(marks) == MOST_MARKS + 1


def test_a_success_owes_something_to_a_marked_scope_alone() -> None:
    """To any scope, once the bucket of newcomers is marked: who shares it cannot be told."""
    marks = SpentScopes(ScopeTable(TokenBucket, lambda bucket: True))
    marks.add("a")
    assert [True, False] == [marks.owes(scope) for scope in ("a", "b")]
    marks.add(OVERFLOW)
    assert marks.owes("b")


class Comings:
    """A table in which one scope comes back while it is looked at."""

    overflow = None

    def __init__(self) -> None:
        self.looks: dict[object, int] = {}

    def __contains__(self, scope: object) -> bool:
        self.looks[scope] = self.looks.get(scope, 0) + 1
        return scope == "kept" or (scope == "back" and self.looks[scope] > 1)


def test_pruning_takes_the_marks_of_buckets_that_are_gone_alone() -> None:
    """That of the newcomers stays, and that of a scope that came back meanwhile."""
    table: Any = Comings()
    marks = SpentScopes(table)
    marks.update({"kept", "gone", "back", OVERFLOW})
    marks._prune()
    assert {"kept", "back", OVERFLOW} == marks
