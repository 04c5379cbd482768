"""Booking first-try successes by what is remembered of their origin (contract 6.2, 9)."""

from __future__ import annotations

from typing import Any

import pytest

from requests_smithy_retry import AdaptiveRetryStrategy, SimpleRetryStrategy, StandardRetryStrategy
from requests_smithy_retry.first_tries import book_of, owed
from requests_smithy_retry.scopes import MAX_SCOPES, scope_of

from .support import prepare, scripted, send


class Booked:
    """A limiter and a bucket in one, which write down what they are told."""

    def __init__(self) -> None:
        self.retired = self.wants_worth = False
        self.told: list[Any] = []

    def record_response(self, throttled: bool) -> None:
        self.told.append(("measured", throttled))

    def first_try(self, started: float, timeout: float | None) -> None:
        self.told.append(("worth", started, timeout))

    def count(self, started: float) -> None:
        self.told.append(("counted", started))


class Strategy:
    """Writes down for which scopes it was asked for a limiter, a bucket or a token, and which tokens came back."""

    def __init__(self, **flags: Any) -> None:
        self.spent_scopes: set[str] = set()
        self.asked: list[str] = []
        self.succeeded: list[str] = []
        self.items: dict[str, Booked] = {}
        vars(self).update(flags)

    def limiter(self, scope: str) -> Booked:
        self.asked.append(scope)
        self.items[scope] = item = Booked()
        return item

    bucket = limiter

    def acquire_initial_retry_token(self, *, token_scope: str) -> str:
        return f"token of {token_scope}"

    def record_success(self, *, token: str) -> None:
        self.succeeded.append(token)


def measured(**flags: Any) -> Any:
    return Strategy(measures_rate=True, **flags)


def payoff(**flags: Any) -> Any:
    return Strategy(wants_latency=True, **flags)


def book(strategy: Any, *urls: str, by_url: bool = True, booker: Any = None, timeout: Any = None) -> Any:
    """Book a first-try success for each URL.

    :returns: what books the next ones.
    """
    booker = booker or book_of(strategy, lambda request: scope_of(request.url), by_url=by_url)
    for number, url in enumerate(urls):
        booker(prepare(url=url), float(number), timeout)
    return booker


@pytest.mark.parametrize("strategy", [SimpleRetryStrategy(), object()])
def test_a_strategy_without_books_is_owed_nothing(strategy: Any) -> None:
    """Nothing is called on its successes."""
    assert not owed(strategy)


@pytest.mark.parametrize("strategy", [AdaptiveRetryStrategy(), StandardRetryStrategy(quota="payoff")])
def test_a_strategy_that_measures_is_always_owed_something(strategy: Any) -> None:
    """It counts each success, or each operation."""
    assert owed(strategy)


def test_a_foreign_strategy_has_a_book_too() -> None:
    """By its tokens; it need not say whether it measures anything."""

    class Foreign:
        succeeded = 0

        def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Any:
            return token_scope

        def record_success(self, *, token: Any) -> None:
            self.succeeded += 1

    strategy = Foreign()
    book(strategy, "https://a.example.com/x")
    assert strategy.succeeded == 1


def test_else_something_is_owed_while_a_scope_is_spent() -> None:
    """The strategy's own marks are looked at, as they are then."""
    strategy = StandardRetryStrategy()
    marks = owed(strategy)
    assert not marks
    strategy.spent_scopes.add("a")
    assert marks


def test_a_success_of_a_spent_scope_has_a_token() -> None:
    """The strategy gives it for the request's scope and gets it back."""
    strategy: Any = Strategy()
    book(strategy, "https://a.example.com/x", "https://b.example.com:8443/x")
    assert strategy.succeeded == ["token of https://a.example.com:443", "token of https://b.example.com:8443"]


def test_so_it_has_where_a_limiter_measures_besides() -> None:
    """While any scope is spent; the strategy then tells its limiter itself."""
    strategy = measured()
    strategy.spent_scopes.add("https://b.example.com:443")
    book(strategy, "https://a.example.com/x")
    assert (strategy.succeeded, strategy.asked) == (["token of https://a.example.com:443"], [])


@pytest.mark.parametrize("make", [measured, payoff])
@pytest.mark.parametrize(
    ("urls", "asked"),
    [
        (["https://a.example.com/x/y/z", "https://a.example.com/", "https://a.example.com/x"], 1),
        (["http://a/xx", "http://a/y", "http://a/y/z"], 1),
        (["https://a.example.com/x", "https://a.example.com:8443/x", "http://a.example.com/x"], 3),
    ],
)
def test_an_origin_is_looked_up_once(make: Any, urls: list[str], asked: int) -> None:
    """It is known again by the beginning of the URL, whatever its path."""
    strategy = make()
    book(strategy, *urls)
    assert asked == len(strategy.asked) == len(strategy.items)
    assert strategy.succeeded == []
    assert len(urls) == sum(len(item.told) for item in strategy.items.values())


@pytest.mark.parametrize("make", [measured, payoff])
def test_with_a_scope_function_it_is_looked_up_each_time(make: Any) -> None:
    """The function may say something else for each request."""
    strategy = make()
    book(strategy, *["https://a.example.com/x"] * 3, by_url=False)
    assert strategy.asked == ["https://a.example.com:443"] * 3


@pytest.mark.parametrize("make", [measured, payoff])
def test_so_many_origins_are_remembered(make: Any) -> None:
    """One more, and the memory begins anew."""
    strategy = make()
    urls = [f"https://h{number}.example.com/" for number in range(MAX_SCOPES)]
    booker = book(strategy, *urls, urls[0])
    assert len(strategy.asked) == MAX_SCOPES
    book(strategy, "https://one-more.example.com/", urls[1], urls[1], booker=booker)
    assert strategy.asked[MAX_SCOPES:] == ["https://one-more.example.com:443", "https://h1.example.com:443"]


@pytest.mark.parametrize("make", [measured, payoff])
def test_what_was_given_up_is_looked_up_anew(make: Any) -> None:
    """The old one is told nothing any more."""
    strategy = make()
    booker = book(strategy, "https://a.example.com/x")
    old = strategy.items["https://a.example.com:443"]
    old.retired = old.wants_worth = True
    book(strategy, *["https://a.example.com/x"] * 2, booker=booker)
    new = strategy.items["https://a.example.com:443"]
    assert (1, 2, 2) == (len(old.told), len(new.told), len(strategy.asked))


def test_a_limiter_is_told_of_an_answer_that_was_no_throttling() -> None:
    """Once for each success."""
    strategy = measured()
    book(strategy, *["https://a.example.com/x"] * 2)
    assert strategy.items["https://a.example.com:443"].told == [("measured", False)] * 2


def test_a_payoff_bucket_is_told_the_worth_where_it_wants_to_know() -> None:
    """When it began and how long it was allowed; of others only that they were there."""
    strategy = payoff()
    booker = book(strategy, "https://a.example.com/x", timeout=(1, 2.5))
    bucket = strategy.items["https://a.example.com:443"]
    book(strategy, "https://a.example.com/x", booker=booker, timeout=3)
    bucket.wants_worth = True
    book(strategy, "https://a.example.com/x", "https://a.example.com/x", booker=booker, timeout=4)
    assert bucket.told == [("worth", 0.0, 2.5), ("counted", 0.0), ("worth", 0.0, 4), ("worth", 1.0, 4)]


def test_in_adaptive_mode_a_payoff_bucket_and_a_limiter_are_told() -> None:
    """Each once."""
    strategy = payoff(measures_rate=True)
    strategy.bucket = Strategy.bucket.__get__(buckets := Strategy())
    book(strategy, "https://a.example.com/x", timeout=(1, 2.5))
    assert [[("worth", 0.0, 2.5)], [("measured", False)]] == [
        of.items["https://a.example.com:443"].told for of in (buckets, strategy)
    ]


def test_a_remembered_bucket_that_has_room_is_told_at_once() -> None:
    """By a second first-try success at the same origin, after something was spent there."""
    adapter: Any = scripted(200, 200, quota="payoff")
    send(adapter)
    bucket = adapter.strategy.bucket(adapter.scope_of(prepare()))
    bucket.acquire(1)
    spent = bucket.available
    send(adapter)
    assert bucket.available >= spent
