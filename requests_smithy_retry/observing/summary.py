"""What became of all operations: counted as they end, and returned by :func:`retry_summary` (contract 12)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..urls import display_scope

if TYPE_CHECKING:
    from requests import Session

    from ..core.scope import Scopes
else:  # pragma: no branch - for typing.get_type_hints; only who asks for a summary needs it
    Session = Any


class RetrySummary(NamedTuple):
    """What retries did. ``print(summary)`` shows it in one line, ``print(summary.table())`` by host.

    :param operations: all operations that ended, whatever their result.
    :param retried: operations that were retried.
    :param retries: the number of their retries.
    :param saved: operations that succeeded after a retry.
    :param lost: operations for which a retry was indicated, and could not be made or did not help.
    :param waited: the sum of their waits in seconds: for backoff, a service that is down, and rate limits.
    :param hosts: the same by host.
    """

    operations: int = 0
    retried: int = 0
    retries: int = 0
    saved: int = 0
    lost: int = 0
    waited: float = 0.0
    hosts: Mapping[str, RetrySummary] = {}

    def __str__(self) -> str:
        said = f"{self.operations} operations: {self.retried} retried ({self.retries} retries), {self.saved} saved, "
        return f"{said}{self.lost} lost, {self.waited:.1f} s waited"

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
"""What is added up."""


def retry_summary(session: Session) -> RetrySummary:
    """Return what the retries of a session did so far, over all its adapters.

    The counters always run, at no measurable cost. Sessions whose adapters share a strategy, as those of
    :func:`install` do, are counted together. An operation counts when it ends, or with ``stream=True`` when the caller
    gets its response; one with ``enabled=False`` does not count.

    :raises ValueError: if the session has no :class:`RetryAdapter`.
    """
    adapters = [adapter for adapter in session.adapters.values() if getattr(adapter, "plan", None) is not None]
    if not adapters:
        raise ValueError("the session has no RetryAdapter: mount one first")
    return summary_of(adapters)


def summary_of(adapters: Iterable[Any]) -> RetrySummary:
    """Return what the retries of these adapters did so far; what several of them share counts once."""
    return summed({id(adapter.plan.scopes): adapter.plan.scopes for adapter in adapters}.values())


def summed(tables: Iterable[Scopes]) -> RetrySummary:
    """Add up what several tables of scopes counted."""
    hosts: dict[str, RetrySummary] = {}
    for scopes in tables:
        for name, found in scopes.tallies():
            host = "other hosts" if name is None else display_scope(name)
            if found.operations:
                hosts[host] = add_up((hosts.get(host, RetrySummary()), found))
    return add_up(hosts.values())._replace(hosts=hosts)


def add_up(parts: Iterable[RetrySummary]) -> RetrySummary:
    """Add summaries up, without their hosts."""
    all_of = tuple(parts)
    return RetrySummary(*(sum(getattr(part, name) for part in all_of) for name in COUNTS))
