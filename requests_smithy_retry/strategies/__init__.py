"""The built-in strategies (contract 1), one file each. They know no HTTP library."""

from __future__ import annotations

from ..clock import SYSTEM_CLOCK, Clock
from ..config import RetryConfig
from .adaptive import AdaptiveRetryStrategy
from .simple import SimpleRetryStrategy
from .standard import StandardRetryStrategy

__all__ = ["STRATEGIES", "AdaptiveRetryStrategy", "SimpleRetryStrategy", "StandardRetryStrategy", "strategy_for"]

STRATEGIES: dict[str, type[SimpleRetryStrategy]] = {
    "simple": SimpleRetryStrategy,
    "standard": StandardRetryStrategy,
    "adaptive": AdaptiveRetryStrategy,
}
"""By the value of the option ``mode``."""


def strategy_for(config: RetryConfig, clock: Clock = SYSTEM_CLOCK) -> SimpleRetryStrategy:
    """The built-in strategy that a config asks for."""
    return STRATEGIES[config.mode](config=config, clock=clock)
