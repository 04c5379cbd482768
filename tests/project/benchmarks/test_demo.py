"""The demo, which a newcomer runs first: its faults and verdicts, children that it ends, and a whole small run."""

import json
import os
import subprocess
import sys
import time

import pytest

from benchmarks.demo import __main__ as command
from benchmarks.demo.clients import PLAIN
from benchmarks.demo.contest import Setting, contend
from benchmarks.demo.plan import FAULTS, FEWEST, OUTAGE, FaultScript, digest, make_plan
from benchmarks.demo.report import EMPTY, Verdict, judge, sentences
from benchmarks.demo.scenes import Scene, turnout_of
from requests_smithy_retry.testing import FakeClock, RecordedRequest, Reply

pytestmark = pytest.mark.once
PLAN = make_plan(1, FEWEST * 3)


def ask(script, operation, body=b""):
    return script(RecordedRequest(operation.fault.method, operation.path, body=body))


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault is not OUTAGE], ids=lambda fault: fault.name)
def test_a_fault_strikes_as_often_as_its_table_says(fault):
    """The good answer follows, and only the body of the request that got it counts as accepted."""
    script, operation = FaultScript(PLAN, 3.0, FakeClock().now), next(each for each in PLAN if each.fault is fault)
    first = list(fault.first(operation.download()))
    asked = [ask(script, operation, b"%d" % turn) for turn in range(len(first) + 1)]
    assert [*first, Reply(body=operation.download())] == asked
    assert [digest(b"%d" % len(first))] == script.accepted[operation.number]


OPERATION = next(operation for operation in PLAN if operation.fault.name == "upload-503")
WHOLE, SENT, OTHER = digest(OPERATION.download()), digest(OPERATION.upload()), digest(b"other")


@pytest.mark.parametrize(
    ("told", "accepted", "expected"),
    [
        ((200, WHOLE), [SENT], (Verdict.SUCCEEDED, False)),
        ((503, EMPTY), [], (Verdict.FAILED, False)),
        ((None, ""), [], (Verdict.FAILED, False)),
        ((200, OTHER), [SENT], (Verdict.WRONG, False)),
        ((200, EMPTY), [SENT], (Verdict.WRONG, True)),
        ((200, WHOLE), [SENT, EMPTY], (Verdict.WRONG, True)),
        ((None, ""), [EMPTY], (Verdict.WRONG, True)),
    ],
)
def test_the_verdict_follows_from_what_both_ends_say(told, accepted, expected):
    """Success needs the same hashes at both ends; a wrong body counts even if the client was told of a failure."""
    result = judge(OPERATION, SENT, accepted, 2, 0.1, *told)
    assert expected == (result.verdict, result.is_empty)


def test_the_result_is_three_sentences_and_says_where_plain_requests_did_better():
    """One for the faults and one for each scene, before any table."""

    def client(name, done, otherwise):
        return {"client": name, "in_trouble": 72, "in_trouble_done": done, "otherwise": 96, "otherwise_done": otherwise}

    scenes = {
        "restart": {"label": "A restart", "clients": [client("requests", 0, 96), client("RetryAdapter", 72, 96)]},
        "overload": {"label": "An overload", "clients": [client("requests", 20, 61), client("RetryAdapter", 30, 40)]},
    }
    clients = [{"client": "requests", "succeeded": 3}, {"client": "RetryAdapter", "succeeded": 27, "wrong": 0}]
    restart = "72 of 72 begun meanwhile (plain requests 0) and 96 of 96 before and after (plain requests 96)."
    overload = "30 of 72 begun meanwhile (plain requests 20) and 40 of 96 before and after (plain requests 61)"
    assert [
        "Of 30 operations, each under a fault, RetryAdapter finished 27 well, and had 0 wrong bodies; requests 3.",
        f"A restart: RetryAdapter finished {restart}",
        f"An overload: RetryAdapter finished {overload}: plain requests did better with those before and after.",
    ] == list(sentences({"operations": 30, "clients": clients, "scenes": scenes}))


def test_operations_of_a_scene_count_by_their_beginning():
    """Operations that did not end have failed; requests count by the second of their arrival."""
    short = Scene("short", "short", remains=0.0, begins=1.0, ends=2.0, seconds=3.0, rate=2.0)
    calls = [(0, True, 0.1), (1, False, 0.1), (2, True, 1.5), (4, True, 0.1)]
    found = turnout_of("ours", short, calls, [0.0, 0.5, 1.0, 1.1, 1.2, 2.0, 2.9, 3.1, 3.2])
    expected = {"client": "ours", "in_trouble": 2, "in_trouble_done": 1, "otherwise": 4, "otherwise_done": 2}
    assert {**expected, "requests_per_operation": 1.5, "peak": 3, "well_after": 0.5, "slowest": 1.5} == found


@pytest.mark.real_time
def test_a_run_that_takes_too_long_is_stopped():
    """At the limit, unfinished operations count as missing."""
    assert {Verdict.MISSING} == {each.verdict for each in contend(PLAIN, Setting(operations=FEWEST, limit=0.0))}


def sleep(tell):
    """Tell that it sleeps, and sleep."""
    tell(("asleep",))
    time.sleep(3600)


PARENT = """
import os
from benchmarks.demo.contest import Child
from tests.project.benchmarks.test_demo import sleep

if __name__ == "__main__":
    child = Child(sleep)
    while child.event() is None:
        pass
    os._exit(0)
"""


@pytest.mark.real_time
def test_a_child_ends_with_its_parent(tmp_path):
    """The client's process, which has its parent's output open, ends when its parent does, though its client sleeps."""
    program = tmp_path / "parent.py"
    program.write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    subprocess.run([sys.executable, program], capture_output=True, env=environment, check=True, timeout=600)


@pytest.mark.real_time
def test_a_whole_run(monkeypatch, capsys):
    """Ours gets through without a wrong body; urllib3's Retry sends a generator empty and sleeps on a day's hint."""
    brief = Scene("brief", "A brief restart", remains=0.0, begins=0.1, ends=0.3, seconds=0.5, grace=1.0, users=2)
    for patience in (1.6, 8.0, 30.0):  # on a busy machine, silence alone is no sleep
        setting = Setting(operations=FEWEST, outage=0.3, patience=patience, limit=90.0, scenes=(brief,))
        monkeypatch.setattr(command, "run", lambda _, setting=setting, run=command.run: run(setting))
        status = command.main(["--json"])
        monkeypatch.undo()
        document = json.loads(capsys.readouterr().out)
        plain, retry, ours = document["clients"]
        if not ours["asleep"]:
            break
    assert (0, True) == (status, document["ok"])
    assert (0, 0, 0, FEWEST - 2) == tuple(ours[name] for name in ("wrong", "asleep", "missing", "succeeded"))
    assert (1.0, True) == (plain["requests_per_operation"], retry["slowest"]["still_asleep"])
    assert (1, 1) == (retry["faults"]["generator-503"]["wrong"], retry["faults"]["day"]["asleep"])
    assert 4 == len(document["scenes"]["brief"]["clients"])
    assert any("A brief restart" in line for line in command.show(document))
