"""What a strategy is (contract 1): three methods. Any object that has them works in the adapter."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from .tokens import RetryToken


@runtime_checkable
class RetryStrategy(Protocol):
    """Decides, for each operation, whether and when there is another attempt.

    It holds what operations share (a quota, a limiter); what belongs to one operation is in its token.
    """

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Called before the first attempt.

        :param token_scope: operations with the same scope share a quota.
        :raises RetryError: if there is no token; the first attempt is made all the same.
        """
        ...

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Exception) -> RetryToken:
        """Called after an attempt failed, for permission to make another.

        :param token_to_renew: the failed attempt's token.
        :param error: what the code raised, or an exception that carries the failed response.
        :raises RetryError: if there shall be no further attempt.
        """
        ...

    def record_success(self, *, token: Any) -> None:
        """Called after an attempt succeeded.

        :param token: that attempt's token.
        """
        ...
