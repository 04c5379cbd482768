"""One client at work, watched: with a scripted child and a fake clock, and with real processes."""

import json
import queue
import sys
import time

import pytest

from requests_smithy_retry.cli.demo.clients import AS_OFTEN, CLIENTS, OURS, PLAIN
from requests_smithy_retry.cli.demo.contest import START, Child, Contender, Crowd, Setting, play_scene, watch
from requests_smithy_retry.cli.demo.plan import FEWEST, digest
from requests_smithy_retry.cli.demo.results import Verdict
from requests_smithy_retry.cli.demo.scenes import Scene
from requests_smithy_retry.testing.clock import FakeClock

SETTING = Setting(operations=FEWEST, limit=30.0)


class ScriptedChild:
    """A child that has said some lines and is silent from then on."""

    def __init__(self, command, *lines):
        self.job = json.loads(command[-1])
        self.lines = list(lines)
        self.ended = 0

    def line(self):
        if not self.lines:
            raise queue.Empty
        line = self.lines.pop(0)
        return json.dumps(line) + "\n" if isinstance(line, dict) else line

    def end(self):
        self.ended += 1
        return -9


@pytest.fixture
def contend():
    """A function that makes a contender whose children say the given lines, and returns all that belongs to it."""
    made = []

    def make(*scripts):
        clock, children, scripts = FakeClock(100.0), [], list(scripts)

        def spawn(command):
            children.append(ScriptedChild(command, *(scripts.pop(0) if scripts else ())))
            return children[-1]

        made.append(Contender(CLIENTS[1], SETTING, clock, spawn))
        return made[-1], clock, children

    yield make
    for contender in made:
        contender.__exit__()


def begin(number):
    return {"begin": number, "sent": digest(b"")}


def end(number, **options):
    return {"end": number, "seconds": 0.1, "status": 503, "body": digest(b""), "error": None, **options}


def test_an_operation_that_ended_is_judged(contend):
    """Begin and end make a result; a line that is not an event is kept as noise."""
    contender, _, _ = contend(["hello\n", "[1]\n", begin(0), end(0)])
    contender.turn()
    assert [(0, Verdict.FAILED, 0.1)] == [
        (each.operation.number, each.verdict, each.seconds) for each in contender.results
    ]
    assert ["hello", "[1]"] == list(contender.noise)
    assert contender.is_running


def test_a_client_that_sleeps_too_long_is_ended_and_the_next_goes_on(contend):
    """After more than 5 s of silence the child is ended, and another takes over behind that operation."""
    contender, clock, children = contend([begin(0)], [begin(1), end(1)])
    contender.turn()
    clock.advance(5.0)
    contender.turn()
    assert (0, []) == (children[0].ended, contender.results)
    clock.advance(0.25)
    contender.turn()
    contender.turn()
    assert [(Verdict.ASLEEP, 5.25), (Verdict.FAILED, 0.1)] == [
        (each.verdict, each.seconds) for each in contender.results
    ]
    assert (1, [0, 1]) == (children[0].ended, [child.job["first"] for child in children])


def test_a_request_that_arrives_is_a_sign_of_life(contend):
    """Silence counts from the last request that the server saw."""
    contender, clock, children = contend([begin(0)])
    contender.turn()
    clock.advance(4.0)
    contender._script.latest = clock.now()
    clock.advance(4.0)
    contender.turn()
    assert (0, []) == (children[0].ended, contender.results)


def test_a_wrong_body_counts_even_if_the_client_sleeps_then(contend):
    """A body that the server accepted is judged, although the client never came back."""
    contender, clock, _ = contend([begin(0)])
    contender.turn()
    contender._script.accepted[0] = [digest(b"other")]
    clock.advance(6.0)
    contender.turn()
    assert [Verdict.WRONG] == [each.verdict for each in contender.results]


def test_nobody_takes_over_behind_the_last_operation(contend):
    """A client that sleeps in the last operation is done."""
    contender, clock, children = contend(
        [line for number in range(FEWEST - 1) for line in (begin(number), end(number))]
    )
    contender.turn()
    children[0].lines.append(begin(FEWEST - 1))
    contender.turn()
    clock.advance(6.0)
    contender.turn()
    assert (1, FEWEST, False) == (len(children), len(contender.results), contender.is_running)


@pytest.mark.parametrize("line", [None, end(0)], ids=["process ended", "end without begin"])
def test_a_child_that_ends_early_leaves_the_rest_undone(contend, line):
    """Operations that nobody did are missing, not failed; an end without a begin is noise."""
    contender, _, _ = contend([line, None])
    contender.turn()
    assert {Verdict.MISSING} == {each.verdict for each in contender.results}
    assert FEWEST == len(contender.results)


def test_a_run_that_takes_too_long_is_stopped(contend):
    """At the limit, unfinished operations count as missing; the watcher was called all the while."""
    contender, clock, _ = contend([begin(0), end(0)])
    seen = []
    watch([contender], clock, lambda: seen.append(clock.now()))
    assert (1, FEWEST - 1) == (
        sum(each.verdict is Verdict.FAILED for each in contender.results),
        sum(each.verdict is Verdict.MISSING for each in contender.results),
    )
    assert 130.0 < clock.now() < 130.2
    assert len(clock.sleeps) == len(seen)


SCENE = Scene("short", "short", remains=0.0, begins=1.0, ends=2.0, seconds=3.0, grace=1.0, rate=2.0)


def spawner(*lines):
    children = []

    def spawn(command):
        children.append(ScriptedChild(command, *lines))
        return children[-1]

    return spawn, children


DONE = '{"at": 0.5, "done": true, "seconds": 0.1}\n'


def test_a_child_is_heard_until_it_ends():
    """The child's operations are counted, and a line that is not an event is kept."""
    spawn, children = spawner("hello\n", DONE, None)
    (turnout,) = play_scene(SCENE, [PLAIN], FakeClock(), spawn)
    assert (1, 0, ("hello",)) == (turnout.otherwise_done, turnout.in_trouble_done, turnout.noise)
    assert (1, "requests", 6) == (children[0].ended, children[0].job["client"], children[0].job["count"])


def test_a_child_that_never_begins_is_given_up():
    """A child is given up after the time that a start may take."""
    clock = FakeClock()
    spawn, children = spawner(DONE)
    turnouts = play_scene(SCENE, [PLAIN, OURS], clock, spawn)
    assert [1, 1] == [turnout.otherwise_done for turnout in turnouts]
    assert [1, 1] == [child.ended for child in children]
    assert START == pytest.approx(clock.now(), abs=0.1)


def test_a_scene_is_over_at_its_time():
    """Counted from the first request; what goes on has failed."""
    clock = FakeClock(100.0)
    with Crowd(AS_OFTEN, SCENE, clock, spawner()[0]) as crowd:
        crowd._script.began = 107.0
        clock.advance(11.0)
        crowd.turn()
        assert crowd.is_running
        clock.advance(0.1)
        crowd.turn()
        assert not crowd.is_running


def lines_of(child):
    """All lines until the end."""
    found = []
    until = time.monotonic() + 600
    while time.monotonic() < until:
        try:
            line = child.line()
        except queue.Empty:
            time.sleep(0.01)
            continue
        if line is None:
            return found
        found.append(line)
    raise AssertionError(f"the child did not end; it said {found}")


@pytest.mark.real_time
def test_a_real_child_says_lines_on_both_streams(monkeypatch):
    """Both streams are heard; our environment variables are not handed on, others are."""
    monkeypatch.setenv("SMITHY_RETRY_ENABLED", "false")
    monkeypatch.setenv("DEMO_TEST", "handed on")
    code = (
        "import os, sys; print('out', os.environ.get('DEMO_TEST'), os.environ.get('SMITHY_RETRY_ENABLED'), flush=True);"
        "print('err', file=sys.stderr)"
    )
    child = Child([sys.executable, "-c", code])
    assert ["out handed on None\n", "err\n"] == lines_of(child)
    child.end()


@pytest.mark.real_time
def test_a_real_child_is_ended_however_long_it_sleeps():
    """Ending is at once, and can be done twice."""
    child = Child([sys.executable, "-c", "import time; time.sleep(600)"])
    started = time.monotonic()
    status = child.end()
    assert status == child.end() != 0
    assert time.monotonic() - started < 50


@pytest.mark.real_time
def test_a_real_child_ends_with_its_parent():
    """The workload's process ends when the pipe to its parent does, even while its client sleeps."""
    with Contender(CLIENTS[0], SETTING) as contender:
        pipe = contender._child._process.stdin
        contender._child._process.stdin.close()
        assert pipe.closed
        assert 1 == contender._child._process.wait(600)
