"""The built-in strategy of each ``mode``."""

from __future__ import annotations

from ..clock import SYSTEM_CLOCK, Clock
from ..config.retry_config import RetryConfig
from .simple import SimpleRetryStrategy
from .standard import StandardRetryStrategy


def strategy_class(mode: str) -> type[SimpleRetryStrategy]:
    """Return the built-in strategy class for a value of the option ``mode``."""
    if mode == "adaptive":
        from .adaptive import AdaptiveRetryStrategy  # it brings the rate limiter, which other modes do without

        return AdaptiveRetryStrategy
    return SimpleRetryStrategy if mode == "simple" else StandardRetryStrategy


def strategy_for(config: RetryConfig, clock: Clock = SYSTEM_CLOCK) -> SimpleRetryStrategy:
    """Make the built-in strategy that a config asks for."""
    return strategy_class(config.mode)(config=config, clock=clock)
