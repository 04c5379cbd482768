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
        _refuse_together(config, "refill_rate", "quota", "a bucket has a refill rate of its own")
        if config.source("quota") == config.source("quota_url"):  # a fleet's variable may meet a bucket in the code
            _refuse_together(config, "quota_url", "quota", "a bucket is where it is")
    is_named = isinstance(config.quota, str)
    if is_named or isinstance(config.quota, PayoffQuota):
        for name in ("refill_rate", "on_empty", "success_reward"):
            _refuse_together(config, name, "quota", "a quota that goes by what pays has rules of its own")
        if is_named and config.source("quota") == config.source("quota_url"):
            _refuse_together(config, "quota_url", "quota", "it is not shared between processes")
    if not config.default_classifiers:
        for name in ("retry_status_codes", "error_parser"):
            _refuse_together(config, name, "default_classifiers", "only the default classifiers go by it")
    if not config.trust_env and config.aws_config is not False:
        _refuse_together(config, "aws_config", "trust_env", "without trust_env no AWS settings are read")


def _refuse_together(config: RetryConfig, name: str, other: str, why: str) -> None:
    if config.is_given(name) and config.is_given(other):
        with_it = f"{other}={getattr(config, other)!r} (from {config.source(other)})"
        allowed = f"only one of {name} and {with_it} is allowed: {why}"
        raise RetryConfigError(name, getattr(config, name), config.source(name), allowed)
