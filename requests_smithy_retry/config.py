"""The policy as one frozen value (contract 10.1)."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from .classifier import RetryClassifier
from .limiter_settings import DEFAULT_SETTINGS, RateLimiterSettings
from .options import OPTIONS, RETRY_STATUS_CODES, parse_option
from .presets import RETRY_SPECS, RetryNumbers
from .quota import RetryQuota
from .quota_url import QuotaUrl
from .resend import IDEMPOTENT_METHODS

if TYPE_CHECKING:
    from collections.abc import Collection

    from requests import PreparedRequest, Response
    from urllib3.util import Timeout

    from .smithy import SmithyEndpoint, SmithyModel

    TimeoutType = float | tuple[float | None, float | None] | Timeout | None


@dataclass(frozen=True, kw_only=True)
class RetryConfig:
    """Everything that can be configured. It validates when it is made and never changes.

    The options are explained in one table, made from :data:`requests_smithy_retry.options.OPTIONS`. Durations are
    in seconds. ``initial_backoff`` and ``throttling_backoff`` are those of ``retry_spec`` unless given.

    >>> RetryConfig(max_attempts=0)
    Traceback (most recent call last):
    requests_smithy_retry.errors.RetryConfigError: max_attempts=0 (from code): a whole number from 1 on is allowed

    :raises RetryConfigError: for a value that its option does not allow.
    """

    mode: str = "standard"
    max_attempts: int = 3
    retry_spec: str = "2.1"
    initial_backoff: float | None = None
    throttling_backoff: float | None = None
    max_backoff: float = 20.0
    jitter: str = "full"
    quota: float | RetryQuota | None = 500
    quota_url: str | QuotaUrl | None = None
    refill_rate: float = 0.0
    on_empty: str = "fail"
    success_reward: float = 1
    max_permit_wait: float | None = None
    rate_limiter: RateLimiterSettings = DEFAULT_SETTINGS
    max_retry_after: float = 120.0
    operation_timeout: float | None = None
    operation_attempt_timeout: float | None = None
    timeout: TimeoutType = None
    preload_content: bool = True
    allowed_methods: Collection[str] | None = IDEMPOTENT_METHODS
    strict_methods: bool = False
    retry_status_codes: Collection[int] = RETRY_STATUS_CODES
    idempotency_header: str = "Idempotency-Key"
    idempotency_key: bool | Callable[..., str] = False
    raise_on_status: bool = False
    scope: Callable[[PreparedRequest], str] | None = None
    enabled: bool = True
    classifiers: Iterable[RetryClassifier] = ()
    default_classifiers: bool = True
    error_parser: Callable[[Response], Exception | None] | None = None
    models: Iterable[SmithyEndpoint] = ()

    def __post_init__(self) -> None:
        for name in OPTIONS:
            object.__setattr__(self, name, parse_option(name, getattr(self, name), "code"))

    @property
    def numbers(self) -> RetryNumbers:
        """The numbers of the chosen specification."""
        return RETRY_SPECS[self.retry_spec]

    @property
    def transient_base(self) -> float:
        """The backoff base after a transient failure, in seconds."""
        return self.numbers.initial_backoff if self.initial_backoff is None else self.initial_backoff

    @property
    def throttling_base(self) -> float:
        """The backoff base after throttling, in seconds."""
        return self.numbers.throttling_backoff if self.throttling_backoff is None else self.throttling_backoff

    def replace(self, **options: Any) -> RetryConfig:
        """Another config with some options changed.

        :raises RetryConfigError: for a bad value.
        :raises TypeError: for an option that there is not.
        """
        return dataclasses.replace(self, **check_names(options))


class RetryOptions(TypedDict, total=False):
    """The options as keywords, for type checkers."""

    mode: str
    max_attempts: int
    retry_spec: str
    initial_backoff: float | None
    throttling_backoff: float | None
    max_backoff: float
    jitter: str
    quota: float | RetryQuota | None
    quota_url: str | QuotaUrl | None
    refill_rate: float
    on_empty: str
    success_reward: float
    max_permit_wait: float | None
    rate_limiter: RateLimiterSettings
    max_retry_after: float
    operation_timeout: float | None
    operation_attempt_timeout: float | None
    timeout: TimeoutType
    preload_content: bool
    allowed_methods: Collection[str] | None
    strict_methods: bool
    retry_status_codes: Collection[int]
    idempotency_header: str
    idempotency_key: bool | Callable[..., str]
    raise_on_status: bool
    scope: Callable[[PreparedRequest], str] | None
    enabled: bool
    classifiers: Iterable[RetryClassifier]
    default_classifiers: bool
    error_parser: Callable[[Response], Exception | None] | None
    models: Iterable[SmithyEndpoint | SmithyModel]


def check_names(options: dict[str, Any]) -> dict[str, Any]:
    """The options, if there is each of them.

    :raises TypeError: for an unknown one, with the nearest name.
    """
    for name in options:
        if name not in OPTIONS:
            raise TypeError(unknown_option(name))
    return options


def unknown_option(name: str) -> str:
    """The sentence for an option that there is not, with the nearest name."""
    nearest = difflib.get_close_matches(name, OPTIONS, n=1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"there are {', '.join(OPTIONS)}"
    return f"there is no option {name!r}: {hint}"
