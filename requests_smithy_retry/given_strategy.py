"""What the adapter must know of a strategy that was given to it (contract 1), built-in or foreign. Pure."""

from __future__ import annotations

from typing import Any

from .classifier import RetryClassifier, in_order
from .classifiers import default_classifiers
from .config import RetryConfig
from .errors import RetryConfigError
from .interfaces import RetryStrategy
from .options import ADAPTER_OPTIONS, CLASSIFIER_OPTIONS
from .strategies.simple import SimpleRetryStrategy


def gives_free_first_token(strategy: RetryStrategy) -> bool:
    """Whether acquiring a first token and recording a first-try success can wait until there is something to book.

    That is so for the built-in strategies; not for a subclass, or an object, that has its own say in either.
    """
    methods = [getattr(strategy, name) for name in ("acquire_initial_retry_token", "record_success")]
    return isinstance(strategy, SimpleRetryStrategy) and all(
        getattr(method, "__module__", "").split(".")[0] == __package__ for method in methods
    )


def foreign_fold(config: RetryConfig) -> tuple[RetryClassifier, ...]:
    """The classifiers that the adapter asks for a foreign strategy, which consults none itself."""
    defaults = default_classifiers(config) if config.default_classifiers else ()
    return in_order((*defaults, *config.classifiers))


def check_beside_strategy(strategy: RetryStrategy, config: RetryConfig | None, options: dict[str, Any]) -> None:
    """Refuse what would be connected to nothing, because the given strategy has its own.

    :param strategy: what was given as one.
    :param config: what was given beside it, or None.
    :param options: likewise, by name.
    :raises RetryConfigError: for anything that the strategy would not look at, and for what is no strategy.
    """
    if isinstance(strategy, type) or not isinstance(strategy, RetryStrategy):
        raise RetryConfigError(
            "strategy",
            strategy,
            "code",
            "an object with acquire_initial_retry_token, refresh_retry_token_for_retry and record_success is allowed",
        )
    ours = ADAPTER_OPTIONS
    if not isinstance(strategy, SimpleRetryStrategy):
        ours |= CLASSIFIER_OPTIONS
    elif config is not None:
        raise RetryConfigError("config", config, "code", "only one of config and a built-in strategy is allowed")
    for name, value in options.items():
        if name not in ours:
            raise RetryConfigError(name, value, "code", f"it belongs to the strategy: give it to {strategy!r} instead")
