"""The protocol of classifiers, and the order in which they are asked (contract 3.2)."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, SupportsIndex, overload, runtime_checkable

from .actions import RetryAction
from .outcome import Outcome

if TYPE_CHECKING:
    from requests import PreparedRequest
else:  # pragma: no branch - for typing.get_type_hints; classifiers know no HTTP library
    PreparedRequest = Any


class RetryClassifierPriority(tuple[int, ...]):
    """The place of a classifier in the order. Lower priorities run first and may be overruled by higher ones.

    A priority is made from another one:

    >>> status = RetryClassifierPriority.http_status_code_classifier()
    >>> RetryClassifierPriority.run_before(status) < status < RetryClassifierPriority.run_after(status)
    True

    It lies next to the one it was made from, so ``run_before(p)`` lies above everything below ``p`` except priorities
    made relative to it or to ``p``. Equal priorities keep the order of addition.
    """

    # The last number is the place of the priority itself, among those made relative to it: before is -1, after 1.
    __slots__ = ()

    @classmethod
    def default(cls) -> RetryClassifierPriority:
        """Return the priority of a classifier that names none: after all default classifiers."""
        return cls((4, 0))

    @classmethod
    def run_before(cls, other: RetryClassifierPriority) -> RetryClassifierPriority:
        """Return a priority just before ``other``, which may overrule it.

        :raises TypeError: if ``other`` is not a priority.
        """
        return cls((*_path_of(other), -1, 0))

    @classmethod
    def run_after(cls, other: RetryClassifierPriority) -> RetryClassifierPriority:
        """Return a priority just after ``other``, which it may overrule.

        :raises TypeError: if ``other`` is not a priority.
        """
        return cls((*_path_of(other), 1, 0))

    @classmethod
    def http_status_code_classifier(cls) -> RetryClassifierPriority:
        """Return the priority of :class:`HttpStatusCodeClassifier`, the lowest of the defaults."""
        return cls((0, 0))

    @classmethod
    def aws_error_code_classifier(cls) -> RetryClassifierPriority:
        """Return the priority of :class:`AwsErrorCodeClassifier`."""
        return cls((1, 0))

    @classmethod
    def modeled_as_retryable_classifier(cls) -> RetryClassifierPriority:
        """Return the priority of :class:`ModeledAsRetryableClassifier`."""
        return cls((2, 0))

    @classmethod
    def transient_error_classifier(cls) -> RetryClassifierPriority:
        """Return the priority of :class:`TransientErrorClassifier`, the highest of the defaults."""
        return cls((3, 0))


def _path_of(other: object) -> tuple[int, ...]:
    if not isinstance(other, RetryClassifierPriority):
        raise TypeError(f"a priority is made relative to another RetryClassifierPriority, not to {other!r}")
    return other[:-1]


ALLOWED_PRIORITY = (
    "an attribute or a property, not a method, that holds a RetryClassifierPriority is allowed, "
    "such as RetryClassifierPriority.run_before(RetryClassifierPriority.http_status_code_classifier()), or None"
)


@runtime_checkable
class RetryClassifier(Protocol):
    """Judges whether a retry would help after an outcome.

    Three attributes are optional: ``priority`` (a :class:`RetryClassifierPriority`; by default after all default
    classifiers), ``sees_successes`` (True: it is asked about responses below 400 as well), and a method
    ``vouch(request)``, which says whether a request that failed may be sent again, as a :class:`Vouched` or None.
    """

    @property
    def name(self) -> str:
        """The name in histories."""

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction | None:
        """Return a verdict; None means the same as "no action indicated".

        :param outcome: the outcome of the attempt.
        :param previous: the verdict of the previous classifiers, which may be refined.
        """


class Vouched(NamedTuple):
    """The facts about a request that a classifier knows, besides its method.

    :param resendable: it may be sent again.
    :param long_poll: it is a long poll.
    """

    resendable: bool = False
    long_poll: bool = False


@runtime_checkable
class Vouches(Protocol):
    """The optional ability of a classifier to recognize a request that failed."""

    def vouch(self, request: PreparedRequest) -> Vouched | None:
        """Return whether a request may be sent again; None: unknown."""


class FunctionClassifier:
    """A classifier made from a function by :func:`classifier`."""

    def __init__(
        self,
        function: Callable[..., RetryAction | None],
        *,
        name: str | None = None,
        priority: RetryClassifierPriority | None = None,
        sees_successes: bool = False,
    ) -> None:
        self.function = function
        self.name: str = str(getattr(function, "__name__", type(function).__name__)) if name is None else name
        self.priority: RetryClassifierPriority = checked_priority(priority)
        self.sees_successes = sees_successes
        self._takes_previous: bool = _takes_previous(function)

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction | None:
        """Ask the function."""
        return self.function(outcome, previous) if self._takes_previous else self.function(outcome)

    def __call__(self, outcome: Outcome, previous: RetryAction | None = None) -> RetryAction | None:
        """Call the function, so that a decorated function still works as one."""
        from .actions import NO_ACTION

        return self.classify_retry(outcome, NO_ACTION if previous is None else previous)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """Pickle by name, as a function does, if the decorated function's name is this classifier's."""
        module = sys.modules.get(getattr(self.function, "__module__", None) or "")
        place = str(getattr(self.function, "__qualname__", ""))
        found: Any = module
        for part in place.split("."):
            found = getattr(found, part, None)
        return (_named, (self.function.__module__, place)) if found is self else super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"<classifier {self.name}>"


def _named(module: str, place: str) -> Any:
    return attrgetter(place)(import_module(module))


@overload
def classifier(function: Callable[..., RetryAction | None], /) -> FunctionClassifier: ...
@overload
def classifier(
    *, name: str | None = None, priority: RetryClassifierPriority | None = None, sees_successes: bool = False
) -> Callable[[Callable[..., RetryAction | None]], FunctionClassifier]: ...
def classifier(
    function: Callable[..., RetryAction | None] | None = None,
    /,
    *,
    name: str | None = None,
    priority: RetryClassifierPriority | None = None,
    sees_successes: bool = False,
) -> FunctionClassifier | Callable[[Callable[..., RetryAction | None]], FunctionClassifier]:
    """Make a classifier from a function of ``(outcome)`` or ``(outcome, previous)``.

    >>> from requests_smithy_retry import RetryAction
    >>> locked = classifier(lambda outcome: RetryAction.transient_error() if outcome.status == 423 else None)

    Also usable as a decorator, bare or with arguments.

    :param name: the name in histories; by default the function's name.
    :param priority: by default after all default classifiers.
    :param sees_successes: True to be asked about responses below 400 as well.
    :raises TypeError: for anything but a priority, and for a function that requires any other argument.
    """
    make = functools.partial(FunctionClassifier, name=name, priority=priority, sees_successes=sees_successes)
    return make if function is None else make(function)


class PrioritizedClassifier:
    """A classifier at another priority."""

    def __init__(self, inner: RetryClassifier, priority: RetryClassifierPriority) -> None:
        self.inner = inner
        self.name: str = inner.name
        self.priority: RetryClassifierPriority = checked_priority(priority)
        self.sees_successes: bool = sees_successes(inner)
        if isinstance(inner, Vouches):
            self.vouch: Callable[[PreparedRequest], Vouched | None] = inner.vouch

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction | None:
        return self.inner.classify_retry(outcome, previous)


def with_priority(inner: RetryClassifier, priority: RetryClassifierPriority) -> PrioritizedClassifier:
    """Wrap a classifier, a default one for instance, so that it runs at another priority (contract 3.2).

    :raises TypeError: for anything but a priority.
    """
    return PrioritizedClassifier(inner, priority)


def priority_of(item: RetryClassifier) -> RetryClassifierPriority:
    return checked_priority(getattr(item, "priority", None))


def checked_priority(priority: object) -> RetryClassifierPriority:
    """Return the priority, for None the one after all default classifiers; raise ``TypeError`` for anything else."""
    if priority is None:
        return RetryClassifierPriority.default()
    if not isinstance(priority, RetryClassifierPriority):
        from ..checks import safe_repr

        raise TypeError(f"priority={safe_repr(priority)}: {ALLOWED_PRIORITY}")
    return priority


def sees_successes(item: RetryClassifier) -> bool:
    return bool(getattr(item, "sees_successes", False))


def in_order(classifiers: Iterable[RetryClassifier]) -> tuple[RetryClassifier, ...]:
    """Sort from lowest to highest priority; equal ones keep their order (contract 3.2)."""
    return tuple(sorted(classifiers, key=priority_of))


class Only(tuple[RetryClassifier, ...]):
    """Classifiers that are asked in place of all others; made by :func:`only`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"only({', '.join(map(repr, self))})"


def only(*classifiers: RetryClassifier) -> Only:
    """Return a value for the option ``classifiers`` that makes these replace the default ones.

    The resend rule still holds: a request is sent again only if that is safe (contract 3.4).
    """
    return Only(classifiers)


def is_classifier(item: Any) -> bool:
    return callable(getattr(item, "classify_retry", None)) and isinstance(getattr(item, "name", None), str)


def _takes_previous(function: Callable[..., object]) -> bool:
    """Return True if a function takes the verdict so far: as a second argument required, or named ``previous``."""
    import inspect  # slow to import, and seldom needed

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return False
    parameters = signature.parameters.values()
    second = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][1:2]
    is_variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    takes_previous = is_variadic or any(p.default is p.empty or p.name == "previous" for p in second)
    try:
        signature.bind(*[None] * (1 + takes_previous))
    except TypeError as error:
        why = f"{function!r}: {error}; a function of (outcome) or (outcome, previous) is allowed"
    else:
        return takes_previous
    raise TypeError(why)
