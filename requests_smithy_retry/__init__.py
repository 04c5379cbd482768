"""The retry layer for ``requests``: a mountable adapter with Smithy retry strategies.

Start with :func:`mount` or :class:`RetryAdapter`. The names are imported on first use, so that importing the package
costs next to nothing.
"""
# ruff: noqa: I001 - "as" exports a name to type checkers; one statement for each would be 60

__version__ = "0.2.0.dev0"

TYPE_CHECKING = False  # as in typing, which would take longer to import than all of this
if TYPE_CHECKING:
    from .adapter import RetryAdapter as RetryAdapter, mount as mount
    from .classifiers.actions import (
        ErrorKind as ErrorKind,
        NoActionIndicated as NoActionIndicated,
        RetryAction as RetryAction,
        RetryForbidden as RetryForbidden,
        RetryIndicated as RetryIndicated,
        RetryReason as RetryReason,
    )
    from .classifiers.defaults import default_classifiers as default_classifiers
    from .classifiers.fold import Classification as Classification, Vote as Vote, classify as classify
    from .classifiers.modeled import (
        ErrorInBodyClassifier as ErrorInBodyClassifier,
        ModeledAsRetryableClassifier as ModeledAsRetryableClassifier,
    )
    from .classifiers.outcome import (
        ErrorRetryInfo as ErrorRetryInfo,
        HasFault as HasFault,
        Outcome as Outcome,
    )
    from .classifiers.protocol import (
        RetryClassifier as RetryClassifier,
        RetryClassifierPriority as RetryClassifierPriority,
        Vouched as Vouched,
        classifier as classifier,
        only as only,
        with_priority as with_priority,
    )
    from .classifiers.statuses import (
        HttpStatusCodeClassifier as HttpStatusCodeClassifier,
        IdempotencyKeyClassifier as IdempotencyKeyClassifier,
    )
    from .classifiers.transport_faults import TransientErrorClassifier as TransientErrorClassifier
    from .clock import Clock as Clock, SystemClock as SystemClock
    from .config.retry_config import RetryConfig as RetryConfig, RetryOptions as RetryOptions
    from .config.retry_options import retry_options as retry_options
    from .core.backoff import (
        ExponentialRetryBackoffStrategy as ExponentialRetryBackoffStrategy,
        Jitter as Jitter,
        RetryBackoffStrategy as RetryBackoffStrategy,
    )
    from .core.payoff import PayoffTokenBucket as PayoffTokenBucket
    from .core.quota import RetryQuota as RetryQuota, TokenBucketSnapshot as TokenBucketSnapshot
    from .core.attempt import AttemptFailed as AttemptFailed
    from .core.waiting import RetryCancelled as RetryCancelled, RetryLater as RetryLater
    from .core.strategy import (
        RetryStrategy as RetryStrategy,
        RetryToken as RetryToken,
        SimpleRetryStrategy as SimpleRetryStrategy,
        StandardRetryStrategy as StandardRetryStrategy,
        StandardRetryToken as StandardRetryToken,
    )
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
    from .observing.events import (
        AfterAttempt as AfterAttempt,
        BeforeAttempt as BeforeAttempt,
        BodyProgress as BodyProgress,
        GaveUp as GaveUp,
        ObservedOperation as ObservedOperation,
        RetryListener as RetryListener,
        RetryScheduled as RetryScheduled,
        Succeeded as Succeeded,
        Throttled as Throttled,
    )
    from .observing.history import (
        AttemptRecord as AttemptRecord,
        RetryHistory as RetryHistory,
        retry_history as retry_history,
    )
    from .observing.summary import RetrySummary as RetrySummary, retry_summary as retry_summary
    from .smithy.adaptive import AdaptiveRetryStrategy as AdaptiveRetryStrategy
    from .smithy.aws import AwsErrorCodeClassifier as AwsErrorCodeClassifier, SdkHeaders as SdkHeaders
    from .smithy.buckets import TokenBucket as TokenBucket
    from .smithy.json_ast import SmithyModelError as SmithyModelError
    from .smithy.model import (
        SmithyEndpoint as SmithyEndpoint,
        SmithyModel as SmithyModel,
        SmithyModelClassifier as SmithyModelClassifier,
    )
    from .smithy.rate_limiter import (
        ClientRateLimiter as ClientRateLimiter,
        PermitWait as PermitWait,
        RateLimiterSettings as RateLimiterSettings,
        RateLimiterSnapshot as RateLimiterSnapshot,
    )
else:  # pragma: no branch - a type checker would accept any name
    _HOMES = {
        "adapter": "RetryAdapter mount",
        "classifiers.actions": "ErrorKind NoActionIndicated RetryAction RetryForbidden RetryIndicated RetryReason",
        "classifiers.defaults": "default_classifiers",
        "classifiers.fold": "Classification Vote classify",
        "classifiers.modeled": "ErrorInBodyClassifier ModeledAsRetryableClassifier",
        "classifiers.outcome": "ErrorRetryInfo HasFault Outcome",
        "classifiers.protocol": "RetryClassifier RetryClassifierPriority Vouched classifier only with_priority",
        "classifiers.statuses": "HttpStatusCodeClassifier IdempotencyKeyClassifier",
        "classifiers.transport_faults": "TransientErrorClassifier",
        "clock": "Clock SystemClock",
        "config.retry_config": "RetryConfig RetryOptions",
        "config.retry_options": "retry_options",
        "core.backoff": "ExponentialRetryBackoffStrategy Jitter RetryBackoffStrategy",
        "core.payoff": "PayoffTokenBucket",
        "core.quota": "RetryQuota TokenBucketSnapshot",
        "core.attempt": "AttemptFailed",
        "core.waiting": "RetryCancelled RetryLater",
        "core.strategy": "RetryStrategy RetryToken SimpleRetryStrategy"
        " StandardRetryStrategy StandardRetryToken",
        "errors": "RetryConfigError RetryConfigWarning RetryError StopReason TokenError",
        "features.deadline_header": "deadline_of",
        "features.everywhere.installation": "install uninstall",
        "features.rate_limits": "RateLimitDialect",
        "features.resign": "resign",
        "observing.events": "AfterAttempt BeforeAttempt BodyProgress GaveUp ObservedOperation"
        " RetryListener RetryScheduled Succeeded Throttled",
        "observing.history": "AttemptRecord RetryHistory retry_history",
        "observing.summary": "RetrySummary retry_summary",
        "smithy.adaptive": "AdaptiveRetryStrategy",
        "smithy.aws": "AwsErrorCodeClassifier SdkHeaders",
        "smithy.buckets": "TokenBucket",
        "smithy.json_ast": "SmithyModelError",
        "smithy.model": "SmithyEndpoint SmithyModel SmithyModelClassifier",
        "smithy.rate_limiter": "ClientRateLimiter PermitWait RateLimiterSettings RateLimiterSnapshot",
    }
    """The names that are imported on first use, by module."""

    def __getattr__(name: str) -> object:
        """Import a name from its module, and keep it."""
        from importlib import import_module

        if name == "__all__":
            value = globals()[name] = _public_names()
            return value
        for home, names in _HOMES.items():
            if name in names.split():
                value = globals()[name] = getattr(import_module(f".{home}", __name__), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def _public_names() -> list[str]:
        """Return the names of the modules that are there: a feature may have been deleted."""
        from importlib.util import find_spec

        def is_there(home: str) -> bool:
            package = home.rpartition(".")[0]
            return (not package or is_there(package)) and find_spec(f"{__name__}.{home}") is not None

        found = [names for home, names in _HOMES.items() if is_there(home)]
        return sorted(["__version__", *" ".join(found).split()])

    def __dir__() -> list[str]:
        return _public_names()
