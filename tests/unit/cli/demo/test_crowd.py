"""The clients of a scene: here in this process against real sockets, and with scripted children."""

import io
import json
import os
import queue

import pytest

from requests_smithy_retry.cli.demo import crowd
from requests_smithy_retry.cli.demo.crowd import START, Cast, Watched, main, play, watch
from requests_smithy_retry.cli.demo.scenes import Scene
from requests_smithy_retry.cli.demo.workload import AS_OFTEN, OURS, PLAIN
from requests_smithy_retry.testing import CloseAfterRequest, FaultServer, Reply
from requests_smithy_retry.testing.clock import FakeClock

SCENE = Scene("short", "short", remains=0.0, begins=1.0, ends=2.0, seconds=3.0, grace=1.0, rate=2.0)


class ScriptedChild:
    """A child that has said some lines and is silent from then on."""

    def __init__(self, command, lines):
        self.job = json.loads(command[-1])
        self.lines = list(lines)
        self.ended = 0

    def line(self):
        if not self.lines:
            raise queue.Empty
        return self.lines.pop(0)

    def end(self):
        self.ended += 1


def spawner(*lines):
    children = []

    def spawn(command):
        children.append(ScriptedChild(command, lines))
        return children[-1]

    return spawn, children


DONE = '{"at": 0.5, "done": true, "seconds": 0.1}\n'


def test_a_child_is_heard_until_it_ends():
    """Its operations are counted, and what is no event is kept."""
    spawn, children = spawner("hello\n", DONE, None)
    (turnout,) = watch(SCENE, [PLAIN], FakeClock(), spawn)
    assert (1, 0, ("hello",)) == (turnout.otherwise_done, turnout.in_trouble_done, turnout.noise)
    assert (1, "requests", 6) == (children[0].ended, children[0].job["client"], children[0].job["count"])


def test_a_child_that_never_begins_is_given_up():
    """After the time that a start may take."""
    clock = FakeClock()
    spawn, children = spawner(DONE)
    turnouts = watch(SCENE, [PLAIN, OURS], clock, spawn)
    assert [1, 1] == [turnout.otherwise_done for turnout in turnouts]
    assert [1, 1] == [child.ended for child in children]
    assert START == pytest.approx(clock.now(), abs=0.1)


def test_a_scene_is_over_at_its_time():
    """Counted from the first request; what goes on has failed."""
    clock = FakeClock(100.0)
    with Watched(SCENE, AS_OFTEN, clock, spawner()[0]) as watched:
        watched._script._began = 107.0
        watched.turn(111.0)
        assert watched.is_running
        watched.turn(111.1)
        assert not watched.is_running


@pytest.mark.parametrize(
    ("client", "script", "done"),
    [(PLAIN, Reply(200), True), (PLAIN, Reply(503), False), (PLAIN, CloseAfterRequest(), False), (OURS, Reply(), True)],
)
def test_each_operation_is_told_with_what_came_of_it(client, script, done):
    """Whatever came of the others, it begins at its time."""
    events = []
    with FaultServer(script) as server:
        play(Cast(client.name, server.url, rate=1000.0, count=4, users=2), events.append, FakeClock())
    assert [(number / 1000, done) for number in range(4)] == sorted((event["at"], event["done"]) for event in events)
    assert {"/0", "/1", "/2", "/3"} == {request.path for request in server.requests}


def test_its_program_writes_an_event_a_line(monkeypatch):
    """And it ends with the pipe that is its standard input."""
    monkeypatch.setattr(crowd, "play", lambda cast, tell: tell({"at": cast.rate, "done": True, "seconds": 0.0}))
    read, write = os.pipe()
    codes, stdout = [], io.StringIO()
    watcher = main([Cast("requests", "http://127.0.0.1:1", 2.0, 1, 1).to_json()], read, stdout, codes.append)
    assert {"at": 2.0, "done": True, "seconds": 0.0} == json.loads(stdout.getvalue())
    os.close(write)
    watcher.join(60)
    os.close(read)
    assert [1] == codes
