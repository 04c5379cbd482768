"""Options from environment variables (contract 10.2). The environment is an argument: nothing is read on import."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import RetryConfigWarning
from .once import is_first
from .options import OPTIONS
from .suggestion import suggestion
from .text_values import parse_text

PREFIX = "SMITHY_RETRY_"

NOT_FROM_ENVIRONMENT = frozenset({"trust_env"})
"""Whether to read the environment is not for the environment to say."""

VARIABLES: dict[str, str] = {
    PREFIX + name.upper(): name
    for name, option in OPTIONS.items()
    if not option.is_object and name not in NOT_FROM_ENVIRONMENT
}
"""Each variable and the option that it sets."""

ENABLED = PREFIX + "ENABLED"

_warned: dict[str, object] = {}
"""What was warned about."""


def source_of(variable: str) -> str:
    """How a variable is named as a source."""
    return f"environment variable {variable}"


def is_switched_off(environ: Mapping[str, str]) -> bool:
    """Whether ``SMITHY_RETRY_ENABLED`` says false. It beats code, and nothing else is looked at then.

    :raises RetryConfigError: if it says neither true nor false.
    """
    text = environ.get(ENABLED, "").strip()
    return text != "" and parse_text("enabled", text, source_of(ENABLED)) is False


def from_environment(
    environ: Mapping[str, str], names: Iterable[str] = OPTIONS
) -> tuple[dict[str, Any], dict[str, str]]:
    """The options that the environment sets, and the source of each. Blank is the same as not set.

    :param environ: the environment variables.
    :param names: the options to look for.
    :raises RetryConfigError: for a value that its option does not allow.
    """
    wanted = frozenset(names)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for variable, name in VARIABLES.items():
        text = environ.get(variable, "").strip() if name in wanted else ""
        if text != "":
            sources[name] = source_of(variable)
            values[name] = parse_text(name, text, sources[name])
    return values, sources


def warn_of_typos(environ: Mapping[str, str]) -> None:
    """Warn about variables with our prefix that set nothing: once per process and variable, with the nearest name."""
    for variable in environ:
        if variable.startswith(PREFIX) and variable not in VARIABLES and is_first(_warned, variable):
            warnings.warn(_typo(variable), RetryConfigWarning, stacklevel=2)


def _typo(variable: str) -> str:
    name = variable[len(PREFIX) :].lower()
    if name in OPTIONS and PREFIX + name.upper() not in VARIABLES:
        return f"{variable} sets nothing: the option {name!r} can only be set in code"
    return f"{variable} sets nothing: {suggestion(variable.upper(), VARIABLES)}"
