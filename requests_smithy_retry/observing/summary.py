"""The counts of operations, which count when they end; :func:`retry_summary` returns them (contract 12)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import StopReason
from ..forksafe import forgets_with_all, renew_lock_after_fork
from ..urls import display_scope

if TYPE_CHECKING:
    from requests import Session

    from .history import RetryHistory
else:  # pragma: no branch - for typing.get_type_hints; only a summary needs it
    Session = RetryHistory = Any

MOST_HOSTS = 1024
"""The most scopes that are counted separately."""


class RetrySummary(NamedTuple):
    """What retries did. ``print(summary)`` shows it in one line, ``print(summary.table())`` by host.

    :param operations: all operations that ended, whatever their result.
    :param retried: operations that were retried.
    :param retries: the number of their retries.
    :param saved: operations that succeeded after a retry.
    :param lost: operations for which a retry was indicated, and could not be made or did not help.
    :param unsent: those of which nothing was sent, because no attempt could be made in time.
    :param waited: the sum of their waits in seconds: for backoff, a service that is down, and rate limits.
    :param hosts: the same by host.
    """

    operations: int = 0
    retried: int = 0
    retries: int = 0
    saved: int = 0
    lost: int = 0
    unsent: int = 0
    waited: float = 0.0
    hosts: Mapping[str, RetrySummary] = {}

    def __str__(self) -> str:
        said = f"{self.operations} operations: {self.retried} retried ({self.retries} retries), {self.saved} saved, "
        unsent = f"{self.unsent} never sent, " if self.unsent else ""
        return f"{said}{self.lost} lost, {unsent}{self.waited:.1f} s waited"

    def table(self) -> str:
        """Return a line for each host, those with the most losses first."""
        hosts = sorted(self.hosts.items(), key=lambda item: (-item[1].lost, -item[1].retries, item[0]))
        lines = [("host", *COUNTS), *((host, *(f"{getattr(of, name):.4g}" for name in COUNTS)) for host, of in hosts)]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                [host.ljust(widths[0]), *(text.rjust(width) for text, width in zip(rest, widths[1:], strict=True))]
            )
            for host, *rest in lines
        )


COUNTS = RetrySummary._fields[:-1]
"""The fields that are added up."""


_lock = threading.Lock()
"""Guards all counters: each count goes to those of an adapter and to those of the process."""


class Counters:
    """Counts the operations of one adapter that ended, by scope, and counts them in :data:`PROCESS`, too."""

    def __init__(self) -> None:
        self.forget()

    def renew_lock(self) -> None:
        """Replace the lock, after a fork."""
        global _lock
        _lock = threading.Lock()

    def forget(self) -> None:
        """Start counting from 0 again."""
        self._at_once: dict[str | None, int] = {}
        self._others: dict[str | None, RetrySummary] = {}

    def at_once(self, scope: str) -> None:
        """Count a first-try success."""
        with _lock:
            for seen in (self._at_once, PROCESS._at_once):
                name = scope if scope in seen or len(seen) < MOST_HOSTS else None
                seen[name] = seen.get(name, 0) + 1

    def ended(self, scope: str, history: RetryHistory, before: RetrySummary | None = None) -> None:
        """Count an operation that is not a first-try success.

        :param before: how it was counted when its response was handed over, whose body then continued or was lost.
        """
        one = counted(history)
        if before is not None:
            one = RetrySummary(*(getattr(one, name) - getattr(before, name) for name in COUNTS))
        with _lock:
            for others in (self._others, PROCESS._others):
                name = scope if scope in others or len(others) < MOST_HOSTS else None
                others[name] = add_up((others.get(name, RetrySummary()), one))

    def read(self) -> dict[str | None, RetrySummary]:
        """Return what was counted, by scope; None: those of scopes beyond the first :data:`MOST_HOSTS`."""
        with _lock:
            found = dict(self._others)
            for name, number in self._at_once.items():
                found[name] = add_up((found.get(name, RetrySummary()), RetrySummary(number)))
            return found


def counted(history: RetryHistory) -> RetrySummary:
    """Return how an operation counts."""
    retries, waited = 0, history.waited
    for each in history.attempts:
        retries = each.number - 1
        waited += each.delay + each.permit_wait + each.gate_wait + each.line_wait
    is_saved, is_unsent = retries > 0 and history.stop_reason is StopReason.SUCCESS, not history.attempts
    is_lost = history.gave_up and not is_unsent
    return RetrySummary(1, int(retries > 0), retries, int(is_saved), int(is_lost), int(is_unsent), waited)


PROCESS = Counters()
"""Counts all operations of the process, those of deleted adapters included."""
forgets_with_all(PROCESS)
renew_lock_after_fork(PROCESS)


def retry_summary(session: Session | None = None) -> RetrySummary:
    """Return what retries did so far: those of a session, over all its adapters, or those of the whole process.

    The counters always run, at no measurable cost. Each adapter has its own; those of :func:`install` share one. An
    operation counts when it ends, or with ``stream=True`` when the caller gets its response; one with ``enabled=False``
    does not count.

    :param session: None: all that this process sent, also by closed and deleted sessions.
    :raises ValueError: if the session has no :class:`RetryAdapter`.
    """
    if session is None:
        return _summed([PROCESS])
    adapters: list[Any] = [
        adapter for adapter in session.adapters.values() if getattr(adapter, "plan", None) is not None
    ]
    if not adapters:
        raise ValueError("the session has no RetryAdapter: mount one first")
    return summary_of(adapters)


def summary_of(adapters: Iterable[Any]) -> RetrySummary:
    """Return what the retries of these adapters did so far; shared counters count once."""
    return _summed({id(adapter.counters): adapter.counters for adapter in adapters}.values())


def _summed(counters: Iterable[Counters]) -> RetrySummary:
    hosts: dict[str, RetrySummary] = {}
    for each in counters:
        for name, found in each.read().items():
            host = "other hosts" if name is None else display_scope(name)
            hosts[host] = add_up((hosts.get(host, RetrySummary()), found))
    return add_up(hosts.values())._replace(hosts=hosts)


def add_up(parts: Iterable[RetrySummary]) -> RetrySummary:
    """Add up summaries, without their hosts."""
    sums: list[Any] = [sum(column) for column in zip(*(part[: len(COUNTS)] for part in parts), strict=True)]
    return RetrySummary(*sums)
