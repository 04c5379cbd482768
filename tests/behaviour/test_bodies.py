"""The bodies that are sent again, and from which position (contract 5), through the real adapter and by hand."""

from __future__ import annotations

import array
import io
import mmap
import tempfile
from collections import deque

import pytest
import requests.exceptions
from requests.auth import HTTPDigestAuth

from requests_smithy_retry import StopReason, retry_history
from requests_smithy_retry.testing import FaultServer, Reply
from tests.support import Chunks, Rows, pool_timeout, prepare, scripted, send
from tests.unit.wire.support import session

TEXT = b"0123456789"


class Anew:
    """Begins anew each time, with parts of that time."""

    def __init__(self, *times: list[bytes]) -> None:
        self.times = list(times)

    def __iter__(self):
        return iter(self.times.pop(0))


class SaysUnseekable(io.BytesIO):
    """Says that it cannot seek, although it has the methods."""

    def seekable(self) -> bool:
        return False


class Unseekable(SaysUnseekable):
    """A pipe: readable once."""

    def tell(self, *_):
        raise io.UnsupportedOperation("tell")

    seek = tell


class StuckAtEnd(io.BytesIO):
    """Takes a seek and stays where it is."""

    def seek(self, position, whence=0):
        return position


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


class OnlyTellAndSeek:
    """A file-like object without ``seekable``."""

    def __init__(self, data: bytes) -> None:
        self.file = io.BytesIO(data)
        self.read, self.tell, self.seek = self.file.read, self.file.tell, self.file.seek


def mapped(data: bytes) -> mmap.mmap:
    """A memory map of these bytes."""
    made = mmap.mmap(-1, len(data))
    made[:] = data
    return made


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
    [TEXT, TEXT.decode(), bytearray(TEXT), memoryview(TEXT), array.array("B", TEXT), Chunks(b"01234", b"56789")],
)
def test_what_can_be_read_again_is_sent_again_whole(data):
    """Bytes, text, buffers and re-iterable objects are replayed, every time in full."""
    assert [TEXT] * 3 == sent_bodies(data, 503, 503, 200)[0]


def sent_as_it_is(data, *script):
    """Return the bodies of each attempt of a request whose body requests has not looked at."""
    request, adapter = prepare("PUT", data=b"-"), scripted(*script)
    request.body = data
    adapter.send(request)
    return [item.body for item in adapter.sent]


@pytest.mark.parametrize("offset", [0, 3, 10])
@pytest.mark.parametrize("make", [io.BytesIO, OnlyTellAndSeek, mapped])
def test_a_file_goes_back_to_where_it_stood(make, offset):
    """A file is re-sent from the position it had before the first attempt, not from 0."""
    data = make(TEXT)
    data.seek(offset)
    assert [TEXT[offset:]] * 3 == sent_as_it_is(data, 503, 503, 200)


def test_a_real_file_and_a_text_file_go_back():
    """Files on disk, in binary and in text mode, are replayed from their offset."""
    with tempfile.NamedTemporaryFile() as file:
        file.write("äöü456789".encode())
        file.flush()
        with open(file.name, encoding="utf-8") as text:
            text.read(1)
            assert ["öü456789".encode()] * 2 == sent_as_it_is(text, 503, 200)
        with open(file.name, "rb") as binary:
            binary.seek(6)
            assert [b"456789"] * 2 == sent_bodies(binary, 503, 200)[0]


def generator(data):
    return (part for part in [data])


def iterator(data):
    return iter([data])


def mapping(data):
    return map(bytes, [data])


ITERATED_ONCE = [generator, iterator, mapping, Rows]
SEEKING_NOWHERE = [Unseekable, SaysUnseekable, StuckAtEnd, PositionOfSomethingElse]


@pytest.mark.parametrize("make", ITERATED_ONCE + SEEKING_NOWHERE)
def test_a_one_shot_body_is_sent_once(make):
    """A body that cannot be read again is never sent twice; the caller sees the first answer and why."""
    bodies, response = sent_bodies(make(TEXT), 503)
    assert ([TEXT], 503) == (bodies, response.status_code)
    history = retry_history(response)
    assert StopReason.BODY_NOT_REPLAYABLE is history.stop_reason
    assert "the body cannot be replayed" in history.sentence


@pytest.mark.parametrize("make", [generator, iterator, Unseekable])
def test_a_one_shot_body_of_which_nothing_was_read_is_sent(make):
    """After a failure before the first byte a generator and an iterator are still whole, and go out."""
    bodies, response = sent_bodies(make(TEXT), pool_timeout(), 200, method="POST")
    assert ([None, TEXT], 200) == (bodies, response.status_code)


def test_a_file_closed_by_the_attempt_is_not_replayed():
    """A file that nobody can seek any more ends the operation with the answer that there is."""
    data = io.BytesIO(TEXT)
    bodies, response = sent_bodies(data, lambda _: data.close() or 503)
    assert ([TEXT], 503) == (bodies, response.status_code)


def test_iterables_are_asked_no_more_often_than_requests_asks():
    """A first-try success asks a re-iterable body for one iterator: judging it must not use it up."""
    assert [b"xxx"] == sent_bodies(Anew([b"xxx"]), 200)[0]


def test_a_body_that_gives_less_the_second_time_is_broken_off():
    """A shorter second body is broken off before its end and reported as what it is, never sent as a whole one."""
    with pytest.raises(requests.exceptions.UnrewindableBodyError, match="gave 2 bytes where it gave 3") as caught:
        sent_bodies(Anew([b"x"] * 3, [b"x"] * 2), 503, 200)
    assert StopReason.BODY_NOT_REPLAYABLE is retry_history(caught.value).stop_reason
    assert caught.value.request.method == "PUT"


@pytest.mark.parametrize("second", [[b"bb", b"aa"], [b"bbaa"]])
def test_another_first_part_costs_no_byte(second):
    """The answer that there is stands."""
    bodies, response = sent_bodies(Anew([b"aa", b"bb"], second), 503)
    assert ([b"aabb"], 503) == (bodies, response.status_code)


@pytest.mark.parametrize("times", [[[TEXT]], [iter([TEXT])] * 9], ids=["asking fails", "the same again"])
def test_a_body_whose_iterator_cannot_be_had_again_is_not_replayed(times):
    """If asking for a new iterator fails, or gives the old one, the first answer stands."""
    assert 503 == sent_bodies(Anew(*times), 503)[1].status_code


def test_the_callers_request_keeps_its_body():
    """A watched body is a copy's: the caller's request, and the response's, hold the caller's own body."""
    data = Chunks(TEXT)
    request = prepare("PUT", data=data)
    assert scripted(503, 200).send(request).request is request
    assert request.body is data


class ReadingOnce:
    """Can be read once; older urllib3 iterates over it."""

    def __init__(self, data: bytes) -> None:
        self.read = io.BytesIO(data).read

    def __iter__(self):
        return iter(self.read, b"")


HOPS = {
    "307": Reply(307, headers={"Location": "/there"}),
    "308": Reply(308, headers={"Location": "/there"}),
    "digest": Reply(401, headers={"WWW-Authenticate": 'Digest realm="r", nonce="n", qop="auth"'}),
}


@pytest.mark.parametrize("hop", HOPS)
@pytest.mark.parametrize("make", [*ITERATED_ONCE, ReadingOnce])
def test_a_body_that_was_read_is_not_sent_again_after_a_redirect_or_a_challenge(hop, make):
    """The hop raises instead of sending an empty body, which the server would accept as the caller's."""
    with FaultServer([HOPS[hop], Reply(200)]) as server, session() as client:
        with pytest.raises(requests.exceptions.UnrewindableBodyError, match="earlier request") as caught:
            client.put(server.url, data=make(TEXT), auth=HTTPDigestAuth("u", "p") if hop == "digest" else None)
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


@pytest.mark.parametrize("hop", HOPS)
def test_bytes_that_can_change_follow_a_redirect_or_a_challenge(hop):
    """A ``bytearray`` is sent on as it is, though it is looked at before."""
    with FaultServer([HOPS[hop], Reply(503), Reply(200)]) as server, session() as client:
        auth = HTTPDigestAuth("u", "p") if hop == "digest" else None
        assert 200 == client.put(server.url, data=bytearray(TEXT), auth=auth).status_code
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


def test_a_generator_that_has_ended_is_not_sent():
    """A generator that has ended would be an empty body, so it is not sent."""
    parts = generator(TEXT)
    list(parts)
    with pytest.raises(requests.exceptions.UnrewindableBodyError):
        sent_bodies(parts, 200)


def test_a_body_that_a_stand_in_did_not_read_is_sent_after_its_answer():
    """The stand-in had no connection to write the body to, so the body can still be sent."""
    body = iter([TEXT])
    adapter = scripted(lambda request: 401, 200)
    assert 401 == send(adapter, "PUT", data=body).status_code
    assert 200 == send(adapter, "PUT", data=body).status_code
