"""The report of a run."""

import io

import pytest
from rich.console import Console

from requests_smithy_retry.cli.demo.clients import CLIENTS
from requests_smithy_retry.cli.demo.plan import FAULTS, Operation
from requests_smithy_retry.cli.demo.report import Bars, cell, main_rows, scene_rows, show
from requests_smithy_retry.cli.demo.results import Result, Verdict, column, counts


def results(*verdicts, seconds=0.25):
    """The results of operations, all of the first fault, that ended so."""
    return [
        Result(Operation(number, FAULTS[0], 1), verdict, 2, seconds, is_empty=verdict is Verdict.WRONG)
        for number, verdict in enumerate(verdicts)
    ]


def ended(position, *verdicts, seconds=0.25, noise=()):
    """The column of a client whose operations ended so."""
    return column(CLIENTS[position], results(*verdicts, seconds=seconds), noise)


OK, FAILED, WRONG, ASLEEP, MISSING = Verdict
THREE = [ended(0, OK, FAILED, FAILED), ended(1, OK, WRONG, ASLEEP, seconds=5.03), ended(2, OK, OK, OK)]


def turnout(*values):
    names = "client in_trouble in_trouble_done otherwise otherwise_done requests_per_operation peak well_after slowest"
    return {"noise": (), **dict(zip(names.split(), values, strict=True))}


RESTART = {
    "label": "A server restarts",
    "users": 10,
    "rate": 24.0,
    "capacity": 40.0,
    "clients": [
        turnout("requests", 72, 1, 96, 95, 1.0, 24, 0.0, 0.08),
        turnout("urllib3 Retry(2)", 72, 11, 96, 96, 1.869, 72, 0.04, 0.644),
        turnout("RetryAdapter", 72, 72, 96, 96, 1.554, 44, 0.0, 6.845),
    ],
}


def shown(columns, scene=RESTART, **options):
    console = Console(file=io.StringIO(), width=100, **options)
    document = {"seed": 7, "operations": 4, "patience": 5.0, "seconds": 12.4, "versions": {"python": "3.11.7"}}
    show(console, {**document, "clients": columns, "scenes": {"restart": scene}})
    return console.file.getvalue()


def test_the_rows_of_the_main_table():
    """Each row has its label and one cell for each client."""
    assert [
        ("operations that succeeded", ["1", "1", "3"]),
        ("failed, and the caller was told", ["2", "0", "0"]),
        ("wrong or empty bodies", ["0", "1 (1 empty)", "0"]),
        ("still asleep after 5 s", ["0", "1", "0"]),
        ("requests per operation", ["2.00", "2.00", "2.00"]),
        ("most for one operation", ["2", "2", "2"]),
        ("slowest operation", ["0.2 s", "5.0 s", "0.2 s"]),
    ] == main_rows(THREE, 5.0)


def test_a_sleeping_client_is_shown_so():
    """Where the slowest operation was ended asleep, its time is a lower bound and says why."""
    assert ("slowest operation", ["> 5.0 s, asleep"]) == main_rows([ended(1, ASLEEP, seconds=5.04)], 5.0)[-1]


def test_what_was_not_done_has_a_row_of_its_own():
    """The row appears where it says something."""
    rows = main_rows([ended(2, OK, MISSING, seconds=0.0)], 5.0)
    assert [("slowest operation", ["0.0 s"]), ("not done", ["1"])] == rows[-2:]
    assert ("slowest operation", ["> 0.0 s, asleep"]) == main_rows([ended(1, ASLEEP, seconds=0.0)], 5.0)[-1]


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([OK, OK], "2/2"),
        ([OK, FAILED], "1/2"),
        ([WRONG, WRONG], "0/2, 2 wrong"),
        ([ASLEEP], "0/1, 1 asleep"),
        ([], "0/0"),
    ],
)
def test_a_cell_of_the_table_of_faults(verdicts, expected):
    """A cell says how many succeeded of how many, and what is worse than a failure."""
    assert expected == cell(counts(results(*verdicts)))


def test_without_a_terminal_it_is_plain():
    """The report is ASCII, without escape sequences; long lines stay whole."""
    text = shown(THREE)
    assert text.isascii()
    assert "\x1b" not in text
    assert "| operations that succeeded" in text
    assert f"  urllib3 Retry(2): {CLIENTS[1].setup}\n" in text
    assert "seed 7" in text


def test_a_terminal_gets_lines():
    """On a terminal the tables have drawn lines and the same numbers."""
    text = shown(THREE, force_terminal=True, color_system=None, legacy_windows=False)
    assert "operations that succeeded" in text
    assert "─" in text


def test_what_a_broken_child_said_is_shown():
    """Where operations are missing, the child's last lines tell why; else they are left out."""
    assert "The process of RetryAdapter printed: Traceback | Boom" in shown(
        [ended(2, MISSING, noise=("Traceback", "Boom"))]
    )
    assert "printed:" not in shown([ended(2, OK, noise=("Warning",))])
    assert "printed:" not in shown([ended(2, MISSING)])


def test_a_scene_shows_the_outcome_and_the_load():
    """Each row has its label and one cell for each client."""
    assert [
        ("done, begun meanwhile", ["1/72", "11/72", "72/72"]),
        ("done, before and after", ["95/96", "96/96", "96/96"]),
        ("done, in all", ["96/168", "107/168", "168/168"]),
        ("last failure afterwards", ["0.0 s", "0.0 s", "0.0 s"]),
        ("slowest operation", ["0.1 s", "0.6 s", "6.8 s"]),
        ("requests per operation", ["1.00", "1.87", "1.55"]),
        ("most requests in a second", ["24", "72", "44"]),
    ] == scene_rows(RESTART["clients"])
    text = shown(THREE)
    assert "A server restarts. 10 clients make 24 operations a second; the server can do 40.\n" in text
    assert "| done, begun meanwhile" in text
    assert "its process printed" not in text


def test_a_crowd_that_never_came_is_told():
    """The report shows the output of the crowd's process."""
    silent = turnout("requests", 72, 0, 96, 0, 0.0, 0, 3.0, 0.0) | {"noise": ("Traceback", "Boom")}
    text = shown(THREE, RESTART | {"clients": [silent]})
    assert "No request of requests came; its process printed: Traceback | Boom" in text


class Standing:
    """As much of a contender as a bar needs."""

    client = CLIENTS[1]
    plan = range(4)

    def __init__(self, *verdicts):
        self.results = results(*verdicts)


def drawn(**options):
    console = Console(file=io.StringIO(), width=100, legacy_windows=False, **options)
    with Bars(console, [Standing(OK, WRONG)]) as bars:
        bars.draw()
    return console.file.getvalue()


def test_bars_are_drawn_on_a_terminal():
    """The bar shows how far a client is, and what went wrong so far."""
    text = drawn(force_terminal=True, color_system=None)
    assert "urllib3 Retry(2)" in text
    assert "2/4" in text
    assert "1 wrong" in text
