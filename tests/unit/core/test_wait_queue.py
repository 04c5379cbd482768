"""Who waits for a service that is down, who may go, who asks and who gives up: each rule as a table, in exact times."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry import StopReason
from requests_smithy_retry.clock import Wait
from requests_smithy_retry.core.quota import Grant, Refused
from requests_smithy_retry.core.wait_queue import Bounds, Failure, Progress, Waiter, WaitQueue

PLAIN = Bounds()


class Scene:
    """A line whose clock a test moves; each failure has used up its tokens already.

    :param successes: first-try successes so far.
    """

    def __init__(self, *, age: float = 0.0, successes: int = 0, max_waiters: int = 1000) -> None:
        self.now = age
        self.line = WaitQueue(0.0, max_waiters=max_waiters)
        for _ in range(successes):
            self.line.succeeded(age)
        self.woken: list[Waiter] = []

    def fail(self, bounds: Bounds = PLAIN, progress: Progress | None = None, **facts: Any):
        """Fail one attempt, of a new operation unless its progress is given."""
        progress = Progress(self.now) if progress is None else progress
        seen = self.line.failed(progress, bounds, Failure(**facts), self.now, 1.0, bool)
        return seen if isinstance(seen, Refused) else seen[0]

    def join(self, bounds: Bounds = PLAIN, progress: Progress | None = None, *, earliest: float = 0.0):
        """Fail one attempt and join the line; return the waiter, or the reason for the refusal."""
        counted = self.fail(bounds, progress)
        assert isinstance(counted, Progress)
        waiter = Waiter(counted, bounds, self.now, earliest, lambda: self.woken.append(waiter))
        return self.line.join(waiter, self.now) or waiter

    def look(self, waiter: Waiter) -> Grant | Wait | Refused:
        return self.line.look(waiter, self.now)

    def succeed(self, *, latency: float = 0.0, timeout: float | None = None) -> bool:
        return self.line.succeeded(self.now, latency, timeout, is_delayed=True)

    @property
    def gone(self) -> int:
        return sum(each.released is not None for each in dict.fromkeys(self.woken))


def until(seen: Grant | Wait | Refused) -> float:
    assert isinstance(seen, Wait), seen
    return seen.until


# The attempts that count.


def test_an_attempt_that_fails_while_nobody_succeeds_counts_for_none_but_the_first():
    """While no operation succeeds, only the first failed attempt of an operation counts, however often it fails."""
    scene = Scene()
    progress = scene.fail()
    for _ in range(20):
        progress = scene.fail(progress=progress)
    assert 1 == progress.counted


@pytest.mark.parametrize(("latency", "counted"), [(0.02, 1), (0.01, 1), (0.0, 2)])
def test_what_was_under_way_when_the_service_went_down_does_not_tell_that_it_is_well(latency, counted):
    """An attempt counts if another one that began after the last failure succeeded, and not if it began before."""
    scene = Scene()
    progress = scene.fail()
    scene.now += 0.01
    scene.succeed(latency=latency)
    progress = scene.fail(progress=progress)
    assert counted == progress.counted


@pytest.mark.parametrize(("age", "counted"), [(9.9, 1), (10.0, 2), (60.0, 2)])
def test_a_throttled_attempt_counts_for_none_but_the_first_while_it_may_wait(age, counted):
    """Throttled attempts do not count while others succeed, until the operation is twice its patience old."""
    scene = Scene()
    progress = scene.fail(throttled=True)
    scene.now = age
    scene.succeed()
    assert counted == scene.fail(progress=progress, throttled=True).counted


@pytest.mark.parametrize(("latency", "gone"), [(0.02, 0), (0.01, 1), (0.0, 1)])
def test_who_failed_while_an_attempt_was_under_way_does_not_go_for_its_success(latency, gone):
    """With 16 threads that get slow answers, one path that always fails was asked twenty times."""
    scene = Scene()
    waiter = scene.join()
    scene.now += 0.01
    scene.succeed(latency=latency)
    assert gone == (waiter.released is not None)


@pytest.mark.parametrize(
    ("failure", "after", "seconds"),
    [
        (Failure(delay=2.0), 1.0, 0.0),  # it is not throttled
        (Failure(delay=2.0, hint=1.0), 1.0, 1.0),
        (Failure(delay=2.0, throttled=True), 1.0, 2.0),
        (Failure(delay=2.0, hint=3.0, throttled=True), 1.0, 3.0),
        (Failure(delay=2.0, hint=1.0, throttled=True), 1.0, 2.0),
        (Failure(delay=4.0, throttled=True), 7.0, 2.9),  # it asks once more before it gives up after 10 s
        (Failure(delay=4.0, throttled=True), 9.95, 4.0),  # and has done so
    ],
)
def test_who_is_throttled_leaves_the_queue_no_earlier_than_its_backoff(failure, after, seconds):
    """Others succeed, but its own limit may still hold."""
    queue = WaitQueue(0.0, max_waiters=9)
    earliest = queue.earliest(Progress(0.0), Bounds(), failure, after)
    assert pytest.approx(after + seconds) == earliest


@pytest.mark.parametrize(
    ("answered", "facts", "counted", "down_since"),
    [
        (9.9, {"is_answer": True}, 3, None),  # it answers others well, so this request is at fault
        (7.0, {"is_answer": True}, 3, None),
        (6.9, {"is_answer": True}, 1, 10.0),  # nothing but 500s for three seconds: it is down
        (None, {"is_answer": True}, 1, 10.0),  # it never answered anybody
        (9.9, {}, 1, 10.0),  # a 503, a refusal, silence
        (None, {"is_cut": True}, 3, None),  # the head was good
    ],
)
def test_a_500_is_an_answer_of_a_service_that_answered_others_well(answered, facts, counted, down_since):
    """Each counts as an attempt, and none begins an outage."""
    scene = Scene()
    if answered is not None:
        scene.line.succeeded(answered, is_delayed=True)
    scene.now, bounds = 10.0, Bounds(max_attempts=9)
    progress = scene.fail(bounds, **facts)
    for _ in range(2):
        scene.now += 2.0
        progress = scene.fail(bounds, progress, **facts)
    assert (counted, down_since) == (progress.counted, scene.line.down_since)


def test_a_500_counts_where_anybody_was_answered_since_its_operation_began():
    """However long ago that is: its attempts may take their time."""
    scene = Scene()
    progress = scene.fail(is_answer=True)
    scene.now = 1.0
    scene.succeed(latency=1.0)
    for _ in range(2):
        scene.now += 10.0
        progress = scene.fail(progress=progress, is_answer=True)
    assert Refused(StopReason.MAX_ATTEMPTS) == progress


# Waiting: which operations may, and for how long


@pytest.mark.parametrize(
    ("bounds", "began", "down_since", "leaves"),
    [
        (Bounds(), 0.0, 0.0, 5.0),  # the outage is 5 s old
        (Bounds(), 3.0, 0.0, 5.0),
        (Bounds(), 0.0, 7.0, 10.0),  # a success was seen since: 10 s in all
        (Bounds(), 0.0, None, 10.0),
        (Bounds(patience=20), 0.0, 0.0, 20.0),
        (Bounds(deadline=30.0), 0.0, 0.0, 5.0),  # a deadline only bounds
        (Bounds(deadline=3.0), 0.0, 0.0, 3.0),
        (Bounds(deadline=7.0), 0.0, None, 7.0),
        (Bounds(deadline=30.0, patience=60.0), 0.0, None, 30.0),
        (Bounds(patience=0.0), 4.0, 4.0, 4.0),  # at once
        (Bounds(deadline=30.0, patience=0.0), 4.0, 4.0, 4.0),
    ],
)
def test_how_long_an_operation_waits(bounds, began, down_since, leaves):
    """An operation waits until the outage is as old as patience, for twice that in all, and not past its deadline."""
    assert leaves == Waiter(Progress(began), bounds, began, 0.0, bool).leaves_at(down_since)


@pytest.mark.parametrize(
    ("bounds", "down_since", "leaves"),
    [
        (Bounds(), 0.0, 65.0),
        (Bounds(), None, 70.0),
        (Bounds(deadline=30.0), 0.0, 30.0),
        (Bounds(patience=0.0), 0.0, 60.0),
    ],
)
def test_what_a_throttling_server_asks_for_is_not_counted_as_patience(bounds, down_since, leaves):
    """It begins when those seconds are over; a deadline holds."""
    assert leaves == Waiter(Progress(0.0), bounds, 0.0, 60.0, uncounted=60.0).leaves_at(down_since)


@pytest.mark.parametrize("deadline", [None, 30.0])
@pytest.mark.parametrize("patience", [0.0, 2.0])
def test_who_waits_while_others_succeed_looks_again_when_it_may_ask(patience, deadline):
    """Not at once, over and over: an outage from now on could not end its wait before that."""
    scene = Scene()
    bounds = Bounds(patience=patience, deadline=deadline)
    progress = scene.fail(bounds, throttled=True)
    waiter = Waiter(progress, bounds, scene.now, 8.0, uncounted=8.0)
    assert scene.line.join(waiter, scene.now) is None
    scene.now = 1.0
    scene.succeed()
    assert 8.0 == until(scene.look(waiter))


def test_who_gives_up_says_why_and_how_long_it_waited():
    """Whoever comes when the outage is as old as patience is refused at once; a more patient one still waits."""
    scene = Scene()
    plain, hurried = scene.join(), scene.join(Bounds(deadline=3.0))
    scene.now = 3.0
    assert Refused(StopReason.DEADLINE, 3.0) == scene.look(hurried)
    scene.now = 4.9
    scene.line.leave(scene.join(), scene.now)
    scene.now = 5.0
    assert Refused(StopReason.PATIENCE, 5.0) == scene.look(plain)
    assert [] == scene.line.waiters
    assert [StopReason.PATIENCE] * 2 == [scene.join(), scene.join(Bounds(deadline=30.0))]
    assert isinstance(scene.join(Bounds(patience=30.0)), Waiter)


def test_who_gives_up_while_the_service_is_back_is_told_so():
    """It does not say that a well service is down."""
    scene = Scene(age=100.0, successes=1000)
    for _ in range(9):
        scene.join()
    last = scene.line.waiters[-1]
    scene.now = 101.0
    scene.succeed(latency=1.0, timeout=1.0)
    scene.now = 110.0
    refused = scene.look(last)
    assert (StopReason.PATIENCE, 10.0) == refused[:2]
    assert "answers others" in refused.why


def test_a_full_line_refuses():
    """When the line is full, a new operation is refused, and those in line stay there."""
    scene = Scene(max_waiters=2)
    assert [Waiter, Waiter, StopReason] == [type(scene.join()) for _ in range(3)]
    assert StopReason.LINE_FULL is scene.join()
    scene.line.leave(scene.line.waiters[0], 0.0)
    assert isinstance(scene.join(), Waiter)


# Operations that are let go


@pytest.mark.parametrize("age", [0.1, 1.1, 20.0])
def test_each_success_lets_two_go_however_long_the_outage_was(age):
    """As TCP opens its window: those who went let go four, and so on."""
    scene = Scene(age=100.0, successes=1000)
    for _ in range(9):
        scene.join(Bounds(patience=100.0))
    scene.now += age
    gone = []
    for _ in range(5):
        scene.succeed()
        gone.append(scene.gone)
    assert [2, 4, 6, 8, 9] == gone


@pytest.mark.parametrize(
    ("latency", "timeout", "gone"),
    [
        (0.0, 1.0, [2, 4, 6]),
        (0.5, None, [2, 4, 6]),
        (0.1, 1.0, [1, 2, 3]),
        (0.2, 1.0, [0, 1, 1]),
        (1.0, 1.0, [0, 0, 0]),
        (5.0, 1.0, [0, 0, 0]),
    ],
)
def test_a_slow_success_lets_fewer_go(latency, timeout, gone):
    """The credit is the fifth power of the rest of the time-out: from an eighth of it on less than one goes."""
    scene = Scene(age=100.0, successes=1000)
    for _ in range(9):
        scene.join()
    scene.now += 0.1
    seen = []
    for _ in range(3):
        scene.succeed(latency=latency, timeout=timeout)
        seen.append(scene.gone)
    assert gone == seen


def test_the_line_is_served_in_the_order_in_which_operations_began():
    """A released retry that fails goes back to its place."""
    scene = Scene(age=100.0, successes=1000)
    old, young = scene.join(progress=Progress(98.0)), scene.join(progress=Progress(99.0))
    oldest = scene.join(progress=Progress(97.0))
    assert [oldest, old, young] == scene.line.waiters
    scene.succeed()
    assert [young] == scene.line.waiters
    again = scene.join(progress=oldest.released.progress)
    assert [again, young] == scene.line.waiters


def test_who_has_not_two_latencies_left_is_passed_over():
    """A waiter with less than two latencies to its deadline would go in vain, so the next one goes."""
    scene = Scene(age=100.0, successes=1000)
    late, other = scene.join(Bounds(deadline=101.0)), scene.join(Bounds(deadline=200.0))
    scene.succeed(latency=0.6)
    assert [late] == scene.line.waiters
    assert other.released is not None


def test_a_released_waiter_says_what_it_waited_for():
    """A released waiter has the reason in words for a history, and its retry costs no token."""
    scene = Scene(age=100.0, successes=1000)
    waiter = scene.join()
    scene.now += 0.8
    scene.succeed()
    go = scene.look(waiter)
    assert (0.0, pytest.approx(0.8), "another request succeeded") == (go.delay, go.waited, go.why)
    assert (0.0, 0.0, pytest.approx(0.8)) == (go.progress.spent, go.progress.acquired, go.progress.waited)


@pytest.mark.parametrize(("throttled", "hint", "gone"), [(0, 0.0, 2), (1, 0.0, 1), (2, 0.0, 1), (2, 1.0, 2)])
def test_the_first_success_after_a_throttled_answer_lets_one_go(throttled, hint, gone):
    """However many were throttled, and the next one lets two go; one with a hint says itself when to go."""
    scene = Scene(age=100.0, successes=1000)
    for _ in range(5):
        scene.join()
    for _ in range(throttled):
        scene.fail(throttled=True, hint=hint)
    scene.succeed()
    assert gone == scene.gone
    scene.succeed()
    assert gone + 2 == scene.gone


def test_each_success_lets_one_go_where_each_call_is_throttled_once():
    """So nobody waits in vain for a service that refuses the first request of each call."""
    scene = Scene(age=100.0, successes=1000)
    for _ in range(5):
        scene.join()
    for number in range(1, 6):
        scene.fail(throttled=True)
        scene.succeed()
        assert number == scene.gone


# Hints of the server


def test_nobody_is_let_go_before_the_server_said():
    """A waiter with a server's hint goes at that moment, not before; others go meanwhile."""
    scene = Scene(age=100.0, successes=1000)
    hinted, other = scene.join(earliest=103.0), scene.join()
    scene.succeed()
    assert [hinted] == scene.line.waiters
    assert other.released is not None
    assert 103.0 == until(scene.look(hinted))
    scene.now = 103.0
    assert "another request succeeded" == scene.look(hinted).why


def test_successes_while_all_are_held_back_let_two_go_at_most():
    """Those who wait for the moment that the server named do not all go then, however much succeeded before."""
    scene = Scene(age=100.0, successes=1000)
    hinted = [scene.join(earliest=103.0) for _ in range(5)]
    for _ in range(5):
        scene.succeed()
    assert hinted == scene.line.waiters
    scene.now = 103.0
    scene.look(hinted[0])
    assert 2 == scene.gone


def test_nobody_asks_before_the_server_said():
    """The next one asks instead."""
    scene = Scene(age=100.0, successes=1000)
    hinted, other = scene.join(earliest=103.0), scene.join()
    scene.now = 101.0
    assert until(scene.look(hinted)) > 101.0
    assert "nobody had asked for a while" == scene.look(other).why


# Asking in turn


@pytest.mark.parametrize(
    ("usual", "bounds", "gap"),
    [
        (0.01, PLAIN, 0.5),
        (0.01, Bounds(patience=30.0), 0.5),
        (1.0, PLAIN, 3.0),
        (2.0, PLAIN, 4.5),
        (20.0, Bounds(patience=30.0), 27.0),
        (50.0, Bounds(patience=30.0), 29.4),  # not 50, when it would be too late
        (50.0, PLAIN, 4.9),
        (50.0, Bounds(patience=120.0), 108.0),
        (50.0, Bounds(patience=30.0, deadline=110.0), 9.4),
    ],
)
def test_the_first_gap(usual, bounds, gap):
    """Three usual gaps, within nine tenths of patience, and at least half a second; or just before it gives up."""
    scene = Scene(age=100.0, successes=round(100 / usual) - 1)
    waiter = scene.join(bounds)
    assert pytest.approx(100.0 + gap, abs=1e-9) == until(scene.look(waiter))


@pytest.mark.parametrize(("waiting", "gap"), [(1, 3.0), (6, 3.0), (8, 2.5), (20, 1.0), (60, 0.5)])
def test_where_many_wait_the_next_question_comes_sooner(waiting, gap):
    """A client with few requests asks seldom; each that waits adds a question in four times its patience."""
    scene = Scene(age=100.0, successes=99 - waiting)
    waiter = scene.join()
    for _ in range(waiting - 1):
        scene.join()
    assert pytest.approx(100.0 + gap, rel=0.02) == until(scene.look(waiter))


@pytest.mark.parametrize(("throttled", "gap"), [(True, 1.0), (False, 4.9)])
def test_operations_that_succeed_after_retries_count_while_the_service_throttles(throttled, gap):
    """After an outage they all succeed at once, which says nothing of the usual gap between operations."""
    scene = Scene(age=100.0, successes=19)
    for _ in range(80):
        scene.succeed()
    waiter = scene.join()
    scene.fail(throttled=throttled)
    assert pytest.approx(100.0 + gap, abs=0.1) == until(scene.look(waiter))


@pytest.mark.parametrize(("hint", "gap"), [(0.0, 1.0), (1.0, 3.0)])
def test_a_service_that_throttles_is_asked_after_one_usual_gap(hint, gap):
    """It is up, and a client whose threads all wait for it sends nothing else; one with a hint is not asked sooner."""
    scene = Scene(age=100.0, successes=99)
    waiter = scene.join()
    scene.fail(throttled=True, hint=hint)
    assert pytest.approx(100.0 + gap) == until(scene.look(waiter))


ASKED = Progress(100.0, probes=1)
PAID = Progress(100.0, spent=1.0)


@pytest.mark.parametrize(
    ("waiting", "sent_at", "asks"),
    [
        ([Progress(100.0)], 100.0, 129.4),
        ([Progress(100.0)], 101.0, 130.0),  # another one was sent since, whose success lets it go
        ([PAID, Progress(100.0)], 100.0, 129.4),  # what was sent last waits, too: it retried
        ([ASKED, ASKED], 100.0, 129.4),  # or asked
        ([ASKED, ASKED], 126.0, 130.0),
        ([PAID], 129.5, 130.0),  # somebody asks just now
    ],
)
def test_who_nears_its_end_asks_once_more(waiting, sent_at, asks):
    """A fiftieth of its patience before, so that it does not give up at a service that is back, if nobody else asks."""
    scene, bounds = Scene(age=100.0, successes=0), Bounds(patience=30.0)
    waiter, *_ = [scene.join(bounds, progress) for progress in waiting]
    scene.line.sent(sent_at)
    assert asks == until(scene.look(waiter))


def test_who_is_not_the_next_is_told_when_the_next_one_asks():
    """It looks again when it is woken or gives up, and would go on by then, as far as is known."""
    scene = Scene(age=100.0, successes=10_000)
    first, second, hinted = scene.join(), scene.join(), scene.join(earliest=102.0)
    seen = [scene.look(each) for each in (first, second, hinted)]
    assert [Wait(100.5, 100.5), Wait(105.0, 100.5), Wait(105.0, 102.0)] == seen


def test_questions_come_after_a_quarter_of_the_outages_age():
    """Half a second at first and eight at last, so that nobody is later than that; and anew after a success."""
    scene = Scene(age=100.0, successes=10_000)
    scene.line.sent(100.0)
    bounds = Bounds(patience=100.0)
    waiter, asked = scene.join(bounds), []
    for _ in range(20):
        scene.now = until(scene.look(waiter))
        asked.append(round(scene.now - 100.0, 6))
        go = scene.look(waiter)
        waiter = scene.join(bounds, go.progress)
    assert [0.5, 1.0, 1.5, 2.0, 2.5, 3.125] == asked[:6]
    assert [8.0, 8.0] == [later - before for before, later in zip(asked[-3:-1], asked[-2:], strict=True)]
    scene.line.sent(scene.now)
    scene.succeed(latency=1.0, timeout=1.0)
    assert scene.now + 0.5 == until(scene.look(waiter))


def test_a_client_without_any_success_asks_seldom():
    """New processes do not know how often they ask, and there may be a thousand: the gaps grow without a limit."""
    scene, asked = Scene(), []
    bounds = Bounds(patience=100.0)
    waiter = scene.join(bounds)
    for _ in range(4):
        scene.now = until(scene.look(waiter))
        asked.append(scene.now)
        waiter = scene.join(bounds, scene.look(waiter).progress)
    assert [0.5, 2.0, 8.0, 32.0] == asked


def test_those_who_wait_ask_in_turn():
    """A waiter that asked in vain keeps its place, but asks again only after all others."""
    scene, order = Scene(age=100.0, successes=10_000), []
    bounds = Bounds(patience=1000.0)
    waiters = {name: scene.join(bounds, Progress(99.9 + number / 100)) for number, name in enumerate("abc")}
    for _ in range(6):
        scene.now = min(until(scene.look(each)) for each in waiters.values())
        name = next(name for name, each in waiters.items() if isinstance(scene.look(each), Grant))
        order.append(name)
        waiters[name] = scene.join(bounds, waiters[name].released.progress)
    assert list("abcabc") == order


# Leaving


def test_who_leaves_wakes_the_next_to_ask():
    """A waiter that leaves wakes the next one, which then asks."""
    scene = Scene(age=100.0, successes=10_000)
    first, second = scene.join(), scene.join()
    scene.line.leave(first, 100.0)
    assert second is scene.woken[-1]
    assert [second] == scene.line.waiters


def test_who_is_let_go_and_interrupted_at_once_passes_it_on():
    """A release is not lost with its waiter."""
    scene = Scene(age=100.0, successes=1000)
    first, second, third = scene.join(), scene.join(), scene.join()
    scene.succeed()
    assert [third] == scene.line.waiters
    scene.line.leave(first, 100.0)
    assert third.released is not None
    scene.line.leave(second, 100.0)  # nobody is left who could use it
    scene.line.leave(second, 100.0)
    assert [] == scene.line.waiters


# Pauses, jumps


@pytest.mark.parametrize(("pause", "since"), [(0.0, 0.0), (30.0, 0.0), (30.1, 36.1), (299.0, 305.0)])
def test_a_pause_without_attempts_does_not_age_an_outage(pause, since):
    """Half a minute untouched, and patience begins anew; a busy scope's does not, however long ago it failed."""
    scene = Scene()
    scene.join()
    scene.now = 6.0
    assert StopReason.PATIENCE is scene.join()
    scene.line.waiters.clear()
    scene.now += pause
    assert isinstance(scene.join(), Waiter if since else StopReason)
    assert since == scene.line.down_since


def test_nobodys_patience_begins_anew_while_others_wait():
    """They wait for the outage that they met."""
    scene = Scene()
    scene.join(Bounds(patience=120.0))
    scene.now = 60.0
    assert StopReason.PATIENCE is scene.join()


def test_an_attempt_that_took_long_is_no_pause():
    """A time-out of a minute is an attempt all the time."""
    scene = Scene()
    progress = scene.fail(progress=Progress(-60.0))
    scene.now = 60.0
    progress = scene.fail(progress=progress)
    scene.now = 120.0
    scene.fail(progress=Progress(61.0))
    assert 0.0 == scene.line.down_since


def test_five_minutes_without_attempts_make_a_scope_as_good_as_new():
    """Its record is out of date."""
    scene = Scene()
    scene.fail()
    scene.now = 300.1
    scene.fail()
    assert 300.1 == scene.line.down_since


@pytest.mark.once
@given(st.data())
def test_no_order_of_events_strands_anybody(data):
    """Each waiter always knows when to look again, and leaves in time; one that asks is in line."""
    scene = Scene(age=data.draw(st.floats(0, 1000)), successes=data.draw(st.integers(0, 1000)), max_waiters=8)
    progresses, limits = [], {}
    for _ in range(data.draw(st.integers(1, 40))):
        scene.now += data.draw(st.sampled_from([0.0, 0.01, 0.3, 1.0, 4.0, 30.0, 400.0]))
        for waiter in tuple(scene.line.waiters):
            if waiter.released is None:
                seen = scene.look(waiter)
                if isinstance(seen, Wait):
                    assert scene.now < seen.until <= limits[waiter]
                elif isinstance(seen, Grant):
                    progresses.append((seen.progress, waiter.bounds))
        match data.draw(st.sampled_from(["fail", "fail", "again", "throttled", "succeed", "leave", "counted", "sent"])):
            case "succeed":
                scene.succeed(latency=data.draw(st.floats(0, 2)), timeout=1.0)
            case "counted" if scene.line.down_since is None and not scene.line.waiters:
                for _ in range(data.draw(st.integers(0, 3))):
                    scene.line.succeeded(scene.now, is_delayed=True)
            case "sent":
                scene.line.sent(scene.now)
            case "leave" if scene.line.waiters:
                scene.line.leave(data.draw(st.sampled_from(scene.line.waiters)), scene.now)
            case "throttled":
                scene.fail(throttled=True)
            case kind:
                bounds = Bounds(deadline=data.draw(st.none() | st.floats(0, 60).map(scene.now.__add__)))
                progress = Progress(scene.now)
                if kind == "again" and progresses:
                    progress, bounds = progresses.pop()
                counted = scene.fail(bounds, progress)
                if isinstance(counted, Progress):
                    waiter = Waiter(counted, bounds, scene.now, scene.now, lambda: None)
                    limits[waiter] = bounds.in_all(progress.began)
                    scene.line.join(waiter, scene.now)
        began = [waiter.progress.began for waiter in scene.line.waiters]
        assert sorted(began) == began
        assert len(began) <= 8
        assert -1 <= scene.line._credit <= 2
    scene.now += 2000.0
    while scene.line.waiters:
        assert not isinstance(scene.look(scene.line.waiters[0]), Wait)
