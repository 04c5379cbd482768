"""The table of features: each has its lines here, and is removed with them (``tests/project/test_removable.py``).

They use the seams of :mod:`~requests_smithy_retry.core.port`. Those that take part in decisions are imported with
this table; the others in the functions, because a strategy that is driven by hand needs no HTTP library.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..clock import SYSTEM_CLOCK, Clock
from ..core.strategy import StandardRetryStrategy
from ..smithy.aws import feature as aws
from .rate_limits import feature as rate_limits
from .server_verdicts import feature as server_verdicts
from .validate import feature as validate

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..config.retry_config import RetryConfig
    from ..core.port import Feature
    from ..core.scope import MakeQuota
    from ..wire.connect import Opener as AnyOpener

    Row = tuple[Callable[[RetryConfig, Clock], Feature], object]
    """The maker of a feature, and whether the configuration asks for one."""


def judging_features(config: RetryConfig, clock: Clock = SYSTEM_CLOCK) -> tuple[Feature, ...]:
    """Return the features that take part in decisions."""
    rows: tuple[Row, ...] = (
        (aws, True),
        (server_verdicts, True),
        (rate_limits, config.heeds_hints),
        (validate, config.validate),
    )
    return _made(rows, config, clock)


def features_of(config: RetryConfig, strategy: object, clock: Clock) -> tuple[Feature, ...]:
    """Return the features that a config asks for: those around a send, the outermost first."""
    from .deadline_header import feature as deadline_header
    from .permits import feature as permits
    from .renewal import feature as renewal
    from .resign import feature as resign
    from .resume import feature as resume

    outer: tuple[Row, ...] = (
        (renewal, config.on_unauthorized),
        (permits, hasattr(strategy, "send_permit")),
    )
    inner: tuple[Row, ...] = (
        (deadline_header, config.deadline_header),
        (resume, True),
        (resign, True),
    )
    return (*_made(outer, config, clock), *judging_features(config, clock), *_made(inner, config, clock))


def _made(rows: tuple[Row, ...], config: RetryConfig, clock: Clock) -> tuple[Feature, ...]:
    return tuple(make(config, clock) for make, is_wanted in rows if is_wanted)


def listeners_of(config: RetryConfig, own: Iterable[Any]) -> tuple[Any, ...]:
    """Return an adapter's listeners: its own, and those that its options ask for."""
    from .deadline_header import listeners_of as deadline_header
    from .telemetry import listeners_of as telemetry

    found = tuple(own)
    for listeners in (
        deadline_header,
        telemetry,
    ):
        found = (*found, *listeners(config, found))
    return found


def quota_maker(quota: Any, config: RetryConfig, clock: Clock) -> MakeQuota:
    """Return the maker of quotas of another kind than the default."""
    from ..smithy.buckets import quota_maker as buckets
    from .redis import quota_maker as redis

    makers = (
        redis,
        buckets,
    )
    return next(filter(None, (make(quota, config, clock) for make in makers)))


def strategy_for(config: RetryConfig, clock: Clock = SYSTEM_CLOCK) -> StandardRetryStrategy:
    """Make the built-in strategy that a config asks for."""
    if config.mode == StandardRetryStrategy.mode:
        return StandardRetryStrategy(config=config, clock=clock)
    from ..smithy.adaptive import AdaptiveRetryStrategy as adaptive

    return adaptive(config=config, clock=clock)


def opener(clock: Clock) -> AnyOpener:
    """Make the opener of the sockets of an adapter's connections."""
    from .addresses import AddressOpener as Opener  # without them, that of ..wire.connect

    return Opener(clock)
