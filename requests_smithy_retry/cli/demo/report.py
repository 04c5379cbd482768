"""What a run shows: a progress bar for each client, two tables, or JSON."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ...version import __version__
from .contender import Contender, Setting
from .plan import FAULTS, Fault
from .summary import Summary
from .verdicts import Verdict
from .workload import TIMEOUT

VERSIONS = {
    "python": platform.python_version(),
    **{name: metadata.version(name) for name in ("requests", "urllib3")},
    "requests-smithy-retry": __version__,
}
"""Of what takes part."""


class Bars:
    """The live progress of a run; on what is no terminal, nothing. A context manager.

    :param console: where it is drawn.
    :param contenders: who runs.
    """

    def __init__(self, console: Console, contenders: Sequence[Contender]) -> None:
        self._contenders = contenders
        self._progress = Progress(
            TextColumn("{task.description:>16}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[told]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._tasks = [
            self._progress.add_task(contender.client.name, total=len(contender.plan), told="")
            for contender in contenders
        ]

    def draw(self) -> None:
        """Show where the contenders are now."""
        for contender, task in zip(self._contenders, self._tasks, strict=True):
            summary = Summary(contender.client, contender.results)
            told = ", ".join(
                f"{summary.count(verdict)} {verdict.value}"
                for verdict in (Verdict.FAILED, Verdict.WRONG, Verdict.ASLEEP)
                if summary.count(verdict)
            )
            self._progress.update(task, completed=len(contender.results), told=told)

    def __enter__(self) -> Bars:
        if not self._progress.disable:
            self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        if not self._progress.disable:
            self._progress.stop()


def show(console: Console, setting: Setting, summaries: Sequence[Summary], took: float) -> None:
    """Show what a run came to.

    :param summaries: ours is the last.
    :param took: seconds.
    """
    _say(console, "\nWhat went wrong, and how many operations succeeded all the same:")
    console.print(_fault_table(console, summaries))
    _say(console, f"{len(summaries[0].results)} operations for each client:")
    console.print(_main_table(console, setting, summaries))
    versions = ", ".join(f"{name} {version}" for name, version in VERSIONS.items())
    _say(console, f"All of it measured now, in {took:.0f} s: {versions}; seed {setting.seed}.")
    _say(console, f"Every call has timeout={TIMEOUT}. The adapters:")
    for summary in summaries:
        _say(console, f"  {summary.client.name}: {summary.client.setup}")
    _say(
        console,
        "A generator cannot be read twice: RetryAdapter sends it once and hands on the 503. More retries carry "
        "urllib3's Retry through the outage too; they do not mend cut bodies, used-up uploads or a sleep of hours.",
    )
    for summary in summaries:
        if summary.count(Verdict.MISSING) and summary.noise:
            _say(console, f"The process of {summary.client.name} said: " + " | ".join(summary.noise))


def _say(console: Console, sentence: str) -> None:
    console.print(sentence, highlight=False, markup=False, soft_wrap=not console.is_terminal)


def _table(console: Console, summaries: Iterable[Summary]) -> Table:
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else box.MARKDOWN)
    table.add_column("")
    for summary in summaries:
        table.add_column(summary.client.name, justify="right")
    return table


def _main_table(console: Console, setting: Setting, summaries: Sequence[Summary]) -> Table:
    table = _table(console, summaries)
    for label, cells in main_rows(summaries, setting.patience):
        table.add_row(label, *cells)
    return table


def main_rows(summaries: Sequence[Summary], patience: float) -> list[tuple[str, list[str]]]:
    """The rows of the table that counts.

    :param patience: seconds after which a client counts as asleep.
    """
    rows = [
        ("operations that succeeded", [str(summary.count(Verdict.SUCCEEDED)) for summary in summaries]),
        ("failed, and the caller was told", [str(summary.count(Verdict.FAILED)) for summary in summaries]),
        ("wrong or empty bodies", [_wrong(summary) for summary in summaries]),
        (f"still asleep after {patience:g} s", [str(summary.count(Verdict.ASLEEP)) for summary in summaries]),
        ("requests per operation", [f"{summary.requests_per_operation:.2f}" for summary in summaries]),
        ("most for one operation", [str(summary.most_requests) for summary in summaries]),
        ("slowest operation", [_slowest(summary) for summary in summaries]),
    ]
    if any(summary.count(Verdict.MISSING) for summary in summaries):
        rows.append(("not done", [str(summary.count(Verdict.MISSING)) for summary in summaries]))
    return rows


def _wrong(summary: Summary) -> str:
    empty = f" ({summary.empty} empty)" if summary.empty else ""
    return f"{summary.count(Verdict.WRONG)}{empty}"


def _slowest(summary: Summary) -> str:
    slowest = summary.slowest
    if slowest.verdict is Verdict.ASLEEP:
        return f"> {slowest.seconds or 0:.1f} s, asleep"
    return f"{slowest.seconds or 0:.1f} s"


def _fault_table(console: Console, summaries: Sequence[Summary]) -> Table:
    table = _table(console, summaries)
    for fault in FAULTS:
        table.add_row(fault.label, *(Text(cell(summary, fault)) for summary in summaries))
    return table


def cell(summary: Summary, fault: Fault) -> str:
    """What one client made of one fault, such as ``3/4`` or ``0/4, 4 wrong``."""
    total = summary.count(*Verdict, fault=fault.name)
    told = f"{summary.count(Verdict.SUCCEEDED, fault=fault.name)}/{total}"
    for verdict in (Verdict.WRONG, Verdict.ASLEEP):
        if count := summary.count(verdict, fault=fault.name):
            told += f", {count} {verdict.value}"
    return told


def to_json(setting: Setting, summaries: Sequence[Summary], took: float) -> str:
    """The run for machines.

    :param summaries: ours is the last.
    :param took: seconds.
    """
    document: dict[str, Any] = {
        "seed": setting.seed,
        "operations": setting.operations,
        "patience": setting.patience,
        "seconds": round(took, 3),
        "versions": VERSIONS,
        "clients": [summary.to_dict() for summary in summaries],
        "ok": summaries[-1].is_sound,
    }
    return json.dumps(document, indent=2)
