"""What the adapter must know of a strategy that was given to it (contract 1), built-in or foreign. Pure."""

from __future__ import annotations

from typing import Any

from .actions import NoActionIndicated, RetryForbidden
from .classification import classify, fold_of
from .classifier import RetryClassifier, in_order
from .classifiers import default_classifiers
from .config import RetryConfig
from .errors import RetryConfigError, RetryError
from .interfaces import RetryStrategy
from .operation_options import OperationOptions
from .options import ADAPTER_OPTIONS, CLASSIFIER_OPTIONS
from .outcome import Outcome, describe
from .resend import resend_ruling
from .stop_reason import StopReason
from .strategies.simple import SimpleRetryStrategy


def gives_free_first_token(strategy: RetryStrategy) -> bool:
    """Whether acquiring a first token and recording a first-try success can wait until there is something to book.

    That is so for the built-in strategies; not for a subclass, or an object, that has its own say in either.
    """
    methods = [getattr(strategy, name) for name in ("acquire_initial_retry_token", "record_success")]
    return isinstance(strategy, SimpleRetryStrategy) and all(
        str(getattr(method, "__module__", None)).split(".")[0] == __package__ for method in methods
    )


def foreign_fold(config: RetryConfig) -> tuple[RetryClassifier, ...]:
    """The classifiers that the adapter asks for a foreign strategy, which consults none itself."""
    defaults = default_classifiers(config) if config.default_classifiers else ()
    return in_order((*defaults, *config.classifiers))


def check_for_foreign(
    own: tuple[RetryClassifier, ...], outcome: Outcome, options: OperationOptions, error: Exception
) -> None:
    """What a foreign strategy is not asked about: the resend rule, and the block's own number of attempts.

    The error is made to say of itself what the classifiers say.

    :param own: the adapter's classifiers, lowest priority first.
    :param outcome: what the attempt ended with.
    :param options: what ``retry_options`` says.
    :param error: what the strategy will be shown.
    :raises RetryError: if there is no further attempt, whatever the strategy thinks.
    """
    classification = classify(fold_of(own, options), outcome)
    action = classification.action
    assert outcome.resend is not None
    if outcome.is_success and isinstance(action, NoActionIndicated):
        raise RetryError(stop_reason=StopReason.NOT_RETRYABLE, classification=classification)
    ruling = resend_ruling(outcome.resend, outcome.status, action)
    if ruling is not None:
        raise RetryError(ruling.why or "", stop_reason=ruling.stop_reason, classification=classification)
    if outcome.is_success and isinstance(action, RetryForbidden):
        raise RetryError(action.why or "", stop_reason=action.stop_reason, classification=classification)
    most = options.max_attempts
    if most is not None and outcome.attempt >= most:
        why = f"{outcome.attempt} of {most} attempts were made"
        raise RetryError(why, stop_reason=StopReason.MAX_ATTEMPTS, classification=classification)
    describe(error, action)


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
