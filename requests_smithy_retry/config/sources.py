"""The sources of options (contract 10.2): code, the environment, AWS settings; and values from text.

A text is read in every possible way, and the option takes the first meaning that it accepts. So no option needs its own
text parser.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeVar

from ..checks import BadValue, suggestion
from ..errors import RetryConfigError
from .options import MEANT, NOT_OURS, PREFIX, Option, source_of, warn_of_void, warn_once
from .parsers import one_of
from .retry_config import COMMAND_LINE, OPTIONS, RetryConfig

VARIABLES: dict[str, str] = {
    PREFIX + name.upper(): name for name, option in OPTIONS.items() if not option.not_from_environment
}

MOUNTED = PREFIX + "MOUNTED"
INSTALLING = frozenset({MOUNTED})
"""The variables that only ``install`` and ``run`` read; they are not options of an adapter."""

BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
"""In upper or lower case."""
UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_INTEGER = r"[+-]?[0-9]{1,300}"
_NUMBER = r"[+-]?(?:[0-9]{1,300}(?:\.[0-9]{0,300})?|\.[0-9]{1,300})(?:[eE][+-]?[0-9]{1,4})?"
_WITH_UNIT = rf"(?i)({_NUMBER})\s*({'|'.join(UNITS)})"

Found = dict[str, tuple[Any, str]]


ALLOWED = {
    "backoff": "a finite number of seconds (0 or more), or none",
    "quota": "a finite number of tokens (0 or more), payoff, a redis://, rediss:// or unix:// URL (special characters "
    "percent-encoded), or none for no quota",
    "pacing": "announced or off",
    "deadline_header": "a header's name, alone or with seconds or date after a comma, or none",
    "timeout": "seconds above 0 and up to 2147483, two of them with a comma between (to connect, to read), or none",
    "allowed_methods": "names of methods, separated by commas, or all for all methods,",
    "retry_status_codes": "statuses from 100 to 599, separated by commas",
    "telemetry": "log, otel and prometheus, separated by commas,",
}
"""The texts that are allowed, by option; for the others, the phrase about values applies to texts, too."""

EXAMPLES = {
    "mode": "adaptive",
    "max_attempts": "5",
    "retry_spec": "2.0",
    "backoff": "100ms",
    "max_backoff": "10s",
    "jitter": "none",
    "quota": "redis://cache:6379/0",
    "patience": "10s",
    "max_retry_after": "5min",
    "pacing": "off",
    "operation_timeout": "30",
    "operation_attempt_timeout": "10",
    "deadline_header": "X-Request-Deadline",
    "timeout": "3.05, 27",
    "allowed_methods": "GET, HEAD",
    "retry_status_codes": "429, 503",
    "raise_on_status": "true",
    "enabled": "false",
    "telemetry": "log, otel",
    "aws_config": "my-profile",
}
"""By option; the others have an example for their type."""


def example_of(name: str, default: Any) -> str:
    """Return an example of an option's text."""
    by_kind = {bool: "no" if default is True else "yes"}.get(type(default), "10s")
    return EXAMPLES.get(name, by_kind)


NONE = {"allowed_methods": "all"}
"""The word for the value None, by option, where "none" would say the opposite of what it does."""


def parse_text(name: str, text: str, source: str) -> Any:
    """Return the value of an option from text; raise ``RetryConfigError`` for a text that it does not allow."""
    text = text.strip()
    allowed = OPTIONS[name].allowed
    detail = ""
    for value in _readings(text, seconds="seconds" in allowed, none=NONE.get(name, "none")):
        try:
            return OPTIONS[name].parse(value)
        except BadValue as refusal:  # noqa: PERF203 - a handful of readings, once per adapter
            if isinstance(value, frozenset) and not detail:  # it says which of the items is bad
                detail = str(refusal).partition(" is allowed")[2].partition(": None means")[0]
    refused = f"{ALLOWED.get(name, allowed)} is allowed{detail}{_example(name, source)}"
    raise RetryConfigError(name, text, source, refused)


def _example(name: str, source: str) -> str:
    """Return an example for one of our variables or for a command line; a profile has another syntax."""
    variable = PREFIX + name.upper()
    written = {source_of(variable): variable, COMMAND_LINE: name}.get(source)
    if written is None:
        return ""
    import shlex  # only a message needs it

    return f"; {written}={shlex.quote(example_of(name, OPTIONS[name].default))} for example"


def _readings(text: str, *, seconds: bool, none: str) -> Iterator[Any]:
    """Yield every possible meaning of a text, the plainest first."""
    if text.lower() == none:
        yield None
    yield from _numbers(text, seconds)
    if text.lower() in BOOLEANS:
        yield BOOLEANS[text.lower()]
    yield text
    items = [item.strip() for item in text.split(",")]
    if len(items) == 2:
        yield tuple(None if item.lower() == "none" else next(_numbers(item, seconds), item) for item in items)
    present = [item for item in items if item != ""]
    if not present:
        return  # commas alone
    yield frozenset(int(item) if re.fullmatch(_INTEGER, item) else item for item in present)
    yield frozenset(present)


def _numbers(text: str, seconds: bool) -> Iterator[float]:
    if re.fullmatch(_INTEGER, text):
        yield int(text)
    elif re.fullmatch(_NUMBER, text):
        yield float(text)
    match = re.fullmatch(_WITH_UNIT, text) if seconds else None
    if match is not None:
        # 1.1 ms is 0.0011 s, not 0.0011000000000000001.
        yield round(float(match[1]) * UNITS[match[2].lower()], 9)


def warn_of_typos(environ: Mapping[str, str]) -> None:
    """Warn about variables with our prefix that set nothing: once per process and variable, with the nearest name."""
    for variable in environ:
        sets_nothing = variable.startswith(PREFIX) and variable not in VARIABLES and variable not in INSTALLING
        if sets_nothing:
            warn_once(variable, f"{variable} sets nothing: {_instead_of(variable)}")


def _instead_of(variable: str) -> str:
    name = variable[len(PREFIX) :].lower()
    name = MEANT.get(name, name)
    if name in OPTIONS and OPTIONS[name].not_from_environment:
        return f"the option {name!r} can only be set in code"
    return suggestion(PREFIX + name.upper(), (*VARIABLES, *INSTALLING))


MOUNTED_VALUES = ("none", "plain", "all", "replace")
"""Each value reaches all adapters that the ones before it reach, and more."""

_MOUNTED = Option("mounted", "none", one_of(*MOUNTED_VALUES), "which adapters of others are made to retry")


def mounted_of(value: Any, environ: Mapping[str, str], source: str = "code", *, default: str = "none") -> str:
    """Return the value of ``mounted``: the one given, that of the environment, or the default."""
    said = environ.get(MOUNTED, "").strip()
    if value is None:
        return str(_MOUNTED.read(said or default, source_of(MOUNTED)))
    chosen = str(_MOUNTED.read(value, source))
    if said and said.lower() != chosen:
        warn_of_void("mounted", said, source_of(MOUNTED), f"mounted={chosen!r} (from {source}) wins")
    return chosen


C = TypeVar("C", bound=RetryConfig)

AWS_OPTIONS = frozenset({"max_attempts", "mode", "retry_spec"})


def resolve(config: C, environ: Mapping[str, str] | None = None, names: Collection[str] = OPTIONS) -> C:
    """Return a config with the environment's values for the options that the program has not set."""
    if not config.trust_env:
        return config
    environ = os.environ if environ is None else environ
    warn_of_typos(environ)
    said = _variables_in(environ)
    if "enabled" in said and parse_text("enabled", *said["enabled"]) is False:
        return config.replace_from({"enabled": said["enabled"][1]}, enabled=False)  # it overrides code and all else
    found = {name: (parse_text(name, *text), text[1]) for name, text in said.items() if name in names}
    _warn_of_void(config, said, found)
    # AWS settings do not apply to a given strategy, which read them when it was made.
    if not AWS_OPTIONS.isdisjoint(names):
        found = {**_asked_of_aws(config, environ, names, found), **found}
    wanted = {name: value for name, value in found.items() if not config.is_settled(name)}
    sources = {name: source for name, (_, source) in wanted.items()}
    return config.replace_from(sources, **{name: value for name, (value, _) in wanted.items()})


def _warn_of_void(config: RetryConfig, said: Mapping[str, tuple[str, str]], found: Found) -> None:
    """Warn about the variables whose options the program, or a strategy that it made, has set."""
    for name, (text, source) in said.items():
        if name not in found:
            warn_of_void(name, text, source, NOT_OURS)
        elif config.is_settled(name) and getattr(config, name) != found[name][0]:
            warn_of_void(name, found[name][0], source, f"{config.shown(name)} wins")


def _variables_in(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    texts = ((name, environ.get(variable, "").strip(), variable) for variable, name in VARIABLES.items())
    return {name: (text, source_of(variable)) for name, text, variable in texts if text}


def _asked_of_aws(config: RetryConfig, environ: Mapping[str, str], names: Collection[str], found: Found) -> Found:
    in_code = config.aws_config, config.source("aws_config")
    aws_config, asked_by = in_code if config.is_settled("aws_config") else found.get("aws_config", in_code)
    if aws_config is False:
        return {}
    from ..smithy.aws import from_aws_settings  # few ask for it, and it loads a file parser

    settled = {*found, *filter(config.is_settled, names)}
    return from_aws_settings(environ, aws_config, source=asked_by, settled=settled)
