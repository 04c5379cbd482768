"""How a config is shown: each option with its effective value and its source (contract 10.3). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .options import OPTIONS

if TYPE_CHECKING:
    from .config import RetryConfig

EFFECTIVE = {"initial_backoff": "transient_base", "throttling_backoff": "throttling_base"}
"""Options whose effective value the config computes, and its name there."""

ALWAYS_SHOWN = frozenset({"mode", "max_attempts"})
"""What the short form shows even where it is a default."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One option as it is in force.

    :param name: of the option.
    :param value: in force.
    :param source: where it came from.
    """

    name: str
    value: Any
    source: str

    @property
    def text(self) -> str:
        """The value as a person reads it; the same for equal values, whatever the order of a set."""
        value = self.value
        if isinstance(value, frozenset):
            return ", ".join(str(item) for item in sorted(value)) or "(none)"
        return value if isinstance(value, str) else repr(value)

    @property
    def plain(self) -> Any:
        """The value as JSON can hold it; an object is shown by its text."""
        value = self.value
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, frozenset):
            return sorted(value)
        return [] if value == () else self.text


def settings_of(config: RetryConfig) -> tuple[Setting, ...]:
    """Every option of a config, in the order of the documentation."""
    return tuple(Setting(name, getattr(config, EFFECTIVE.get(name, name)), config.source(name)) for name in OPTIONS)


def as_table(settings: Iterable[Setting]) -> str:
    """Three columns: option, value, source."""
    rows = [("option", "value", "source"), *((item.name, item.text, item.source) for item in settings)]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"{name:<{widths[0]}}  {value:<{widths[1]}}  {source}" for name, value, source in rows)


def summary(settings: Iterable[Setting]) -> str:
    """One line: what somebody set, each with its source, and what matters most."""
    shown = (item for item in settings if item.name in ALWAYS_SHOWN or not _is_default(item))
    return ", ".join(f"{item.name}={item.value!r} [{item.source}]" for item in shown)


def _is_default(setting: Setting) -> bool:
    return setting.source == "default" or setting.source.startswith("from retry_spec")
