"""The ``Retry`` that an adapter shows: it says what is in force, and nothing in it can be set."""

from __future__ import annotations

import copy
from typing import Any

from urllib3.util.retry import Retry


class FixedRetry(Retry):
    """The settings of a ``Retry``, as they were when it was given, and what they mean here.

    :param retry: its settings are shown, and ``new`` makes another one of its kind.
    :param options: our options, for which it stands. Whoever assigns this object gets exactly them.
    """

    stands_for: dict[str, Any]
    _given: Retry

    def __init__(self, retry: Retry, options: dict[str, Any]) -> None:
        own = {"_given": copy.copy(retry), "stands_for": options}
        vars(self).update({name: _fixed(value) for name, value in vars(retry).items()}, **own)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{name} cannot be set here, where it would change nothing. Assign another Retry to the adapter: "
            f"adapter.max_retries = adapter.max_retries.new({name}=...)"
        )

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def new(self, **changes: Any) -> Any:
        """Return an ordinary ``Retry`` with these changes, for assigning it."""
        return self._given.new(**changes)

    def used(self, retries: int, history: tuple[Any, ...]) -> FixedRetry:
        """Return one that says what is left after some retries."""
        left, total = copy.copy(self), self.total
        vars(left).update(total=max(total - retries, 0) if total else total, history=history)
        return left


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else frozenset(value) if isinstance(value, (set, dict)) else value


INNER_RETRY: FixedRetry = FixedRetry(Retry(0, read=False), {"max_attempts": 1})
"""Given to urllib3 beneath a ``RetryAdapter``: it retries nothing. Each response refers to it, or to its adapter's."""
