"""The report of a run: a progress bar for each client, tables, or JSON."""

from __future__ import annotations

import json
import operator
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
from .clients import CROWD_CLIENTS, TIMEOUT
from .contest import Contender, Setting
from .plan import FAULTS, Fault
from .results import Result, Summary, Verdict
from .scenes import Scene, Turnout

VERSIONS = {
    "python": platform.python_version(),
    **{name: metadata.version(name) for name in ("requests", "urllib3")},
    "requests-smithy-retry": __version__,
}
"""The versions of the libraries."""

Row = tuple[str, list[str]]
"""A label, and a cell for each client."""


class Bars(Progress):
    """The live progress of a run. A context manager."""

    def __init__(self, console: Console, contenders: Sequence[Contender]) -> None:
        super().__init__(
            TextColumn("{task.description:>16}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[told]}"),
            console=console,
        )
        self._of = [(each, self.add_task(each.client.name, total=len(each.plan), told="")) for each in contenders]

    def draw(self) -> None:
        for contender, task in self._of:
            told = _told(Summary(contender.client, contender.results), Verdict.FAILED, Verdict.WRONG, Verdict.ASLEEP)
            self.update(task, completed=len(contender.results), told=", ".join(told))


def _told(summary: Summary, *verdicts: Verdict, fault: str | None = None) -> list[str]:
    counts = {verdict.value: summary.count(verdict, fault=fault) for verdict in verdicts}
    return [f"{count} {name}" for name, count in counts.items() if count]


def show(
    console: Console,
    setting: Setting,
    summaries: Sequence[Summary],
    turnouts: Mapping[Scene, Sequence[Turnout]],
    took: float,
) -> None:
    """Show the results of a run."""
    _say(console, "\nEach fault, and the operations that succeeded despite it:")
    names = [each.client.name for each in summaries]
    _print_table(console, names, [(fault.label, [cell(each, fault) for each in summaries]) for fault in FAULTS])
    _say(console, f"{len(summaries[0].results)} operations for each client:")
    _print_table(console, names, main_rows(summaries, setting.patience))
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


def _show_scene(console: Console, scene: Scene, columns: Sequence[Turnout]) -> None:
    usual = f"{scene.users} clients make {scene.rate:g} operations a second; the server can do {scene.capacity:g}."
    _say(console, f"{scene.label}. {usual}")
    _print_table(console, [each.client.removeprefix("urllib3 ") for each in columns], scene_rows(columns))
    for each in columns:
        if not each.requests_per_operation:
            _say(console, f"No request of {each.client} came; its process printed: " + " | ".join(each.noise))


def scene_rows(turnouts: Sequence[Turnout]) -> list[Row]:
    """Return the rows of the table of a scene: the outcome, and the load on the server."""
    return [
        ("done, begun meanwhile", [f"{each.in_trouble_done}/{each.in_trouble}" for each in turnouts]),
        ("done, before and after", [f"{each.otherwise_done}/{each.otherwise}" for each in turnouts]),
        (
            "done, in all",
            [f"{each.in_trouble_done + each.otherwise_done}/{each.in_trouble + each.otherwise}" for each in turnouts],
        ),
        ("last failure afterwards", [f"{each.well_after:.1f} s" for each in turnouts]),
        ("slowest operation", [f"{each.slowest:.1f} s" for each in turnouts]),
        ("requests per operation", [f"{each.requests_per_operation:.2f}" for each in turnouts]),
        ("most requests in a second", [str(each.peak) for each in turnouts]),
    ]


def _say(console: Console, sentence: str) -> None:
    console.print(sentence, highlight=False, markup=False, soft_wrap=not console.is_terminal)


def _print_table(console: Console, names: Iterable[str], rows: Iterable[Row]) -> None:
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else box.MARKDOWN)
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right")
    for label, cells in rows:
        table.add_row(label, *map(Text, cells))
    console.print(table)


def main_rows(summaries: Sequence[Summary], patience: float) -> list[Row]:
    """Return the rows of the main table."""
    counts = {verdict: [str(each.count(verdict)) for each in summaries] for verdict in Verdict}
    empty = [f" ({each.empty} empty)" if each.empty else "" for each in summaries]
    rows = [
        ("operations that succeeded", counts[Verdict.SUCCEEDED]),
        ("failed, and the caller was told", counts[Verdict.FAILED]),
        ("wrong or empty bodies", list(map(operator.add, counts[Verdict.WRONG], empty))),
        (f"still asleep after {patience:g} s", counts[Verdict.ASLEEP]),
        ("requests per operation", [f"{each.requests_per_operation:.2f}" for each in summaries]),
        ("most for one operation", [str(each.most_requests) for each in summaries]),
        ("slowest operation", [_slowest(each.slowest) for each in summaries]),
    ]
    if set(counts[Verdict.MISSING]) != {"0"}:
        rows.append(("not done", counts[Verdict.MISSING]))
    return rows


def _slowest(slowest: Result) -> str:
    seconds = f"{slowest.seconds or 0:.1f} s"
    return f"> {seconds}, asleep" if slowest.verdict is Verdict.ASLEEP else seconds


def cell(summary: Summary, fault: Fault) -> str:
    """Return one client's result for one fault, such as ``3/4`` or ``0/4, 4 wrong``."""
    done = f"{summary.count(Verdict.SUCCEEDED, fault=fault.name)}/{summary.count(*Verdict, fault=fault.name)}"
    return ", ".join([done, *_told(summary, Verdict.WRONG, Verdict.ASLEEP, fault=fault.name)])


def to_json(
    setting: Setting, summaries: Sequence[Summary], turnouts: Mapping[Scene, Sequence[Turnout]], took: float
) -> str:
    """Return the results as JSON."""
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
