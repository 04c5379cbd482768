"""What a classifier is (contract 3.1), and how one is made from a function or given another priority."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, overload, runtime_checkable

from .priority import RetryClassifierPriority

if TYPE_CHECKING:
    from .actions import RetryAction
    from .outcome import Outcome


@runtime_checkable
class RetryClassifier(Protocol):
    """Looks at what an attempt ended with and says whether a retry would help.

    Two attributes are optional: ``priority`` (a :class:`RetryClassifierPriority`; without one the classifier runs
    after all defaults) and ``sees_successes`` (True: it is asked about responses below 400 as well).
    """

    @property
    def name(self) -> str:
        """What histories call it."""
        ...

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction | None:
        """Give a verdict; None means the same as "no action indicated".

        :param outcome: what the attempt ended with.
        :param previous: the verdict of those that ran before, which may be refined.
        """
        ...


class FunctionClassifier:
    """A classifier made from a plain function. Made by :func:`classifier`."""

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
        self.priority: RetryClassifierPriority = RetryClassifierPriority.default() if priority is None else priority
        self.sees_successes = sees_successes
        self._takes_previous = _takes_previous(function)

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction | None:
        """Ask the function."""
        return self.function(outcome, previous) if self._takes_previous else self.function(outcome)

    def __call__(self, outcome: Outcome, previous: RetryAction | None = None) -> RetryAction | None:
        """Call the function as it was written, so that a decorated function stays one."""
        from .actions import NO_ACTION

        return self.classify_retry(outcome, NO_ACTION if previous is None else previous)

    def __repr__(self) -> str:
        return f"<classifier {self.name}>"


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

    :param name: what histories call it; by default the function's name.
    :param priority: by default after all default classifiers.
    :param sees_successes: ask it about responses below 400 as well.
    """
    make = functools.partial(FunctionClassifier, name=name, priority=priority, sees_successes=sees_successes)
    return make if function is None else make(function)


class PrioritizedClassifier:
    """Another classifier, at another priority.

    :param inner: the classifier that is asked.
    :param priority: when it runs.
    """

    def __init__(self, inner: RetryClassifier, priority: RetryClassifierPriority) -> None:
        self.inner = inner
        self.priority = priority
        self.sees_successes: bool = sees_successes(inner)

    @property
    def name(self) -> str:
        """The inner classifier's name."""
        return self.inner.name

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction | None:
        """Ask the inner classifier."""
        return self.inner.classify_retry(outcome, previous)


def with_priority(inner: RetryClassifier, priority: RetryClassifierPriority) -> PrioritizedClassifier:
    """Wrap a classifier, a default one for instance, so that it runs at another priority (contract 3.3)."""
    return PrioritizedClassifier(inner, priority)


def priority_of(item: RetryClassifier) -> RetryClassifierPriority:
    """The classifier's priority, or the one after all defaults where it names none."""
    priority = getattr(item, "priority", None)
    return priority if isinstance(priority, RetryClassifierPriority) else RetryClassifierPriority.default()


def sees_successes(item: RetryClassifier) -> bool:
    """Whether the classifier wants to be asked about responses below 400."""
    return bool(getattr(item, "sees_successes", False))


def in_order(classifiers: Iterable[RetryClassifier]) -> tuple[RetryClassifier, ...]:
    """From lowest to highest priority; equal ones keep the order in which they were added (contract 3.3)."""
    return tuple(sorted(classifiers, key=priority_of))


def is_classifier(item: Any) -> bool:
    """Whether an object can be used as a classifier."""
    return callable(getattr(item, "classify_retry", None)) and isinstance(getattr(item, "name", None), str)


def _takes_previous(function: Callable[..., object]) -> bool:
    """Whether a function wants the verdict so far: as a second argument it cannot do without, or by that name.

    A second argument with a default of its own is more often a value bound to a lambda.
    """
    import inspect  # only who makes a classifier from a function needs it

    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return True
    second = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][1:2]
    return any(p.default is p.empty or p.name == "previous" for p in second)
