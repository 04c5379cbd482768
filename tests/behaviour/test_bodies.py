"""The bodies that are sent again, and from which position (contract 5), through the real adapter and by hand."""

from __future__ import annotations

import array
import io
import mmap
import tempfile
from collections import deque

import pytest
import requests.exceptions
from hypothesis import given
from hypothesis import strategies as st
from requests.auth import HTTPDigestAuth

from requests_smithy_retry import StopReason, retry_history
from requests_smithy_retry.core.replay import Body, BodyChanged, ReplayGuard
from requests_smithy_retry.testing import FaultServer, Reply
from tests.support import pool_timeout, prepare, reset_error, scripted, send, wire_bytes
from tests.unit.wire.support import session

TEXT = b"0123456789"


class ReIterable:
    """Gives a new iterator each time, and counts how often it was asked."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = parts
        self.asked = 0

    def __iter__(self):
        self.asked += 1
        return iter(self.parts)


class Draining:
    """Looks re-iterable, and draws on one shared source."""

    def __init__(self, *parts: bytes) -> None:
        self.source = iter(parts)

    def __iter__(self):
        return (part for part in self.source)


class Shrinking:
    """Gives one part less each time it is asked."""

    def __init__(self, count: int) -> None:
        self.count = count + 1

    def __iter__(self):
        self.count -= 1
        return iter([b"x"] * self.count)


class Unseekable(io.BytesIO):
    """A pipe: readable once."""

    def seekable(self) -> bool:
        return False

    def seek(self, *args):
        raise io.UnsupportedOperation("seek")

    def tell(self):
        raise io.UnsupportedOperation("tell")


class SaysUnseekable(io.BytesIO):
    """Says that it cannot seek, although it has the methods."""

    def seekable(self) -> bool:
        return False


class StuckAtEnd(io.BytesIO):
    """Takes a seek and stays where it is."""

    def seek(self, position, whence=0):
        return position


class NoSeek:
    """Knows where it stands, and its ``seek`` is no method."""

    seek = None

    def __init__(self, data: bytes) -> None:
        file = io.BytesIO(data)
        self.read, self.tell = file.read, file.tell


class PositionOfSomethingElse:
    """An iterator with a position that goes back and takes nothing with it; it has no ``read``, and is no file."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = iter(parts)
        self.file = io.BytesIO()
        self.tell, self.seek = self.file.tell, self.file.seek

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.parts)


class LineReader:
    """Can be read once, or be asked for its lines without their ends."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.read = io.BytesIO(data).read

    def __iter__(self):
        return iter(self.data.splitlines())


class OnlyTellAndSeek:
    """A file-like object without ``seekable``."""

    def __init__(self, data: bytes) -> None:
        self.file = io.BytesIO(data)
        self.read, self.tell, self.seek = self.file.read, self.file.tell, self.file.seek


class OnlyTheNext(io.BytesIO):
    """A file of which each upload takes four bytes, or what is left after them."""

    end = 0

    def __iter__(self):
        raise AssertionError("it is read")

    def __len__(self):
        self.end = 4 if self.tell() == 0 else len(self.getvalue())
        return self.end

    def read(self, size=-1):
        return super().read(self.end - self.tell())


def sent_bodies(data, *script, method="PUT"):
    """Return the bodies that the wire would have carried at each attempt, and the response."""
    adapter = scripted(*script)
    response = send(adapter, method, data=data)
    return [item.body for item in adapter.sent], response


@pytest.mark.parametrize(
    "data",
    [TEXT, TEXT.decode(), bytearray(TEXT), memoryview(TEXT), array.array("B", TEXT), ReIterable(b"01234", b"56789")],
)
def test_what_can_be_read_again_is_sent_again_whole(data):
    """Bytes, text, buffers and re-iterable objects are replayed, every time in full."""
    assert [TEXT] * 3 == sent_bodies(data, 503, 503, 200)[0]


@pytest.mark.parametrize("offset", [0, 3, 10])
@pytest.mark.parametrize("make", [io.BytesIO, OnlyTellAndSeek])
def test_a_file_goes_back_to_where_it_stood(make, offset):
    """A file is re-sent from the position it had before the first attempt, not from 0."""
    data = make(TEXT)
    data.seek(offset)
    request = prepare("PUT", data=b"-")
    request.body = data
    adapter = scripted(503, 503, 200)
    adapter.send(request)
    assert [TEXT[offset:]] * 3 == [item.body for item in adapter.sent]


def test_a_real_file_and_a_text_file_go_back():
    """Files on disk, in binary and in text mode, are replayed from their offset."""
    with tempfile.NamedTemporaryFile() as file:
        file.write("äöü456789".encode())
        file.flush()
        with open(file.name, encoding="utf-8") as text:
            text.read(1)
            request = prepare("PUT", data=b"-")
            request.body = text
            adapter = scripted(503, 200)
            adapter.send(request)
            assert ["öü456789".encode()] * 2 == [item.body for item in adapter.sent]
        with open(file.name, "rb") as binary:
            binary.seek(6)
            assert [b"456789"] * 2 == sent_bodies(binary, 503, 200)[0]


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


@pytest.mark.parametrize(
    "make",
    [
        lambda: (part for part in [TEXT]),
        lambda: iter([TEXT]),
        lambda: Unseekable(TEXT),
        lambda: SaysUnseekable(TEXT),
        lambda: StuckAtEnd(TEXT),
        lambda: Draining(TEXT),
        lambda: map(bytes, [TEXT]),
        lambda: PositionOfSomethingElse(TEXT),
    ],
)
def test_a_one_shot_body_is_sent_once(make):
    """A body that cannot be read again is never sent twice; the caller sees the first answer and why."""
    bodies, response = sent_bodies(make(), 503)
    assert ([TEXT], 503) == (bodies, response.status_code)
    history = retry_history(response)
    assert StopReason.BODY_NOT_REPLAYABLE is history.stop_reason
    assert "the body cannot be replayed" in history.sentence


def test_one_byte_is_a_body_too():
    """A body of one byte that has been read is not replaced by an empty one."""
    bodies, response = sent_bodies(Shrinking(1), 503)
    assert ([b"x"], 503) == (bodies, response.status_code)


@pytest.mark.parametrize("body", [NoSeek(TEXT), object()])
def test_what_is_nothing_known_is_sent_as_it_is_and_once(body):
    """An unknown object is handed to requests as it is; it is sent again only where no byte was written."""
    request = prepare("PUT", data=b"-")
    request.body = body
    judged = Body(request)
    assert judged.request_to_send(request) is request
    assert [False, True] == [judged.rewind(unwritten=unwritten) for unwritten in (False, True)]


def test_what_can_be_read_is_read():
    """A body that can be read is read rather than iterated, as by requests."""
    text = b"one\ntwo\n"
    bodies, response = sent_bodies(LineReader(text), 503)
    assert ([text], 503) == (bodies, response.status_code)


def test_a_one_shot_body_of_which_nothing_was_read_is_sent():
    """After a failure before the first byte a generator and an iterator are still whole, and go out."""
    for body in ((part for part in [TEXT]), iter([TEXT]), Unseekable(TEXT)):
        bodies, response = sent_bodies(body, pool_timeout(), 200, method="POST")
        assert ([None, TEXT], 200) == (bodies, response.status_code)


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


def test_the_first_exception_is_raised_for_a_one_shot_body():
    """A reset after the upload of a generator reaches the caller as itself."""
    error = reset_error()
    adapter = scripted(error)
    with pytest.raises(requests.exceptions.ConnectionError) as caught:
        send(adapter, "PUT", data=iter([TEXT]))
    assert caught.value is error
    assert StopReason.BODY_NOT_REPLAYABLE is retry_history(error).stop_reason


def test_a_file_closed_by_the_attempt_is_not_replayed():
    """A file that nobody can seek any more ends the operation with the answer that there is."""
    data = io.BytesIO(TEXT)

    def answer(_):
        data.close()
        return 503

    bodies, response = sent_bodies(data, answer)
    assert ([TEXT], 503) == (bodies, response.status_code)


def test_iterables_are_asked_no_more_often_than_requests_asks():
    """A first-try success asks a re-iterable body for one iterator: judging it must not use it up."""
    data = ReIterable(TEXT)
    sent_bodies(data, 200)
    assert 1 == data.asked
    shrinking = Shrinking(3)
    assert [b"xxx"] == sent_bodies(shrinking, 200)[0]


def test_a_body_that_gives_less_the_second_time_is_broken_off():
    """A shorter second body is broken off before its end and reported as what it is, never sent as a whole one."""
    adapter = scripted(503, 200)
    with pytest.raises(requests.exceptions.UnrewindableBodyError, match="gave 2 bytes where it gave 3") as caught:
        send(adapter, "PUT", data=Shrinking(3))
    assert StopReason.BODY_NOT_REPLAYABLE is retry_history(caught.value).stop_reason
    assert caught.value.request.method == "PUT"


def test_a_body_whose_iterator_cannot_be_had_again_is_not_replayed():
    """If asking for a new iterator fails, or gives the old one, the first answer stands."""

    class Once:
        def __init__(self) -> None:
            self.given = iter([TEXT])
            self.broken = False

        def __iter__(self):
            if self.broken:
                raise OSError("gone")
            return self.given

    same, broken = Once(), Once()
    assert 503 == sent_bodies(same, 503)[1].status_code

    def answer(_):
        broken.broken = True
        return 503

    assert 503 == sent_bodies(broken, answer)[1].status_code


def test_an_empty_re_iterable_stays_empty():
    """A body that was empty at first may be empty again."""
    assert [b"", b""] == sent_bodies(ReIterable(), 503, 200)[0]


def test_the_callers_request_keeps_its_body():
    """A watched body is a copy's: the caller's request, and the response's, hold the caller's own body."""
    data = ReIterable(TEXT)
    request = prepare("PUT", data=data)
    adapter = scripted(503, 200)
    response = adapter.send(request)
    assert request.body is data
    assert response.request is request


def test_an_exception_names_the_callers_request():
    """An exception's ``request`` is the caller's, also where a copy was sent."""
    request = prepare("PUT", data=ReIterable(TEXT))
    adapter = scripted(*[lambda sent: requests.exceptions.ReadTimeout(request=sent)] * 3)
    with pytest.raises(requests.exceptions.ReadTimeout) as caught:
        adapter.send(request)
    assert caught.value.request is request


@pytest.mark.once
@given(st.binary(max_size=40), st.integers(0, 40))
def test_any_offset_of_any_file(data, offset):
    """From any offset of any file the same bytes go out each time."""
    file = io.BytesIO(data)
    file.seek(min(offset, len(data)))
    request = prepare("PUT", data=b"-")
    request.body = file
    adapter = scripted(503, 200)
    adapter.send(request)
    assert [data[min(offset, len(data)) :]] * 2 == [item.body for item in adapter.sent]


class Rows:
    """A class that many people write around a file: each iteration goes on where the one before stopped."""

    def __init__(self, *rows: bytes) -> None:
        self.source = iter(rows)

    def __iter__(self):
        yield from self.source


class Chunks(Rows):
    """A class that begins a new iteration each time, as it should."""

    def __init__(self, *rows: bytes) -> None:
        self.rows = rows

    def __iter__(self):
        yield from self.rows


class Reading:
    """Can be read once, and be asked nothing."""

    def __init__(self, data: bytes) -> None:
        self.read = io.BytesIO(data).read

    def __iter__(self):
        raise AssertionError("it is read")


class ReadingOnce(Reading):
    """Older urllib3 iterates over it."""

    def __iter__(self):
        return iter(self.read, b"")


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


HOPS = {
    "307": Reply(307, headers={"Location": "/there"}),
    "308": Reply(308, headers={"Location": "/there"}),
    "digest": Reply(401, headers={"WWW-Authenticate": 'Digest realm="r", nonce="n", qop="auth"'}),
}


@pytest.mark.parametrize("hop", HOPS)
@pytest.mark.parametrize(
    "make",
    [
        lambda: (part for part in [TEXT]),
        lambda: iter([TEXT]),
        lambda: map(bytes, [TEXT]),
        lambda: Rows(TEXT),
        lambda: ReadingOnce(TEXT),
    ],
)
def test_a_body_that_was_read_is_not_sent_again_after_a_redirect_or_a_challenge(hop, make):
    """The hop raises instead of sending an empty body, which the server would accept as the caller's."""
    with FaultServer([HOPS[hop], Reply(200)]) as server, session() as client:
        with pytest.raises(requests.exceptions.UnrewindableBodyError, match="earlier request") as caught:
            client.put(server.url, data=make(), auth=HTTPDigestAuth("u", "p") if hop == "digest" else None)
        assert caught.value.request.method == "PUT"
        assert [TEXT] == [request.body for request in server.requests]


@pytest.mark.parametrize("hop", HOPS)
@pytest.mark.parametrize("make", [lambda: io.BytesIO(TEXT), lambda: Chunks(TEXT), lambda: deque([TEXT]), lambda: TEXT])
def test_a_body_that_can_be_sent_again_follows_a_redirect_or_a_challenge(hop, make):
    """The body is sent on after the hop, as with a plain adapter, and again after a 503 there."""
    with FaultServer([HOPS[hop], Reply(503), Reply(200)]) as server, session() as client:
        request = requests.Request("PUT", server.url, data=make()).prepare()
        if hop == "digest":
            request.prepare_auth(HTTPDigestAuth("u", "p"))
        request.headers.pop("Content-Length", None)
        request.headers["Transfer-Encoding"] = "chunked"
        assert 200 == client.send(request).status_code
        assert [TEXT] * 3 == [sent.body for sent in server.requests]


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("offset", [0, 3])
def test_what_requests_forgets_to_bring_back_is_sent_whole_after_a_redirect(status, offset):
    """A redirect in requests rewinds only bodies with ``__iter__``; without our rewinding the upload would stall."""
    body = OnlyTellAndSeek(TEXT)
    body.read(offset)
    with FaultServer([Reply(status, headers={"Location": "/there"}), Reply(503), Reply(200)]) as server:
        with session() as client:
            assert 200 == client.put(server.url, data=body, timeout=60).status_code
        assert [TEXT[offset:]] * 3 == [request.body for request in server.requests]


def test_a_memory_map_is_sent_whole_after_a_redirect():
    """A memory map has no ``__iter__`` and stands at its end by then, and is sent whole again."""
    with tempfile.TemporaryFile() as file, FaultServer([HOPS["307"], Reply(200)]) as server, session() as client:
        file.write(TEXT)
        file.flush()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            assert 200 == client.put(server.url, data=mapped, timeout=60).status_code
        assert [TEXT] * 2 == [request.body for request in server.requests]


class Challenged(requests.auth.AuthBase):
    """Sends again after a challenge, and thinks of no body: many authentication handlers are like this."""

    def __call__(self, request):
        request.register_hook("response", self.answer)
        return request

    def answer(self, response, **options):
        if response.status_code != 401:
            return response
        assert response.content == b""
        return response.connection.send(response.request.copy(), **options)


def test_a_file_is_sent_whole_after_a_challenge_whose_handler_forgets_it():
    """The body of the second request is the whole file, not the nothing that is left of it."""
    with FaultServer([HOPS["digest"], Reply(200)]) as server, session() as client:
        assert 200 == client.put(server.url, data=io.BytesIO(TEXT), auth=Challenged(), timeout=60).status_code
        assert [TEXT] * 2 == [request.body for request in server.requests]


def test_a_file_that_cannot_go_back_is_not_sent_after_a_challenge():
    """The rest of such a file is not the caller's body, so nothing is sent after the challenge."""
    with FaultServer([HOPS["digest"], Reply(200)]) as server, session() as client:
        with pytest.raises(requests.exceptions.UnrewindableBodyError):
            client.put(server.url, data=StuckAtEnd(TEXT), auth=Challenged(), timeout=60)
        assert [TEXT] == [request.body for request in server.requests]


def test_a_request_that_was_made_from_where_a_file_stands_is_sent_from_there():
    """An upload in parts, whose parts a server acknowledges by 308, goes on where the caller says."""
    body = OnlyTheNext(TEXT)
    with FaultServer([Reply(308), Reply(200)]) as server, session() as client:
        assert [308, 200] == [client.put(server.url, data=body).status_code for _ in range(2)]
        assert [TEXT[:4], TEXT[4:]] == [request.body for request in server.requests]


def test_a_generator_that_was_begun_by_the_caller_is_sent_from_there():
    """The parts that the caller took off beforehand are not sent."""
    parts = (part for part in [b"head", TEXT])
    next(parts)
    assert [TEXT] == sent_bodies(parts, 200)[0]


def test_a_generator_that_has_ended_is_not_sent():
    """A generator that has ended would be an empty body, so it is not sent."""
    parts = (part for part in [TEXT])
    list(parts)
    with pytest.raises(requests.exceptions.UnrewindableBodyError):
        sent_bodies(parts, 200)


def test_a_body_that_a_stand_in_did_not_read_is_sent_after_its_answer():
    """The stand-in had no connection to write the body to, so the body can still be sent."""
    body = iter([TEXT])
    adapter = scripted(lambda request: 401, 200)
    assert 401 == send(adapter, "PUT", data=body).status_code
    assert 200 == send(adapter, "PUT", data=body).status_code
