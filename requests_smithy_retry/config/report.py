"""The report on a configuration: each value with its source, and the worst case, in closed form.

``docs/explanation/do-no-harm.md`` derives the bound on retries in vain, and ``benchmarks/bound.py`` checks it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..classifiers.protocol import sees_successes
from ..core.retry_budget import PayoffTokenBucket, capacity_of
from ..core.server_hints import AMZ_MAX_EXTRA
from ..core.wait_queue import ATTEMPTS, IDLE, LEAST_GAP, MOST_CREDIT, UNLIMITED, Bounds
from .retry_config import has_queue

if TYPE_CHECKING:
    from ..features.redis import RedisQuota
    from ..smithy.buckets import TokenBucket
    from .retry_config import RetryConfig

REWARD = 1.0
"""The tokens that a first-try success gives to a bucket that was given as a number."""


class InVain(NamedTuple):
    """The most retries of one scope that can fail, whatever the server does."""

    at_first: float
    """Retries in vain without any success."""
    per_success: float
    """Further ones for each operation that succeeds."""
    per_second: float
    """Further ones for each second that passes: retries of waiting operations, and refills."""


def in_vain(config: RetryConfig, *, waits: bool) -> InVain | None:
    """Return the bound, given whether operations wait for a service; None: the quota sets none."""
    if not config.enabled or config.most_attempts == 1:
        return InVain(0, 0, 0)
    quota = config.effective_quota
    if quota is None:
        return None
    if isinstance(quota, str | PayoffTokenBucket):
        return _payoff(config, waits)
    if has_queue(quota):
        return _shared(config, cast("RedisQuota", quota), waits)
    if isinstance(quota, int | float):
        return _priced(config, quota, REWARD)
    if hasattr(quota, "refill_rate"):
        bucket = cast("TokenBucket", quota)
        return _priced(config, bucket.capacity, bucket.success_reward, bucket.refill_rate)
    return None  # nothing is known about it


def _payoff(config: RetryConfig, waits: bool) -> InVain:
    # A first-try success fills the bucket, and lets waiters go; an operation that retried gets back what its retries
    # cost, and room for another one, if nobody waits.
    capacity = capacity_of(Bounds(config.most_attempts))
    per_second = max(capacity / IDLE, waits / LEAST_GAP)
    return InVain(capacity, capacity + max(MOST_CREDIT * waits, capacity), per_second)


def _priced(config: RetryConfig, capacity: float, success_reward: float, refill_rate: float = 0.0) -> InVain:
    numbers = config.numbers
    least = min(numbers.retry_cost, numbers.throttling_cost, numbers.timeout_cost)
    return InVain(capacity / least, success_reward / least, refill_rate / least)


def _shared(config: RetryConfig, quota: RedisQuota, waits: bool) -> InVain:
    numbers, size = config.numbers, min(quota.capacity, 500)
    prices = (numbers.retry_cost, numbers.throttling_cost, numbers.timeout_cost)
    # A success gives back all that its operation's retries cost, to the bucket that stands in as well.
    given = max(1.0, Bounds(config.most_attempts).retries * max(prices))
    tokens, per_success, least = quota.capacity + size, given + min(size, given), min(prices)
    per_second = quota.capacity / quota.ttl / least + waits / LEAST_GAP
    return InVain(tokens / least, per_success / least + waits * MOST_CREDIT, per_second)


@dataclass(frozen=True, slots=True)
class Setting:
    """One option: its name, the value in force, and the source of the value."""

    name: str
    value: Any
    source: str

    @property
    def text(self) -> str:
        """The value as text for people: the same text for equal values, whatever the order of a set."""
        value = self.value
        if isinstance(value, frozenset):
            return ", ".join(str(item) for item in sorted(value)) or "(none)"
        own = getattr(value, "without_secrets", None)
        return value if isinstance(value, str) else own if isinstance(own, str) else repr(value)

    @property
    def plain(self) -> Any:
        """The value as JSON; an object is shown as its text."""
        value = self.value
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, frozenset):
            return sorted(value)
        return [] if value == () else self.text


def as_table(*rows: Sequence[str]) -> str:
    """Return rows of equal length as lines, with their columns aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def is_set(setting: Setting) -> bool:
    return not setting.source.startswith(("default", "retry_spec"))


def summary(settings: Iterable[Setting]) -> str:
    """Return one line: the options that were set, each with its source, and the most important defaults."""
    shown = (item for item in settings if item.name in ("mode", "max_attempts") or is_set(item))
    return ", ".join(f"{item.name}={item.value!r} [{item.source}]" for item in shown)


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The bounds of one operation, and the most retries in vain of all operations of a scope.

    :param attempts: requests sent, but for the answer to a stale nonce by :func:`.resign`; None: no bound, because a
        service that is down is asked as long as patience lasts, or because the program polls.
    :param backoff: seconds slept, also for permits and for a service that is down, if no server or rule of the program
        asks for a longer wait; None: no bound.
    :param sleep: seconds slept in all, if they ask for the longest waits that are granted; None: no bound.
    :param wall_time: seconds from the call to its return; None: no bound, because an attempt has none.
    :param in_vain: the most retries of one scope that fail, of this client or process alone; None: no bound.
    """

    attempts: int | None
    backoff: float | None
    sleep: float | None
    wall_time: float | None
    in_vain: InVain | None = None


def worst_case(config: RetryConfig) -> WorstCase:
    waits = waits_for_service(config)
    harm = in_vain(config, waits=waits)
    if not config.enabled:
        return WorstCase(1, 0.0, 0.0, None, harm)
    is_bounded = config.most_attempts is not None or not (waits or _may_poll(config))
    attempts = _most_sent(config) if is_bounded else None
    limit, each = config.operation_timeout, config.operation_attempt_timeout
    backoff, sleep = _in_floats(lambda: _longest(config, 0.0, 0.0)), _in_floats(lambda: _longest_sleep(config))
    wall = None
    if attempts is not None and each is not None and sleep is not None:
        wall = _in_floats(lambda: attempts * each + sleep)
    return WorstCase(attempts, _bounded(backoff, limit), _bounded(sleep, limit), _bounded(wall, limit), harm)


def waits_for_service(config: RetryConfig) -> bool:
    is_patient = has_queue(config.effective_quota) and config.patience > 0
    return is_patient and config.most_attempts != 1


def _may_poll(config: RetryConfig) -> bool:
    """Return True if a success may lead to any number of polls: a rule of the program may name seconds for them."""
    return config.validate is not None or any(map(sees_successes, config.classifiers))


def _most_sent(config: RetryConfig) -> int:
    """Return the most requests of one operation that does not wait for a service.

    For one that waits, and has no limit, it is the most that it sends before the wait and after its patience is over.
    """
    most, renewals = config.most_attempts, config.on_unauthorized is not None
    return renewals + (ATTEMPTS + waits_for_service(config) if most is None else most)


def _longest_sleep(config: RetryConfig) -> float | None:
    """Return the bound of sleeping if each wait is as long as a server or the program may ask for."""
    asks_itself = config.classifiers or config.validate
    if config.patience_for_hints() is not None and not asks_itself:
        # Twice the patience bounds all that a server asks for, and the wait in the queue.
        slept = _longest(config, 0.0, 0.0)
        return slept if slept is None or waits_for_service(config) else slept + 2 * config.patience
    heeds_server = config.heeds_hints
    # A delay that the program's own classifier asks for is granted even if headers are not heeded.
    heeds_anybody = heeds_server or asks_itself
    # Either a hint takes the place of the backoff, or x-amz-retry-after adds to it.
    slept = _longest(config, config.max_retry_after if heeds_anybody else 0.0, AMZ_MAX_EXTRA if heeds_server else 0.0)
    # A first attempt may meet a limit that was announced to others; a retry waits no longer for it than for a hint.
    heeds_limits = config.pacing != "off" and heeds_server
    # So does a request with new credentials.
    limited = (1 + (config.on_unauthorized is not None)) * heeds_limits
    # All polls without a number of attempts together come to one more such wait.
    polled = config.most_attempts is None and _may_poll(config)
    return slept if slept is None else slept + (limited + polled) * config.max_retry_after


def _longest(config: RetryConfig, hint: float, extra: float) -> float | None:
    """Return the bound of sleeping, permits included, if a hint replaces a backoff and ``extra`` is added to it."""
    quota = config.effective_quota
    # A bucket has its own rule, and a function may make any. A quota with a queue does not wait for tokens.
    if getattr(quota, "on_empty", "fail") == "wait" or (callable(quota) and not has_queue(quota)):
        return None  # tokens may come back at any time, or never
    if config.longest_backoff is None:
        return None
    delays = _sum_of_delays(config, config.longest_backoff, hint, extra)
    if waits_for_service(config):
        delays += 2 * config.patience
    return delays if config.mode != "adaptive" else None  # the wait for a permit has no bound


def _sum_of_delays(config: RetryConfig, longest: Callable[[int], float], hint: float, extra: float) -> float:
    # The longest backoff never falls from retry to retry, so once it is that of the last retry it stays so.
    if config.most_attempts is None and waits_for_service(config):
        # Retries that are paid for after patience is over may follow any number of questions, and one of these a hint.
        return (ATTEMPTS - 1) * max(hint, longest(UNLIMITED) + extra) + hint
    retries, seconds = (config.most_attempts or ATTEMPTS) - 1, 0.0
    last = longest(retries)
    retry = 1
    while retry <= retries and longest(retry) < last:
        seconds += max(hint, longest(retry) + extra)
        retry += 1
    return seconds + (retries - retry + 1) * max(hint, last + extra)


def _in_floats(work_out: Callable[[], float | None]) -> float | None:
    """Return the seconds; None, no bound, for more than a float holds."""
    try:
        seconds = work_out()
        return seconds if seconds is None or math.isfinite(seconds) else None
    except OverflowError:
        return None


def _bounded(seconds: float | None, limit: float | None) -> float | None:
    return min((bound for bound in (seconds, limit) if bound is not None), default=None)
