"""The guard of a body that is iterated again, and what is judged of others (contract 5), by hand."""

from __future__ import annotations

import io
import mmap

import pytest

from requests_smithy_retry.core.replay import Body, BodyChanged, ReplayGuard
from tests.support import Chunks, Rows, prepare, scripted, send, wire_bytes

TEXT = b"0123456789"


class NoSeek:
    """Knows where it stands, and its ``seek`` is no method."""

    seek = None

    def __init__(self, data: bytes) -> None:
        file = io.BytesIO(data)
        self.read, self.tell = file.read, file.tell


def sent_bodies(data, *script, method="PUT"):
    """Return the bodies that the wire would have carried at each attempt, and the response."""
    adapter = scripted(*script)
    response = send(adapter, method, data=data)
    return [item.body for item in adapter.sent], response


def test_a_memory_map_goes_back():
    """A memory map stands where it stood, as a file does."""
    with mmap.mmap(-1, 10) as data:
        data.write(TEXT)
        data.seek(4)
        request = prepare("PUT", data=b"-")
        request.body = data
        body = Body(request)
        data.read()
        assert body.rewind(unwritten=False)
        assert 4 == data.tell()


@pytest.mark.parametrize("body", [NoSeek(TEXT), object()])
def test_what_is_nothing_known_is_sent_as_it_is_and_once(body):
    """An unknown object is handed to requests as it is; it is sent again only where no byte was written."""
    request = prepare("PUT", data=b"-")
    request.body = body
    judged = Body(request)
    assert judged.request_to_send(request) is request
    assert [False, True] == [judged.rewind(unwritten=unwritten) for unwritten in (False, True)]


def test_a_generator_that_nobody_drew_on_is_whole():
    """An untouched generator can be sent again even if the head was written; a touched one cannot."""
    request = prepare("POST", data=(part for part in [TEXT]))
    body = Body(request)
    assert body.rewind(unwritten=False)
    next(request.body)
    assert not body.rewind(unwritten=False)


def test_a_generator_that_was_drawn_on_is_spent_whatever_the_connection_says():
    """A generator seen to be drawn on is spent; if it was begun beforehand, only the connection knows."""
    request = prepare("POST", data=(part for part in [TEXT, TEXT]))
    body = Body(request)
    next(request.body)
    assert not body.rewind(unwritten=True)
    begun = Body(request)
    assert begun.rewind(unwritten=True)
    assert not begun.rewind(unwritten=False)


@pytest.mark.parametrize("rows", [[b"row %d;" % number for number in range(12)], [b"same row;"] * 12], ids=repr)
@pytest.mark.parametrize("drawn", range(1, 12))
def test_what_is_left_of_a_shared_source_is_never_sent_as_the_body(rows, drawn):
    """The rest of a shared source is not replayed, even if it is longer than the part drawn or looks the same."""
    guard = ReplayGuard(Rows(*rows))
    parts = iter(guard)
    for _ in range(drawn):
        next(parts)
    assert not guard.rewind()


@pytest.mark.parametrize("rows", [[b"row %d;" % number for number in range(12)], [b"same row;"] * 12], ids=repr)
@pytest.mark.parametrize("drawn", range(1, 13))
def test_a_body_that_begins_anew_is_replayed_wherever_it_was_broken_off(rows, drawn):
    """The rest of the first iteration is drawn only for its hash, and not sent."""
    guard = ReplayGuard(Chunks(*rows))
    parts = iter(guard)
    for _ in range(drawn):
        next(parts)
    for _ in range(2):
        assert guard.rewind()
        assert b"".join(rows) == wire_bytes(guard)


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


def test_another_first_part_costs_no_byte():
    """The answer that there is stands."""
    for second in ([b"bb", b"aa"], [b"bbaa"]):
        bodies, response = sent_bodies(Second([b"aa", b"bb"], second), 503)
        assert ([b"aabb"], 503) == (bodies, response.status_code)


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
