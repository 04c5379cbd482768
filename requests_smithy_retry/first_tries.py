"""What a first-try success is to a strategy, when nothing but its scope is known (contract 6.2, 9).

Most operations are one, so this is measured: where a full bucket makes it worth nothing, nothing is called; where a
limiter counts it, no token is made and no URL is parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from requests import PreparedRequest

from .interfaces import RetryStrategy
from .rate_limiter import ClientRateLimiter
from .scopes import MAX_SCOPES
from .strategies.adaptive import AdaptiveRetryStrategy


def owed(strategy: RetryStrategy) -> Collection[Any]:
    """Something to look at on each first-try success: while it is empty, there is nothing to book."""
    if isinstance(strategy, AdaptiveRetryStrategy):
        return ("each success is measured",)
    return getattr(strategy, "spent_scopes", ())


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
        self._limiters: dict[str, ClientRateLimiter] | None = None
        if isinstance(strategy, AdaptiveRetryStrategy):
            self._limiters = {}

    def book(self, request: PreparedRequest) -> None:
        """Book one."""
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
            if len(remembered) >= MAX_SCOPES:
                remembered.clear()
            url = str(request.url)
            remembered[url[: url.find("/", 8)]] = limiter
        return limiter
