"""The state of one operation, passed from attempt to attempt (contract 6.1)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from .errors import TokenError

if TYPE_CHECKING:
    from .classification import Classification
    from .urllib3_rules import FailureKind
    from .waiting import Loan


@runtime_checkable
class RetryToken(Protocol):
    """What a strategy gives for each attempt."""

    @property
    def retry_count(self) -> int:
        """Attempts so far without the first: 0 for the first attempt."""
        ...

    @property
    def retry_delay(self) -> float:
        """Seconds to wait before the attempt."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardRetryToken:
    """The token of the built-in strategies. It never changes, but for one private mark: that it was used.

    :param issuer: the strategy that made it.
    :param token_scope: whose quota the operation spends.
    :param retry_count: 0 for the first attempt.
    :param retry_delay: seconds to wait before the attempt.
    :param acquired: what this retry took from the quota; a success gives it back.
    :param spent: what the operation's retries took from it so far, together.
    :param previous_delay: the computed backoff, for decorrelated jitter; None before the first retry.
    :param delay_source: ``"backoff"``, or the name of the hint that made the delay longer.
    :param quota_before: what the bucket held before this retry was paid; None where there is no quota.
    :param quota_after: what it held after.
    :param quota_source: which bucket answered, as in its snapshot; None where there is no quota.
    :param classification: the verdict that led to this retry.
    :param loan: tells a bucket that others wait on whether ``acquired`` may still come back.
    :param latency: seconds that the attempt took, once it succeeded; None: nobody measured.
    :param timeout: seconds that it was allowed; None: as long as it took.
    :param failures: how urllib3 would sort the operation's failures; counted for a translated ``Retry`` alone.
    """

    issuer: object = field(repr=False)
    token_scope: str | None = None
    retry_count: int = 0
    retry_delay: float = 0.0
    acquired: float = 0
    spent: float = 0
    previous_delay: float | None = None
    delay_source: str = "backoff"
    quota_before: float | None = None
    quota_after: float | None = None
    quota_source: str | None = None
    classification: Classification | None = field(default=None, repr=False)
    loan: Loan | None = field(default=None, repr=False, compare=False)
    failures: tuple[FailureKind, ...] = field(default=(), repr=False)
    latency: float | None = None
    timeout: float | None = None
    _unused: list[None] = field(default_factory=lambda: [None], repr=False, compare=False)

    def answered(self, latency: float, timeout: float | None) -> StandardRetryToken:
        """The same token, mark included, that knows how long its attempt took, for a quota that goes by that.

        :param latency: seconds.
        :param timeout: seconds that the attempt was allowed, or None.
        """
        return replace(self, latency=latency, timeout=timeout)

    def redeem(self, issuer: object) -> None:
        """Mark the token as used. Atomic: of two threads only one gets through.

        :raises TokenError: if it was used before, or if another strategy issued it.
        """
        if self.issuer is not issuer:
            raise TokenError(f"this token was issued by another strategy: {self.issuer!r}, not {issuer!r}")
        try:
            self._unused.pop()
        except IndexError:
            raise TokenError(
                "this token was used before: each token is good for one refresh_retry_token_for_retry "
                "or one record_success"
            ) from None

    def unredeem(self) -> None:
        """Take the mark back: the token was looked at, and nothing came of it."""
        self._unused.append(None)
