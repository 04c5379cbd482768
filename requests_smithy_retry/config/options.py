"""One option as a field of a dataclass (contract 10.1): its default, the values it accepts, and its other properties.

Everything about one option is declared with its field, by :func:`option`. :func:`options_of` reads the fields into the
tables that the rest of the package uses. :func:`nearest` suggests a name for one that does not exist.
"""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NamedTuple

from ..checks import BadValue, Parse, is_first, level_outside, suggestion
from ..errors import RetryConfigError, RetryConfigWarning

PREFIX = "SMITHY_RETRY_"


class Unset:
    """Stands for "not given" where None and 0 mean something."""

    def __repr__(self) -> str:
        return "<not given>"


UNSET: Any = Unset()

_warned: dict[str, object] = {}


class Option(NamedTuple):
    """One option.

    :param default: the value if no source sets one.
    :param parse: accepts or refuses a value.
    :param meaning: one line for the table of the documentation.
    :param of_adapter: the adapter uses it, whatever the strategy.
    :param judges: it affects how outcomes are judged: by a built-in strategy, or by the adapter with any other.
    :param not_from_environment: no environment variable sets it, for instance because it takes an object.
    """

    name: str
    default: Any
    parse: Parse
    meaning: str
    of_adapter: bool = False
    judges: bool = False
    not_from_environment: bool = False

    @property
    def allowed(self) -> str:
        """The phrase for the values that the option accepts, as in its error messages."""
        try:
            self.parse(object())
        except BadValue as refusal:
            return str(refusal).partition(" is allowed")[0]
        raise AssertionError(f"{self.name} accepts anything")  # pragma: no cover - each option refuses an object()

    def read(self, value: Any, source: str) -> Any:
        """Return a value in the form in which it is kept; raise ``RetryConfigError`` with its source for a bad one."""
        try:
            return self.parse(value)
        except BadValue as refusal:
            raise RetryConfigError(self.name, value, source, str(refusal)) from None


def option(default: Any, parse: Parse, meaning: str, **traits: Any) -> Any:
    return dataclasses.field(default=default, metadata={"option": Option("", default, parse, meaning, **traits)})


adapter_option: Callable[..., Any] = partial(option, of_adapter=True)
judging_option: Callable[..., Any] = partial(option, judges=True)


def options_of(owner: type) -> dict[str, Option]:
    fields = dataclasses.fields(owner)
    return {
        field.name: field.metadata["option"]._replace(name=field.name) for field in fields if "option" in field.metadata
    }


def signature_with(
    options: Mapping[str, Option], annotations: Mapping[str, Any], function: Callable[..., Any]
) -> inspect.Signature:
    """Return a function's signature with each option by name, for mix-ins that inspect it."""
    shown = inspect.signature(function)
    *own, rest = shown.parameters.values()
    keywords = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=item.default, annotation=annotations[name])
        for name, item in options.items()
    ]
    return shown.replace(parameters=[*own, *keywords, rest])


def source_of(variable: str) -> str:
    return f"environment variable {variable}"


def warn_once(key: str, message: str) -> None:
    """Warn at the program's own line; once per process and key, such as the name of a variable."""
    if is_first(_warned, key):
        warnings.warn(message, RetryConfigWarning, stacklevel=level_outside())


def warn_of_void(name: str, value: object, source: str, winner: str, *, is_code: bool = False) -> None:
    """Warn about a variable of ours that has no effect because another setting wins, and about a library's code that is
    not called; do nothing for another source.

    :param is_code: the value is code, such as a function.
    """
    variable = source.removeprefix(source_of(""))
    if (source == source_of(variable) and variable.startswith(PREFIX)) or (is_code and source == LIBRARY):
        message = str(RetryConfigError(name, value, source, f"it has no effect, because {winner}"))
        warn_once(variable if variable.startswith(PREFIX) else name, message)


LIBRARY = "the library's defaults"
NOT_OURS = "it belongs to the strategy that the adapter was given"

WORDS = {
    "max_attempts": "attempts max_retries max_tries retries total total_max_attempts connect read status other "
    "stop stop_after_attempt",
    "operation_timeout": "deadline max_delay max_time stop_after_delay stop_before_delay total_timeout",
    "timeout": "connect_timeout read_timeout",
    "backoff": "backoff_factor base factor interval wait wait_exponential wait_fixed wait_gen "
    "wait_initial wait_random_exponential",
    "max_backoff": "backoff_max max_value wait_max",
    "jitter": "backoff_jitter wait_jitter",
    "max_retry_after": "respect_retry_after respect_retry_after_header retry_after_max",
    "retry_status_codes": "retry_on retry_on_status retry_status retry_statuses status_codes status_forcelist statuses",
    "classifiers": "exception giveup on retry retry_if_exception_type retry_on_exception retry_on_result",
    "allowed_methods": "method_whitelist methods retry_methods retryable_methods",
    "listeners": "after before before_sleep on_backoff on_giveup on_retry on_success retry_error_callback",
    "mode": "retry_mode",
}
"""Each option by the names of urllib3, tenacity, stamina, backoff, botocore and httpx-retries."""

MEANT = {word: name for name, words in WORDS.items() for word in words.split()}


def nearest(name: str, known: Collection[str]) -> str:
    """Return the hint that follows "there is no option of that name": the option that is meant, or all names."""
    meant = MEANT.get(name)
    return f"did you mean {meant!r}?" if meant in known else suggestion(name, known, repr)
