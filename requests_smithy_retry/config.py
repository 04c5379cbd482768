"""The policy as one frozen value (contract 10.1)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from .backoff import Jitter
from .classifier import RetryClassifier
from .contradictions import check_contradictions
from .limiter_settings import RateLimiterSettings
from .options import OPTIONS, check_names, parse_option
from .presets import RETRY_SPECS, RetryNumbers
from .quota import RetryQuota
from .quota_url import QuotaUrl
from .urllib3_rules import Urllib3Rules

if TYPE_CHECKING:
    from collections.abc import Collection

    from requests import PreparedRequest, Response
    from typing_extensions import Self
    from urllib3.util import Timeout

    from .config_report import Setting
    from .smithy import SmithyEndpoint, SmithyModel
    from .worst_case import WorstCase

    TimeoutType = float | tuple[float | None, float | None] | Timeout | None


@dataclass(frozen=True, kw_only=True, repr=False)
class RetryConfig:
    """Everything that can be configured. It validates when it is made and never changes.

    The options and their defaults stand in one table, :data:`requests_smithy_retry.options.OPTIONS`. Durations are in
    seconds. ``initial_backoff`` and ``throttling_backoff`` are those of ``retry_spec`` unless given.

    It reads no environment; an adapter does when it is made, and so does :meth:`from_environment`. Each value knows
    where it came from (:meth:`explain`); two configs are equal if their values are, wherever they came from.

    >>> RetryConfig(max_attempts=0)
    Traceback (most recent call last):
    requests_smithy_retry.errors.RetryConfigError: max_attempts=0 (from code): a whole number from 1 on is allowed

    :raises RetryConfigError: for a value that its option does not allow.
    """

    mode: str = OPTIONS["mode"].default
    max_attempts: int = OPTIONS["max_attempts"].default
    retry_spec: str = OPTIONS["retry_spec"].default
    initial_backoff: float | None = OPTIONS["initial_backoff"].default
    throttling_backoff: float | None = OPTIONS["throttling_backoff"].default
    max_backoff: float = OPTIONS["max_backoff"].default
    jitter: str | Jitter = OPTIONS["jitter"].default
    quota: float | str | RetryQuota | None = OPTIONS["quota"].default
    quota_url: str | QuotaUrl | None = OPTIONS["quota_url"].default
    refill_rate: float = OPTIONS["refill_rate"].default
    on_empty: str = OPTIONS["on_empty"].default
    success_reward: float = OPTIONS["success_reward"].default
    max_permit_wait: float | None = OPTIONS["max_permit_wait"].default
    rate_limiter: RateLimiterSettings = OPTIONS["rate_limiter"].default
    max_retry_after: float = OPTIONS["max_retry_after"].default
    operation_timeout: float | None = OPTIONS["operation_timeout"].default
    operation_attempt_timeout: float | None = OPTIONS["operation_attempt_timeout"].default
    timeout: TimeoutType = OPTIONS["timeout"].default
    preload_content: bool = OPTIONS["preload_content"].default
    allowed_methods: Collection[str] | None = OPTIONS["allowed_methods"].default
    strict_methods: bool = OPTIONS["strict_methods"].default
    retry_status_codes: Collection[int] = OPTIONS["retry_status_codes"].default
    idempotency_header: str = OPTIONS["idempotency_header"].default
    idempotency_key: bool | Callable[..., str] = OPTIONS["idempotency_key"].default
    raise_on_status: bool = OPTIONS["raise_on_status"].default
    scope: Callable[[PreparedRequest], str] | None = OPTIONS["scope"].default
    enabled: bool = OPTIONS["enabled"].default
    classifiers: Iterable[RetryClassifier] = OPTIONS["classifiers"].default
    default_classifiers: bool = OPTIONS["default_classifiers"].default
    listeners: Iterable[Any] = OPTIONS["listeners"].default
    sdk_headers: bool = OPTIONS["sdk_headers"].default
    error_parser: Callable[[Response], Exception | None] | None = OPTIONS["error_parser"].default
    models: Iterable[SmithyEndpoint] = OPTIONS["models"].default
    urllib3_rules: Urllib3Rules | None = OPTIONS["urllib3_rules"].default
    trust_env: bool = OPTIONS["trust_env"].default
    aws_config: bool | str = OPTIONS["aws_config"].default
    _sources: dict[str, str] = dataclasses.field(init=False, compare=False)

    def __new__(cls, **options: Any) -> Self:  # noqa: D102
        # Only here can be seen what was given, as against what is a default.
        self = super().__new__(cls)
        object.__setattr__(self, "_sources", dict.fromkeys(options, "code"))
        return self

    def __post_init__(self) -> None:
        for name in OPTIONS:
            object.__setattr__(self, name, parse_option(name, getattr(self, name), "code"))
        check_contradictions(self)

    @classmethod
    def from_environment(cls, **options: Any) -> Self:
        """The config that an adapter with these options would have here and now (contract 10.2, 10.3).

        :param options: as in the constructor; they beat the environment, but for ``SMITHY_RETRY_ENABLED=false``.
        :raises RetryConfigError: for a bad option or variable, or AWS settings that cannot be read.
        """
        from .resolve import resolve

        return resolve(cls(**check_names(options)))

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
        return self.replace_from(dict.fromkeys(options, "code"), **options)

    def replace_from(self, sources: Mapping[str, str], **options: Any) -> Self:
        """As :meth:`replace`, for values that do not come from code.

        :param sources: where each of the options came from.
        """
        if not options:
            return self
        values = {name: parse_option(name, value, sources[name]) for name, value in check_names(options).items()}
        new = self._with(values, {**self._sources, **sources})
        check_contradictions(new)
        return new

    def without(self, source: str) -> Self:
        """Another config in which everything that came from one source is as it was by default."""
        left = {name: origin for name, origin in self._sources.items() if origin != source}
        return self._with({name: OPTIONS[name].default for name in self._sources.keys() - left.keys()}, left)

    def _with(self, values: dict[str, Any], sources: dict[str, str]) -> Self:
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **values, _sources=sources)
        return new

    def source(self, name: str) -> str:
        """Where the value of an option came from.

        ``"code"``, ``"environment variable SMITHY_RETRY_MAX_ATTEMPTS"``, ``"environment variable AWS_MAX_ATTEMPTS"``,
        ``"profile 'x' in ~/.aws/config"``, ``"max_retries"``, ``"from retry_spec 2.1"`` or ``"default"``.

        :raises TypeError: for an option that there is not.
        """
        check_names({name: None})
        if OPTIONS[name].by_spec and getattr(self, name) is None:
            return f"from retry_spec {self.retry_spec}"
        return self._sources.get(name, "default")

    def is_given(self, name: str) -> bool:
        """Whether somebody set an option, be it to its default."""
        return name in self._sources

    def settings(self) -> tuple[Setting, ...]:
        """Every option with its effective value and where it came from, in the order of the documentation."""
        from .config_report import settings_of

        return settings_of(self)

    def explain(self) -> str:
        """The effective policy as a table: option, value, source."""
        from .config_report import as_table

        return as_table(self.settings())

    def worst_case(self) -> WorstCase:
        """The most attempts, the longest sleep and the longest wall time of one operation, in closed form.

        >>> RetryConfig(max_attempts=3, max_retry_after=10).worst_case().sleep
        20
        """
        from .worst_case import worst_case

        return worst_case(self)

    def __repr__(self) -> str:
        from .config_report import summary

        return f"{type(self).__name__}({summary(self.settings())})"


class RetryOptions(TypedDict, total=False):
    """The options as keywords, for type checkers."""

    mode: str
    max_attempts: int
    retry_spec: str
    initial_backoff: float | None
    throttling_backoff: float | None
    max_backoff: float
    jitter: str | Jitter
    quota: float | str | RetryQuota | None
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
    listeners: Iterable[Any]
    sdk_headers: bool
    error_parser: Callable[[Response], Exception | None] | None
    models: Iterable[SmithyEndpoint | SmithyModel]
    urllib3_rules: Urllib3Rules | None
    trust_env: bool
    aws_config: bool | str
