"""The built-in strategies (contract 1), one file each. They know no HTTP library."""

from __future__ import annotations

from ..clock import SYSTEM_CLOCK, Clock
from ..config import RetryConfig
from .simple import SimpleRetryStrategy
from .standard import StandardRetryStrategy

__all__ = ["SimpleRetryStrategy", "StandardRetryStrategy", "strategy_class", "strategy_for"]


def strategy_class(mode: str) -> type[SimpleRetryStrategy]:
    """The built-in strategy by the value of the option ``mode``."""
    if mode == "adaptive":
        from .adaptive import AdaptiveRetryStrategy  # it brings the rate limiter, which other modes do without

        return AdaptiveRetryStrategy
    return SimpleRetryStrategy if mode == "simple" else StandardRetryStrategy


def strategy_for(config: RetryConfig, clock: Clock = SYSTEM_CLOCK) -> SimpleRetryStrategy:
    """The built-in strategy that a config asks for."""
    return strategy_class(config.mode)(config=config, clock=clock)
