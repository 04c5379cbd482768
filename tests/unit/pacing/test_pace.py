"""The pace that announced limits allow (contract 7.4): tables, then properties."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from requests_smithy_retry.pacing.announced import Announced
from requests_smithy_retry.pacing.pace import ALWAYS, AT_LEAST, MOST_WINDOWS, SPREAD, Pace, Window


def told(remaining: float | None, reset: float | None, limit: float = 100, source: str = "a") -> list[Announced]:
    """Return one limit, as a response announces it."""
    return [Announced(remaining, reset, limit, None, source)]


def used_up(now: float = 0.0, remaining: float = 40, limit: float = 100) -> Pace:
    """A pace that has seen a window of 10.5 s be used at a rate that it cannot bear."""
    pace = Pace(now)
    pace.hear(told(limit - 1, 10.5, limit), now)
    pace.hear(told(remaining, 9.5, limit), now + 1, round(limit - 1 - remaining))
    return pace


def test_while_there_is_plenty_nothing_is_spaced() -> None:
    """More than half of the limit is left."""
    pace = used_up(remaining=51)
    assert not pace.is_spaced
    assert pace.due(1.0, 0) <= 1.0
    assert pace.next_look(told(51, 9.5)[0], 0) == (50.0, 10.5)


def test_what_lasts_at_the_present_rate_is_not_spaced() -> None:
    """Less than half is left, and so is less than half of the window."""
    pace = Pace(0.0)
    pace.hear(told(99, 10.5), 0.0)
    pace.hear(told(30, 2.5), 8.0, 69)
    assert not pace.is_spaced
    assert pace.next_look(told(30, 2.5)[0], 0) == (30 - 100 / 32, 10.5)


def test_one_response_is_no_rate() -> None:
    """One response does not give a rate, so a process that comes late into a window is not held up at first."""
    pace = Pace(0.0)
    pace.hear(told(2000, 3000.5, 5000), 0.0)
    pace.hear(told(1999, 3000.4, 5000), 0.1)
    assert not pace.is_spaced


def test_what_would_run_dry_is_spaced_to_arrive_just_inside() -> None:
    """Sends that would use the limit up too early are spaced evenly until the reset."""
    pace = used_up(remaining=40)
    assert pace.is_spaced
    assert ALWAYS == pace.next_look(told(40, 9.5)[0], 0)
    now, sent = 1.0, []
    while now < 10.4:
        due = pace.due(now, 1)
        now = max(now, due)
        pace.sent(now, due)
        pace.hear(told(40 - len(sent) - 1, 10.5 - now), now)
        sent.append(now)
    inside = [at for at in sent if at < 10.5]
    assert 38 <= len(inside) <= 40
    gaps = [later - earlier for earlier, later in itertools.pairwise(inside)]
    assert max(gaps) < 3 * 9.5 / 40


def test_nothing_left_closes_until_the_reset() -> None:
    """With nothing left, sends wait for the reset; the next window is taken to be whole, and spaced over its length."""
    pace = used_up(remaining=0)
    assert 10.5 == pace.due(2.0, 3)
    assert pace.due(10.5, 3) <= 10.5
    pace.sent(10.5, 10.5)
    assert 10.5 + 10.5 / 99 == pytest.approx(pace.due(10.5, 2))


def test_only_the_share_of_this_process_is_spent() -> None:
    """If the limit falls ten times as fast as this process sends, it spends only its share."""
    pace = Pace(0.0)
    for at in range(50):
        pace.hear(told(999 - 10 * at, 10.5 - at * 0.1, 1000), at * 0.1)
    remaining, left = 409, 5.5
    assert not pace.is_spaced
    pace.hear(told(409, 5.5, 1000), 5.0, 10)
    assert pace.is_spaced
    gap = pace.due(5.0, 1) - 5.0
    assert 4 * left / remaining < gap < 12 * left / remaining


def test_sends_on_their_way_are_spent() -> None:
    """Sends count as spent until they are answered, or get no response."""
    pace = used_up(remaining=3)
    gaps = []
    for _ in range(3):
        gaps.append(pace.due(1.0, 1))
        pace.sent(1.0, 1.0)
    assert 10.5 == pace.due(1.0, 1)
    for _ in range(4):
        pace.lost()
    assert gaps[0] == pace.due(1.0, 1)
    assert gaps[0] < gaps[1] <= gaps[2] == 10.5


def test_a_hint_closes_and_those_who_waited_are_spread() -> None:
    """They are spread over two seconds, or a tenth of the wait if that is longer; the next window is not known."""
    pace = Pace(0.0)
    pace.throttled(10.0, 0.0, "retry-after")
    assert (10.0, "retry-after") == (pace.due(3.0, 4), pace.source)
    first = pace.due(10.0, 4)
    assert first <= 10.0
    pace.sent(10.0, 10.0)
    assert 10.5 == pace.due(10.0, 4)
    pace.throttled(1.0, 0.0, "retry-after")
    assert 10.5 == pace.due(10.0, 4)


def test_each_place_in_line_has_its_turn_one_space_later() -> None:
    """While a hint holds, in a spaced window, and in one that slides; those that find nothing left have the reset."""
    hinted, spaced, (slides, now) = Pace(0.0), used_up(remaining=10), sliding(0.09)
    hinted.throttled(10.0, 0.0, "retry-after")
    assert [10.0, 10.5, 11.5] == [hinted.due(3.0, 4, place) for place in (1, 2, 4)]
    gap = spaced.due(1.0, 9) - 1.0
    assert [1 + gap, 1 + 2 * gap, 10.5] == pytest.approx([spaced.due(1.0, 9, place) for place in (1, 2, 11)])
    slides.sent(now, now)
    slides.sent(now + 0.01)
    gap = slides.due(now, 9) - now
    assert now + 3 * gap == pytest.approx(slides.due(now, 9, 3))


@pytest.mark.parametrize(("hint", "space"), [(40.0, 4.0), (10.0, 2.0), (1.0, 1.0)])
def test_a_short_hint_spreads_over_itself(hint: float, space: float) -> None:
    """No longer than the wait itself."""
    pace = Pace(0.0)
    pace.throttled(hint, 0.0, "retry-after")
    pace.sent(hint, hint)
    assert hint + space == pace.due(hint, 1)


def test_a_server_that_refuses_some_and_answers_others_holds_nobody_back_but_those() -> None:
    """Once something succeeds after the opening, another hint is that operation's own, as long as the wait was."""
    pace = Pace(0.0)
    pace.hear([], 0.0)
    pace.throttled(10.0, 0.0, "retry-after")
    pace.hear([], 1.0)
    pace.throttled(12.0, 2.0, "retry-after")
    assert 14.0 == pace.closed_until
    pace.hear([], 15.0)
    pace.throttled(10.0, 16.0, "retry-after")
    assert 14.0 == pace.closed_until
    pace.throttled(10.0, 27.0, "retry-after")
    assert 37.0 == pace.closed_until
    pace.hear([], 38.0, refused=True)
    pace.throttled(10.0, 38.0, "retry-after")
    assert 48.0 == pace.closed_until


def test_a_hint_knows_better_than_the_reset_of_a_bucket() -> None:
    """A bucket has a place sooner than it is full."""
    pace = used_up(remaining=0)
    pace.throttled(0.5, 1.0, "retry-after")
    assert 1.5 == pace.due(1.2, 1)
    assert pace.due(1.5, 1) < 2.0


def test_tokens_close_only_at_their_end() -> None:
    """The cost of a request is not known."""
    pace = Pace(0.0)
    pace.hear([Announced(5, 60.0, 1000, None, "tokens", False)], 0.0)
    assert pace.due(0.0, 0) <= 0.0
    assert (0.0, float("inf")) == pace.next_look(Announced(5, 60.0, 1000, None, "tokens", False), 0)
    pace.hear([Announced(0, 60.0, 1000, None, "tokens", False)], 0.0)
    assert 60.0 == pace.due(0.0, 0)


@pytest.mark.parametrize(
    "other",
    [Announced(0, 60.0, 30, None, "a"), Announced(0, 60.0, 5000, None, "a"), Announced(0, 60.0, None, None, "a")],
)
def test_limits_of_routes_hold_up_nobody_else(other: Announced) -> None:
    """One header speaks of several in turn: GitHub's search has its own. Which of them comes next is not known."""
    pace = Pace(0.0)
    pace.hear(told(4000, 3600.0, 5000), 0.0)
    pace.hear([other], 1.0)
    pace.throttled(60.0, 1.0, "retry-after")
    assert pace.due(1.0, 3) <= 1.0
    assert pace.relax(1.0)
    for later in (7300.0, 7301.0):
        pace.hear(told(0, 100.0, 5000), later)
    assert 7401.0 == pace.due(7302.0, 1)


def test_whole_seconds_are_no_other_limit() -> None:
    """A reset is rounded up or down."""
    pace = used_up(remaining=40)
    pace.hear(told(39, 8.0), 1.1)
    assert pace.due(1.1, 1) > 1.0
    assert pace.is_spaced


def test_a_limit_without_numbers_says_nothing() -> None:
    """A limit is ignored without the remaining number, and without a reset."""
    pace = Pace(0.0)
    pace.hear(told(None, 3.0) + told(0, None), 0.0)
    assert pace.relax(0.0)
    assert {ALWAYS} == {pace.next_look(limit, 0) for limit in told(None, 3.0) + told(0, None)}


def test_a_bucket_that_fills_again_is_believed() -> None:
    """Its reset moves on with the time, and what is left may grow."""
    pace = used_up(remaining=10)
    before = pace.due(1.0, 1)
    pace.hear(told(45, 10.5), 3.0)
    assert pace.due(3.0, 1) - 3.0 < before - 1.0


def test_a_refusal_uses_up_nothing() -> None:
    """A refused request uses up nothing, so a process that is often refused does not count it as its share."""
    pace, refused = used_up(remaining=40), used_up(remaining=40)
    pace.hear(told(40, 9.5), 1.0, 3)
    for _ in range(3):
        refused.hear(told(40, 9.5), 1.0, 1, refused=True)
    assert pace.due(1.0, 1) <= refused.due(1.0, 1)


def sliding(reset: float, seconds: int = 20) -> tuple[Pace, float]:
    """A pace in a limit of 100 in 10 s, of which one is used, and one comes back, each tenth of a second."""
    pace, now = Pace(0.0), 0.0
    pace.hear([Announced(5, reset, 100, 10.0, "a")], now)
    pace.hear([Announced(0, reset, 100, 10.0, "a")], now)
    for _ in range(seconds * 10):
        now += 0.1
        pace.hear([Announced(4, reset, 100, 10.0, "a")], now)
    return pace, now


def test_a_window_that_slides_is_used_at_its_usual_rate() -> None:
    """However soon the next one comes back: what was used is used again, ten a second."""
    pace, now = sliding(0.09)
    pace.sent(now, now)
    assert now + 0.05 < pace.due(now, 1) < now + 0.25
    pace.hear([Announced(60, 0.09, 100, 10.0, "a")], now + 0.1)
    faster = pace.due(now + 0.1, 1)
    pace.hear([Announced(0, 0.09, 100, 10.0, "a")], now + 0.2)
    assert faster < pace.due(now + 0.2, 1)
    assert pace.due(now + 0.5, 1) < now + 0.8


def test_a_bucket_is_used_by_what_is_left_of_it() -> None:
    """Its reset is when it is full: the less there is, the later."""
    pace, now = sliding(9.6)
    pace.sent(now, now)
    assert now + 1.0 < pace.due(now, 1) < now + 9.7


def test_the_next_window_ends_the_spacing_once_nobody_waits() -> None:
    """It is not kept for those who come later and find plenty."""
    pace = used_up(remaining=10)
    assert not pace.relax(1.0)
    pace.hear(told(99, 10.5), 11.0)
    assert pace.relax(11.0)
    assert not pace.is_spaced


def test_a_window_without_length_holds_nobody_up() -> None:
    """Its reset is now."""
    pace = Pace(0.0)
    pace.hear(told(0, 0.0), 5.0)
    assert pace.due(5.0, 1) <= 5.0


def test_a_window_of_which_nobody_speaks_is_forgotten() -> None:
    """A route that is no longer used does not hold up the others without end."""
    pace = used_up(remaining=0)
    pace.hear(told(99, 60.0, source="b"), 200.0)
    assert pace.relax(200.0)


def test_so_many_limits_are_kept() -> None:
    """A server that names a new one each time does not fill the memory."""
    pace = Pace(0.0)
    for at in range(2 * MOST_WINDOWS):
        pace.hear(told(0, 5.0 + at, source=f"s{at}"), 0.0)
    assert 5.0 + MOST_WINDOWS - 1 == pace.due(0.0, 1)


NUMBER = st.floats(min_value=0, max_value=1e6)
LIMIT = st.builds(Announced, NUMBER, NUMBER, st.none() | NUMBER, st.none() | NUMBER, st.sampled_from("ab"))


@example([(1.0, [], "hint"), (1.0, [], "sent")])  # the one after the first is spaced
@given(st.lists(st.tuples(NUMBER, st.lists(LIMIT, max_size=3), st.sampled_from(["hear", "sent", "hint", "lost"]))))
def test_nothing_is_due_later_than_the_server_said(steps: list[tuple[float, list[Announced], str]]) -> None:
    """For any announcements, every wait ends by the latest moment that the server named, with the spread after it."""
    pace, now, latest = Pace(0.0), 0.0, 0.0
    for seconds, limits, what in steps:
        now += seconds % 7
        lengths = [max(limit.reset or 0.0, limit.window or 0.0) for limit in limits]
        latest = max([latest, *(now + 2 * length for length in lengths)])
        if what == "sent":
            pace.sent(now, min(now, pace.due(now, 1)))
        elif what == "lost":
            pace.lost()
        elif what == "hint":
            latest = max(latest, now + 1.2 * seconds)
            pace.throttled(seconds, now, "hint")
        else:
            pace.hear(limits, now)
        due = pace.due(now, 1)
        window = max([window.length for window in pace._windows.values()], default=0.0)
        wait = pace.closed_until - pace._closed_at
        assert due <= max(now, latest) + max(window, SPREAD * wait, min(wait, AT_LEAST)) + 1e-6
        pace.relax(now)


def test_what_comes_back_before_the_reset_tells_a_sliding_window() -> None:
    """In a window of the clock nothing does; what others used is not forgotten over it."""
    window = Window(Announced(99, 1.0, 100, 1.0, "a"), 0.0)
    window.hear(Announced(0, 0.99, 100, 1.0, "a"), 0.01, 12)
    before = window.share
    window.hear(Announced(78, 0.01, 100, 1.0, "a"), 1.0)
    assert window.slides
    assert window._spent >= window._own > 0
    assert before < 0.2 > window.share
