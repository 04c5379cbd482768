"""The table of features, which hang on the port (:mod:`~requests_smithy_retry.core.port`): they are looked up here.

``adapter.py`` and ``config/`` name the few that they need to :func:`found`. A feature that was deleted is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import resolve_name
from typing import TYPE_CHECKING, Any

from ..clock import SYSTEM_CLOCK, Clock
from ..core.strategy import StandardRetryStrategy
from ..errors import RetryConfigError

if TYPE_CHECKING:
    from ..config.retry_config import RetryConfig
    from ..core.port import Feature
    from ..core.scope import MakeQuota
    from ..wire.connect import Opener

JUDGING: dict[str, Callable[[RetryConfig], object]] = {
    "..smithy.aws": lambda _: True,
    "server_verdicts": lambda _: True,
    "rate_limits": lambda config: config.heeds_hints,
    "validate": lambda config: config.validate,
}
"""The features that take part in decisions, and whether a configuration asks for one."""
OUTER: dict[str, Callable[[RetryConfig], object]] = {
    "renewal": lambda config: config.on_unauthorized,
    "permits": lambda _: True,
}
INNER: dict[str, Callable[[RetryConfig], object]] = {
    "deadline_header": lambda config: config.deadline_header,
    "resume": lambda _: True,
    "resign": lambda _: True,
}
"""Those that stand around a send, outside and inside of them: a strategy that is driven by hand does without them."""
BRINGS = {"rate_limits": "pacing", "resume": "resume", "renewal": "on_unauthorized"}
"""The options that only these features read: given without the feature, they are refused."""


def found(name: str) -> Any:
    """Return a feature's module; None where it was deleted."""
    name = resolve_name(name if name.startswith(".") else f".{name}", __package__)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        return None


def features_of(config: RetryConfig, strategy: object, clock: Clock) -> tuple[Feature, ...]:
    """Return the features that a config asks for: those that stand around a send, the outermost first."""
    outer = {name: wanted for name, wanted in OUTER.items() if name != "permits" or hasattr(strategy, "send_permit")}
    return (*_made(outer, config, clock), *judging_features(config, clock), *_made(INNER, config, clock))


def judging_features(config: RetryConfig, clock: Clock = SYSTEM_CLOCK) -> tuple[Feature, ...]:
    return _made(JUDGING, config, clock)


def _made(table: dict[str, Callable[[RetryConfig], object]], config: RetryConfig, clock: Clock) -> tuple[Feature, ...]:
    modules = {name: found(name) for name, is_wanted in table.items() if is_wanted(config)}
    for name, module in modules.items():
        option = BRINGS.get(name, "")
        if module is None and config.is_given(option) and getattr(config, option) not in (None, False, "off"):
            raise RetryConfigError(option, getattr(config, option), config.source(option), "it was deleted")
    return tuple(module.feature(config, clock) for module in modules.values() if module is not None)


def quota_maker(quota: Any, config: RetryConfig, clock: Clock) -> MakeQuota:
    """Return the maker of quotas of another kind than the default; refuse one that was deleted."""
    for name in ("redis", "..smithy.buckets"):
        module = found(name)
        made: MakeQuota | None = None if module is None else module.quota_maker(quota, config, clock)
        if made is not None:
            return made
    source = config.source("quota")
    raise RetryConfigError("quota", quota, source, "'payoff' or None is allowed: other quotas are not installed")


def strategy_for(config: RetryConfig, clock: Clock = SYSTEM_CLOCK) -> StandardRetryStrategy:
    """Make the built-in strategy that a config asks for; refuse a mode that was deleted."""
    if config.mode == StandardRetryStrategy.mode:
        return StandardRetryStrategy(config=config, clock=clock)
    module = found("..smithy.adaptive")
    if module is None:
        raise RetryConfigError(
            "mode", config.mode, config.source("mode"), "'standard' is allowed: no other is installed"
        )
    made: StandardRetryStrategy = module.AdaptiveRetryStrategy(config=config, clock=clock)
    return made


def opener(clock: Clock) -> Opener:
    """Make what opens the sockets of an adapter's connections."""
    from ..wire.connect import Opener  # with urllib3, which a program under `run` may never need

    made: Opener = getattr(found("addresses"), "AddressOpener", Opener)(clock)
    return made


def listeners_of(config: RetryConfig, own: Iterable[Any]) -> tuple[Any, ...]:
    """Return an adapter's listeners: its own, and those that its options ask for."""
    if config.deadline_header is not None:
        own = (*own, found("deadline_header").feature(config, SYSTEM_CLOCK))
    module = found("telemetry")
    if module is not None:
        return (*own, *module.listeners_of(config, own))
    if config.telemetry:
        raise RetryConfigError("telemetry", config.telemetry, config.source("telemetry"), "none is installed")
    return tuple(own)
