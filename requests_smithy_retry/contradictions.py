"""Options that cannot be had together (contract 10.1): one of them would be connected to nothing.

Only what somebody set can contradict; a default never does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import RetryConfigError
from .payoff_quota import PayoffQuota
from .quota import RetryQuota

if TYPE_CHECKING:
    from .config import RetryConfig


def check_contradictions(config: RetryConfig) -> None:
    """Refuse options that contradict each other.

    :raises RetryConfigError: naming both, and where each came from.
    """
    if isinstance(config.quota, RetryQuota):
        for name in ("refill_rate", "on_empty"):
            _refuse_together(config, name, "quota", "a bucket has rules of its own")
        _refuse_together(config, "quota_url", "quota", "a bucket is where it is")
    is_named = isinstance(config.quota, str)
    if is_named or isinstance(config.quota, PayoffQuota):
        for name in ("refill_rate", "on_empty", "success_reward"):
            _refuse_together(config, name, "quota", "a quota that goes by what pays has rules of its own")
    if is_named:
        _refuse_together(config, "quota_url", "quota", "it is not shared between processes")
    if not config.default_classifiers:
        for name in ("retry_status_codes", "error_parser"):
            _refuse_together(config, name, "default_classifiers", "only the default classifiers go by it")
    if not config.trust_env and config.aws_config is not False:
        _refuse_together(config, "aws_config", "trust_env", "without trust_env no AWS settings are read")


def _refuse_together(config: RetryConfig, name: str, other: str, why: str) -> None:
    if not config.is_given(name):
        return
    # The other one was given as well: it has no such value by default.
    if config.source(name) != "code" and config.source(other) == "code":
        return  # a fleet's variable may meet a program that has something of its own: there it does nothing
    with_it = f"{other}={getattr(config, other)!r} (from {config.source(other)})"
    allowed = f"only one of {name} and {with_it} is allowed: {why}"
    raise RetryConfigError(name, getattr(config, name), config.source(name), allowed)
