"""The guard of a body that is iterated again, and what is judged of others (contract 5), by hand."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from requests_smithy_retry.core.replay import Body, BodyChanged, ReplayGuard
from tests.support import Chunks, Rows, prepare, wire_bytes


@pytest.mark.parametrize(
    ("begun", "drawn_on", "unwritten", "ready"),
    [
        (False, False, False, True),  # untouched: it is whole even if the head was written
        (False, True, False, False),
        (False, True, True, False),  # whatever the connection says
        (True, False, True, True),  # begun beforehand: only the connection knows
        (True, False, False, False),
    ],
)
def test_when_a_generator_can_be_sent_again(begun, drawn_on, unwritten, ready):
    """While nobody has drawn on it; of one that was begun before the first attempt, the connection tells."""
    request = prepare("POST", data=(part for part in [b"0", b"1", b"2"]))
    if begun:
        next(request.body)
    body = Body(request)
    if drawn_on:
        next(request.body)
    assert ready == body.rewind(unwritten=unwritten)


@pytest.mark.parametrize("body", [SimpleNamespace(read=bytes, tell=int, seek=None), object()], ids=["no seek", "other"])
def test_what_is_nothing_known_is_sent_as_it_is_and_once(body):
    """An unknown object is handed to requests as it is; it is sent again only where no byte was written."""
    request = prepare("PUT", data=b"-")
    request.body = body
    judged = Body(request)
    assert judged.request_to_send(request) is request
    assert [False, True] == [judged.rewind(unwritten=unwritten) for unwritten in (False, True)]


@pytest.mark.parametrize("rows", [[b"row %d;" % number for number in range(12)], [b"same row;"] * 12], ids=repr)
@pytest.mark.parametrize("drawn", range(1, 13))
def test_only_a_body_that_begins_anew_is_replayed_wherever_it_was_broken_off(rows, drawn):
    """The rest of the first iteration is drawn only for its hash; that of a shared source is never sent as the body."""
    shared, anew = ReplayGuard(Rows(*rows)), ReplayGuard(Chunks(*rows))
    for guard in (shared, anew):
        assert rows[:drawn] == list(itertools.islice(guard, drawn))
    assert not shared.rewind()
    for _ in range(2):
        assert anew.rewind()
        assert b"".join(rows) == wire_bytes(anew)


class Second(Chunks):
    """Gives something else the second time."""

    def __init__(self, first, second) -> None:
        self.given = [first, second]

    def __iter__(self):
        return iter(self.given.pop(0))


@pytest.mark.parametrize(
    ("second", "reached"),
    [
        ([b"aa", b"bx"], [b"aa"]),
        ([b"aa", b"bb", b"b"], [b"aa", b"bb"]),
        ([b"aa", b"b"], [b"aa", b"b"]),
        ([b"a", b"abb", b""], None),
        ([b"aab", b"b"], None),
        ([b"aabb"], None),
        (["aa", memoryview(b"bb")], None),
    ],
    ids=[f"second-{number}" for number in range(7)],
)
def test_a_replay_ends_like_the_first_iteration_or_not_at_all(second, reached):
    """The last part is held back until all of it is known to be right. How it is parted does not matter."""
    guard = ReplayGuard(Second([b"aa", b"bb"], second))
    wire_bytes(guard)
    assert guard.rewind()
    sent = []
    try:
        sent.extend(guard)
    except BodyChanged:
        assert reached == sent
    else:
        assert (None, second) == (reached, sent)


def test_a_body_that_failed_is_not_replayed():
    """After an exception of the body, the guard cannot know what would have followed."""

    class Failing(Chunks):
        def __iter__(self):
            yield b"a"
            raise OSError("the disk")

    guard = ReplayGuard(Failing())
    with pytest.raises(OSError, match="the disk"):
        list(guard)
    assert not guard.rewind()


def test_a_body_without_an_end_is_not_drawn_for_ever(monkeypatch):
    """The guard stops drawing on an endless body after a second, because the rest will not be sent."""
    monkeypatch.setattr("requests_smithy_retry.core.replay.DRAW_SECONDS", 0)

    class Endless(Chunks):
        def __iter__(self):
            while True:
                yield b"a"

    guard = ReplayGuard(Endless())
    next(iter(guard))
    assert not guard.rewind()


def test_of_a_body_that_was_not_iterated_nothing_is_known():
    """It can be sent, but not after an answer that may have been given to it."""
    guard = ReplayGuard(Chunks(b"a"))
    assert (True, None, False) == (guard.rewind(), guard.seen_to_the_end(), guard.begin_after(None))


def test_what_is_no_part_of_a_body_is_refused_as_requests_refuses_it():
    """A part that is not bytes or text raises TypeError, as in requests."""
    with pytest.raises(TypeError):
        list(ReplayGuard(Chunks(5)))
