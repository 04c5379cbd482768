"""The figures of the design page: what counts as a move, and which imports reach inside."""

from __future__ import annotations

import pytest

from benchmarks import figures

pytestmark = [pytest.mark.once, pytest.mark.real_time]


def test_a_retry_passes_through_the_machine_and_the_driver() -> None:
    """Files, moves and calls are those of the package alone; a generator that goes on is no call."""
    walk = figures.Walk()
    walk.follow(lambda: figures.reached(""))
    assert (set(), 0, 0) == (walk.files, walk.moves, walk.calls)
    found = figures.one_retry()
    assert 0 < found["files"] < found["moves"] < found["calls"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from requests_smithy_retry import mount\n", set()),
        ("from requests_smithy_retry.testing import FakeClock\n", set()),
        ("    from requests_smithy_retry.core.line import Line\n", {"core.line"}),
        ("import requests_smithy_retry.wire.state\n", {"wire.state"}),
    ],
)
def test_a_module_that_programs_do_not_import_from_is_inside(text: str, expected: set[str]) -> None:
    """Wherever in the file it is imported."""
    assert expected == figures.reached(text)
