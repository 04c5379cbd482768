"""What a first-try success is to a strategy, when nothing but its scope is known (contract 6.2, 9).

Most operations are one, so this is measured: where a full bucket makes it worth nothing, nothing is called; where a
limiter counts it, no token is made and no URL is parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from requests import PreparedRequest

from .interfaces import RetryStrategy
from .scopes import MAX_SCOPES
from .timeouts import read_part

if TYPE_CHECKING:
    from .payoff_quota import PayoffQuota
    from .rate_limiter import ClientRateLimiter


def owed(strategy: RetryStrategy) -> Collection[Any]:
    """Something to look at on each first-try success: while it is empty, there is nothing to book."""
    if _is(strategy, "measures_rate") or _is(strategy, "wants_latency"):
        return ("each success is counted",)
    return getattr(strategy, "spent_scopes", ())


def book_of(
    strategy: RetryStrategy, scope_of: Callable[[PreparedRequest], str], *, by_url: bool
) -> Callable[[PreparedRequest, float, Any], None]:
    """The function that books a first-try success, given its request, when it began and its timeout.

    :param strategy: as of :class:`FirstTries`, like the other parameters.
    """
    first_tries = FirstTries(strategy, scope_of, by_url=by_url)
    if _is(strategy, "wants_latency"):
        payoff = PayoffFirstTries(strategy, scope_of, first_tries, by_url=by_url)
        return payoff.book_and_measure if _is(strategy, "measures_rate") else payoff.book
    return first_tries.book


class FirstTries:
    """Books first-try successes.

    :param strategy: whose buckets have room, or whose limiters measure.
    :param scope_of: names the scope of a request.
    :param by_url: scopes are origins, so a limiter can be remembered by the beginning of a URL.
    """

    def __init__(self, strategy: RetryStrategy, scope_of: Callable[[PreparedRequest], str], *, by_url: bool) -> None:
        self._strategy: Any = strategy
        self._scope_of = scope_of
        self._by_url = by_url
        self._limiters: dict[str, ClientRateLimiter] | None = {} if _is(strategy, "measures_rate") else None

    def book(self, request: PreparedRequest, *_: object) -> None:
        """Book one; when it began and its timeout say nothing here."""
        if self._limiters is not None and not self._strategy.spent_scopes:
            url: Any = request.url
            limiter = self._limiters.get(url[: url.find("/", 8)])
            if limiter is None or limiter.retired:
                limiter = self._limiter_of(request, self._limiters)
            limiter.record_response(False)
            return
        token = self._strategy.acquire_initial_retry_token(token_scope=self._scope_of(request))
        self._strategy.record_success(token=token)

    def _limiter_of(self, request: PreparedRequest, remembered: dict[str, ClientRateLimiter]) -> ClientRateLimiter:
        limiter: ClientRateLimiter = self._strategy.limiter(self._scope_of(request))
        if self._by_url:
            _remember(remembered, request, limiter)
        return limiter


class PayoffFirstTries:
    """Books first-try successes where the quota goes by how many operations there are, and how long they take.

    :param strategy: whose quota it is.
    :param scope_of: names the scope of a request.
    :param others: books the rest: what a limiter counts.
    :param by_url: scopes are origins, so a bucket can be remembered by the beginning of a URL.
    """

    def __init__(
        self, strategy: RetryStrategy, scope_of: Callable[[PreparedRequest], str], others: FirstTries, *, by_url: bool
    ) -> None:
        self._strategy: Any = strategy
        self._scope_of = scope_of
        self._others = others
        self._by_url = by_url
        self._buckets: dict[str, PayoffQuota] = {}

    def book(self, request: PreparedRequest, started: float, timeout: Any) -> None:
        """Book one.

        :param started: when it began, on the strategy's clock.
        :param timeout: of its attempt, as requests takes it.
        """
        url: Any = request.url
        bucket = self._buckets.get(url[: url.find("/", 8)])
        if bucket is None or bucket.wants_worth:
            if bucket is None or bucket.retired:
                bucket = self._bucket_of(request)
            bucket.first_try(started, read_part(timeout))
        else:
            bucket.count(started)

    def book_and_measure(self, request: PreparedRequest, started: float, timeout: Any) -> None:
        """Book one with the limiter too."""
        self.book(request, started, timeout)
        self._others.book(request)

    def _bucket_of(self, request: PreparedRequest) -> PayoffQuota:
        bucket: PayoffQuota = self._strategy.bucket(self._scope_of(request))
        if self._by_url:
            _remember(self._buckets, request, bucket)
        return bucket


def _is(strategy: RetryStrategy, trait: str) -> bool:
    return bool(getattr(strategy, trait, False))  # a foreign strategy says nothing of it


def _remember(remembered: dict[str, Any], request: PreparedRequest, item: Any) -> None:
    """Put a scope's item under the beginning of the URL, which ``book`` looks it up by."""
    if len(remembered) >= MAX_SCOPES:
        remembered.clear()
    url: Any = request.url
    remembered[url[: url.find("/", 8)]] = item
