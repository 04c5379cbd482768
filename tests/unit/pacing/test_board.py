"""The board of processes that share a quota (contract 7.4): what is kept, and who looks; then gates that read it."""

from __future__ import annotations

from typing import Any

import pytest
from requests.structures import CaseInsensitiveDict

from requests_smithy_retry.pacing import gate as gate_module
from requests_smithy_retry.pacing.announced import DIALECTS
from requests_smithy_retry.pacing.gate import Gate, Gates, Lookout, Notice, Notices
from requests_smithy_retry.pacing.pace import LATEST
from requests_smithy_retry.pacing.server_hints import Hint
from requests_smithy_retry.testing.clock import FakeClock
from tests.unit.pacing.test_gate import ClockThatTells

WALL = 1_700_000_000.0


class ListBoard:
    """A board on which the test writes."""

    def __init__(self) -> None:
        self.notices: dict[str, Notice] = {}
        self.posted: list[tuple[str, float, str]] = []

    def has_news(self) -> bool:
        """Say whether anything was written."""
        return bool(self.notices)

    def closed(self, scope: str) -> Notice | None:
        """Return what was written."""
        return self.notices.get(scope)

    def post(self, scope: str, seconds: float, source: str) -> None:
        """Note what a gate tells."""
        self.posted.append((scope, pytest.approx(seconds), source))


@pytest.fixture(autouse=True)
def _all_at_half_of_a_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "random_part", lambda: 0.5)


def of_process(board: ListBoard, clock: FakeClock) -> Gates:
    """The gates of one process."""
    return Gates(clock, DIALECTS, Lookout(board), {}, board)


def announced(remaining: int, reset: float) -> CaseInsensitiveDict[str]:
    """Return the headers of a limit of 100."""
    return CaseInsensitiveDict(
        {"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": str(remaining), "X-RateLimit-Reset": str(reset)}
    )


def test_of_one_scope_the_latest_notice_is_kept() -> None:
    """An earlier end of the same scope changes nothing."""
    notices = Notices()
    for until in (5.0, 7.0, 6.0):
        notices.note("a", Notice(until, ""))
    assert {"a": Notice(7.0, "")} == notices


def test_what_is_over_is_forgotten() -> None:
    """Notices are current as long as one of them is."""
    notices = Notices()
    notices.note("a", Notice(5.0, ""))
    notices.note("b", Notice(6.0, ""))
    assert [(True, 2), (True, 1), (False, 0)] == [(notices.are_current(at), len(notices)) for at in (4.9, 5.0, 6.0)]


def test_so_many_notices_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A board that somebody floods takes no more memory; kept notices can still be prolonged."""
    monkeypatch.setattr(gate_module, "MOST_NOTICES", 2)
    notices = Notices()
    for scope, until in (("a", 5.0), ("b", 5.0), ("c", 5.0), ("a", 6.0)):
        notices.note(scope, Notice(until, ""))
    assert {"a": 6.0, "b": 5.0} == {scope: notice.until for scope, notice in notices.items()}


def test_a_lookout_is_true_while_there_is_news() -> None:
    """It is true for its own items, too; its length counts those alone."""
    board = ListBoard()
    lookout = Lookout(board)
    assert not lookout
    board.notices["a"] = Notice(5.0, "")
    assert (True, 0) == (bool(lookout), len(lookout))
    board.notices.clear()
    lookout.add(1)
    assert lookout


@pytest.mark.parametrize(
    ("headers", "hint", "expected"),
    [
        (CaseInsensitiveDict(), Hint(7.0, "retry-after"), [("a", 7.0, "retry-after")]),
        (announced(0, 3.0), None, [("a", 3.0, "x-ratelimit-reset")]),
        (announced(1, 3.0), None, []),
        (announced(0, 0.04), None, []),
    ],
)
def test_a_gate_that_closes_is_posted(headers: Any, hint: Hint | None, expected: list[Any]) -> None:
    """A refusal with a hint is posted, and so is a limit of which nothing is left, unless that is over at once."""
    board = ListBoard()
    gate = Gate(of_process(board, FakeClock()), "a")
    for _ in range(2):
        gate.hear(headers, WALL, hint=hint, refused=hint is not None)
    assert expected == board.posted


def test_limits_that_are_announced_in_turn_are_not_posted() -> None:
    """Nobody knows which of them the next send meets, so they close nothing."""
    board = ListBoard()
    gate = Gate(of_process(board, FakeClock()), "a")
    gate.hear(announced(50, 60.0), WALL)
    gate.hear(announced(0, 3.0), WALL)
    assert [] == board.posted


def test_a_gate_that_another_process_closed_is_closed() -> None:
    """First attempts of a scope that this process never heard of wait, too; then it is open, and nothing is posted."""
    clock, board = FakeClock(), ListBoard()
    gates = of_process(board, clock)
    assert gates.of("a") is None
    board.notices["a"] = Notice(clock.now() + 4.0, "retry-after")
    assert gates.shut
    assert gates.of("b") is None
    gate = gates.of("a")
    assert gate is gates.of("a")
    assert (pytest.approx(4.0 + LATEST / 2), "retry-after") == gate.enter(None, 120.0)
    assert not gate.is_limiting
    assert [] == board.posted


def test_where_there_is_no_room_for_a_gate_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notice makes a gate as a refusal does: if there is room."""
    monkeypatch.setattr(gate_module, "MOST_GATES", 0)
    clock, board = FakeClock(), ListBoard()
    board.notices["a"] = Notice(clock.now() + 4.0, "retry-after")
    assert of_process(board, clock).of("a") is None


def test_who_waits_for_a_turn_hears_of_it() -> None:
    """A send that is spaced when another process closes the gate waits for the new end."""
    clock, board = ClockThatTells(), ListBoard()
    gate = Gate(of_process(board, clock), "a")
    clock.advance(1.0)
    gate.hear(announced(40, 9.0), WALL)
    gate.hear(announced(4, 8.0), WALL)
    clock.told = lambda: board.notices.update(a=Notice(clock.now() + 5.0, "retry-after"))
    began = clock.now()
    waited = gate.enter(None, 120.0)[0]
    assert 5.0 < waited == clock.now() - began
    assert "retry-after" == gate._pace.source


@pytest.mark.parametrize(("part", "expected"), [(0.0, 8.0), (0.4, 8.4), (0.8, 8.8)])
def test_processes_that_open_together_are_spread(part: float, expected: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an opening, the first send of each process waits for its own part of a space, or of a second."""
    monkeypatch.setattr(gate_module, "random_part", lambda: part)
    clock = FakeClock()
    gate = Gate(of_process(ListBoard(), clock), "a")
    gate.hear(announced(100, 10.0), WALL)
    gate.hear(announced(40, 9.0), WALL)
    gate.hear(announced(0, 8.0), WALL, hint=Hint(8.0, "retry-after"), refused=True)
    assert (pytest.approx(expected), "x-ratelimit-reset") == gate.enter(None, 120.0)
