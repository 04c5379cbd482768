"""The retry layer for ``requests``: a mountable adapter with Smithy retry strategies.

Start with :func:`mount` or :class:`RetryAdapter`. Names that few programs need are in
:mod:`~requests_smithy_retry.classifiers`, :mod:`~requests_smithy_retry.events`, :mod:`~requests_smithy_retry.quotas`,
:mod:`~requests_smithy_retry.smithy`, :mod:`~requests_smithy_retry.policy` and :mod:`~requests_smithy_retry.testing`.
The names are imported on first use, so that importing the package costs next to nothing.
"""
# ruff: noqa: I001 - "as" exports a name to type checkers; one statement for each would be 45

__version__ = "0.2.0.dev0"

TYPE_CHECKING = False  # as in typing, which would take longer to import than all of this
if TYPE_CHECKING:
    from .adapter import RetryAdapter as RetryAdapter, mount as mount
    from .classifiers.actions import ErrorKind as ErrorKind, RetryAction as RetryAction, RetryReason as RetryReason
    from .classifiers.defaults import default_classifiers as default_classifiers
    from .classifiers.modeled import ErrorInBodyClassifier as ErrorInBodyClassifier
    from .classifiers.outcome import ErrorRetryInfo as ErrorRetryInfo, Outcome as Outcome
    from .classifiers.protocol import (
        RetryClassifier as RetryClassifier,
        RetryClassifierPriority as RetryClassifierPriority,
        classifier as classifier,
        only as only,
    )
    from .clock import Clock as Clock, SystemClock as SystemClock
    from .config.retry_config import RetryConfig as RetryConfig, RetryOptions as RetryOptions
    from .config.retry_options import retry_options as retry_options
    from .core.attempt import AttemptFailed as AttemptFailed
    from .core.strategy import (
        RetryStrategy as RetryStrategy,
        RetryToken as RetryToken,
        SimpleRetryStrategy as SimpleRetryStrategy,
        StandardRetryStrategy as StandardRetryStrategy,
        StandardRetryToken as StandardRetryToken,
    )
    from .core.waiting import RetryCancelled as RetryCancelled, RetryLater as RetryLater
    from .errors import (
        RetryConfigError as RetryConfigError,
        RetryConfigWarning as RetryConfigWarning,
        RetryError as RetryError,
        StopReason as StopReason,
        TokenError as TokenError,
    )
    from .features.deadline_header import deadline_of as deadline_of
    from .features.everywhere.installation import install as install, uninstall as uninstall
    from .features.rate_limits import RateLimitDialect as RateLimitDialect
    from .features.resign import resign as resign
    from .observing.events import RetryListener as RetryListener
    from .observing.history import (
        AttemptRecord as AttemptRecord,
        RetryHistory as RetryHistory,
        retry_history as retry_history,
    )
    from .observing.summary import RetrySummary as RetrySummary, retry_summary as retry_summary
    from .smithy.adaptive import AdaptiveRetryStrategy as AdaptiveRetryStrategy
    from .smithy.buckets import TokenBucket as TokenBucket
else:  # pragma: no branch - a type checker would accept any name
    _HOMES = {
        "adapter": "RetryAdapter mount",
        "classifiers.actions": "ErrorKind RetryAction RetryReason",
        "classifiers.defaults": "default_classifiers",
        "classifiers.modeled": "ErrorInBodyClassifier",
        "classifiers.outcome": "ErrorRetryInfo Outcome",
        "classifiers.protocol": "RetryClassifier RetryClassifierPriority classifier only",
        "clock": "Clock SystemClock",
        "config.retry_config": "RetryConfig RetryOptions",
        "config.retry_options": "retry_options",
        "core.attempt": "AttemptFailed",
        "core.strategy": "RetryStrategy RetryToken SimpleRetryStrategy StandardRetryStrategy StandardRetryToken",
        "core.waiting": "RetryCancelled RetryLater",
        "errors": "RetryConfigError RetryConfigWarning RetryError StopReason TokenError",
        "features.deadline_header": "deadline_of",
        "features.everywhere.installation": "install uninstall",
        "features.rate_limits": "RateLimitDialect",
        "features.resign": "resign",
        "observing.events": "RetryListener",
        "observing.history": "AttemptRecord RetryHistory retry_history",
        "observing.summary": "RetrySummary retry_summary",
        "smithy.adaptive": "AdaptiveRetryStrategy",
        "smithy.buckets": "TokenBucket",
    }
    """The names that are imported on first use, by module."""
    _MOVED = ("classifiers", "quotas", "smithy", "events")
    """The modules to which names of 0.1.0 moved. They can be imported from here until 0.3."""

    __all__ = sorted(["__version__", *" ".join(_HOMES.values()).split()])

    def __getattr__(name: str) -> object:
        """Import a name from its module, and keep it."""
        from importlib import import_module

        for home, names in _HOMES.items():
            if name in names.split():
                value = globals()[name] = getattr(import_module(f".{home}", __name__), name)
                return value
        for home in () if name.startswith("_") else _MOVED:
            module = import_module(f".{home}", __name__)
            if name in module.__all__:
                return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return __all__
