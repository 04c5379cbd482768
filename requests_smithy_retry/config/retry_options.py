"""Options for the operations of one block of code (contract 8.4, 10.1)."""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Iterable, Mapping
from contextlib import ContextDecorator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from ..checks import number, whole_number
from ..classifiers.protocol import Only, RetryClassifier, sees_successes
from ..clock import SYSTEM_CLOCK, Clock, Deadline, after, checked_clock, earliest
from . import parsers as types
from .options import MEANT, nearest, option, options_of, signature_with

if TYPE_CHECKING:
    from threading import Event

    from requests import Response
    from typing_extensions import Unpack
else:  # pragma: no branch - for typing.get_type_hints; options know no HTTP library
    from ..typing_names import Unpack

    Event = Response = Any


@dataclass(frozen=True, slots=True)
class OperationOptions:
    """The options that blocks of :func:`retry_options` set around an operation.

    If one is None, no block sets it, and the adapter's own configuration applies. To add an option, add a field here
    and a line to :class:`OperationKeywords`.
    """

    max_attempts: int | None = option(None, whole_number(), "most requests that each operation sends")
    classifiers: tuple[RetryClassifier, ...] = option(
        (), types.classifiers, "beside the strategy's own and those of outer blocks, or with only(...) in their place"
    )
    idempotent: bool | None = option(
        None, types.boolean, "True: the requests may be sent again, whatever the method; False: they may not"
    )
    long_poll: bool | None = option(
        None, types.boolean, "True: when budget or patience end the retries, the outcome comes after the backoff"
    )
    idempotency_key: bool | Callable[..., str] | None = option(
        None, types.idempotency_key, "as the option of the adapter: each operation gets its own key"
    )
    enabled: bool | None = option(None, types.boolean, "False: no retries, each operation is one send")
    deadline: Deadline | None = option(
        None, number(above=0), "seconds from entering the block until everything that this thread does in it is over"
    )
    patience: float | None = option(
        None,
        number(),
        "age that an outage may reach before calls stop waiting for the service, s; 0: no call waits; a given one also "
        "bounds a server's wait, unless max_retry_after is given",
    )
    max_wait: float | None = option(
        None, number(), "longest wait of any kind, s; a longer one ends the call with RetryLater"
    )
    cancel: Event | None = option(None, types.event, "event that ends any wait with RetryCancelled once it is set")
    pacing: str | None = option(
        None,
        types.one_of("announced", "off"),
        "'off': no send waits for a rate limit that a server announced; 'announced': overrides an outer block's 'off'",
    )
    resume: bool | None = option(None, types.boolean, "False: a body that breaks off does not resume")
    validate: Callable[[Response], bool | float] | None = option(
        None,
        types.validate,
        "function of a 2xx: True if it is an answer, False to retry it, or seconds until the next poll",
    )
    entries: tuple[_Entry, ...] = field(default=(), repr=False, compare=False)
    """The blocks that these options come from, the innermost last."""

    def within(self) -> OperationOptions:
        """Return those for the requests that the program's own functions send within an operation: what bounds the
        operation applies to them, but nothing that judges its answer or describes its request.
        """
        return replace(self, validate=None, classifiers=(), idempotent=None, idempotency_key=None, long_poll=None)

    @property
    def sees_successes(self) -> bool:
        """True if one of its classifiers is asked about responses below 400."""
        return any(map(sees_successes, self.classifiers))


class _Entry:
    """One entry into a block, with its changes."""

    __slots__ = ("block", "changes")

    def __init__(self, block: OptionsBlock | None = None, changes: Mapping[str, Any] | None = None) -> None:
        self.block = block
        self.changes = changes or {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _Entry, ()  # an error may be pickled with its options, but without their blocks


OPERATION_OPTIONS = options_of(OperationOptions)


class OperationKeywords(TypedDict, total=False):
    """The keywords of :func:`retry_options`, for type checkers. None is the same as not given."""

    max_attempts: int | None
    classifiers: Iterable[RetryClassifier] | None
    idempotent: bool | None
    long_poll: bool | None
    idempotency_key: bool | Callable[..., str] | None
    enabled: bool | None
    deadline: float | None
    patience: float | None
    max_wait: float | None
    cancel: Event | None
    pacing: str | None
    resume: bool | None
    validate: Callable[[Response], bool | float] | None


NOTHING = OperationOptions()

current_options: contextvars.ContextVar[OperationOptions] = contextvars.ContextVar(
    "requests_smithy_retry.config.options", default=NOTHING
)
"""The options of this context."""

F = TypeVar("F", bound=Callable[..., Any])


class OptionsBlock(ContextDecorator):
    """The block of :func:`retry_options`: enter it with ``with``, or decorate a function with it, any number of times.

    Blocks may end in any order, as those of generators do. A block that ends in another context, for instance in
    another thread, stays in force where it began.
    """

    def __init__(self, changes: Mapping[str, Any], clock: Clock) -> None:
        self._changes = dict(changes)
        self._clock = clock

    def __enter__(self) -> OperationOptions:
        changes = dict(self._changes)
        if "deadline" in changes:
            changes["deadline"] = after(changes["deadline"], self._clock)
        options = _changed(current_options.get(), _Entry(self, changes))
        current_options.set(options)
        return options

    def __exit__(self, *exc_info: object) -> None:
        entries = current_options.get().entries
        own = [entry for entry in entries if entry.block is self][-1:]
        if own:
            left = [entry for entry in entries if entry not in own]
            current_options.set(functools.reduce(_changed, left, NOTHING))

    def __call__(self, function: F) -> F:
        """Return the function with the options in force during each call of it, until it returns."""
        import inspect  # slow to import, and seldom needed

        refused = f"retry_options cannot decorate the {{}} {function.__qualname__}: {{}}"
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(refused.format("generator", "use a with block in it"))  # other code runs between its steps
        if isinstance(function, type):  # its methods would run outside of the block
            raise TypeError(refused.format("class", "decorate its methods"))
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

            return call_async  # type: ignore[return-value]
        return super().__call__(function)

    def __repr__(self) -> str:
        return f"retry_options({', '.join(f'{name}={value!r}' for name, value in self._changes.items())})"


def _changed(outer: OperationOptions, entry: _Entry) -> OperationOptions:
    changes = dict(entry.changes)
    added = changes.get("classifiers", ())
    kind = type(outer.classifiers)  # what an outer block replaced stays out
    changes["classifiers"] = added if isinstance(added, Only) else kind((*outer.classifiers, *added))
    if "validate" in changes:
        others = [item for item in changes["classifiers"] if item is not outer.validate]
        changes["classifiers"] = type(changes["classifiers"])((*others, changes["validate"]))
    if "deadline" in changes:
        changes["deadline"] = earliest(outer.deadline, changes["deadline"])
    return replace(outer, **changes, entries=(*outer.entries, entry))


def retry_options(*, clock: Clock = SYSTEM_CLOCK, **options: Unpack[OperationKeywords]) -> OptionsBlock:
    """Set options for every operation in a block or a function, only in this thread and context. Blocks nest.

    Use it as ``with retry_options(max_attempts=1):`` or as a decorator. The threads of a pool do not inherit it; to
    pass it on, start their work with ``contextvars.copy_context().run``.

    An inner block overrides what it names and inherits the rest. Its classifiers are added to the outer ones, or
    replace all others if they are given as ``only(...)``. The earliest deadline counts, and bounds redirects, auth
    re-sends and several requests together (contract 8.4).

    :param clock: measures the deadline.
    :param options: any field of :class:`.OperationOptions`; None is the same as not given.
    :raises RetryConfigError: for a value that an option does not allow.
    :raises TypeError: for any other option.
    """
    changes = {}
    for name, value in options.items():
        if name not in OPERATION_OPTIONS:
            raise TypeError(_not_taken(name))
        if value is not None:
            changes[name] = OPERATION_OPTIONS[name].read(value, "retry_options")
    return OptionsBlock(changes, checked_clock(clock))


_ANNOTATIONS = {name: item.__forward_arg__ for name, item in OperationKeywords.__annotations__.items()}
retry_options.__signature__ = signature_with(  # type: ignore[attr-defined]
    OPERATION_OPTIONS, _ANNOTATIONS, retry_options
)


def _not_taken(name: str) -> str:
    from .retry_config import OPTIONS

    option = MEANT.get(name, name)
    if option not in OPTIONS or option in OPERATION_OPTIONS:
        return f"there is no option {name!r}: {nearest(name, OPERATION_OPTIONS)}"
    meant = "" if option == name else f", by which you may mean {option!r}"
    return (
        f"retry_options takes no {name!r}{meant}, it holds for a whole adapter: give it to RetryAdapter. It takes "
        f"{', '.join(OPERATION_OPTIONS)}"
    )
