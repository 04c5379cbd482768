"""Every option, once (contract 10.1): its name, its default, what it accepts, and what it is for.

:class:`~requests_smithy_retry.RetryConfig`, the documentation's table and (later) the environment are made from
:data:`OPTIONS`. To add an option, add a line here and a field there; a test holds the two together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import option_types as types
from .backoff import Jitter
from .errors import RetryConfigError
from .limiter_settings import DEFAULT_SETTINGS
from .option_types import Parse, Refused
from .presets import RETRY_SPECS
from .quota_url import quota_url
from .resend import IDEMPOTENT_METHODS
from .statuses import RETRY_STATUS_CODES
from .suggestion import suggestion

ADAPTER_OPTIONS = frozenset(
    {
        "allowed_methods",
        "enabled",
        "idempotency_header",
        "idempotency_key",
        "operation_attempt_timeout",
        "operation_timeout",
        "listeners",
        "preload_content",
        "raise_on_status",
        "scope",
        "sdk_headers",
        "strict_methods",
        "timeout",
        "trust_env",
    }
)
"""What the adapter itself goes by; every other option is the strategy's."""

CLASSIFIER_OPTIONS = frozenset({"classifiers", "default_classifiers", "error_parser", "models", "retry_status_codes"})
"""What the classifiers go by. For a foreign strategy, the adapter asks them about the resend rule."""


class Option(NamedTuple):
    """One option.

    :param name: as a keyword.
    :param default: its value where nobody says anything. None with ``by_spec``: the specification's number.
    :param parse: accepts or refuses a value.
    :param meaning: one line for the table.
    :param by_spec: the default comes from ``retry_spec``.
    :param is_object: it takes an object rather than a value, so the environment cannot set it.
    """

    name: str
    default: Any
    parse: Parse
    meaning: str
    by_spec: bool = False
    is_object: bool = False


OPTIONS: dict[str, Option] = {
    option.name: option
    for option in (
        Option("mode", "standard", types.one_of("simple", "standard", "adaptive"), "which built-in strategy decides"),
        Option("max_attempts", 3, types.whole_number(1), "most attempts of an operation, the first one included"),
        Option("retry_spec", "2.1", types.one_of(*RETRY_SPECS), "which published set of numbers is the default"),
        Option(
            "initial_backoff", None, types.number(none=True), "backoff base after a transient failure, s", by_spec=True
        ),
        Option("throttling_backoff", None, types.number(none=True), "backoff base after throttling, s", by_spec=True),
        Option("max_backoff", 20.0, types.number(), "no computed backoff is longer, s"),
        Option("jitter", "full", types.one_of(*(kind.value for kind in Jitter)), "how delays are spread"),
        Option(
            "quota", 500, types.quota, "retry tokens per scope, a payoff quota, a bucket to share, or None for no quota"
        ),
        Option("quota_url", None, quota_url, "where processes share the quota: redis://, unix://, shm://, memory://"),
        Option("refill_rate", 0.0, types.number(unit="tokens per second"), "tokens that come back by themselves, 1/s"),
        Option("on_empty", "fail", types.one_of("fail", "wait"), "an empty quota refuses a retry, or has it wait"),
        Option("success_reward", 1, types.number(unit="tokens"), "tokens that a first-try success gives back"),
        Option(
            "max_permit_wait",
            None,
            types.number(none=True),
            "adaptive: longest wait for a send permit, s",
        ),
        Option(
            "rate_limiter", DEFAULT_SETTINGS, types.limiter_settings, "adaptive: the limiter's numbers", is_object=True
        ),
        Option("max_retry_after", 120.0, types.number(), "a longer wait asked for by a server is not made, s"),
        Option("operation_timeout", None, types.number(above=0, none=True), "bound for attempts and waits together, s"),
        Option("operation_attempt_timeout", None, types.number(above=0, none=True), "bound for each attempt, s"),
        Option("timeout", None, types.timeout, "used where the caller gave no timeout"),
        Option("preload_content", True, types.boolean, "read the body inside the attempt where stream is false"),
        Option("allowed_methods", IDEMPOTENT_METHODS, types.methods, "methods that may always be sent again"),
        Option("strict_methods", False, types.boolean, "other methods are sent again only if no byte was written"),
        Option("retry_status_codes", RETRY_STATUS_CODES, types.status_codes, "statuses that are retried"),
        Option("idempotency_header", "Idempotency-Key", types.header_name, "a request that has it may be sent again"),
        Option("idempotency_key", False, types.idempotency_key, "mint a key where one is needed", is_object=True),
        Option("raise_on_status", False, types.boolean, "raise RetryError instead of returning the last bad response"),
        Option("scope", None, types.function, "names the scope of a request", is_object=True),
        Option("enabled", True, types.boolean, "False: behave as a plain HTTPAdapter"),
        Option("classifiers", (), types.classifiers, "classifiers beside the defaults", is_object=True),
        Option("default_classifiers", True, types.boolean, "False: only the given classifiers"),
        Option("error_parser", None, types.function, "makes an exception from a response, or None", is_object=True),
        Option("listeners", (), types.listeners, "are told what happens", is_object=True),
        Option("sdk_headers", False, types.boolean, "send amz-sdk-invocation-id and amz-sdk-request"),
        Option("models", (), types.models, "Smithy models, each with its endpoint", is_object=True),
        Option("urllib3_rules", None, types.urllib3_rules, "what a urllib3 Retry asked for besides", is_object=True),
        Option("trust_env", True, types.boolean, "False: read no environment variable and no AWS settings"),
        Option("aws_config", False, types.aws_config, "True or a profile's name: also go by the AWS settings"),
    )
}
"""By name, in the order of the table."""


def allowed_values(name: str) -> str:
    """What an option accepts, in words: the phrase with which it refuses."""
    try:
        OPTIONS[name].parse(object())
    except Refused as refusal:
        return str(refusal).partition(" is allowed")[0]
    raise AssertionError(f"{name} accepts anything")  # pragma: no cover - each option refuses an object()


def parse_option(name: str, value: Any, source: str) -> Any:
    """The value as it is kept.

    :param name: of a known option.
    :param value: what was given.
    :param source: where it came from, for the error.
    :raises RetryConfigError: if the option does not allow the value.
    """
    try:
        return OPTIONS[name].parse(value)
    except Refused as refusal:
        raise RetryConfigError(name, value, source, str(refusal)) from None


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
    return f"there is no option {name!r}: {suggestion(name, OPTIONS, repr)}"
