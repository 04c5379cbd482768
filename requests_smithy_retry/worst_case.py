"""What one operation can cost at most (issue 6.6), in closed form. Pure.

The bounds hold whatever a server does. They do not cover the time of user code (classifiers, listeners, a strategy or
a backoff of one's own) nor that of a name resolution, which cannot be interrupted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .backoff import Jitter
from .quota import RetryQuota
from .server_hints import AMZ_MAX_EXTRA

if TYPE_CHECKING:
    from .config import RetryConfig


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The most that one operation can come to.

    :param attempts: requests sent.
    :param backoff: seconds slept, for permits too, where no server asks for a longer wait; None: no bound.
    :param sleep: seconds slept in all, with servers asking for as much as is ever granted; None: no bound.
    :param wall_time: seconds from the call to its return; None: no bound, because an attempt has none.
    """

    attempts: int
    backoff: float | None
    sleep: float | None
    wall_time: float | None


def worst_case(config: RetryConfig) -> WorstCase:
    """The worst case of a config."""
    if not config.enabled:
        return WorstCase(1, 0.0, 0.0, None)
    attempts = config.max_attempts
    limit, each = config.operation_timeout, config.operation_attempt_timeout
    sleep = longest_sleep(config)
    wall = None if each is None or sleep is None else attempts * each + sleep
    return WorstCase(attempts, *(_bounded(seconds, limit) for seconds in (longest_backoff(config), sleep, wall)))


def longest_backoff(config: RetryConfig) -> float | None:
    """The sum of the computed delays at their longest, and of the waits for permits."""
    return _longest(config, 0.0, 0.0)


def longest_sleep(config: RetryConfig) -> float | None:
    """The same with each delay as long as a server may make it."""
    rules = config.urllib3_rules
    if rules is not None and not rules.respect_retry_after:
        return longest_backoff(config)
    # Either a hint takes the place of the backoff, or x-amz-retry-after adds to it.
    return _longest(config, config.max_retry_after, AMZ_MAX_EXTRA)


def _longest(config: RetryConfig, hint: float, extra: float) -> float | None:
    quota = config.quota
    # A bucket has its own; the quotas that have a name never wait.
    on_empty = getattr(quota, "on_empty", None) if isinstance(quota, RetryQuota | str) else config.on_empty
    if config.mode != "simple" and quota is not None and on_empty == "wait":
        return None  # nobody knows when tokens come back
    delays = _sum_of_caps(config, hint, extra)
    if config.mode != "adaptive":
        return delays
    each = config.max_permit_wait
    return None if each is None else delays + config.max_attempts * each


def _sum_of_caps(config: RetryConfig, hint: float, extra: float) -> float:
    """The sum over all retries of max(hint, cap of that retry + extra); the caps double until they are cut off."""
    retries = config.max_attempts - 1
    most = config.max_backoff
    base = max(config.transient_base, config.throttling_base)
    jitter = 0.0 if config.urllib3_rules is None else config.urllib3_rules.backoff_jitter
    doublings, flat = 0, most
    if config.jitter == Jitter.DECORRELATED.value:
        flat = most if base + jitter > 0 else 0.0  # it grows from whatever there is
    elif base == 0:
        flat = min(jitter, most)
    elif base < most:
        doublings = min(retries, math.ceil(math.log2(most) - math.log2(base)))
    caps = (min(math.ldexp(base, step) + jitter, most) for step in range(doublings))
    return sum(max(hint, cap + extra) for cap in caps) + (retries - doublings) * max(hint, flat + extra)


def _bounded(seconds: float | None, limit: float | None) -> float | None:
    if seconds is None or limit is None:
        return seconds if limit is None else limit
    return min(seconds, limit)
