"""The bodies that are sent again, and from which position (contract 5), through the real adapter and by hand."""

from __future__ import annotations

import array
import contextlib
import io
import itertools
import mmap
import os
import tempfile
from collections import deque
from pathlib import Path

import pytest
import requests.exceptions
import urllib3
from requests.auth import HTTPDigestAuth

from requests_smithy_retry import RetryAdapter, RetryError, StopReason, mount, retry_history
from requests_smithy_retry.testing import CloseAfterRequest, CutBody, FakeClock, FaultServer, Reply, ScriptedTransport
from tests import faults
from tests.faults.oracle import tls_contexts
from tests.support import Chunks, Rows, before_each_sleep, pool_timeout, prepare, scripted, send
from tests.unit.wire.support import session

TEXT = b"0123456789"


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
    [TEXT, TEXT.decode(), bytearray(TEXT), memoryview(TEXT), array.array("B", TEXT)],
)
def test_what_lies_in_memory_is_sent_again_whole(data):
    """Bytes, text and buffers are replayed, every time in full."""
    assert [TEXT] * 3 == sent_bodies(data, 503, 503, 200)[0]


@pytest.mark.parametrize("length", [None, 10])
@pytest.mark.parametrize("data", [[TEXT[:5], TEXT[5:]], (TEXT.decode(),), [bytearray(TEXT)]], ids=repr)
def test_lists_and_tuples_are_sent_again_whole(data, length):
    """A list or tuple of bytes, buffers and text is replayed; requests makes none, but lets a program set one."""
    assert [TEXT] * 3 == sent_as_it_is(data, 503, 503, 200, length=length)


def sent_as_it_is(data, *script, length=None):
    """Return the bodies of each attempt of a request whose body requests has not looked at."""
    request, adapter = prepare("PUT"), scripted(*script)
    request.headers.pop("Content-Length")
    request.body = data
    if length is not None:
        request.headers["Content-Length"] = str(length)
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
ITERABLE = [Chunks, lambda data: deque([data])]
SEEKING_NOWHERE = [Unseekable, SaysUnseekable, StuckAtEnd, PositionOfSomethingElse]


@pytest.mark.parametrize("make", ITERATED_ONCE + SEEKING_NOWHERE + ITERABLE)
def test_a_one_shot_body_is_sent_once(make):
    """What neither lies in memory nor can seek is never sent twice; the caller sees the first answer and why."""
    request, adapter = prepare("PUT"), scripted(503)
    request.headers.pop("Content-Length")
    request.body = make(TEXT)
    response = adapter.send(request)
    assert ([TEXT], 503) == ([item.body for item in adapter.sent], response.status_code)
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


def hopping(url, hop, body):
    """A chunked request to which the server has another hop."""
    request = requests.Request("PUT", url, data=body).prepare()
    if hop == "digest":
        request.prepare_auth(HTTPDigestAuth("u", "p"))
    request.headers.pop("Content-Length", None)
    request.headers["Transfer-Encoding"] = "chunked"
    return request


@pytest.mark.parametrize("hop", HOPS)
@pytest.mark.parametrize("make", [io.BytesIO, lambda data: data])
def test_a_body_that_can_be_sent_again_follows_a_redirect_or_a_challenge(hop, make):
    """The body is sent on after the hop, as with a plain adapter, and again after a 503 there."""
    with FaultServer([HOPS[hop], Reply(503), Reply(200)]) as server, session() as client:
        assert 200 == client.send(hopping(server.url, hop, make(TEXT))).status_code
        assert [TEXT] * 3 == [sent.body for sent in server.requests]


@pytest.mark.parametrize("hop", HOPS)
@pytest.mark.parametrize("make", ITERABLE)
def test_a_container_follows_a_redirect_or_a_challenge_and_is_not_retried_there(hop, make):
    """The hop is the program's or that of requests, which sends it with a plain adapter, too; a retry would be ours."""
    with FaultServer([HOPS[hop], Reply(503)]) as server, session() as client:
        assert 503 == client.send(hopping(server.url, hop, make(TEXT))).status_code
        assert [TEXT] * 2 == [sent.body for sent in server.requests]


@pytest.mark.parametrize("hop", HOPS)
def test_an_iterable_that_was_not_read_to_its_end_does_not_follow(hop):
    """What an iteration left could go out as the whole body, so an answer to a part of it ends the call."""

    class LosesItsReader(Chunks):
        def __iter__(self):
            yield TEXT
            raise BrokenPipeError

    with faults.FaultServer([faults.AnswerBeforeUpload(HOPS[hop]), Reply(200)]) as server, session() as client:
        with pytest.raises(requests.exceptions.UnrewindableBodyError, match="earlier request"):
            client.send(hopping(server.url, hop, LosesItsReader(TEXT)))
        assert 1 == len(server.requests)


@pytest.mark.parametrize("hop", HOPS)
def test_an_empty_iterable_is_empty_after_a_redirect_or_a_challenge_too(hop):
    """A body that gave nothing the first time need not give anything the second time."""
    with FaultServer([HOPS[hop], Reply(200)]) as server, session() as client:
        assert 200 == client.send(hopping(server.url, hop, Chunks())).status_code
        assert [b""] * 2 == [sent.body for sent in server.requests]


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


# A body is what its head says, or it is not sent again.

LONG = b"x" * 40_000
SURPLUS = b"GET /secret HTTP/1.1\r\nHost: a\r\n\r\n"


def on_disk(path, **how):
    path.write_bytes(LONG)
    return path.open(**how)


def spooled(path):
    file = tempfile.SpooledTemporaryFile()  # noqa: SIM115
    file.write(LONG)
    file.seek(0)
    return file


FILES = {
    "file": lambda path: on_disk(path, mode="rb"),
    "unbuffered": lambda path: on_disk(path, mode="rb", buffering=0),
    "text": lambda path: on_disk(path, mode="r", encoding="utf-8"),
    "BytesIO": lambda path: io.BytesIO(LONG),
    "StringIO": lambda path: io.StringIO(LONG.decode()),
    "spooled": spooled,
    "map": lambda path: mapped(LONG),
    "no iterable": lambda path: OnlyTellAndSeek(LONG),
}
BUFFERS = {"bytearray": lambda path: bytearray(LONG), "array": lambda path: array.array("B", LONG)}


def resize(body, path, change):
    """Give a body more bytes, or fewer; a file by its path."""
    body = getattr(body, "file", body)
    if isinstance(body, mmap.mmap):
        body.resize(len(LONG) + change)
    elif isinstance(body, bytearray | array.array):
        body.extend(SURPLUS[:change]) if change > 0 else body.__delitem__(slice(change, None))
    elif path.exists():
        os.truncate(path, len(LONG) + change)
    else:
        position = body.tell()
        if change < 0:
            body.truncate(len(LONG) + change)
        else:
            body.seek(0, io.SEEK_END)
            body.write(SURPLUS.decode() if isinstance(body, io.StringIO) else SURPLUS)
        body.seek(position)


def resizing(body, path, change, then):
    """A step of a server: the body has another length before the client has the answer."""

    def step(request):
        resize(body, path, change)
        return then

    return step


@pytest.fixture
def made(tmp_path):
    """Make bodies by their kind, and close them at the end."""
    with contextlib.ExitStack() as stack:

        def make(kind):
            body = (FILES | BUFFERS)[kind](tmp_path / "body")
            if hasattr(body, "close"):
                stack.callback(body.close)
            return body

        yield make


@pytest.mark.filterwarnings("ignore::requests.exceptions.FileModeWarning")
@pytest.mark.parametrize("failure", [Reply(503), CloseAfterRequest()], ids=["503", "lost"])
@pytest.mark.parametrize("change", [len(SURPLUS), -400], ids=["grew", "shrank"])
@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_another_length_is_not_sent_again(tmp_path, made, kind, change, failure):
    """The caller gets what came of the first attempt, at once, and the next request its own answer."""
    path, body = tmp_path / "body", made(kind)
    with FaultServer([resizing(body, path, change, failure)]) as server, session() as client:
        outcome = outcome_of(client, server.url, body)
        assert 200 == client.get(f"{server.url}/next").status_code
        assert [("/", LONG), ("/next", b"")] == [(request.path, request.body) for request in server.requests]
    history = retry_history(outcome)
    assert StopReason.BODY_NOT_REPLAYABLE is history.stop_reason
    assert "it is not as long as it was" in history.why
    assert getattr(outcome, "status_code", 503) == 503


def outcome_of(client, url, body, **how):
    """Return the response to a PUT, or the exception."""
    try:
        return client.put(url, data=body, timeout=60, **how)
    except requests.RequestException as error:
        return error


@pytest.mark.filterwarnings("ignore::requests.exceptions.FileModeWarning")
@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_the_same_length_is_sent_again(made, kind):
    """Each kind of file is replayed, where nothing changed, and stands at its end then, as after one attempt."""
    body = made(kind)
    with FaultServer([Reply(503), Reply(503), Reply(200)]) as server, session() as client:
        assert 200 == client.put(server.url, data=body).status_code
        assert [LONG] * 3 == [request.body for request in server.requests]
    assert len(LONG) == body.tell()


@pytest.mark.parametrize("change", [len(SURPLUS), -400], ids=["grew", "shrank"])
@pytest.mark.parametrize("kind", ["BytesIO", *BUFFERS])
@pytest.mark.parametrize("moment", ["the answer", "the wait"])
def test_the_length_is_compared_after_the_answer_and_after_the_wait(tmp_path, made, moment, kind, change):
    """A body that changes while the operation waits is not sent again either: the first answer is handed over."""
    body = made(kind)
    adapter = scripted(lambda _: (moment == "the answer" and resize(body, tmp_path / "body", change)) or 503)
    if moment == "the wait":
        before_each_sleep(adapter.clock, lambda _: resize(body, tmp_path / "body", change))
    response = send(adapter, "PUT", data=body)
    assert (1, 503) == (len(adapter.sent), response.status_code)
    assert StopReason.BODY_NOT_REPLAYABLE is retry_history(response).stop_reason


def test_a_list_that_grew_is_not_sent_again():
    """A list that a program set as the body has the length of the first attempt, or is not sent."""
    body = [TEXT]
    assert [TEXT] == sent_as_it_is(body, lambda _: body.append(TEXT) or 503)
    body = [TEXT]
    assert [TEXT] == sent_as_it_is(body, lambda _: body.append(5) or 503)


class Changing(io.BytesIO):
    """Gets another length once it was read from."""

    def __init__(self, change: int) -> None:
        super().__init__(LONG)
        self.change = change

    def read(self, size=-1):
        part = super().read(size)
        if self.change:
            change, self.change = self.change, 0
            resize(self, Path("/nowhere"), change)
        return part


WAYS = ["tcp", "tls", "proxy", "tunnel"]


@contextlib.contextmanager
def reached(way, *script):
    """A server, and a session that reaches it in this way."""
    tls = tls_contexts() if way in ("tls", "tunnel") else (None, True)
    with faults.FaultServer(script, tls=tls[0]) as server, faults.FaultProxy() as proxy, session() as client:
        client.verify = False
        if way in ("proxy", "tunnel"):
            client.proxies = {"http": proxy.url, "https": proxy.url}
        yield server, client


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_grows_while_it_is_sent_gives_the_declared_bytes(way):
    """It stands at the end of what was sent, and its connection serves the next request."""
    body = Changing(len(SURPLUS))
    with reached(way) as (server, client):
        assert 200 == client.put(server.url, data=body).status_code
        assert 200 == client.get(f"{server.url}/next").status_code
        assert [("/", LONG), ("/next", b"")] == [(request.path, request.body) for request in server.requests]
        assert 1 == server.connections or way == "proxy"  # which keeps none
    assert len(LONG) == body.tell()


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_shrinks_while_it_is_sent_fails_at_once(way):
    """Nothing waits for bytes that nobody has, and the connection on which they are missing is not used again."""
    with reached(way) as (server, client):
        error = outcome_of(client, server.url, Changing(-400))
        assert isinstance(error, requests.exceptions.UnrewindableBodyError)
        assert "the body ended after 39600 of the 40000 bytes that its head declares" in str(error)
        assert 200 == client.get(f"{server.url}/next").status_code
        assert ["/next"] == [request.path for request in server.requests if request.body_complete]
    assert StopReason.BODY_NOT_REPLAYABLE is retry_history(error).stop_reason


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("change", [len(SURPLUS), -400], ids=["grew", "shrank"])
def test_a_file_that_changed_before_a_redirect_is_followed_by_what_the_head_says(status, change):
    """Requests sends the old Content-Length again: what grew gives no more than that, and what shrank fails at once."""
    body = io.BytesIO(LONG)
    hop = Reply(status, headers={"Location": "/there"})
    with FaultServer([resizing(body, Path("/nowhere"), change, hop)]) as server, session() as client:
        outcome = outcome_of(client, server.url, body)
        assert 200 == client.get(f"{server.url}/next").status_code
        seen = [(request.path, request.body) for request in server.requests]
    followed = [("/there", LONG)] if change > 0 else []
    assert [("/", LONG), *followed, ("/next", b"")] == seen
    assert change > 0 or isinstance(outcome, requests.exceptions.UnrewindableBodyError)


@pytest.mark.parametrize("change", [len(SURPLUS), -400], ids=["grew", "shrank"])
def test_a_file_of_another_length_is_not_sent_again_with_new_credentials(change):
    """The program is not asked for any: the 401 is the answer."""
    body = io.BytesIO(LONG)
    asked: list[object] = []
    step = resizing(body, Path("/nowhere"), change, Reply(401))
    with FaultServer([step]) as server, session(on_unauthorized=asked.append) as client:
        response = client.put(server.url, data=body, headers={"Authorization": "old"})
        assert (401, 1, []) == (response.status_code, len(server.requests), asked)


@pytest.mark.parametrize("failure", [Reply(503), CloseAfterRequest()], ids=["503", "lost"])
def test_an_empty_file_that_grew_is_not_sent_again(tmp_path, failure):
    """Its length is not declared, as requests sends it in chunks, but it is another body than the one that was sent."""
    path = tmp_path / "log"
    path.touch()

    def grow(request):
        path.write_bytes(TEXT)
        return failure

    with path.open("rb") as body, FaultServer([grow]) as server, session() as client:
        outcome = outcome_of(client, server.url, body)
        assert [b""] == [request.body for request in server.requests]
    assert StopReason.BODY_NOT_REPLAYABLE is retry_history(outcome).stop_reason


class NoEnd(io.BytesIO):
    """Goes to a position, but not to its end."""

    def seek(self, position, whence=0):
        if whence:
            raise OSError("no end")
        return super().seek(position)


def test_a_file_that_cannot_be_measured_is_sent_again_in_chunks():
    """Where no length is declared, one that cannot be known forbids nothing."""
    assert [TEXT] * 2 == sent_as_it_is(NoEnd(TEXT), 503, 200)


def test_a_file_that_cannot_be_measured_any_more_is_not_sent_again():
    """A declared length that cannot be compared is one that may have changed."""
    assert [TEXT] == sent_as_it_is(NoEnd(TEXT), 503, length=10)


class Encoder:
    """An upload with ``len`` and ``read``, as encoders of forms are, which gives as much at a time as it likes."""

    def __init__(self, parts: list[bytes], length: int) -> None:
        self.parts, self.len, self.asked = iter(parts), length, 0

    def __iter__(self):
        raise AssertionError("it is read")

    def read(self, size):
        self.asked += 1
        part = next(self.parts, b"")
        self.len -= min(self.len, len(part))
        return part


@pytest.mark.parametrize(
    ("parts", "status", "asked"),
    [([LONG[:20_000]] * 2, 200, 3), ([LONG, SURPLUS], 200, 2), ([LONG + SURPLUS], 200, 2), ([LONG[:20_000]], None, 2)],
    ids=["right", "one more part", "a part too long", "short"],
)
def test_an_encoder_gives_what_it_declares(parts, status, asked):
    """It is asked once more at its end, as by a plain adapter, and never heard beyond its first ``len``."""
    body = Encoder(parts, len(LONG))
    with FaultServer() as server, session() as client:
        outcome = outcome_of(client, server.url, body)
        assert status == getattr(outcome, "status_code", None)
        assert 200 == client.get(f"{server.url}/next").status_code
        sent = [(request.path, request.body) for request in server.requests]
    assert [("/", LONG), ("/next", b"")][status is None :] == sent
    assert asked == body.asked


def test_a_form_of_requests_toolbelt_is_sent_whole():
    """Its ``MultipartEncoder`` has a length and no position: it is sent once, and as with a plain adapter."""
    toolbelt = pytest.importorskip("requests_toolbelt")
    one, other = (toolbelt.MultipartEncoder({"file": ("name", io.BytesIO(LONG))}, "boundary") for _ in range(2))
    with FaultServer([Reply(503)]) as server, session() as client:
        assert 503 == client.put(server.url, data=one).status_code
        assert [other.to_string()] == [request.body for request in server.requests]


@pytest.mark.parametrize("declared", [4, b"4", " 4 "])
@pytest.mark.parametrize("make", [io.BytesIO, bytearray, lambda data: [data], generator, Chunks])
def test_no_more_goes_out_than_a_program_declares(make, declared):
    """A Content-Length of the program's own counts, whatever the body has: the rest would be another request."""
    with FaultServer() as server, session() as client:
        request = requests.Request("PUT", server.url, data=b"-").prepare()
        request.body, request.headers["Content-Length"] = make(TEXT), declared
        assert 200 == client.send(request).status_code
        assert 200 == client.get(f"{server.url}/next").status_code
        assert [("/", TEXT[:4]), ("/next", b"")] == [(request.path, request.body) for request in server.requests]


@pytest.mark.parametrize("make", [io.BytesIO, bytearray, lambda data: [data], generator, Chunks])
def test_a_body_shorter_than_a_program_declares_fails_at_once(make):
    """The server would wait for the rest until some time-out."""
    with FaultServer() as server, session() as client:
        request = requests.Request("PUT", server.url, data=b"-").prepare()
        request.body, request.headers["Content-Length"] = make(TEXT), "11"
        with pytest.raises(requests.exceptions.UnrewindableBodyError, match="after 10 of the 11 bytes"):
            client.send(request, timeout=60)
        assert [] == server.requests


def test_an_iterable_without_an_end_is_not_drawn_on_beyond_its_length():
    """What an iterable has beyond its declared length is not asked for."""
    body = itertools.repeat(b"ab")
    assert [b"abab"] == sent_as_it_is(body, 200, length=4)


def test_parts_that_are_nothing_are_skipped():
    """None and empty text between the parts of an iterable are no end of it, as with a plain adapter."""
    with FaultServer() as server, session() as client:
        assert 200 == client.put(server.url, data=iter([None, "0123", "", b"456", b"", b"789"])).status_code
        assert [TEXT] == [request.body for request in server.requests]


@pytest.mark.filterwarnings("ignore::requests.exceptions.FileModeWarning")
def test_text_is_sent_in_the_bytes_of_its_file(tmp_path):
    """A text file in UTF-8 is sent as urllib3 sends it; with other bytes than declared, no more or an error."""
    path = tmp_path / "text"
    path.write_bytes("äöü".encode())
    with path.open(encoding="utf-8") as body, FaultServer() as server, session() as client:
        outcome = outcome_of(client, server.url, body)
        sent = [request.body for request in server.requests]
    is_old = not hasattr(urllib3, "BaseHTTPResponse")
    assert sent == ([] if is_old else ["äöü".encode()])
    assert is_old is isinstance(outcome, requests.exceptions.UnrewindableBodyError)


class Signing(ScriptedTransport):
    """Reads a body to sign it, and goes back, as adapters beneath ours do."""

    def send(self, request, **options):
        position = request.body.tell()
        self.signed = request.body.read()
        request.body.seek(position)
        return super().send(request, **options)


class SigningAdapter(RetryAdapter, Signing):
    """An adapter that signs beneath the retries."""


def test_an_adapter_beneath_may_read_a_file_and_go_back():
    """What is read before it is sent counts as nothing sent, once the file is back."""
    adapter = SigningAdapter(script=[503, 200], clock=FakeClock())
    body = io.BytesIO(TEXT)
    assert 200 == send(adapter, "PUT", data=body).status_code
    assert [TEXT] * 3 == [adapter.signed, *(item.body for item in adapter.sent)]


def test_a_watched_body_has_the_attributes_of_the_callers(tmp_path):
    """What an adapter beneath asks a file, the file answers; its copies are its own."""
    path = tmp_path / "body"
    seen = []
    with on_disk(path, mode="rb") as body:
        assert 200 == send(scripted(lambda request: seen.append(request.body) or 200), "PUT", data=body).status_code
        assert (str(path), False, body.fileno()) == (seen[0].name, seen[0].closed, seen[0].fileno())
        assert not hasattr(seen[0], "_checkClosed")


# First the verdict, then the rewind.


class Watched(io.BytesIO):
    """A file that counts how often it is moved."""

    moves = 0

    def seek(self, *where):
        self.moves += 1
        return super().seek(*where)


@pytest.mark.parametrize("status", [404, 200])
def test_a_file_is_not_moved_by_an_answer_that_is_not_retried(status):
    """It stands where a plain adapter leaves it, and was not touched on the way."""
    body = Watched(TEXT)
    request = prepare("PUT", data=body)
    moves = body.moves
    assert status == scripted(status).send(request).status_code
    assert (len(TEXT), moves) == (body.tell(), body.moves)


@pytest.mark.parametrize("options", [{"max_attempts": 1}, {"quota": 1, "patience": 0}, {"operation_timeout": 0.01}])
def test_a_file_stands_at_its_end_where_no_retry_is_left(options):
    """An answer that would be retried, and is not, leaves the file where a plain adapter leaves it."""
    body = io.BytesIO(TEXT)
    assert 503 == send(scripted(503, **options), "PUT", data=body).status_code
    assert len(TEXT) == body.tell()


@pytest.mark.parametrize("status", [404, 503, 200])
def test_an_iterable_is_drawn_on_as_by_a_plain_adapter(status):
    """It is asked for one iterator, and that for its parts, whatever the answer is."""
    asked: list[str] = []

    class Recording(Chunks):
        def __iter__(self):
            asked.append("begun")
            yield from super().__iter__()

    assert status == send(scripted(status), "PUT", data=Recording(TEXT)).status_code
    assert ["begun"] == asked


@pytest.mark.parametrize("status", [200, 404])
def test_the_response_has_the_programs_own_request(status: int) -> None:
    """Its body is the program's file, and not what counts it on the way."""
    file = io.BytesIO(b"whole")
    request = prepare("PUT", data=file)
    response = scripted(status).send(request)
    assert (request, file) == (response.request, response.request.body)


@pytest.mark.parametrize("status", [503, 404, 200])
def test_a_last_answer_that_is_cut_keeps_the_reason_why_no_attempt_follows(status: int) -> None:
    """The exception that its caller gets comes of the connection alone, and the history has the reason."""
    with FaultServer([CutBody(Reply(status, body=b"0123456789"))]) as server, requests.Session() as session:
        mount(session, max_attempts=1)
        with pytest.raises(requests.exceptions.ChunkedEncodingError) as caught:
            session.get(server.url)
    assert "no attempts are left" == retry_history(caught.value).why
    error: BaseException | None = caught.value
    while error is not None:
        assert not isinstance(error, RetryError)
        error = error.__cause__ or error.__context__
