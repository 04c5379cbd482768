"""The sources of options (contract 10.2, 10.3): code, the environment, AWS settings."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from ..checks import Refused, is_first, suggestion
from ..errors import RetryConfigError, RetryConfigWarning
from .parsers import one_of
from .retry_config import OPTIONS, RetryConfig

PREFIX = "SMITHY_RETRY_"

VARIABLES: dict[str, str] = {
    PREFIX + name.upper(): name for name, option in OPTIONS.items() if not option.not_from_environment
}
"""Each variable and the option that it sets."""

ENABLED = PREFIX + "ENABLED"

MOUNTED = PREFIX + "MOUNTED"

INSTALLING = frozenset({MOUNTED})
"""The variables that ``install`` and ``run`` read; no option of an adapter."""

_warned: dict[str, object] = {}
"""The variables that were warned about, so that each is warned about once."""


def source_of(variable: str) -> str:
    return f"environment variable {variable}"


def is_switched_off(environ: Mapping[str, str]) -> bool:
    """True if ``SMITHY_RETRY_ENABLED`` says false. It beats code, and nothing else is looked at then."""
    text = environ.get(ENABLED, "").strip()
    return text != "" and _parsed("enabled", text, source_of(ENABLED)) is False


def _parsed(name: str, text: str, source: str) -> Any:
    from .text_values import parse_text  # of use only where a variable is set

    return parse_text(name, text, source)


def from_environment(
    environ: Mapping[str, str], names: Iterable[str] = OPTIONS
) -> tuple[dict[str, Any], dict[str, str]]:
    """The options that the environment sets, and the source of each. Blank is the same as not set."""
    wanted = frozenset(names)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for variable, name in VARIABLES.items():
        text = environ.get(variable, "").strip() if name in wanted else ""
        if text != "":
            sources[name] = source_of(variable)
            values[name] = _parsed(name, text, sources[name])
    return values, sources


def warn_of_typos(environ: Mapping[str, str]) -> None:
    """Warn about variables with our prefix that set nothing: once per process and variable, with the nearest name."""
    for variable in environ:
        if not variable.startswith(PREFIX) or variable in VARIABLES or variable in INSTALLING:
            continue
        if is_first(_warned, variable):
            warnings.warn(_typo(variable), RetryConfigWarning, stacklevel=2)


def _typo(variable: str) -> str:
    name = variable[len(PREFIX) :].lower()
    if name in OPTIONS and PREFIX + name.upper() not in VARIABLES:
        return f"{variable} sets nothing: the option {name!r} can only be set in code"
    return f"{variable} sets nothing: {suggestion(variable.upper(), (*VARIABLES, *INSTALLING))}"


_parse_mounted = one_of("none", "plain", "all")


def mounted_of(value: Any, environ: Mapping[str, str], source: str = "code", *, default: str = "none") -> str:
    """Return which of the adapters that a program mounts are made to retry: ``"none"``, ``"plain"`` or ``"all"``.

    :param value: the value that was given; None: that of the environment, or the default.
    :param environ: the environment variables.
    :param source: where the value came from.
    :param default: for neither.
    :raises RetryConfigError: for any other value.
    """
    if value is None:
        value, source = environ.get(MOUNTED, "").strip() or default, source_of(MOUNTED)
    try:
        return str(_parse_mounted(value))
    except Refused as refusal:
        raise RetryConfigError("mounted", value, source, str(refusal)) from None


C = TypeVar("C", bound=RetryConfig)

AWS_OPTIONS = frozenset({"max_attempts", "mode", "retry_spec"})
"""The options that AWS settings can set."""


def resolve(config: C, environ: Mapping[str, str] | None = None, names: Iterable[str] = OPTIONS) -> C:
    """Return a config with the environment's values filled in for options that are not set yet.

    :param config: the config that code gave. With ``trust_env=False`` it is returned as it is.
    :param environ: the environment variables; None: those of the process, now.
    :param names: the options to fill in.
    :raises RetryConfigError: for a bad variable, or AWS settings that cannot be read.
    """
    if not config.trust_env:
        return config
    environ = os.environ if environ is None else environ
    warn_of_typos(environ)
    if is_switched_off(environ):
        return config.replace_from({"enabled": source_of(ENABLED)}, enabled=False)
    values, sources = from_environment(environ, names)
    # Beside a strategy AWS settings do not apply: they were read, if at all, when the strategy was made.
    if not AWS_OPTIONS.isdisjoint(names):
        aws_values, aws_sources = _asked_of_aws(config, environ, names, values, sources)
        values = {**aws_values, **values}
        sources = {**aws_sources, **sources}
    wanted = [name for name in names if name in values and not config.is_given(name)]
    return config.replace_from({name: sources[name] for name in wanted}, **{name: values[name] for name in wanted})


def _asked_of_aws(
    config: RetryConfig,
    environ: Mapping[str, str],
    names: Iterable[str],
    values: Mapping[str, Any],
    sources: Mapping[str, str],
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of the AWS settings and their sources, if code or a variable asks for them."""
    by_code = config.is_given("aws_config")
    aws_config = config.aws_config if by_code else values.get("aws_config", config.aws_config)
    if aws_config is False:
        return {}, {}
    from .aws_settings import from_aws_settings  # few ask for it, and it brings a parser of files

    asked_by = config.source("aws_config") if by_code else sources["aws_config"]
    return from_aws_settings(environ, aws_config, source=asked_by, settled={*values, *filter(config.is_given, names)})
