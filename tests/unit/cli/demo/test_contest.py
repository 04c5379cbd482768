"""One client at work, watched: with a scripted child and a fake clock, and with real processes."""

import os
import subprocess
import sys
import time
from collections import deque
from multiprocessing import spawn

import pytest
import requests

from requests_smithy_retry.cli.demo.clients import AS_OFTEN, CLIENTS, OURS, PLAIN
from requests_smithy_retry.cli.demo.contest import START, Child, Contender, Crowd, Setting, take_turns
from requests_smithy_retry.cli.demo.plan import FEWEST, digest
from requests_smithy_retry.cli.demo.results import Verdict
from requests_smithy_retry.cli.demo.scenes import Scene
from requests_smithy_retry.run import _cover_children
from requests_smithy_retry.testing.clock import FakeClock

SETTING = Setting(operations=FEWEST, limit=30.0)
SILENT = object()
"""Nothing comes any more; else the child ends after its last event."""


class ScriptedChild:
    """A child that tells some events."""

    def __init__(self, arguments, *events):
        self.arguments = arguments
        self.told = list(events)
        self.ended = 0

    def events(self, noise):
        while self.told:
            event = self.told[0]
            if event is SILENT:
                yield None
                continue
            del self.told[0]
            if isinstance(event, str):
                noise.append(event)
            else:
                yield event

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.ended += 1


@pytest.fixture
def contend():
    """A function that makes a contender whose children tell the given events, and returns all that belongs to it."""
    runs = []

    def make(*scripts):
        clock, children, scripts = FakeClock(100.0), [], list(scripts)

        def child(job, *arguments):
            children.append(ScriptedChild(arguments, *(scripts.pop(0) if scripts else ())))
            return children[-1]

        contender = Contender(CLIENTS[1], SETTING, clock, child)
        runs.append(contender.run())
        return contender, clock, children, runs[-1]

    yield make
    for run in runs:
        run.close()


BEGIN = (digest(b""),)
END = (0.1, 503, digest(b""))


def verdicts(contender):
    return [each.verdict for each in contender.results]


def test_an_operation_that_ended_is_judged(contend):
    """Begin and end make a result; a line that is not an event is kept as noise."""
    contender, _, _, run = contend(["hello", BEGIN, END, SILENT])
    next(run)
    assert [(0, Verdict.FAILED, 0.1)] == [
        (each.operation.number, each.verdict, each.seconds) for each in contender.results
    ]
    assert ["hello"] == list(contender.noise)


def test_a_client_that_sleeps_too_long_is_ended_and_the_next_goes_on(contend):
    """After more than 5 s of silence the child is ended, and another takes over behind that operation."""
    contender, clock, children, run = contend([BEGIN, SILENT], [BEGIN, END, SILENT])
    next(run)
    clock.advance(5.0)
    next(run)
    assert (0, []) == (children[0].ended, contender.results)
    clock.advance(0.25)
    next(run)
    assert [(Verdict.ASLEEP, 5.25), (Verdict.FAILED, 0.1)] == [
        (each.verdict, each.seconds) for each in contender.results
    ]
    assert (1, [0, 1]) == (children[0].ended, [child.arguments[-1] for child in children])


def test_a_request_that_arrives_is_a_sign_of_life(contend):
    """Silence counts from the last request that the server saw."""
    contender, clock, children, run = contend([BEGIN, SILENT])
    next(run)
    clock.advance(4.0)
    contender._script.latest = clock.now()
    clock.advance(4.0)
    next(run)
    assert (0, []) == (children[0].ended, contender.results)


def test_a_wrong_body_counts_even_if_the_client_sleeps_then(contend):
    """A body that the server accepted is judged, although the client never came back."""
    contender, clock, _, run = contend([BEGIN, SILENT], [SILENT])
    next(run)
    contender._script.accepted[0] = [digest(b"other")]
    clock.advance(6.0)
    next(run)
    assert [Verdict.WRONG] == verdicts(contender)


def test_nobody_takes_over_behind_the_last_operation(contend):
    """A client that sleeps in the last operation is done."""
    contender, clock, children, run = contend([*[BEGIN, END] * (FEWEST - 1), BEGIN, SILENT])
    next(run)
    clock.advance(6.0)
    assert [] == list(run)
    assert (1, FEWEST, Verdict.ASLEEP) == (len(children), len(contender.results), verdicts(contender)[-1])


def test_a_child_that_ends_early_leaves_the_rest_undone(contend):
    """Operations that nobody did are missing, not failed."""
    contender, _, children, run = contend([BEGIN, END, BEGIN])
    assert [] == list(run)
    assert [Verdict.FAILED, *[Verdict.MISSING] * (FEWEST - 1)] == verdicts(contender)
    assert [1] == [child.ended for child in children]


def test_a_run_that_takes_too_long_is_stopped(contend):
    """At the limit, unfinished operations count as missing; the watcher was called all the while."""
    contender, clock, children, run = contend([BEGIN, END, SILENT])
    seen = []
    take_turns([run], clock, lambda: seen.append(clock.now()))
    assert [Verdict.FAILED, *[Verdict.MISSING] * (FEWEST - 1)] == verdicts(contender)
    assert 130.0 < clock.now() < 130.2
    assert len(clock.sleeps) == len(seen)
    assert [1] == [child.ended for child in children]


def test_an_interrupted_contest_ends_its_children(contend):
    """The child and the server of each client are ended, whatever breaks off the contest."""
    _, clock, children, run = contend([SILENT])
    with pytest.raises(KeyboardInterrupt):
        take_turns([run], clock, lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    assert [1] == [child.ended for child in children]


SCENE = Scene("short", "short", remains=0.0, begins=1.0, ends=2.0, seconds=3.0, grace=1.0, rate=2.0)
DONE = (1, True, 0.1)


def crowd(client, clock, *events):
    """Return a crowd, and the list of its children."""
    children = []

    def child(job, *arguments):
        children.append(ScriptedChild(arguments, *events))
        return children[-1]

    return Crowd(client, SCENE, clock, child), children


def test_a_child_is_heard_until_it_ends():
    """The child's operations are counted, and a line that is not an event is kept."""
    crowded, children = crowd(PLAIN, FakeClock(), "hello", DONE)
    assert [] == list(crowded.run())
    turnout = crowded.turnout()
    assert (1, 0, ["hello"]) == (turnout["otherwise_done"], turnout["in_trouble_done"], turnout["noise"])
    assert (1, PLAIN, (2.0, 6, 10)) == (children[0].ended, children[0].arguments[0], children[0].arguments[2:])


def test_a_child_that_never_begins_is_given_up():
    """A child is given up after the time that a start may take."""
    clock = FakeClock()
    crowds = [crowd(client, clock, DONE, SILENT) for client in (PLAIN, OURS)]
    take_turns([crowded.run() for crowded, _ in crowds], clock)
    assert [1, 1] == [crowded.turnout()["otherwise_done"] for crowded, _ in crowds]
    assert [1, 1] == [children[0].ended for _, children in crowds]
    assert START == pytest.approx(clock.now(), abs=0.2)


def test_a_scene_is_over_at_its_time():
    """Counted from the first request; what goes on has failed."""
    clock = FakeClock(100.0)
    crowded, _ = crowd(AS_OFTEN, clock, SILENT)
    run = crowded.run()
    next(run)
    crowded._script.began = 107.0
    clock.advance(11.0)
    next(run)
    clock.advance(0.1)
    assert [] == list(run)


def tell_and_fail(tell, *names):
    """Tell some environment variables, and fail."""
    tell(tuple(os.environ.get(name) for name in names))
    raise RuntimeError("said by the child")


def sleep(tell):
    """Tell that it sleeps, and sleep."""
    tell(("asleep",))
    time.sleep(3600)


@pytest.mark.real_time
def test_a_real_child_tells_its_events_and_its_error(monkeypatch):
    """An error is noise, line by line; our environment variables are not handed on, others are."""
    monkeypatch.setenv("SMITHY_RETRY_ENABLED", "false")
    monkeypatch.setenv("DEMO_TEST", "handed on")
    noise = deque()
    with Child(tell_and_fail, "DEMO_TEST", "SMITHY_RETRY_ENABLED") as child:
        events = [event for event in child.events(noise) if event is not None]
    assert [("handed on", None)] == events
    assert "RuntimeError: said by the child" == noise[-1]


def tell_of_retries(tell):
    """Tell the kind of adapter that a new session has."""
    with requests.Session() as session:
        tell((type(session.get_adapter("http://name.test")).__name__,))


@pytest.mark.real_time
def test_a_real_child_begins_without_the_retries_of_a_program_that_runs_the_demo(monkeypatch):
    """``run`` gives every process that is started by spawn an adapter of ours; a compared client brings its own."""
    monkeypatch.setattr(spawn, "get_preparation_data", spawn.get_preparation_data)
    _cover_children(spawn)
    with Child(tell_of_retries) as child:
        assert ("HTTPAdapter",) == next(event for event in child.events(deque()) if event is not None)


@pytest.mark.real_time
def test_a_real_child_is_ended_however_long_it_sleeps():
    """The process is gone at once."""
    with Child(sleep) as child:
        next(event for event in child.events(deque()) if event is not None)
        started = time.monotonic()
    assert child._process.exitcode != 0
    assert time.monotonic() - started < 50


PARENT = """
import os
from collections import deque
from requests_smithy_retry.cli.demo.contest import Child
from tests.unit.cli.demo.test_contest import sleep

if __name__ == "__main__":
    child = Child(sleep)
    next(event for event in child.events(deque()) if event is not None)
    os._exit(0)
"""


@pytest.mark.real_time
def test_a_real_child_ends_with_its_parent(tmp_path):
    """The client's process, which has its parent's output open, ends when its parent does, though its client sleeps."""
    program = tmp_path / "parent.py"
    program.write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    subprocess.run([sys.executable, program], capture_output=True, env=environment, check=True, timeout=600)
