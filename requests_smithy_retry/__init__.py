"""The retry layer for ``requests``: a mountable adapter with Smithy retry strategies.

Start with :func:`mount` or :class:`RetryAdapter`. Everything here is handed on from the file that owns it.
"""

from .actions import (
    ErrorKind,
    NoActionIndicated,
    RetryAction,
    RetryForbidden,
    RetryIndicated,
    RetryReason,
)
from .adapter import RetryAdapter
from .backoff import ExponentialRetryBackoffStrategy, Jitter, RetryBackoffStrategy
from .classification import Classification, Vote, classify
from .classifier import RetryClassifier, classifier, with_priority
from .classifiers import (
    AwsErrorCodeClassifier,
    HttpStatusCodeClassifier,
    IdempotencyKeyClassifier,
    ModeledAsRetryableClassifier,
    SmithyModelClassifier,
    TransientErrorClassifier,
    default_classifiers,
)
from .clock import Clock, SystemClock
from .config import RetryConfig
from .error_info import ErrorRetryInfo, HasFault
from .errors import RetryConfigError, RetryConfigWarning, RetryError, TokenError
from .events import AfterAttempt, BeforeAttempt, GaveUp, RetryScheduled, Succeeded, Throttled
from .history import AttemptRecord, RetryHistory, retry_history
from .install import install, uninstall
from .interfaces import RetryStrategy
from .limiter_settings import RateLimiterSettings
from .listeners import RetryListener
from .mount import mount
from .observed import ObservedOperation
from .operation_options import retry_options
from .outcome import Outcome, ResponseError, RetryContext
from .payoff_bucket import PayoffTokenBucket
from .priority import RetryClassifierPriority
from .quota import RetryQuota, TokenBucket, TokenBucketSnapshot
from .rate_limiter import ClientRateLimiter, PermitWait, RateLimiterSnapshot
from .smithy import SmithyEndpoint, SmithyModel, SmithyModelError
from .stop_reason import StopReason
from .strategies import AdaptiveRetryStrategy, SimpleRetryStrategy, StandardRetryStrategy
from .tokens import RetryToken, StandardRetryToken
from .version import __version__

__all__ = [
    "AdaptiveRetryStrategy",
    "AfterAttempt",
    "AttemptRecord",
    "AwsErrorCodeClassifier",
    "BeforeAttempt",
    "Classification",
    "ClientRateLimiter",
    "Clock",
    "ErrorKind",
    "ErrorRetryInfo",
    "ExponentialRetryBackoffStrategy",
    "GaveUp",
    "HasFault",
    "HttpStatusCodeClassifier",
    "IdempotencyKeyClassifier",
    "Jitter",
    "ModeledAsRetryableClassifier",
    "NoActionIndicated",
    "ObservedOperation",
    "Outcome",
    "PayoffTokenBucket",
    "PermitWait",
    "RateLimiterSettings",
    "RateLimiterSnapshot",
    "ResponseError",
    "RetryAction",
    "RetryAdapter",
    "RetryBackoffStrategy",
    "RetryClassifier",
    "RetryClassifierPriority",
    "RetryConfig",
    "RetryConfigError",
    "RetryConfigWarning",
    "RetryContext",
    "RetryError",
    "RetryForbidden",
    "RetryHistory",
    "RetryIndicated",
    "RetryListener",
    "RetryQuota",
    "RetryReason",
    "RetryScheduled",
    "RetryStrategy",
    "RetryToken",
    "SimpleRetryStrategy",
    "SmithyEndpoint",
    "SmithyModel",
    "SmithyModelClassifier",
    "SmithyModelError",
    "StandardRetryStrategy",
    "StandardRetryToken",
    "StopReason",
    "Succeeded",
    "SystemClock",
    "Throttled",
    "TokenBucket",
    "TokenBucketSnapshot",
    "TokenError",
    "TransientErrorClassifier",
    "Vote",
    "__version__",
    "classifier",
    "classify",
    "default_classifiers",
    "install",
    "mount",
    "retry_history",
    "retry_options",
    "uninstall",
    "with_priority",
]
