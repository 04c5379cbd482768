"""The server's side of a scene, and what is counted."""

import pytest

from requests_smithy_retry.cli.demo.scenes import OVERLOAD, RESTART, SCENES, Scene, SceneScript, turnout_of
from requests_smithy_retry.testing import RecordedRequest, Reply, ResetAfterRequest
from requests_smithy_retry.testing.clock import FakeClock


@pytest.fixture
def ask():
    """A function that asks a scene's server at a moment after the first request, which is at 0."""
    scripts = {}

    def ask_at(scene, at=None):
        if scene not in scripts:
            clock = FakeClock(100.0)
            scripts[scene] = clock, SceneScript(scene, clock)
            scripts[scene][1](RecordedRequest("GET", "/0"))
        clock, script = scripts[scene]
        if at is None:
            return script
        clock.advance(100.0 + at - clock.now())
        return script(RecordedRequest("GET", "/1"))

    return ask_at


def test_the_scenes_are_those_that_were_wanted():
    """A restart of 3 s and an overload; the server usually has room."""
    assert (RESTART, OVERLOAD) == SCENES
    for scene in SCENES:
        assert (3.0, True) == (scene.ends - scene.begins, scene.rate < 0.65 * scene.capacity)


def test_a_restart_resets_every_connection_for_its_time(ask):
    """Before and after it, requests are served."""
    assert isinstance(ask(RESTART, 0.9), Reply)
    assert ResetAfterRequest() == ask(RESTART, 1.0)
    assert ResetAfterRequest() == ask(RESTART, 3.9)
    assert isinstance(ask(RESTART, 4.0), Reply)
    assert 5 == len(ask(RESTART).arrivals)
    assert 100.0 == ask(RESTART).began


@pytest.mark.parametrize(("at", "delay"), [(0.5, 1 / 40), (2.0, 1 / 10), (5.0, 1 / 40)])
def test_a_request_takes_its_time(ask, at, delay):
    """A quarter of the capacity is four times as long."""
    assert delay == pytest.approx(ask(OVERLOAD, at).delay)


def test_requests_wait_for_those_before_them(ask):
    """There is one queue, in order; a request that would wait for too long is turned away, and takes no place."""
    delays = [ask(OVERLOAD, 1.5).delay for _ in range(19)]
    assert [pytest.approx(number / 10) for number in range(1, 20)] == delays
    assert 1.98 == pytest.approx(ask(OVERLOAD, 1.52).delay)
    assert [Reply(503)] * 2 == [ask(OVERLOAD, 1.52) for _ in range(2)]
    assert 1.97 == pytest.approx(ask(OVERLOAD, 1.63).delay)


def test_the_queue_goes_faster_when_the_overload_is_over(ask):
    """Half of this request is done at the low rate, half at the usual one."""
    assert 0.05 + 0.5 / 40 == pytest.approx(ask(OVERLOAD, 3.95).delay)


SHORT = Scene("short", "short", remains=0.0, begins=1.0, ends=2.0, seconds=3.0, rate=2.0)


def test_what_is_counted():
    """Operations count by their beginning, and unfinished ones as failed; requests by the second of their arrival."""
    calls = [(0, True, 0.1), (1, False, 0.1), (2, True, 1.5), (4, True, 0.1)]
    turnout = turnout_of("ours", SHORT, calls, [0.0, 0.5, 1.0, 1.1, 1.2, 2.0, 2.9, 3.1, 3.2], ["hello"])
    assert {
        "client": "ours",
        "in_trouble": 2,
        "in_trouble_done": 1,
        "otherwise": 4,
        "otherwise_done": 2,
        "requests_per_operation": 1.5,
        "peak": 3,
        "well_after": 0.5,
        "slowest": 1.5,
        "noise": ["hello"],
    } == turnout


def test_without_any_request_nothing_is_counted():
    """Without any request, as after a process that could not start, nothing is counted."""
    turnout = turnout_of("ours", SHORT, [], [])
    assert (0, 0.0, 0, 0.0) == tuple(
        turnout[name] for name in ("in_trouble_done", "requests_per_operation", "peak", "slowest")
    )
