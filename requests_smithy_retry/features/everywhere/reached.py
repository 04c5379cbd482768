"""What becomes of a program's adapters (contract 10.5): which have retries, which are left alone and why, how many."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
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


class Fate(NamedTuple):
    """What is to become of an adapter.

    :param sentence: as that of a :class:`Kind`.
    :param remedy: as that of a :class:`Kind`.
    :param is_translated: its own ``max_retries`` is translated, as a policy of its own.
    """

    sentence: str
    remedy: str | None
    is_translated: bool


def fate_of(adapter: HTTPAdapter, name: str, retries: Any, mounted: str) -> Fate:
    """Decide what is to become of an adapter of another class than ours.

    :param name: what it is called in sentences.
    :param retries: its ``max_retries``.
    :param mounted: which adapters are made to retry.
    """
    sends, is_quiet = has_own_send(adapter), retries_nothing(retries)
    if sends:
        why, needed = ", which has a send of its own and may retry by itself", "replace"
    elif is_quiet:
        why, needed = ", which mounted='plain' would have retry", "plain"
    else:
        why, needed = _words_on(retries)
    if MOUNTED.index(needed) > MOUNTED.index(mounted):
        return Fate(name + why, needed, False)
    ignored = ", which is ignored" if mounted == "replace" else ""
    said = "" if is_quiet else f" with {display_retries(retries)}{ignored}"
    return Fate(f"{name}{said}{', around its own send' if sends else ''}", None, not (is_quiet or ignored))


class Reached:
    """Counts of adapters, by kind. The caller holds a lock."""

    def __init__(self) -> None:
        self._counts: dict[Kind, int] = {}

    def add(self, kind: Kind, by: int = 1) -> None:
        """Count an adapter of a kind, or with ``by=-1`` one that is of that kind no more."""
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


def retries_nothing(value: Any) -> bool:
    """Return True for the ``max_retries`` of an adapter that neither retries nor raises for a status."""
    return is_quiet(value) and not (isinstance(value, Retry) and own_methods(value))


def is_quiet(value: Any) -> bool:
    """Return the same, apart from methods of its own: what a program may change in place, and so asked each time."""
    if isinstance(value, Retry):
        return value.total in (0, False) and not value.status_forcelist
    return value in (0, False)


def has_own_send(adapter: HTTPAdapter) -> bool:
    """Return True if an adapter does not send as ``HTTPAdapter`` does."""
    return getattr(adapter.send, "__func__", None) is not HTTPAdapter.send


def _words_on(retries: Any) -> tuple[str, str]:
    found = overridden(retries) if isinstance(retries, Retry) else []
    if found:
        return f" with {display_retries(retries)}, whose {found[0]} cannot be translated", "replace"
    return f" with {display_retries(retries)}, which mounted='all' would translate", "all"


def display_retries(retries: Any) -> str:
    """Return a ``max_retries`` for a sentence: ``Retry(3)``."""
    if not isinstance(retries, Retry):
        return f"max_retries={safe_repr(retries)}"
    kind = type(retries)
    package = "" if kind is Retry else f"{kind.__module__}."
    return f"{package}{kind.__qualname__}({safe_repr(retries.total)})"
