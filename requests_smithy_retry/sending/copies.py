"""Copies of the adapter (contract 11.1): the same configuration, fresh locks, full buckets."""

from __future__ import annotations

import copy
from typing import Any

from ..clock import Clock
from ..config.max_retries import ShownRetry
from ..config.retry_config import OPTIONS, RetryConfig
from ..strategies.simple import SimpleRetryStrategy


class CopiedAfresh:
    """A mix-in of the adapter, before ``HTTPAdapter``: ``pickle``, ``copy`` and ``deepcopy``."""

    strategy: Any
    retry_config: RetryConfig
    clock: Clock
    _given: bool
    _is_shared: bool
    _shown: ShownRetry | None

    def __getstate__(self) -> dict[str, Any]:
        self._heed_changes()
        shown = self._shown  # before HTTPAdapter reads it
        behind: Any = super()  # type checkers see `object` there, without __getstate__
        state = dict(behind.__getstate__())
        state.pop("max_retries", None)
        mine = {name: getattr(self, name) for name in ("clock", "retry_config", "_given", "_is_shared")}
        mine["_shown"] = None if shown is None else shown.copied()
        return {**state, **mine, "strategy": self.strategy}

    def __setstate__(self, state: dict[str, Any]) -> None:
        behind: Any = super()
        behind.__setstate__({name: value for name, value in state.items() if name != "strategy"})
        strategy = state["strategy"]
        config = self.retry_config
        if isinstance(strategy, SimpleRetryStrategy) and config.is_given("quota"):
            # One bucket, not two: the copy's config names the quota that the copy's strategy spends.
            self.retry_config = config.replace_from({"quota": config.source("quota")}, quota=strategy.config.quota)
        self._use(strategy)

    def _heed_changes(self) -> bool:
        raise NotImplementedError  # pragma: no cover - RetryAdapter has it

    def _use(self, strategy: Any) -> None:
        raise NotImplementedError  # pragma: no cover - RetryAdapter has it

    def __copy__(self) -> Any:
        other = type(self).__new__(type(self))
        state = self.__getstate__()
        if isinstance(self.strategy, SimpleRetryStrategy):
            state["strategy"] = copy.copy(self.strategy)
        other.__setstate__(state)
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        other = memo[id(self)] = type(self).__new__(type(self))
        other.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return other

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Only pickle calls this. Its own errors name a function's address, not the option to change.
        objects = [name for name, option in OPTIONS.items() if option.not_from_environment]
        parts = {name: getattr(self.retry_config, name) for name in objects}
        for name, value in {**parts, "clock": self.clock, "strategy": self.strategy}.items():
            _check_picklable(name, value, protocol)
        return super().__reduce_ex__(protocol)


def _check_picklable(name: str, value: Any, protocol: int) -> None:
    if isinstance(value, tuple):
        for number, item in enumerate(value):
            _check_picklable(f"{name}[{number}]", item, protocol)
        return
    import pickle

    try:
        pickle.dumps(value, protocol)
    except Exception as error:  # an object's own pickling may raise anything
        raise pickle.PicklingError(f"{name}={value!r} cannot be pickled: {error}") from error
