"""The retry layer for ``requests``: a mountable adapter with Smithy retry strategies.

Start with :func:`mount` or :class:`RetryAdapter`. The names are imported on first use, so that importing the package
costs next to nothing.
"""
# ruff: noqa: I001 - "as" exports a name to type checkers; one statement for each would be 60

from .version import __version__ as __version__

TYPE_CHECKING = False  # as in typing, which would take longer to import than all of this
if TYPE_CHECKING:
    from .adapter import RetryAdapter as RetryAdapter
    from .classifiers.actions import (
        ErrorKind as ErrorKind,
        NoActionIndicated as NoActionIndicated,
        RetryAction as RetryAction,
        RetryForbidden as RetryForbidden,
        RetryIndicated as RetryIndicated,
        RetryReason as RetryReason,
    )
    from .classifiers.aws import AwsErrorCodeClassifier as AwsErrorCodeClassifier
    from .classifiers.fold import Classification as Classification, Vote as Vote, classify as classify
    from .classifiers.in_body import ErrorInBodyClassifier as ErrorInBodyClassifier
    from .classifiers.modeled import ModeledAsRetryableClassifier as ModeledAsRetryableClassifier
    from .classifiers.outcome import (
        ErrorRetryInfo as ErrorRetryInfo,
        HasFault as HasFault,
        Outcome as Outcome,
    )
    from .classifiers.protocol import (
        RetryClassifier as RetryClassifier,
        RetryClassifierPriority as RetryClassifierPriority,
        classifier as classifier,
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
    from .errors import (
        RetryConfigError as RetryConfigError,
        RetryConfigWarning as RetryConfigWarning,
        RetryError as RetryError,
        StopReason as StopReason,
        TokenError as TokenError,
    )
    from .mounting import install as install, mount as mount, uninstall as uninstall
    from .observing.events import (
        AfterAttempt as AfterAttempt,
        BeforeAttempt as BeforeAttempt,
        BodyProgress as BodyProgress,
        GaveUp as GaveUp,
        ObservedOperation as ObservedOperation,
        RetryScheduled as RetryScheduled,
        Succeeded as Succeeded,
        Throttled as Throttled,
    )
    from .observing.history import (
        AttemptRecord as AttemptRecord,
        RetryHistory as RetryHistory,
        retry_history as retry_history,
    )
    from .observing.listeners import RetryListener as RetryListener
    from .pacing.announced import RateLimitDialect as RateLimitDialect
    from .pacing.backoff import (
        ExponentialRetryBackoffStrategy as ExponentialRetryBackoffStrategy,
        Jitter as Jitter,
        RetryBackoffStrategy as RetryBackoffStrategy,
    )
    from .pacing.limiter_settings import RateLimiterSettings as RateLimiterSettings
    from .pacing.rate_limiter import (
        ClientRateLimiter as ClientRateLimiter,
        PermitWait as PermitWait,
        RateLimiterSnapshot as RateLimiterSnapshot,
    )
    from .quotas.bucket import (
        RetryQuota as RetryQuota,
        TokenBucket as TokenBucket,
        TokenBucketSnapshot as TokenBucketSnapshot,
    )
    from .quotas.payoff import PayoffTokenBucket as PayoffTokenBucket
    from .smithy import (
        SmithyEndpoint as SmithyEndpoint,
        SmithyModel as SmithyModel,
        SmithyModelError as SmithyModelError,
    )
    from .smithy.model_classifier import SmithyModelClassifier as SmithyModelClassifier
    from .strategies.adaptive import AdaptiveRetryStrategy as AdaptiveRetryStrategy
    from .strategies.default_classifiers import default_classifiers as default_classifiers
    from .strategies.protocol import (
        ResponseError as ResponseError,
        RetryContext as RetryContext,
        RetryStrategy as RetryStrategy,
        RetryToken as RetryToken,
        StandardRetryToken as StandardRetryToken,
    )
    from .strategies.simple import SimpleRetryStrategy as SimpleRetryStrategy
    from .strategies.standard import StandardRetryStrategy as StandardRetryStrategy
else:  # pragma: no branch - a type checker would accept any name
    _HOMES = {
        "adapter": "RetryAdapter",
        "classifiers.actions": "ErrorKind NoActionIndicated RetryAction RetryForbidden RetryIndicated RetryReason",
        "classifiers.aws": "AwsErrorCodeClassifier",
        "classifiers.fold": "Classification Vote classify",
        "classifiers.in_body": "ErrorInBodyClassifier",
        "classifiers.modeled": "ModeledAsRetryableClassifier",
        "classifiers.outcome": "ErrorRetryInfo HasFault Outcome",
        "classifiers.protocol": "RetryClassifier RetryClassifierPriority classifier with_priority",
        "classifiers.statuses": "HttpStatusCodeClassifier IdempotencyKeyClassifier",
        "classifiers.transport_faults": "TransientErrorClassifier",
        "clock": "Clock SystemClock",
        "config.retry_config": "RetryConfig RetryOptions",
        "config.retry_options": "retry_options",
        "errors": "RetryConfigError RetryConfigWarning RetryError StopReason TokenError",
        "mounting": "install mount uninstall",
        "observing.events": "AfterAttempt BeforeAttempt BodyProgress GaveUp ObservedOperation"
        " RetryScheduled Succeeded Throttled",
        "observing.history": "AttemptRecord RetryHistory retry_history",
        "observing.listeners": "RetryListener",
        "pacing.announced": "RateLimitDialect",
        "pacing.backoff": "ExponentialRetryBackoffStrategy Jitter RetryBackoffStrategy",
        "pacing.limiter_settings": "RateLimiterSettings",
        "pacing.rate_limiter": "ClientRateLimiter PermitWait RateLimiterSnapshot",
        "quotas.bucket": "RetryQuota TokenBucket TokenBucketSnapshot",
        "quotas.payoff": "PayoffTokenBucket",
        "smithy": "SmithyEndpoint SmithyModel SmithyModelError",
        "smithy.model_classifier": "SmithyModelClassifier",
        "strategies.adaptive": "AdaptiveRetryStrategy",
        "strategies.default_classifiers": "default_classifiers",
        "strategies.protocol": "ResponseError RetryContext RetryStrategy RetryToken StandardRetryToken",
        "strategies.simple": "SimpleRetryStrategy",
        "strategies.standard": "StandardRetryStrategy",
    }
    """The names that are imported on first use, by module."""

    __all__ = sorted(["__version__", *" ".join(_HOMES.values()).split()])

    def __getattr__(name: str) -> object:
        """Import a name from its module, and keep it."""
        from importlib import import_module

        for home, names in _HOMES.items():
            if name in names.split():
                value = globals()[name] = getattr(import_module(f".{home}", __name__), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return list(__all__)
