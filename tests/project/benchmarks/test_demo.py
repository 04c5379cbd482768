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
    said, tables = shown.split("the server's fault")
    assert f"Of 3 faults, so many ended as well as can be: {demo.OURS} 3 (with 0 wrong bodies or repetitions)" in said
    assert 3 == sum(map(said.count, ("Of 3 faults", "Restart, 3 s,", "Load x3,")))
    assert "requests per operation, meanwhile" in tables


def test_a_sentence_says_where_plain_requests_did_better():
    """In which figure, and by how much."""
    figures = {"success": 40.0, "amplification": 1.0, "success after": 60.0}
    found = dict.fromkeys(demo.FIRST, figures) | {demo.OURS: {**figures, "success after": 50.0}}
    _, said = demo.sentences({}, {"load x3": found})
    assert said.endswith("; plain requests did better (begun afterwards: success, % 60 over 50).")
