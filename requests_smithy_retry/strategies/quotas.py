"""The quotas of a strategy: which kind the options ask for, and the quota of each scope (contract 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ..clock import Clock
from ..config.retry_config import RetryConfig, has_line
from ..errors import RetryConfigError
from ..quotas.bucket import RetryQuota, TokenBucket
from ..quotas.line import Terms
from ..quotas.payoff import CountedQuota, PatientQuota, PayoffTokenBucket, line_before
from ..quotas.scope_quota import PricedQuota, ScopeQuota
from ..quotas.scopes import NO_SCOPE, ScopeTable

if TYPE_CHECKING:
    from ..quotas.redis import RedisQuota


class OneQuota:
    """One quota for all scopes, or none."""

    def __init__(self, quota: ScopeQuota | None) -> None:
        self._quota = quota

    def use(self, scope: str | None) -> AbstractContextManager[ScopeQuota | None]:  # noqa: ARG002
        return nullcontext(self._quota)

    def get(self, scope: str | None) -> ScopeQuota | None:  # noqa: ARG002
        return self._quota

    known = get

    def forget(self) -> list[ScopeQuota]:
        """Return the quota, which stays: other strategies may spend it, too."""
        return [] if self._quota is None else [self._quota]

    def __iter__(self) -> Iterator[tuple[str | None, ScopeQuota]]:
        return iter(() if self._quota is None else ((None, self._quota),))


Quotas = OneQuota | ScopeTable[ScopeQuota]
"""The quota of each scope."""


def _read_part(timeout: Any) -> float | None:
    from ..wire.state import read_part  # imported here: it knows HTTP libraries, which the strategies do without

    return read_part(timeout)


def quotas_for(config: RetryConfig, clock: Clock, busy: set[Any], forget: Callable[[], object]) -> Quotas:
    """Return the quotas that a config asks for.

    :raises RetryConfigError: where a shared one cannot be used: it needs redis-py.
    """
    quota = config.effective_quota
    if quota is None:
        return OneQuota(None)
    if isinstance(quota, RetryQuota):
        return OneQuota(quota_before(quota, clock))
    patient = partial(PatientQuota, clock=clock, timeout_of=_read_part, lines=busy)
    is_patient = has_line(quota)
    if callable(quota) and is_patient:
        _check(config, cast("RedisQuota", quota))
    room = Terms(config.most_attempts).room

    def quota_of(name: str) -> ScopeQuota:
        if isinstance(quota, float | int):
            return PricedQuota(TokenBucket(quota, clock=clock))
        made = _made(config, quota, name) if callable(quota) else None
        if made is not None and not is_patient:
            return quota_before(made, clock)
        own = PayoffTokenBucket(room) if made is None else CountedQuota(made, reward=1.0)
        return patient(own, name=None if name == NO_SCOPE else name)

    def give_up(given_up: ScopeQuota) -> None:
        given_up.retired = True
        forget()

    return ScopeTable(quota_of, lambda quota: quota.is_spare(), clock=clock, retire=give_up)


def _check(config: RetryConfig, quota: RedisQuota) -> None:
    why = ""
    try:
        quota.check()
    except (ImportError, ValueError) as error:
        why = str(error)
    if why:
        raise RetryConfigError("quota", quota, config.source("quota"), why)


def _made(config: RetryConfig, make: Callable[[str], RetryQuota], scope: str) -> RetryQuota:
    """Return the bucket that a function makes for a scope; it is the caller's, so it may be anything."""
    bucket: object = make(scope)
    if isinstance(bucket, RetryQuota) and not isinstance(bucket, PayoffTokenBucket):
        return bucket
    why = f"its function returned a {type(bucket).__name__}: a TokenBucket, or another bucket of tokens, is allowed"
    raise RetryConfigError("quota", make, config.source("quota"), why)


def quota_before(bucket: RetryQuota, clock: Clock) -> ScopeQuota:
    """Return the quota for a bucket that the caller gave: others may spend it, unseen from here."""
    if isinstance(bucket, PayoffTokenBucket):
        return line_before(bucket, clock, _read_part)
    return PricedQuota(bucket, is_shared=True)
