"""The options of a custom strategy, and those of its adapter (contract 1): which of them apply."""

from __future__ import annotations

from typing import Any

from .options import warn_once
from .retry_config import ADAPTER_OPTIONS, IN_THE_PROGRAM, RetryConfig


def config_of(strategy: object) -> RetryConfig | None:
    """Return the ``config`` of a strategy, whatever its class; None: it has none."""
    config = getattr(strategy, "config", None)
    return config if isinstance(config, RetryConfig) else None  # a Mock has any attribute


def without_effect(config: RetryConfig, theirs: RetryConfig, *, may_override: bool = True) -> list[str]:
    """Return the options that a strategy was given, and that its adapter, with ``config``, does not use.

    :param may_override: the adapter's own may differ, if the program gave them.
    """
    return sorted(
        name
        for name in theirs.given & ADAPTER_OPTIONS
        if getattr(config, name) != getattr(theirs, name)
        and not (may_override and config.source(name) in IN_THE_PROGRAM)
    )


def warn_of_assigned(strategy: object, config: RetryConfig) -> None:
    """Warn about the options of a strategy that is assigned to an adapter, which uses its own."""
    theirs = config_of(strategy)
    names = [] if theirs is None else without_effect(config, theirs, may_override=False)
    if names:
        name = type(strategy).__name__
        what = f"{', '.join(names)} of the {name} have no effect, because the adapter was made before: make another one"
        warn_once(f"assigned {name} {names}", what)


def warn_of_wrapped(strategy: object, inner: Any, config: RetryConfig, clock: object) -> None:
    """Warn about what has no effect because the adapter's strategy issues the tokens of a built-in one, ``inner``."""
    outer, kind, theirs = type(strategy).__name__, type(inner).__name__, inner.config
    names = without_effect(config, theirs)
    if names:
        what = f"{', '.join(names)} of the {kind} in {outer} have no effect on the adapter"
        warn_once(f"config {outer} {names}", f"{what}: set {outer}.config to the config of the {kind}")
    codes = "retry_status_codes"
    if config.is_given(codes) and getattr(config, codes) != getattr(theirs, codes):
        why = f"the {kind} in {outer} has its own: give it to that"
        warn_once(f"{codes} {outer}", f"{config.shown(codes)} has no effect, because {why}")
    if hasattr(inner, "send_permit") and not hasattr(strategy, "send_permit"):
        warn_once(f"permit {outer}", f"the rate limiter of the {kind} in {outer} has no effect: hand send_permit on")
    if inner.clock is not clock:
        what = f"the {kind} in {outer} goes by another clock than the adapter"
        warn_once(f"clock {outer}", f"{what}: give the adapter the clock of the {kind}")
