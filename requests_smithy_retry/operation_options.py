"""Options for the operations of one block of code (contract 8.4, 10.4)."""

from __future__ import annotations

import contextvars
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from . import option_types as types
from .classifier import RetryClassifier
from .clock import SYSTEM_CLOCK, Clock
from .deadline import Deadline, after, earliest
from .errors import RetryConfigError
from .option_types import Parse, Refused
from .suggestion import suggestion


@dataclass(frozen=True, slots=True)
class OperationOptions:
    """What ``retry_options`` said; None: nothing, so the adapter's own configuration holds.

    :param max_attempts: most attempts, the first one included.
    :param classifiers: beside the strategy's own.
    :param default_classifiers: False: only the given classifiers.
    :param idempotent: True: the requests may be sent again; False: they may not, whatever the method.
    :param long_poll: the operation is a long poll (contract 2, the Retries 2.1 specification).
    :param idempotency_key: as the option of that name.
    :param enabled: False: no retries.
    :param deadline: when everything in the block must be over.
    """

    max_attempts: int | None = None
    classifiers: tuple[RetryClassifier, ...] = ()
    default_classifiers: bool | None = None
    idempotent: bool | None = None
    long_poll: bool | None = None
    idempotency_key: bool | Callable[..., str] | None = None
    enabled: bool | None = None
    deadline: Deadline | None = None


OPERATION_OPTIONS: dict[str, Parse] = {
    "max_attempts": types.whole_number(1),
    "classifiers": types.classifiers,
    "default_classifiers": types.boolean,
    "idempotent": types.boolean,
    "long_poll": types.boolean,
    "idempotency_key": types.idempotency_key,
    "enabled": types.boolean,
    "deadline": types.number(above=0),
}
"""What each option of one operation accepts."""

NOTHING = OperationOptions()

current_options: contextvars.ContextVar[OperationOptions | None] = contextvars.ContextVar(
    "requests_smithy_retry.options", default=None
)
"""The options in force in this context."""


_marks: contextvars.ContextVar[tuple[contextvars.Token[OperationOptions | None], ...]] = contextvars.ContextVar(
    "requests_smithy_retry.marks", default=()
)
"""How to leave the blocks that this context is in, the innermost last."""

F = TypeVar("F", bound=Callable[..., Any])


class OptionsBlock:
    """What :func:`retry_options` gives: ``with`` it, or decorate a function with it; both as often as you like.

    :param changes: the options that it sets, as they are kept, but for the deadline: seconds from when it is entered.
    :param clock: on which the deadline is measured.
    """

    __slots__ = ("_changes", "_clock")

    def __init__(self, changes: Mapping[str, Any], clock: Clock) -> None:
        self._changes = dict(changes)
        self._clock = clock

    def __enter__(self) -> OperationOptions:
        outer = current_options.get() or NOTHING
        changes = dict(self._changes)
        kept = () if changes.get("default_classifiers") is False else outer.classifiers
        changes["classifiers"] = (*kept, *changes.get("classifiers", ()))
        if "deadline" in changes:
            changes["deadline"] = earliest(outer.deadline, after(changes["deadline"], self._clock))
        options = dataclasses.replace(outer, **changes)
        _marks.set((*_marks.get(), current_options.set(options)))
        return options

    def __exit__(self, *exc_info: object) -> None:
        *outer, mark = _marks.get()
        current_options.reset(mark)
        _marks.set(tuple(outer))

    def __call__(self, function: F) -> F:
        """The function, with the options in force during each call of it, until it returns.

        :raises TypeError: for a generator function: its body runs between other people's code.
        """
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"retry_options cannot decorate the generator {function.__qualname__}: use a with block in it"
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

            return call_async  # type: ignore[return-value]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"retry_options({', '.join(f'{name}={value!r}' for name, value in self._changes.items())})"


def retry_options(
    *,
    max_attempts: int | None = None,
    classifiers: Iterable[RetryClassifier] | None = None,
    default_classifiers: bool | None = None,
    idempotent: bool | None = None,
    long_poll: bool | None = None,
    idempotency_key: bool | Callable[..., str] | None = None,
    enabled: bool | None = None,
    deadline: float | None = None,
    clock: Clock = SYSTEM_CLOCK,
    **others: Any,
) -> OptionsBlock:
    """Set options for every operation in a block or a function, in this thread and context alone; blocks nest.

    Use it as ``with retry_options(max_attempts=1):`` or as a decorator. The threads of a pool do not inherit it; start
    their work with ``contextvars.copy_context().run`` where they should.

    An inner block overrides what it names and inherits the rest; its classifiers are added to the outer ones, unless
    it says ``default_classifiers=False``: then they replace all others.

    :param max_attempts: most attempts of each operation, from 1 on.
    :param classifiers: classifiers beside the strategy's own.
    :param default_classifiers: False: only the classifiers given here, neither the defaults nor those of the strategy
        or of an outer block. True: takes back an outer block's False.
    :param idempotent: True: the requests may be sent again, whatever their method. False: they may not.
    :param long_poll: the operations are long polls: with an empty quota, the backoff is waited before the outcome
        is handed on.
    :param idempotency_key: True, or a function that makes a key: each operation gets a key of its own, as with the
        option of that name. False: none.
    :param enabled: False: no retries; the adapter behaves as a plain ``HTTPAdapter``.
    :param deadline: seconds from now, above 0: one bound over everything in the block, redirects, auth re-sends and
        several requests together (contract 8.4). Of nested blocks, the one that ends first counts.
    :param clock: on which the deadline is measured.
    :raises RetryConfigError: for a value that an option does not allow.
    :raises TypeError: for any other option.
    """
    for name in others:
        raise TypeError(_not_taken(name))
    given = {
        "max_attempts": max_attempts,
        "classifiers": classifiers,
        "default_classifiers": default_classifiers,
        "idempotent": idempotent,
        "long_poll": long_poll,
        "idempotency_key": idempotency_key,
        "enabled": enabled,
        "deadline": deadline,
    }
    changes = {name: _parse(name, value) for name, value in given.items() if value is not None}
    return OptionsBlock(changes, clock)


def _not_taken(name: str) -> str:
    """The sentence for an option that one operation cannot have."""
    from .options import OPTIONS

    taken = ", ".join(OPERATION_OPTIONS)
    if name in OPTIONS:
        return (
            f"retry_options takes no {name!r}, it holds for a whole adapter: give it to RetryAdapter. It takes {taken}"
        )
    return f"there is no option {name!r}: {suggestion(name, OPERATION_OPTIONS, repr)}"


def _parse(name: str, value: object) -> object:
    try:
        return OPERATION_OPTIONS[name](value)
    except Refused as refusal:
        raise RetryConfigError(name, value, "retry_options", str(refusal)) from None
