"""The adapters of others (contract 10.5): why one is left alone, how one is made to retry, and how many were reached.

One that is made to retry stays the same object, with its pools, its TLS context and its own attributes. Its class
becomes one that inherits from its own class and from ``RetryAdapter``, in this order: what it overrides stays in force.
"""

from __future__ import annotations

import copy
import functools
import os
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from ...checks import safe_repr
from ...config.retry_config import RetryConfig
from ...config.sources import MOUNTED_VALUES as MOUNTED
from ..urllib3_retry.translation import overridden, own_methods

NEVER = "never"
"""Stands for no value of ``mounted``: the adapter cannot have retries."""


class Kind(NamedTuple):
    """Adapters that one sentence tells of.

    :param sentence: whose they are, their class, and what is to be said of their own retries.
    :param remedy: the value of ``mounted`` that would reach them; None: they have retries.
    :param policy: by which they retry, if they do.
    :param where: in a dry run, the line that mounted them or made their session.
    """

    sentence: str
    remedy: str | None = None
    policy: RetryConfig | None = None
    where: str = ""


class Reached:
    """Counts of adapters, by kind. The caller holds a lock."""

    def __init__(self) -> None:
        self._counts: dict[Kind, int] = {}

    def add(self, kind: Kind, by: int = 1) -> None:
        """Count an adapter of a kind, or with ``by=-1`` one that another adapter took the place of."""
        self._counts[kind] = self._counts.get(kind, 0) + by

    def count(self, remedy: str | None) -> int:
        """Return how many adapters a value of ``mounted`` would reach; None: how many have retries."""
        return sum(number for kind, number in self._counts.items() if kind.remedy == remedy)

    def line(self, had: str = "had") -> str:
        """Return one line for all of them, with this verb; an empty one where there are none."""
        total, reached = sum(self._counts.values()), self.count(None)
        if not total:
            return ""
        left = [f"--mounted={name} would reach {self.count(name)} more" for name in ("plain", "all", "replace")]
        left = [words for words in left if not words.endswith(" 0 more")]
        left += [f"{self.count(NEVER)} cannot have them"] if self.count(NEVER) else []
        more = f": {', '.join(left)} (run --list names each)" if left else ""
        return f"{reached or 'none'} of {total} {'adapter' if total == 1 else 'adapters'} {had} retries{more}"

    def lines(self) -> Iterator[str]:
        for kind, number in self._counts.items():
            if number:
                yield f"{number} x {kind.sentence}{kind.where}: {'left alone' if kind.remedy else repr(kind.policy)}"


def calling_line() -> str:
    """Return the line of the program or of an SDK that makes a session or mounts an adapter, for a dry run."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    inner = tuple(os.path.join(folder, "") for folder in (package, os.path.dirname(requests.__file__)))
    frame = next(each for each in reversed(traceback.extract_stack()) if not each.filename.startswith(inner))
    name = frame.filename.rpartition(f"site-packages{os.sep}")[2].removeprefix(os.path.join(os.getcwd(), ""))
    return f"{name}:{frame.lineno}"


class Both:
    """The first base of each class of both: copies and pickles, which the class itself cannot be found for."""

    _bases: tuple[type[HTTPAdapter], Any]
    """The adapter's own class, and ours, which has the methods below."""
    _state_to_copy: Callable[[], dict[str, Any]]
    _state_with_fresh_strategy: Callable[[], dict[str, Any]]

    def _alone(self) -> HTTPAdapter:
        """Return an adapter of its own class with the same attributes, without a policy."""
        theirs, ours = self._bases
        alone: HTTPAdapter = object.__new__(theirs)
        names = names_of(ours)
        vars(alone).update((name, value) for name, value in vars(self).items() if name not in names)
        alone.max_retries = Retry(0, read=False)
        return alone

    def __copy__(self) -> Any:
        return take_over(copy.copy(self._alone()), self._bases[1], self._state_with_fresh_strategy())

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return take_over(copy.deepcopy(self._alone(), memo), self._bases[1], copy.deepcopy(self._state_to_copy(), memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return take_over, (self._alone(), self._bases[1], self._state_to_copy())


@functools.lru_cache(256)
def class_of_both(theirs: Any, ours: Any) -> Any:
    """Return the class that inherits from both, made once; raise ``TypeError`` if the two cannot be combined."""
    if theirs is HTTPAdapter:
        return ours
    values = {"_bases": (theirs, ours), "__module__": theirs.__module__, "__qualname__": theirs.__qualname__}
    both = type(theirs.__name__, (Both, theirs, ours), {**values, "__doc__": theirs.__doc__})
    object.__new__(theirs).__class__ = both  # or TypeError
    return both


def take_over(adapter: HTTPAdapter, ours: Any, state: dict[str, Any], own: Any = None) -> Any:
    """Make an adapter retry, in place, by a state or its ``own`` ``max_retries``; or raise, and leave it as it is."""
    theirs: Any = type(adapter)
    made: Any = object.__new__(class_of_both(theirs, ours))
    vars(made).update(vars(adapter))
    made._take_on(state)
    if own is not None:
        made.max_retries = own
        vars(made).pop("_original")
    # The attributes first: another thread may be sending.
    vars(adapter).update(vars(made))
    adapter.__class__ = type(made)
    vars(adapter).pop("max_retries", None)
    return adapter


@functools.lru_cache(1)
def names_of(ours: Any) -> frozenset[str]:
    """Return the names of the attributes by which our class goes, and ``HTTPAdapter`` does not."""
    return frozenset(
        {*dir(ours), *vars(ours(trust_env=False)), "_original"} - {*dir(HTTPAdapter), *vars(HTTPAdapter())}
    )


def retries_nothing(value: Any) -> bool:
    """Return True for the ``max_retries`` of an adapter that neither retries nor raises for a status."""
    if isinstance(value, Retry):
        return value.total in (0, False) and not value.status_forcelist and not own_methods(value)
    return value in (0, False)


def left_alone(adapter: Any, name: str, ours: Any, mounted: str) -> Kind | None:
    """Return the kind of an adapter of another class than ours that is left alone; None: it can be made to retry."""
    if not isinstance(adapter, HTTPAdapter):
        return Kind(f"{name}, which is not an HTTPAdapter", NEVER)
    if "send" in vars(adapter):
        return Kind(f"{name}, whose send is an attribute and may retry by itself", NEVER)
    names = own_names(adapter)
    taken = {name for name in names if not name.startswith("__")} & {*names_of(ours), "max_retries"}
    taken |= vars(adapter).keys() & names_of(ours)
    if taken or "max_retries" not in vars(adapter):
        return Kind(f"{name}, whose {min(taken, default='constructor')} is not what a RetryAdapter needs", NEVER)
    why, remedy = ", which has a send of its own and may retry by itself", "replace"
    if "send" not in names:
        why, remedy = _words_on(adapter.max_retries)
    return None if MOUNTED.index(remedy) <= MOUNTED.index(mounted) else Kind(name + why, remedy)


def own_names(adapter: Any) -> set[str]:
    return {name for kind in type(adapter).__mro__ if kind not in HTTPAdapter.__mro__ for name in vars(kind)}


def _words_on(retries: Any) -> tuple[str, str]:
    found = overridden(retries) if isinstance(retries, Retry) else []
    if found:
        return f" with {display_retries(retries)}, whose {found[0]} cannot be translated", "replace"
    if not retries_nothing(retries):
        return f" with {display_retries(retries)}, which mounted='all' would translate", "all"
    return ", which mounted='plain' would have retry", "plain"


def display_retries(retries: Any) -> str:
    """Return a ``max_retries`` for a sentence: ``Retry(3)``."""
    if not isinstance(retries, Retry):
        return f"max_retries={safe_repr(retries)}"
    kind = type(retries)
    package = "" if kind is Retry else f"{kind.__module__}."
    return f"{package}{kind.__qualname__}({safe_repr(retries.total)})"
