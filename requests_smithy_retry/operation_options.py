"""Options for the operations of one block of code (contract 8.4, 10.4)."""

from __future__ import annotations

import contextvars
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from . import option_types as types
from .classifier import RetryClassifier
from .clock import SYSTEM_CLOCK, Clock
from .deadline import Deadline, after, earliest
from .errors import RetryConfigError
from .option_types import Parse, Refused


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


@contextmanager
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
) -> Iterator[OperationOptions]:
    """Set options for every operation in the block, in this thread and context alone; blocks nest.

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
    """
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
    outer = current_options.get() or NOTHING
    changes: dict[str, Any] = {name: _parse(name, value) for name, value in given.items() if value is not None}
    kept = () if default_classifiers is False else outer.classifiers
    changes["classifiers"] = (*kept, *changes.get("classifiers", ()))
    if "deadline" in changes:
        changes["deadline"] = earliest(outer.deadline, after(changes["deadline"], clock))
    mark = current_options.set(dataclasses.replace(outer, **changes))
    try:
        yield current_options.get() or NOTHING
    finally:
        current_options.reset(mark)


def _parse(name: str, value: object) -> object:
    try:
        return OPERATION_OPTIONS[name](value)
    except Refused as refusal:
        raise RetryConfigError(name, value, "retry_options", str(refusal)) from None
