"""What one operation can cost at most (issue part 6), in closed form. Pure.

The bounds hold whatever a server does. They do not cover the time of user code (classifiers, listeners, a strategy or
a backoff of one's own) nor that of a name resolution, which cannot be interrupted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .backoff import Jitter
from .server_hints import AMZ_MAX_EXTRA

if TYPE_CHECKING:
    from .config import RetryConfig


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The most that one operation can come to.

    :param attempts: requests sent.
    :param backoff: seconds slept where no server asks for a longer wait; None: no bound.
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
    limit: float | None = getattr(config, "operation_timeout", None)
    each: float | None = getattr(config, "operation_attempt_timeout", None)
    backoff = _bounded(longest_backoff(config), limit)
    sleep = _bounded(longest_sleep(config), limit)
    wall = None if each is None or sleep is None else attempts * each + sleep
    return WorstCase(attempts, backoff, sleep, _bounded(wall, limit))


def longest_backoff(config: RetryConfig) -> float | None:
    """The sum of the computed delays at their longest."""
    if _waits_without_bound(config):
        return None
    return _sum_of_caps(config, 0.0, 0.0)


def longest_sleep(config: RetryConfig) -> float | None:
    """The sum of the delays at their longest, each as long as a server may make it."""
    if _waits_without_bound(config):
        return None
    rules = config.urllib3_rules
    if rules is not None and not rules.respect_retry_after:
        return longest_backoff(config)
    # Either a hint takes the place of the backoff, or x-amz-retry-after adds to it.
    return _sum_of_caps(config, config.max_retry_after, AMZ_MAX_EXTRA)


def _sum_of_caps(config: RetryConfig, hint: float, extra: float) -> float:
    """The sum over all retries of max(hint, cap of that retry + extra); the caps double until they are cut off."""
    retries = config.max_attempts - 1
    most = config.max_backoff
    base = max(config.transient_base, config.throttling_base)
    jitter = 0.0 if config.urllib3_rules is None else config.urllib3_rules.backoff_jitter
    if base == 0:
        growing = retries
    elif base >= most or config.jitter == Jitter.DECORRELATED.value:
        growing = 0
    else:
        growing = min(retries, math.ceil(math.log2(most) - math.log2(base)))
    caps = (min(base * 2.0**step + jitter, most) for step in range(min(growing, _STEPS)))
    flat = min(base + jitter, most) if base == 0 else most
    rest = retries - min(growing, _STEPS)
    return sum(max(hint, cap + extra) for cap in caps) + rest * max(hint, flat + extra)


_STEPS = 1000
"""More doublings than this a float does not hold."""


def _waits_without_bound(config: RetryConfig) -> bool:
    """Whether something other than a backoff may be waited for: tokens of the quota, or a send permit."""
    for_tokens = getattr(config, "on_empty", "fail") == "wait" and config.quota is not None
    for_permits = config.mode == "adaptive" and getattr(config, "max_permit_wait", None) is None
    return (config.mode != "simple" and for_tokens) or for_permits


def _bounded(seconds: float | None, limit: float | None) -> float | None:
    if seconds is None or limit is None:
        return seconds if limit is None else limit
    return min(seconds, limit)
