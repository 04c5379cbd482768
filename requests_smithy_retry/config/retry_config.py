"""The configuration as one frozen value: every option, once (contract 10.1).

To add an option, add a field to :class:`RetryConfig` and a line to :class:`RetryOptions`. The environment, the command
line and the tables of the documentation are read off the field; :data:`CONTRADICTIONS` lists what excludes what.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from operator import not_
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict

from ..checks import number, status_codes, whole_number
from ..classifiers.protocol import Only, RetryClassifier
from ..classifiers.resend import IDEMPOTENT_METHODS
from ..classifiers.statuses import RETRY_STATUS_CODES
from ..core.backoff import RETRY_SPECS, Backoff, ExponentialRetryBackoffStrategy, Jitter, RetryNumbers
from ..core.quota import RetryQuota
from ..core.retry_budget import PayoffTokenBucket
from ..core.wait_queue import ATTEMPTS
from ..errors import RetryConfigError
from . import parsers as types
from .options import LIBRARY, adapter_option, judging_option, nearest, option, options_of, warn_of_void

if TYPE_CHECKING:
    from requests import PreparedRequest, Response
    from typing_extensions import Self
    from urllib3.util import Timeout

    from ..features.rate_limits import RateLimitDialect
    from ..features.redis import RedisClient
    from ..features.urllib3_retry.translation import JitteredBackoff, Urllib3Rules
    from .report import Setting, WorstCase
else:  # pragma: no branch - for typing.get_type_hints; a config knows no HTTP library and no feature
    from ..typing_names import Self

    PreparedRequest = Response = Timeout = Any
    RateLimitDialect = RedisClient = JitteredBackoff = Urllib3Rules = Setting = WorstCase = Any

Quota: TypeAlias = float | str | RetryQuota | RedisClient | Callable[[str], RetryQuota] | None
TimeoutType: TypeAlias = float | tuple[float | None, float | None] | Timeout | None


def has_queue(quota: Any) -> bool:
    """Return True for a quota with which operations wait for a service that is down."""
    return isinstance(quota, str | PayoffTokenBucket) or getattr(quota, "has_queue", False)


NO_QUEUE = "only the quota 'payoff' waits for a service, and one on Redis"

PUBLISHED = f"it asks for the published bucket, and {NO_QUEUE}; quota='payoff' asks for that"

PUBLISHED_CAPACITY = 500
"""Tokens of a bucket of the AWS SDKs."""


@dataclass(frozen=True, kw_only=True, repr=False)
class RetryConfig:
    """Everything that can be configured: an immutable value, validated on construction.

    Durations are in seconds.

    The constructor reads no environment. An adapter does so when it is made, and so does :meth:`from_environment`.
    A config remembers the source of each value (:meth:`explain`). Configs with equal values are equal, whatever the
    sources.

    >>> RetryConfig(max_attempts=0)
    Traceback (most recent call last):
    requests_smithy_retry.errors.RetryConfigError: max_attempts=0 (from code): a whole number of 1 or more is allowed

    :raises RetryConfigError: for a value that its option does not allow, and for options that contradict each other.
    """

    mode: str = option("standard", types.one_of("standard", "adaptive"), "the built-in strategy that decides")
    max_attempts: int | None = option(
        None,
        whole_number(none=True),
        "most requests that one operation sends; None: three, and in an outage as many as patience allows",
    )
    retry_spec: str = option("2.1", types.one_of(*RETRY_SPECS), "the published set of numbers that is the default")
    backoff: float | Backoff | None = option(
        None,
        types.backoff,
        "seconds before each retry; None: random, doubling from the base of retry_spec",
    )
    max_backoff: float = option(20.0, number(), "longest computed backoff, s")
    jitter: str | Jitter = option(
        "full",
        types.one_of(Jitter.FULL.value, Jitter.NONE.value),
        "whether waits are random: a backoff from 0 to the computed one, a server's wait up to a tenth longer",
    )
    quota: Quota = option(
        "payoff",
        types.quota,
        "retry budget of a scope",
    )
    patience: float = option(
        5.0,
        number(),
        "age that an outage may reach before calls stop waiting for the service, s; 0: no call waits; a given one also "
        "bounds a server's wait, unless max_retry_after is given",
    )
    max_retry_after: float = option(
        120.0,
        number(),
        "longest wait that a server may ask for, s; a longer one ends the call",
    )
    max_wait: float | None = adapter_option(
        None, number(none=True), "longest wait of any kind, s; a longer one ends the call with RetryLater"
    )
    pacing: str | RateLimitDialect | Collection[RateLimitDialect] = adapter_option(
        "announced", types.pacing, "whether sends wait for the rate limits that a server announces", judges=True
    )
    operation_timeout: float | None = adapter_option(
        None, number(above=0, none=True), "most seconds for all attempts and waits of an operation, s"
    )
    operation_attempt_timeout: float | None = adapter_option(
        None, number(above=0, none=True), "most seconds for each attempt, s"
    )
    deadline_header: str | tuple[str, str] | None = adapter_option(
        None, types.deadline_header, "header that tells the server how much time is left"
    )
    timeout: TimeoutType = adapter_option(None, types.timeout, "timeout of requests that have none")
    max_idle: float = adapter_option(
        55.0, number(), "seconds for which a connection may lie idle, s; an older one is closed instead of used"
    )
    resume: bool = adapter_option(
        True, types.boolean, "resume a body that breaks off where it stopped, if that is safe"
    )
    allowed_methods: Collection[str] | None = adapter_option(
        IDEMPOTENT_METHODS, types.methods, "methods that may always be sent again"
    )
    retry_status_codes: Collection[int] = judging_option(RETRY_STATUS_CODES, status_codes, "statuses that are retried")
    idempotency_key: bool | Callable[..., str] = adapter_option(
        False, types.idempotency_key, "send an idempotency key where one is needed", not_from_environment=True
    )
    on_unauthorized: Callable[[Response], Mapping[str, str] | None] | None = adapter_option(
        None,
        types.function,
        "function of a 401 that returns the headers for one more attempt, or None",
        not_from_environment=True,
    )
    raise_on_status: bool = adapter_option(
        False, types.boolean, "raise RetryError instead of returning the last bad response"
    )
    scope: Callable[[PreparedRequest], str] | None = adapter_option(
        None, types.function, "function of a request that returns the name of its scope", not_from_environment=True
    )
    enabled: bool = adapter_option(True, types.boolean, "False: behave as an HTTPAdapter with the same max_retries")
    classifiers: Iterable[RetryClassifier] = judging_option(
        (),
        types.classifiers,
        "classifiers besides the default ones, or with only(...) instead of them",
        not_from_environment=True,
    )
    validate: Callable[[Response], bool | float] | None = judging_option(
        None,
        types.validate,
        "function of a 2xx: True if it is an answer, False to retry it, or seconds until the next poll",
        not_from_environment=True,
    )
    listeners: Iterable[Any] = adapter_option(
        (), types.listeners, "listeners that observe each operation", not_from_environment=True
    )
    telemetry: Collection[str] = adapter_option(
        (), types.telemetry, "shows every retry without code: in the log, by OpenTelemetry or Prometheus"
    )
    trust_env: bool = adapter_option(
        True, types.boolean, "False: read no environment variable and no AWS settings", not_from_environment=True
    )
    aws_config: bool | str = option(
        False, types.aws_config, "True or the name of a profile: also read the settings of the AWS SDKs"
    )
    # Not options: only the translation of another library's policy sets these three.
    backoff_base: float | None = field(default=None, init=False)
    strict_methods: bool = field(default=False, init=False)
    rules: Urllib3Rules | None = field(default=None, init=False)
    _sources: dict[str, str] = field(init=False, compare=False)

    def __new__(cls, **options: Any) -> Self:
        # Only the constructor can tell a given value from a default.
        self = super().__new__(cls)
        object.__setattr__(self, "_sources", dict.fromkeys(options, "code"))
        return self

    def __post_init__(self) -> None:
        for name, item in OPTIONS.items():
            object.__setattr__(self, name, item.read(getattr(self, name), "code"))
        _check_contradictions(self)

    @classmethod
    def from_environment(cls, **options: Any) -> Self:
        """Return the config that an adapter with these options would have here and now (contract 10.2).

        :param options: as in the constructor. They override the environment, except ``SMITHY_RETRY_ENABLED=false``.
        :raises RetryConfigError: for a bad option or variable, and for AWS settings that cannot be read.
        """
        from .sources import resolve

        return resolve(cls(**check_names(options)))

    @property
    def numbers(self) -> RetryNumbers:
        """The numbers of the chosen specification."""
        return RETRY_SPECS[self.retry_spec]

    @property
    def most_attempts(self) -> int | None:
        """The most requests that an operation sends: ``max_attempts``, or the number of the specification asked for.

        None: three while the service works, and in an outage as many as patience allows.
        """
        asks_for_it = self.is_given("retry_spec") or self.aws_config is not False
        return ATTEMPTS if self.max_attempts is None and asks_for_it else self.max_attempts

    @property
    def heeds_hints(self) -> bool:
        """True if waits that servers ask for are honoured; a translated urllib3 ``Retry`` may switch them off."""
        return self.rules is None or self.rules.heeds_hints

    def patience_for_hints(self, of_block: float | None = None) -> float | None:
        """Return the patience that also bounds what servers ask for: one given without ``max_retry_after``, or None.

        :param of_block: the patience of the blocks around the call, which takes precedence.
        """
        if self.is_given("max_retry_after"):
            return None
        return self.patience if of_block is None and self.is_given("patience") else of_block

    def effective(self, name: str) -> Any:
        """Return the value of an option that is in force: its own, or that of the published numbers."""
        if name == "quota":
            return self.effective_quota
        if name == "max_attempts":
            return self.most_attempts
        if name == "backoff" and self.backoff is None and self.backoff_base is not None:
            return self.backoffs[0]
        return getattr(self, name)

    @property
    def backoffs(self) -> tuple[Backoff, Backoff]:
        """The backoffs after most failures, and after throttling."""
        own, numbers = self.backoff, self.numbers
        if own is None:
            return self._doubling(numbers.initial_backoff), self._doubling(numbers.throttling_backoff)
        if isinstance(own, (int, float)):
            own = ExponentialRetryBackoffStrategy(backoff_scale_value=own, max_backoff=own, jitter_type=Jitter.NONE)
        return own, own

    def _doubling(self, base: float) -> ExponentialRetryBackoffStrategy | JitteredBackoff:
        exponential = ExponentialRetryBackoffStrategy(
            backoff_scale_value=base if self.backoff_base is None else self.backoff_base,
            max_backoff=self.max_backoff,
            jitter_type=self.jitter,
        )
        return exponential if self.rules is None else self.rules.backoff(exponential)

    @property
    def longest_backoff(self) -> Callable[[int], float] | None:
        """Given a retry's number, the longest delay before it in seconds; None: unknown for the program's own backoff.

        It never falls from retry to retry.
        """
        backoff: Any = self.backoffs[1]  # after throttling no delay is shorter
        is_known = self.backoff is None or type(backoff) is ExponentialRetryBackoffStrategy
        return backoff.longest_delay if is_known else None

    @property
    def effective_quota(self) -> Quota:
        """``quota``; or the published bucket, if no source set it and others, such as ``retry_spec``, ask for that."""
        return self.quota if self._asks_for_numbers() is None else PUBLISHED_CAPACITY

    def _asks_for_numbers(self) -> str | None:
        """Return the source of the published bucket; None: no other option asks for it, or ``quota`` was set."""
        if self.is_given("quota"):
            return None
        for name, source in self._sources.items():
            if source.startswith(("environment variable AWS_", "profile ")):
                return source
            if name == "retry_spec":
                return f"retry_spec {self.retry_spec}"
        return None

    def replace(self, **options: Any) -> RetryConfig:
        """Return a config with some options changed.

        :raises RetryConfigError: for a value that its option does not allow, and for options that contradict.
        :raises TypeError: for an unknown option.
        """
        return self.replace_from(dict.fromkeys(check_names(options), "code"), **options)

    def replace_from(self, sources: Mapping[str, str], **options: Any) -> Self:
        """Return a config with some options changed, whose values come from these sources.

        An option that contradicts one of a higher layer, such as a variable that contradicts the program, is left out.
        """
        if not options:
            return self
        values = {
            name: OPTIONS[name].read(value, sources[name]) if name in OPTIONS else value
            for name, value in options.items()
        }
        new = self._with(values, {**self._sources, **sources})
        for name in OPTIONS.keys() & options.keys():
            if _rank(self.source(name)) < _rank(new.source(name)) and getattr(self, name) != getattr(new, name):
                warn_of_void(name, getattr(self, name), self.source(name), f"{new.shown(name)} wins")
        overruled = _overruled(new)
        for name, winner in overruled.items():
            warn_of_void(name, getattr(new, name), new.source(name), winner, is_code=OPTIONS[name].not_from_environment)
        new = new._unset(overruled)
        _check_contradictions(new)
        return new

    def above(self, defaults: RetryConfig) -> Self:
        """Return this config with a library's defaults for options not set here; the environment overrides them."""
        names = [name for name in OPTIONS if defaults.is_given(name) and not self.is_given(name)]
        return self.replace_from(dict.fromkeys(names, LIBRARY), **{name: getattr(defaults, name) for name in names})

    def without(self, source: str) -> Self:
        """Return a config in which every option that came from one source has its default."""
        return self._unset({name for name, origin in self._sources.items() if origin == source})

    def only(self, names: Collection[str]) -> Self:
        """Return a config in which every other option has its default."""
        return self._unset(OPTIONS.keys() - names)

    def _unset(self, names: Collection[str]) -> Self:
        left = {name: origin for name, origin in self._sources.items() if name not in names}
        return self._with({name: getattr(type(self), name) for name in names}, left)

    def _with(self, values: dict[str, Any], sources: dict[str, str]) -> Self:
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **values, _sources=sources)
        return new

    def source(self, name: str) -> str:
        """Return the source of an option's value.

        ``"code"``, ``"environment variable SMITHY_RETRY_MAX_ATTEMPTS"``, ``"environment variable AWS_MAX_ATTEMPTS"``,
        ``"profile 'x' in ~/.aws/config"``, ``"max_retries"``, ``"the command line"``, ``"the library's defaults"``,
        ``"retry_spec 2.1"``, or ``"default"``.

        :raises TypeError: for an unknown option.
        """
        check_names({name: None})
        if name == "max_attempts" and self.max_attempts is None and self.most_attempts is not None:
            return f"retry_spec {self.retry_spec}"
        if name == "quota":
            return self._sources.get(name) or self._asks_for_numbers() or "default"
        return self._sources.get(name, "default")

    def shown(self, name: str) -> str:
        """Return an option for a message: its name, value and source."""
        return f"{name}={getattr(self, name)!r} (from {self.source(name)})"

    def is_given(self, name: str) -> bool:
        """Return True if the option was set by any source, even to its default."""
        return name in self._sources

    @property
    def given(self) -> Set[str]:
        """The names of all that was set by any source."""
        return self._sources.keys()

    def is_settled(self, name: str) -> bool:
        """Return True if the environment can no longer set an option: something above a library's defaults did."""
        return self._sources.get(name, LIBRARY) != LIBRARY

    def settings(self) -> tuple[Setting, ...]:
        """Return every option with the value in force and its source, in the order of the documentation."""
        from .report import Setting

        return tuple(Setting(name, self.effective(name), self.source(name)) for name in OPTIONS)

    def explain(self, *, all: bool = True) -> str:  # noqa: A002
        """Return the policy in force as a table: option, value, source.

        :param all: False: only the options that do not have their default.
        """
        from .report import as_table, is_set

        rows = [(item.name, item.text, item.source) for item in self.settings() if all or is_set(item)]
        return as_table(("option", "value", "source"), *rows) if rows else "every option has its default"

    def worst_case(self) -> WorstCase:
        """Return the most attempts, the longest sleep and the longest wall time of one operation, in closed form.

        >>> RetryConfig(max_attempts=3, patience=10).worst_case().sleep
        23.0
        """
        from .report import worst_case

        return worst_case(self)

    def __repr__(self) -> str:
        from .report import summary

        return f"{type(self).__name__}({summary(self.settings())})"


OPTIONS = options_of(RetryConfig)
"""Every option by name, in the order of the documentation."""
ADAPTER_OPTIONS = frozenset(name for name, item in OPTIONS.items() if item.of_adapter)
"""The options that the adapter itself uses. All others are the strategy's."""
JUDGING_OPTIONS = frozenset(name for name, item in OPTIONS.items() if item.judges)
"""The options that affect how outcomes are judged: by a built-in strategy, or by the adapter with any other."""


class RetryOptions(TypedDict, total=False):
    """The options as keywords, for type checkers: the annotations of the fields of :class:`RetryConfig`."""

    mode: str
    max_attempts: int | None
    retry_spec: str
    backoff: float | Backoff | None
    max_backoff: float
    jitter: str | Jitter
    quota: Quota
    patience: float
    max_retry_after: float
    max_wait: float | None
    pacing: str | RateLimitDialect | Collection[RateLimitDialect]
    operation_timeout: float | None
    operation_attempt_timeout: float | None
    deadline_header: str | tuple[str, str] | None
    timeout: TimeoutType
    max_idle: float
    resume: bool
    allowed_methods: Collection[str] | None
    retry_status_codes: Collection[int]
    idempotency_key: bool | Callable[..., str]
    on_unauthorized: Callable[[Response], Mapping[str, str] | None] | None
    raise_on_status: bool
    scope: Callable[[PreparedRequest], str] | None
    enabled: bool
    classifiers: Iterable[RetryClassifier]
    validate: Callable[[Response], bool | float] | None
    listeners: Iterable[Any]
    telemetry: Collection[str]
    trust_env: bool
    aws_config: bool | str


def check_names(options: dict[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in OPTIONS:
            raise TypeError(unknown_option(name))
    return options


def unknown_option(name: str) -> str:
    return f"there is no option {name!r}: {nearest(name, OPTIONS)}"


class Contradiction(NamedTuple):
    """A rule that refuses options that would have no effect with a certain value of another one.

    :param options: the options that would have no effect.
    :param applies: returns, given the value of the other option, whether they would have no effect.
    :param may_be_idle: they may still have their neutral value; see :data:`IDLE`.
    :param unless: an option that decides instead of the other one, if it is set.
    """

    options: tuple[str, ...]
    other: str
    applies: Callable[[Any], bool]
    why: str
    may_be_idle: bool = False
    unless: str = ""

    def voids(self, config: RetryConfig, *, is_idle: bool) -> bool:
        """Return True if the options of this rule have no effect beside the other one in a config."""
        is_excepted = (self.may_be_idle and is_idle) or config.is_given(self.unless)
        return not is_excepted and config.is_given(self.other) and self.applies(getattr(config, self.other))


IDLE = {"patience": 0}
"""The neutral values; for an option that is not listed, it is the default."""

CONTRADICTIONS = (
    Contradiction(("patience",), "quota", lambda quota: not has_queue(quota), NO_QUEUE, may_be_idle=True),
    Contradiction(("patience",), "retry_spec", bool, PUBLISHED, may_be_idle=True, unless="quota"),
    Contradiction(("patience",), "aws_config", bool, PUBLISHED, may_be_idle=True, unless="quota"),
    Contradiction(
        ("retry_status_codes", "validate"),
        "classifiers",
        lambda classifiers: isinstance(classifiers, Only),
        "only the default classifiers use it",
    ),
    Contradiction(
        ("max_backoff",),
        "backoff",
        lambda backoff: backoff is not None,
        "it only bounds a backoff that doubles",
        may_be_idle=True,
    ),
    Contradiction(("aws_config",), "trust_env", not_, "without trust_env no AWS settings are read", may_be_idle=True),
)


def contradictions(config: RetryConfig) -> Iterator[tuple[str, str, str]]:
    """Yield each given option that would have no effect, the given one that voids it, and the reason."""
    for name, item in OPTIONS.items():
        value = getattr(config, name)
        if value is None or not config.is_given(name):
            continue
        for rule in CONTRADICTIONS:
            if name in rule.options and rule.voids(config, is_idle=value == IDLE.get(name, item.default)):
                yield name, rule.other, rule.why


COMMAND_LINE = "the command line"
IN_THE_PROGRAM = frozenset({"code", COMMAND_LINE, "max_retries"})
"""The sources in the program itself, besides the class of a strategy."""


def _rank(source: str) -> int:
    """Return the layer of a source: the program is above its environment, which is above the defaults of a library."""
    if source == LIBRARY:
        return 0
    return 2 if source in IN_THE_PROGRAM or source.startswith("strategy ") else 1


def _check_contradictions(config: RetryConfig) -> None:
    for name, other, why in contradictions(config):
        allowed = f"only one of {name} and {config.shown(other)} is allowed: {why}"
        raise RetryConfigError(name, getattr(config, name), config.source(name), allowed)


def _overruled(config: RetryConfig) -> dict[str, str]:
    """Return the options that contradict one of a higher layer, each with a phrase for what wins."""
    found: dict[str, str] = {}
    for name, other, why in contradictions(config):
        for ours, theirs in ((name, other), (other, name)):
            if _rank(config.source(ours)) > _rank(config.source(theirs)):
                found.setdefault(theirs, f"{config.shown(ours)} wins, and {why}")
    return found


DEFAULTS = RetryConfig()
"""The config without any option."""
