"""Copies of the adapter (contract 11.1): the same configuration, fresh locks, full buckets."""

from __future__ import annotations

import copy
from typing import Any

from ..clock import Clock
from ..config.max_retries import ShownRetry
from ..config.retry_config import OPTIONS, RetryConfig
from ..strategies.simple import SimpleRetryStrategy

POLICY = ("clock", "retry_config", "strategy", "_given", "_is_shared", "_shown")
"""The attributes of an adapter that make up its policy."""


class CopiedAfresh:
    """A mix-in of the adapter, before ``HTTPAdapter``: ``pickle``, ``copy`` and ``deepcopy``."""

    strategy: Any
    retry_config: RetryConfig
    clock: Clock
    _given: bool
    _is_shared: bool
    _shown: ShownRetry | None

    def _policy(self) -> dict[str, Any]:
        """Return the attributes that make up the policy, for :meth:`_follow`."""
        self._heed_changes()
        shown = None if self._shown is None else self._shown.copied()
        return {**{name: getattr(self, name) for name in POLICY}, "_shown": shown}

    def _follow(self, policy: dict[str, Any]) -> None:
        """Adopt the policy of another adapter."""
        vars(self).update((name, value) for name, value in policy.items() if name != "strategy")
        strategy, config = policy["strategy"], self.retry_config
        quota = strategy.config.quota if isinstance(strategy, SimpleRetryStrategy) else config.quota
        if quota is not config.quota and config.is_given("quota"):
            # One bucket, not two: the copy's config names the quota that the copy's strategy spends.
            self.retry_config = config.replace_from({"quota": config.source("quota")}, quota=quota)
        self._use(strategy)

    def __getstate__(self) -> dict[str, Any]:
        policy = self._policy()  # before HTTPAdapter reads max_retries, which makes one to show
        behind: Any = super()  # type checkers see `object` there, without __getstate__
        state = dict(behind.__getstate__())
        state.pop("max_retries", None)
        return {**state, **policy}

    def __setstate__(self, state: dict[str, Any]) -> None:
        behind: Any = super()
        behind.__setstate__({name: value for name, value in state.items() if name != "strategy"})
        self._follow({name: state[name] for name in POLICY})

    def _heed_changes(self) -> bool:
        raise NotImplementedError  # pragma: no cover - RetryAdapter has it

    def _use(self, strategy: Any) -> None:
        raise NotImplementedError  # pragma: no cover - RetryAdapter has it

    def _fresh_policy(self) -> dict[str, Any]:
        policy = self._policy()
        strategy = policy["strategy"]
        return {**policy, "strategy": copy.copy(strategy) if isinstance(strategy, SimpleRetryStrategy) else strategy}

    def __copy__(self) -> Any:
        other = type(self).__new__(type(self))
        other.__setstate__({**self.__getstate__(), **self._fresh_policy()})
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        other = memo[id(self)] = type(self).__new__(type(self))
        other.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return other

    def _check_picklable(self, protocol: Any) -> None:
        """Refuse what cannot be pickled. Pickle's own errors name a function's address, not the option to change."""
        objects = [name for name, option in OPTIONS.items() if option.not_from_environment]
        parts = {name: getattr(self.retry_config, name) for name in objects}
        for name, value in {**parts, "clock": self.clock, "strategy": self.strategy}.items():
            _check_picklable(name, value, protocol)

    def __reduce_ex__(self, protocol: Any) -> Any:
        self._check_picklable(protocol)  # only pickle calls this
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
