"""The built-in strategy, a subclass whose methods only call ``super()``, and a wrapper that hands everything on."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

METHODS = "acquire_initial_retry_token", "refresh_retry_token_for_retry", "record_success"


@cache
def subclass_of(usual: Any) -> Any:
    """Return a subclass that has the three methods and changes nothing; for a class, always the same one."""

    class Subclass(usual):  # type: ignore[misc]
        def acquire_initial_retry_token(self, **given: Any) -> Any:
            return super().acquire_initial_retry_token(**given)

        def refresh_retry_token_for_retry(self, **given: Any) -> Any:
            return super().refresh_retry_token_for_retry(**given)

        def record_success(self, **given: Any) -> None:
            super().record_success(**given)

        def __reduce__(self) -> tuple[Any, ...]:  # pickle finds no class that a function made
            plain = usual.__new__(usual)
            vars(plain).update(vars(self))
            return subclass, (plain,)

    Subclass.__name__ = usual.__name__
    return Subclass


def subclass(strategy: Any) -> Any:
    """Turn a strategy into one of a subclass of its own class."""
    kind = subclass_of(type(strategy))
    made = kind.__new__(kind)
    vars(made).update(vars(strategy))
    return made


class Plain:
    """A strategy by composition: it hands the three methods on, and nothing else."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def acquire_initial_retry_token(self, **given: Any) -> Any:
        return self.inner.acquire_initial_retry_token(**given)

    def refresh_retry_token_for_retry(self, **given: Any) -> Any:
        return self.inner.refresh_retry_token_for_retry(**given)

    def record_success(self, **given: Any) -> None:
        self.inner.record_success(**given)


class Wrapped(NamedTuple):
    """A token of a wrapper's own."""

    inner: Any

    @property
    def retry_count(self) -> int:
        return self.inner.retry_count

    @property
    def retry_delay(self) -> float:
        return self.inner.retry_delay

    def give_back(self) -> None:
        self.inner.give_back()


class WithTokens:
    """A wrapper with the config of what it wraps, and tokens of its own."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.config, self.clock = inner, inner.config, inner.clock

    def acquire_initial_retry_token(self, **given: Any) -> Any:
        return Wrapped(self.inner.acquire_initial_retry_token(**given))

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Any) -> Any:
        return Wrapped(self.inner.refresh_retry_token_for_retry(token_to_renew=token_to_renew.inner, error=error))

    def record_success(self, *, token: Any) -> None:
        self.inner.record_success(token=token.inner)


class WithConfig(Plain):
    """One that has the config of what it wraps, too."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.config = inner.config


class Wrapper(Plain):
    """One that lets a test look at what it wraps."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __copy__(self) -> Wrapper:
        return Wrapper(copy.copy(self.inner))


KINDS: dict[str, Callable[[Any], Any]] = {"class": lambda strategy: strategy, "subclass": subclass, "wrapper": Wrapper}
