"""The demo, which a newcomer runs first: what it counts as harm, and a whole small run."""

from __future__ import annotations

import json

import pytest

from benchmarks import demo
from benchmarks.faults import ERROR, FAULTS, INTACT, TWICE, WRONG

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("fault", "outcome", "harmful"),
    [
        ("body cut", INTACT, False),
        ("body cut", ERROR, False),
        ("body cut", WRONG, True),
        ("body cut, no length", WRONG, False),
        ("POST applied, then a reset", TWICE, True),
    ],
)
def test_harm_is_what_a_careful_client_does_not_do(fault, outcome, harmful):
    """A wrong body, or a request that is applied twice, where the best that one can come to is neither."""
    assert [fault] * harmful == demo.harm({fault: {demo.OURS: outcome}}, demo.OURS)


def test_its_faults_and_clients_are_those_of_the_table():
    """Whatever it names is there."""
    assert set(demo.QUICK) < set(FAULTS)
    assert demo.CLIENTS.keys() == demo.POLICIES.keys()


@pytest.mark.real_time
def test_a_short_run(tmp_path, capsys):
    """Ours gets through a cut body and a restart, which plain requests do not; the exit status says so."""
    file = tmp_path / "demo.json"
    assert 0 == demo.main(["--quick", "--json", str(file)])
    found = json.loads(file.read_text())
    assert {"requests": ERROR, "urllib3's Retry(2)": ERROR, demo.OURS: INTACT} == found["faults"]["body cut"]
    restart = found["outages"]["restart, 3 s"]
    assert restart["requests"]["success"] < restart[demo.OURS]["success"]
    shown = capsys.readouterr().out
    assert f"{demo.OURS}: 3 of 3 ended as well as can be; wrong bodies and repetitions: none" in shown
    assert "requests per operation, meanwhile" in shown
