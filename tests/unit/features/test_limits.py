"""The count-down of announced limits (contract 7.4): tables of answers, and the line of those that wait.

What threads make of it is searched schedule by schedule (benchmarks/explore/programs.py).
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import NamedTuple

import pytest

from requests_smithy_retry.clock import Wait
from requests_smithy_retry.errors import RetryError
from requests_smithy_retry.features import rate_limits
from requests_smithy_retry.features.rate_limits import Users
from requests_smithy_retry.features.rate_limits.announced import Announced
from requests_smithy_retry.features.rate_limits.limits import InFlight, Limits, PlaceAtLimits
from requests_smithy_retry.urls import KEYS, user_of
from tests.support import let_go


class Told(NamedTuple):
    """An answer that announces one limit.

    :param sent: when its request was sent; None: nobody knows.
    :param heard: when it came.
    """

    sent: float | None
    heard: float
    left: float | None
    reset: float | None
    size: float | None = 10
    status: int = 200
    name: str = "limit"
    counts: bool = True

    @property
    def announced(self) -> Announced:
        """The limit as it is read off the headers."""
        return Announced(self.left, self.reset, self.size, "x-ratelimit-reset", self.name, self.counts)


def limits_after(*answers: Told) -> Limits:
    """Limits that have heard these answers."""
    limits = Limits()
    for told in answers:
        passed = None if told.sent is None else InFlight(told.sent, 0.0, "")
        limits.answered(passed, [told.announced], told.status, told.heard)
    return limits


def opens(limits: Limits, at: float, under_way: tuple[float, ...] = ()) -> float:
    """Return the moment at which another request may be sent, while those are under way that were sent then."""
    passes = [limits.let_in(InFlight(sent, 0.0, "")) for sent in under_way]
    assert len(under_way) == len(passes)
    return max(at, limits.opens(at)[0])


NOTHING = Told(0, 1, 0, 9)
"""Nothing is left until the moment 10."""
of_hundred = partial(Told, size=100)
EIGHTH = [of_hundred(0, 1, 80, 9), of_hundred(2, 3, 40, 7)]
MOMENTS: dict[str, tuple[list[Told], float, tuple[float, ...], float]] = {
    "nothing is left": ([NOTHING], 2, (), 10),
    "one is left": ([Told(0, 1, 1, 9)], 2, (), 2),
    "one is left, and it is under way": ([Told(0, 1, 1, 9)], 2, (1.5,), 10),
    "what was sent long before the answered one is counted in what is left": ([Told(5, 6, 1, 9)], 7, (3.5,), 7),
    "what was sent just before the answered one may not be": ([Told(5, 6, 1, 9)], 7, (4.5,), 15),
    "the window is over": ([NOTHING], 10, (), 10),
    "one of those that waited is ahead": ([NOTHING], 10.2, (10.1,), 11.1),
    "it is ahead for a second": ([NOTHING], 11.1, (10.1,), 11.1),
    "not more go than the window has": ([Told(0, 1, 0, 9, size=2)], 11.5, (10, 11), 12.5),
    "nobody knows what it has": ([Told(0, 1, 0, 9, size=None)], 11.5, (10,) * 50, 11.5),
    "where nobody waited, nobody is ahead": ([Told(0, 1, 5, 9)], 10.2, (10.1,) * 9, 10.2),
    "where all that was left was under way, somebody waited": ([Told(0, 1, 2, 9)], 10.2, (1, 1, 10.1), 11.1),
    "the earliest reset counts": ([Told(0, 1, 1, 9.9), Told(1, 2, 0, 8.2)], 3, (), 10.2),
    "an answer that was overtaken": ([NOTHING, Told(0.5, 2, 3, 8)], 3, (), 10),
    "of one that nobody knows when it was sent": ([NOTHING, Told(None, 2, 3, 8)], 3, (), 10),
    "a slow answer tells of a late end": ([Told(0, 1, 5, 9), Told(2, 8, 0, 8)], 8.5, (), 10),
    "the next window has begun, by what is left": ([NOTHING, Told(8.5, 8.6, 9, 10)], 9, (), 9),
    "the next window has begun, by the time": ([NOTHING, Told(10, 10.5, 0, 9)], 11, (), 19.5),
    "an answer of the window before comes in the next one": ([NOTHING, Told(1, 10.5, 0, 9)], 10.6, (), 10.6),
    "the next window has another size": ([NOTHING, Told(10, 10.5, 0, 9, size=20)], 11, (), 19.5),
    "an answer does not say the size": ([Told(0, 1, 5, 9), Told(2, 3, 0, 7, size=None)], 4, (), 10),
    "the reset is now": ([Told(0, 1, 0, 0)], 1.5, (), 1.5),
    "the reset is now, and it was refused: it was rounded down": ([Told(0, 1, 0, 0, status=429)], 1.5, (), 2),
    "a limit of 0 is none": ([Told(0, 1, 0, 9, size=0)], 2, (), 2),
    "no reset, as with GitHub's second limit": ([Told(0, 1, 0, None)], 2, (), 2),
    "not what is left": ([Told(0, 1, None, 9)], 2, (), 2),
    "one token is left": ([Told(0, 1, 1, 9, counts=False)], 2, (1.5,) * 20, 2),
    "no token is left": ([Told(0, 1, 0, 9, counts=False)], 2, (), 10),
    "others have had an eighth: an eighth of the rest at once": (EIGHTH, 4, (3.5,) * 4, 4),
    "and no more": (EIGHTH, 4, (3.5,) * 5, 10),
    "they have had less": ([of_hundred(0, 1, 80, 9), of_hundred(2, 3, 71, 7)], 4, (3.5,) * 70, 4),
    "the last ones go one by one": ([of_hundred(0, 1, 80, 9), of_hundred(2, 3, 3, 7)], 4, (), 4),
    "that is remembered in the next window": ([*EIGHTH, of_hundred(10, 11, 90, 9)], 12, (11.5,) * 11, 20),
    "and forgotten in the one after it": (
        [*EIGHTH, of_hundred(10, 11, 90, 9), of_hundred(20, 21, 90, 9)],
        *(22, (21.5,) * 11, 22),
    ),
}


@pytest.mark.parametrize("case", MOMENTS)
def test_when_the_next_request_may_be_sent(case):
    """It is the moment itself, or a later one."""
    answers, at, under_way, expected = MOMENTS[case]
    assert expected == pytest.approx(opens(limits_after(*answers), at, under_way))


SEVERAL = {
    "more is left again long before the end": [NOTHING, Told(2, 3, 5, 7)],
    "another size": [Told(0, 1, 5, 9), Told(2, 3, 4, 7, size=20)],
    "a later end": [Told(0, 1, 5, 9), Told(2, 3, 4, 20)],
    "an earlier end": [Told(0, 1, 5, 20), Told(2, 3, 4, 2)],
    "another name": [NOTHING, Told(2, 3, 0, 7, name="other")],
    "tokens that come back": [Told(0, 1, 0, 9, counts=False), Told(2, 3, 5, 7, counts=False)],
}


@pytest.mark.parametrize("case", SEVERAL)
def test_several_limits_hold_nobody(case):
    """Nobody knows which of them the next request meets, and that stays so."""
    limits = limits_after(*SEVERAL[case], Told(4, 5, 0, 5))
    assert 6 == opens(limits, 6)


def test_of_the_limits_of_one_answer_the_latest_counts():
    """One that is no longer told of is forgotten, so names that a server makes up are not collected."""
    limits = Limits()
    for named, expected in (({"minute": 59, "day": 99}, 99), ({"minute": 59}, 59)):
        limits.answered(None, [Told(0, 1, 0, reset, name=name).announced for name, reset in named.items()], 200, 0)
        assert expected == opens(limits, 0)
    for number in range(99):
        told = [Told(0, 1, 0, 99 + number, name=name).announced for name in ("minute", str(number))]
        limits.answered(None, told, 200, 0)
    limits.answered(None, [Told(0, 1, 0, 9, name="minute").announced], 200, 0)
    assert 9 == opens(limits, 0)


def enter(limits: Limits, now: float, longest: float = inf, until: float = inf) -> InFlight | Wait:
    """The first look of a request."""
    with limits.lock:
        return PlaceAtLimits(limits, longest, until).look(now)


@pytest.mark.parametrize("is_first", [False, True])
def test_what_this_process_has_sent_is_not_what_others_have_had(is_first):
    """Its own requests count, also those that were sent before it knew of the limit."""
    limits = limits_after(Told(None, 0, 80, 9, size=100))
    passes = [None if is_first else enter(limits, 0) for _ in range(40)]
    for left in range(79, 39, -1):
        passed = passes.pop()
        assert not isinstance(passed, Wait)
        limits.answered(passed, [Told(0, 0, left, 9, size=100).announced], 200, 0)
    assert 1 == opens(limits, 1, (0.5,) * 30)


HELD: list[tuple[int, float, float | None]] = [
    *((0, longest, 7) for longest in (inf, 7.1)),
    *((0, longest, None) for longest in (7, 5, 0)),
    (1, inf, 8),
    (1, 7.5, 7.5),
    (1, 5, None),
]
"""How many are in front, the longest wait, and when it looks again; None: it goes at once."""


@pytest.mark.parametrize(("others", "longest", "expected"), HELD)
def test_a_wait_that_would_be_too_long_is_not_begun(others, longest, expected):
    """It goes at once, for the server's own answer, and so does who stands behind somebody."""
    limits = limits_after(Told(None, 0, 0, 7))
    for _ in range(others):
        enter(limits, 0)
    seen = enter(limits, 0, longest)
    assert expected == (seen.until if isinstance(seen, Wait) else None)


@pytest.mark.parametrize("until", [7, -1])
def test_a_limit_that_opens_too_late_ends_the_call(until):
    """The error has the header and the seconds."""
    limits = limits_after(Told(None, 0, 0, 7))
    with pytest.raises(RetryError, match=r"opens in 7 s, which is too late for this call") as caught:
        enter(limits, 0, until=until)
    assert caught.value.unmade is not None
    assert 7 == caught.value.unmade.seconds


def test_who_waited_says_how_long_and_for_what():
    """It names the header behind the limit, or that of those in front; the second goes as the first does, or next."""
    limits = limits_after(Told(None, 0, 0, 7))
    first, second = PlaceAtLimits(limits, inf), PlaceAtLimits(limits, 20)
    with limits.lock:
        assert [Wait(7), Wait(8, 7), Wait(10, 9)] == [first.look(0), second.look(0), second.look(9)]
        passes = first.look(7), second.look(20)
    said = [(one.sent, one.waited, one.source) for one in passes if isinstance(one, InFlight)]
    assert [(7, 7, "x-ratelimit-reset"), (20, 20, "x-ratelimit-reset")] == said


def test_one_that_is_interrupted_makes_room():
    """It leaves the line, before it looked as well, and the next one has its turn."""
    limits = limits_after(Told(None, 0, 0, 7))
    first, second = PlaceAtLimits(limits, inf), PlaceAtLimits(limits, inf)
    with limits.lock:
        first.look(0)
        second.look(0)
        for _ in range(2):
            first.leave(0)
        assert Wait(7) == second.look(0)
        for turn in (PlaceAtLimits(limits, inf), second):
            turn.leave(0)
    assert limits.is_spare


def test_a_pass_that_nobody_keeps_counts_no_more():
    """An interruption may come between the gate and the send."""
    limits = limits_after(Told(None, 0, 1, 7))
    passed = enter(limits, 0)
    assert (7, False) == (opens(limits, 1), limits.is_spare)
    del passed
    let_go()
    assert (1, True) == (opens(limits, 1), limits.is_spare)


def test_a_child_of_a_fork_has_nobody_waiting():
    """The waiting threads and the requests under way are in the parent."""
    limits = limits_after(Told(None, 0, 1, 7))
    kept = [enter(limits, 0) for _ in range(2)]
    limits.renew_lock()
    assert (1, True, 2) == (opens(limits, 1), limits.is_spare, len(kept))


REFUSED_TWICE: list[tuple[list[str | int], float]] = [
    (["a5"], 0),
    (["a5", "a5"], 0),
    (["a5", "b5"], 5),
    (["a5", 429, "b5"], 5),
    (["a5", 503, 500, 0, "b5"], 5),
    *((["a5", status, "b5"], 0) for status in (200, 404)),
    (["a5", "b5", 200], 0),
    (["a5", "b5", 429], 5),
    (["a5", "b5", 200, "a5"], 0),
    (["a9", "b7", "c1"], 7),  # a third one with a shorter wait opens nothing
]
"""Refusals of operations with their seconds, ends of attempts by their status, and how long others are held."""


@pytest.mark.parametrize(("story", "expected"), REFUSED_TWICE, ids=str)
def test_a_second_refusal_in_a_row_of_another_operation_holds_back(story, expected):
    """One answer that is no refusal and no fault begins anew."""
    limits = Limits()
    for step in story:
        if isinstance(step, str):
            limits.refused(step[0], int(step[1]), 0, 429)
        else:
            limits.answered(None, [], step, 0)
    assert expected == opens(limits, 0)
    assert expected == 0 or limits.opens(0)[1] == "retry-after of a 429"


def test_so_many_users_are_kept(monkeypatch):
    """The oldest one that nobody uses makes room; if all are in use, there is one more."""
    monkeypatch.setattr(rate_limits, "MOST_USERS", 2)
    users = Users()
    passed = enter(users.made(b"a"), 0)
    for user in (b"b", b"c", b"c"):
        users.made(user)
    assert [b"a", b"c"] == [*users.known]
    other = enter(users.made(b"c"), 0)
    users.made(b"d")
    assert ([b"a", b"c", b"d"], False) == ([*users.known], users.is_waited_on)
    del passed, other
    let_go()
    assert not users.is_waited_on
    users.forget(0)
    assert {} == users.known


@pytest.mark.parametrize("name", sorted(KEYS))
def test_no_secret_is_in_the_mark_of_a_user(name):
    """It is a digest, and of no credentials it is empty."""
    assert b"" == user_of({})
    mark = user_of({name: "hunter2"})
    assert (32, False) == (len(mark), b"hunter2" in mark)
