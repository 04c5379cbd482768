"""The plan of an adapter: its configuration, and all that each call would otherwise look up. Made once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..config.retry_config import RetryConfig
from .policy import Policy, classifiers_beside
from .port import Feature, composed, overrides
from .scope import Scopes, no_quota
from .strategy import RetryStrategy, StandardRetryStrategy

if TYPE_CHECKING:
    from ..classifiers.protocol import RetryClassifier
    from .port import Send


class Plan(NamedTuple):
    """What the calls of an adapter share.

    :param policy: of the config, for a strategy whose tokens have none of their own.
    :param beside: classifiers of the config, which are asked beside those of a strategy that is not built in.
    :param scopes: for a strategy whose tokens have none of their own.
    :param send: makes one attempt, through the features.
    :param listening: the features that learn verdicts.
    """

    config: RetryConfig
    strategy: RetryStrategy
    policy: Policy
    beside: tuple[RetryClassifier, ...]
    scopes: Scopes
    send: Send
    listening: tuple[Feature, ...]
    listeners: Any
    has_limits: bool

    @classmethod
    def of(
        cls,
        config: RetryConfig,
        strategy: RetryStrategy,
        features: tuple[Feature, ...],
        listeners: Any,
    ) -> Plan:
        """Make it, with the features that the config asks for."""
        own = strategy if isinstance(strategy, StandardRetryStrategy) else None
        return cls(
            config,
            strategy,
            Policy.of(config, features) if own is None or own.config is not config else own.policy,
            classifiers_beside(config, features) if own is None else (),
            Scopes(no_quota),
            composed(features),
            tuple(feature for feature in features if overrides(feature, "judged")),
            listeners,
            (config.operation_timeout, config.operation_attempt_timeout) != (None, None),
        )
