"""What a copy of the adapter is (contract 11.1): the same configuration, fresh locks, full buckets."""

from __future__ import annotations

import copy
from typing import Any

from .clock import Clock
from .config import RetryConfig
from .options import OPTIONS
from .strategies.simple import SimpleRetryStrategy


class CopiedAfresh:
    """Mixed into the adapter, before ``HTTPAdapter``: ``pickle``, ``copy`` and ``deepcopy``."""

    strategy: Any
    retry_config: RetryConfig
    clock: Clock
    _given: bool

    def __getstate__(self) -> dict[str, Any]:
        behind: Any = super()  # type checkers know `object` there, and not what of it which Python has
        state = dict(behind.__getstate__())
        state.pop("max_retries", None)
        mine = {"clock": self.clock, "retry_config": self.retry_config, "_given": self._given}
        return {**state, **mine, "strategy": self.strategy}

    def __setstate__(self, state: dict[str, Any]) -> None:
        behind: Any = super()
        behind.__setstate__({name: value for name, value in state.items() if name != "strategy"})
        strategy = state["strategy"]
        if isinstance(strategy, SimpleRetryStrategy):
            # One bucket, not two: the copy's config means the quota that the copy's strategy spends.
            self.retry_config = self.retry_config.replace(quota=strategy.config.quota)
        self._use(strategy)

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
        # Only pickle comes by here; it names a function's address, which tells nobody which option to change.
        parts = {name: getattr(self.retry_config, name) for name, option in OPTIONS.items() if option.is_object}
        for name, value in {**parts, "clock": self.clock, "strategy": self.strategy}.items():
            _check_picklable(name, value)
        return super().__reduce_ex__(protocol)


def _check_picklable(name: str, value: Any) -> None:
    if isinstance(value, tuple):
        for number, item in enumerate(value):
            _check_picklable(f"{name}[{number}]", item)
        return
    import pickle

    try:
        pickle.dumps(value)
    except Exception as error:  # what stands in the way raises what it likes
        raise pickle.PicklingError(f"{name}={value!r} cannot be pickled: {error}") from error
