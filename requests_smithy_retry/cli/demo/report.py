"""The report of a run: a progress bar for each client, tables, or JSON."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
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
from .scenes import Scene, Turnout
from .summary import Summary
from .verdicts import Verdict
from .workload import CROWD_CLIENTS, TIMEOUT

VERSIONS = {
    "python": platform.python_version(),
    **{name: metadata.version(name) for name in ("requests", "urllib3")},
    "requests-smithy-retry": __version__,
}
"""The versions of the libraries."""


class Bars:
    """The live progress of a run, if the console is a terminal. A context manager.

    :param console: the console.
    :param contenders: the contenders of the run.
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
        """Show the contenders' progress."""
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


def show(
    console: Console,
    setting: Setting,
    summaries: Sequence[Summary],
    turnouts: Mapping[Scene, Sequence[Turnout]],
    took: float,
) -> None:
    """Show the results of a run.

    :param summaries: ours is the last.
    :param turnouts: of each scene; ours is the last.
    :param took: the duration in seconds.
    """
    _say(console, "\nEach fault, and the operations that succeeded despite it:")
    console.print(_fault_table(console, summaries))
    _say(console, f"{len(summaries[0].results)} operations for each client:")
    console.print(_main_table(console, setting, summaries))
    for scene, columns in turnouts.items():
        _show_scene(console, scene, columns)
    versions = ", ".join(f"{name} {version}" for name, version in VERSIONS.items())
    _say(console, f"Measured just now, in {took:.0f} s: {versions}; seed {setting.seed}.")
    _say(console, f"Every call has timeout={TIMEOUT}. The adapters:")
    for client in CROWD_CLIENTS:
        _say(console, f"  {client.name}: {client.setup}")
    _say(
        console,
        "Retry(2) makes as many attempts as RetryAdapter, of which those do not count that fail while nobody succeeds; "
        "Retry(5) goes on for about as long. A generator cannot be read twice: RetryAdapter sends it once and returns "
        "the 503.",
    )
    for summary in summaries:
        if summary.count(Verdict.MISSING) and summary.noise:
            _say(console, f"The process of {summary.client.name} printed: " + " | ".join(summary.noise))


def _show_scene(console: Console, scene: Scene, turnouts: Sequence[Turnout]) -> None:
    usual = f"{scene.users} clients make {scene.rate:g} operations a second; the server can do {scene.capacity:g}."
    _say(console, f"{scene.label}. {usual}")
    table = _table(console, [turnout.client.removeprefix("urllib3 ") for turnout in turnouts])
    for label, cells in scene_rows(turnouts):
        table.add_row(label, *cells)
    console.print(table)
    for turnout in turnouts:
        if not turnout.requests_per_operation:
            _say(console, f"No request of {turnout.client} came; its process printed: " + " | ".join(turnout.noise))


def scene_rows(turnouts: Sequence[Turnout]) -> list[tuple[str, list[str]]]:
    """Return the rows of the table of a scene: the outcome, and the load on the server."""
    return [
        ("done, begun meanwhile", [f"{each.in_trouble_done}/{each.in_trouble}" for each in turnouts]),
        ("done, before and after", [f"{each.otherwise_done}/{each.otherwise}" for each in turnouts]),
        ("last failure afterwards", [f"{each.well_after:.1f} s" for each in turnouts]),
        ("slowest operation", [f"{each.slowest:.1f} s" for each in turnouts]),
        ("requests per operation", [f"{each.requests_per_operation:.2f}" for each in turnouts]),
        ("most requests in a second", [str(each.peak) for each in turnouts]),
    ]


def _say(console: Console, sentence: str) -> None:
    console.print(sentence, highlight=False, markup=False, soft_wrap=not console.is_terminal)


def _table(console: Console, names: Iterable[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else box.MARKDOWN)
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right")
    return table


def _main_table(console: Console, setting: Setting, summaries: Sequence[Summary]) -> Table:
    table = _table(console, [each.client.name for each in summaries])
    for label, cells in main_rows(summaries, setting.patience):
        table.add_row(label, *cells)
    return table


def main_rows(summaries: Sequence[Summary], patience: float) -> list[tuple[str, list[str]]]:
    """Return the rows of the main table.

    :param patience: the seconds after which a client counts as asleep.
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
    table = _table(console, [each.client.name for each in summaries])
    for fault in FAULTS:
        table.add_row(fault.label, *(Text(cell(summary, fault)) for summary in summaries))
    return table


def cell(summary: Summary, fault: Fault) -> str:
    """Return one client's result for one fault, such as ``3/4`` or ``0/4, 4 wrong``."""
    total = summary.count(*Verdict, fault=fault.name)
    told = f"{summary.count(Verdict.SUCCEEDED, fault=fault.name)}/{total}"
    for verdict in (Verdict.WRONG, Verdict.ASLEEP):
        if count := summary.count(verdict, fault=fault.name):
            told += f", {count} {verdict.value}"
    return told


def to_json(
    setting: Setting, summaries: Sequence[Summary], turnouts: Mapping[Scene, Sequence[Turnout]], took: float
) -> str:
    """Return the results as JSON.

    :param summaries: ours is the last.
    :param turnouts: of each scene; ours is the last.
    :param took: the duration in seconds.
    """
    document: dict[str, Any] = {
        "seed": setting.seed,
        "operations": setting.operations,
        "patience": setting.patience,
        "seconds": round(took, 3),
        "versions": VERSIONS,
        "clients": [summary.to_dict() for summary in summaries],
        "scenes": {
            scene.name: {**asdict(scene), "clients": [each.to_dict() for each in columns]}
            for scene, columns in turnouts.items()
        },
        "ok": summaries[-1].is_sound,
    }
    return json.dumps(document, indent=2)
