"""The report of a run: a progress bar for each client, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from .clients import CROWD_CLIENTS, TIMEOUT
from .contest import Contender
from .plan import FAULTS
from .results import counts

Values = dict[str, Any]
"""A part of the document that ``--json`` prints."""
Row = tuple[str, list[str]]
"""A label, and a cell for each client."""


class Bars(Progress):
    """The live progress of a run on a terminal. A context manager."""

    def __init__(self, console: Console, contenders: Sequence[Contender]) -> None:
        super().__init__(
            TextColumn("{task.description:>16}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[told]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._of = [(each, self.add_task(each.client.name, total=len(each.plan), told="")) for each in contenders]

    def draw(self) -> None:
        for contender, task in self._of:
            told = _told(counts(contender.results), "failed", "wrong", "asleep")
            self.update(task, completed=len(contender.results), told=", ".join(told))


def _told(numbers: dict[str, int], *verdicts: str) -> list[str]:
    return [f"{numbers[name]} {name}" for name in verdicts if numbers[name]]


def show(console: Console, document: Values) -> None:
    """Show the results of a run."""
    columns, patience = document["clients"], document["patience"]
    _say(console, "\nEach fault, and the operations that succeeded despite it:")
    names = [each["client"] for each in columns]
    cells = [(fault.label, [cell(each["faults"][fault.name]) for each in columns]) for fault in FAULTS]
    _print_table(console, names, cells)
    _say(console, f"{document['operations']} operations for each client:")
    _print_table(console, names, main_rows(columns, patience))
    for scene in document["scenes"].values():
        _show_scene(console, scene)
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    _say(console, f"Measured just now, in {document['seconds']:.0f} s: {versions}; seed {document['seed']}.")
    _say(console, f"Every call has timeout={TIMEOUT}. The adapters:")
    for client in CROWD_CLIENTS:
        _say(console, f"  {client.name}: {client.setup}")
    _say(
        console,
        "Retry(2) makes as many attempts as RetryAdapter, of which those do not count that fail while nobody succeeds; "
        "Retry(5) goes on for about as long. A generator cannot be read twice: RetryAdapter sends it once and returns "
        "the 503.",
    )
    for each in columns:
        if each["missing"] and each["noise"]:
            _say(console, f"The process of {each['client']} printed: " + " | ".join(each["noise"]))


def _show_scene(console: Console, scene: Values) -> None:
    usual = f"{scene['users']} clients make {scene['rate']:g} operations a second"
    _say(console, f"{scene['label']}. {usual}; the server can do {scene['capacity']:g}.")
    columns = scene["clients"]
    _print_table(console, [each["client"].removeprefix("urllib3 ") for each in columns], scene_rows(columns))
    for each in columns:
        if not each["requests_per_operation"]:
            _say(console, f"No request of {each['client']} came; its process printed: " + " | ".join(each["noise"]))


def scene_rows(columns: Sequence[Values]) -> list[Row]:
    """Return the rows of the table of a scene: the outcome, and the load on the server."""
    sums = [
        {
            **each,
            "done": each["in_trouble_done"] + each["otherwise_done"],
            "all": each["in_trouble"] + each["otherwise"],
        }
        for each in columns
    ]
    return _rows(
        sums,
        {
            "done, begun meanwhile": "{in_trouble_done}/{in_trouble}",
            "done, before and after": "{otherwise_done}/{otherwise}",
            "done, in all": "{done}/{all}",
            "last failure afterwards": "{well_after:.1f} s",
            "slowest operation": "{slowest:.1f} s",
            "requests per operation": "{requests_per_operation:.2f}",
            "most requests in a second": "{peak}",
        },
    )


def main_rows(columns: Sequence[Values], patience: float) -> list[Row]:
    """Return the rows of the main table."""
    told = [
        {
            **each,
            "empty": f" ({each['empty']} empty)" if each["empty"] else "",
            "slowest": ("> {seconds:.1f} s, asleep" if each["slowest"]["still_asleep"] else "{seconds:.1f} s").format(
                **each["slowest"]
            ),
        }
        for each in columns
    ]
    labels = {
        "operations that succeeded": "{succeeded}",
        "failed, and the caller was told": "{failed}",
        "wrong or empty bodies": "{wrong}{empty}",
        f"still asleep after {patience:g} s": "{asleep}",
        "requests per operation": "{requests_per_operation:.2f}",
        "most for one operation": "{most_requests}",
        "slowest operation": "{slowest}",
    }
    if any(each["missing"] for each in columns):
        labels["not done"] = "{missing}"
    return _rows(told, labels)


def _rows(columns: Sequence[Values], texts: dict[str, str]) -> list[Row]:
    """Return a row for each label, whose text gets the numbers of each column."""
    return [(label, [text.format(**each) for each in columns]) for label, text in texts.items()]


def cell(numbers: dict[str, int]) -> str:
    """Return one client's result for one fault, such as ``3/4`` or ``0/4, 4 wrong``."""
    done = f"{numbers['succeeded']}/{sum(numbers.values())}"
    return ", ".join([done, *_told(numbers, "wrong", "asleep")])


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
