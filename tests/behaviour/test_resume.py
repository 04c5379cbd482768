"""Bodies that break off and go on, on real sockets: inside an attempt, and in the caller's hands."""

from __future__ import annotations

import gzip
import io
import logging
import random
import re
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import urllib3.exceptions
from requests.adapters import HTTPAdapter
from urllib3.exceptions import ProtocolError

from requests_smithy_retry import (
    ErrorInBodyClassifier,
    RetryAdapter,
    RetryListener,
    StopReason,
    retry_history,
    retry_options,
    retry_summary,
)
from requests_smithy_retry.testing import FakeClock
from tests.faults import (
    BadChunkSize,
    Behaviour,
    CloseAfterRequest,
    CutBody,
    FaultServer,
    MissingLastChunk,
    RecordedRequest,
    Reply,
    Stall,
    StopReading,
)
from tests.support import session_with
from tests.unit.wire.support import nothing_left, session

BODY = b"".join(b"%06d the quick brown fox\n" % number for number in range(12_000))
TAG = '"v1"'


class Shelf:
    """A server with one file, whose connections break off.

    :param cuts: after how many bytes of the body each answer breaks off; after that, none does.
    :param body: the file.
    :param rest: makes the answer to a request for the rest, given the right one; None: the right one.
    """

    def __init__(
        self,
        *cuts: int,
        body: bytes = BODY,
        framing: Any = "length",
        headers: dict[str, str] | None = None,
        rest: Callable[[RecordedRequest, Reply], Behaviour] | None = None,
        then: Any = "close",
    ) -> None:
        self.cuts = list(cuts)
        self.body = body
        self.framing = framing
        self.headers = {"ETag": TAG} if headers is None else headers
        self.rest = rest
        self.then = then
        self.asked: list[str | None] = []
        self._lock = threading.Lock()

    def __call__(self, request: RecordedRequest) -> Behaviour:
        asked = request.header("Range")
        with self._lock:
            self.asked.append(asked)
            cut = self.cuts.pop(0) if self.cuts else None
        reply = Reply(200, self.headers, self.body, framing=self.framing)
        found = None if asked is None else re.fullmatch(r"bytes=(\d+)-(\d*)", asked)
        if found is not None:
            first, end = int(found[1]), int(found[2] or len(self.body) - 1) + 1
            headers = {**self.headers, "Content-Range": f"bytes {first}-{end - 1}/{len(self.body)}"}
            reply = Reply(206, headers, self.body[first:end], framing=self.framing)
            if self.rest is not None and request.header("If-Range"):
                return self.rest(request, reply)
        return reply if cut is None else CutBody(reply, at=cut, then=self.then)


WAYS: dict[str, Callable[[requests.Response], bytes]] = {
    "iter_content": lambda response: b"".join(response.iter_content(7000)),
    "iter_lines": lambda response: b"".join(line + b"\n" for line in response.iter_lines()),
    "content": lambda response: response.content,
    "raw.read": lambda response: response.raw.read(),
    "raw.read(n)": lambda response: b"".join(iter(lambda: response.raw.read(10_000), b"")),
    "raw.stream": lambda response: b"".join(response.raw.stream(10_000)),
    "copyfileobj": lambda response: copied(response),
}


def copied(response: requests.Response) -> bytes:
    file = io.BytesIO()
    shutil.copyfileobj(response.raw, file)
    return file.getvalue()


def error_of(call: Callable[[], Any]) -> Any:
    """Return the exception of a call, or None."""
    try:
        call()
    except Exception as error:
        return error
    return None


def got(file: Any, stream: bool = True, timeout: float = 60, **options: Any) -> Any:
    """Get the file from a server; return its body, or the exception that came in its place."""
    with FaultServer(file) as server, session(**options) as made:
        try:
            return made.get(server.url, stream=stream, timeout=timeout).content
        except Exception as error:
            return error


def is_cut(found: Any) -> bool:
    """Tell whether the caller got the exception of a body that broke off."""
    return type(found) is requests.exceptions.ChunkedEncodingError


@pytest.mark.parametrize("then", ["close", "reset"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("way", WAYS)
def test_a_stream_goes_on_where_it_broke_off(way: str, framing: str, then: str) -> None:
    """However the caller reads, the body is whole, and each byte was asked for once."""
    shelf = Shelf(100_000, 50_000, 10, framing=framing, then=then)
    with FaultServer(shelf) as server, session() as made:
        response = made.get(server.url, stream=True, timeout=60)
        assert BODY == WAYS[way](response)
    starts = [int(asked.removeprefix("bytes=").removesuffix("-")) for asked in shelf.asked if asked]
    assert 3 == len(starts)
    assert sorted(starts) == starts
    assert 200 == response.status_code
    assert TAG == response.headers["ETag"]


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_body_inside_an_attempt_goes_on_in_the_next(framing: str) -> None:
    """Without ``stream`` the next attempt asks for the rest, and the caller gets the first answer's response."""
    shelf = Shelf(100_000, 50_000, framing=framing)
    with FaultServer(shelf) as server, session(max_attempts=3) as made:
        response = made.get(server.url, timeout=60)
    assert BODY == response.content
    assert 200 == response.status_code
    history = retry_history(response)
    assert ["ChunkedEncodingError", "ChunkedEncodingError", None] == [item.error for item in history.attempts]
    first, second, last = (item.received for item in history.attempts)
    assert (last, shelf.asked) == (None, [None, f"bytes={first}-", f"bytes={first + second}-"])


@pytest.mark.parametrize("stream", [False, True])
def test_a_coded_body_goes_on_before_it_is_decoded(stream: bool) -> None:
    """The position is that of the coded body, and the decoder goes on as if nothing had happened."""
    plain = random.Random(1).randbytes(200_000)
    coded = gzip.compress(plain)
    shelf = Shelf(90_001, 40_003, body=coded, headers={"ETag": TAG, "Content-Encoding": "gzip"})
    assert (plain, 3) == (got(shelf, stream), len(shelf.asked))


@pytest.mark.parametrize("stream", [False, True])
def test_a_callers_own_range_goes_on_within_it(stream: bool) -> None:
    """A 206 to the caller's own Range is continued up to the end of that range."""
    shelf = Shelf(20_000)
    with FaultServer(shelf) as server, session() as made:
        response = made.get(server.url, headers={"Range": "bytes=1000-150999"}, stream=stream, timeout=60)
        assert BODY[1000:151_000] == response.content
    assert 206 == response.status_code
    assert ["bytes=1000-150999", "bytes=21000-150999"] == shelf.asked


MISFITS: dict[str, Callable[[RecordedRequest, Reply], Behaviour]] = {
    "200": lambda _, reply: Reply(200, {"ETag": '"v2"'}, b"another version" * 10_000),
    "another ETag": lambda _, reply: replace(reply, headers=[*reply.headers[1:], ("ETag", '"v2"')]),
    "no ETag": lambda _, reply: replace(reply, headers=reply.headers[1:]),
    "another range": lambda _, reply: Reply(206, {"ETag": TAG, "Content-Range": "bytes 0-9/20"}, b"0123456789"),
    "multipart": lambda _, reply: Reply(206, {"ETag": TAG, "Content-Type": "multipart/byteranges"}, b"--x"),
    "416": lambda _, reply: Reply(416),
    "redirect": lambda _, reply: Reply(302, {"Location": "http://127.0.0.1:9/elsewhere"}),
    "404": lambda _, reply: Reply(404, body=b"gone"),
    "503": lambda _, reply: Reply(503),
}


@pytest.mark.untraced
@pytest.mark.parametrize("way", ["iter_content", "content", "raw.read(n)"])
@pytest.mark.parametrize("misfit", MISFITS)
def test_nothing_is_put_together_that_does_not_fit(misfit: str, way: str) -> None:
    """The caller of a stream gets the original error, with the position and the reason in its text."""
    shelf = Shelf(100_000, rest=MISFITS[misfit])
    with FaultServer(shelf) as server, session(max_attempts=2) as made:
        response = made.get(server.url, stream=True, timeout=60)
        error = error_of(lambda: WAYS[way](response))
    usual = requests.exceptions.ChunkedEncodingError
    expected = usual if way in ("iter_content", "iter_lines", "content") else urllib3.exceptions.ProtocolError
    assert expected is type(error)
    assert f"at byte 100000 of {len(BODY)}; not continued: " in str(error)
    history = retry_history(error)
    assert "ChunkedEncodingError" == history.attempts[0].error
    assert history == retry_history(response)


@pytest.mark.parametrize(
    ("shelf", "options", "asked"),
    [
        *[
            pytest.param({"rest": MISFITS[misfit]}, {}, [None, "bytes=100000-", None], id=misfit)
            for misfit in sorted({*MISFITS} - {"503"})
        ],
        pytest.param({"body": BODY[:60_000]}, {}, [None, None], id="64 KiB or less, which would save nothing"),
        pytest.param({}, {"operation_timeout": 60}, [None, "bytes=100000-"], id="it fits, and the deadline holds"),
    ],
)
def test_an_attempt_whose_rest_does_not_fit_is_followed_by_one_for_the_whole(
    shelf: dict[str, Any], options: dict[str, Any], asked: list[str | None]
) -> None:
    """Without ``stream`` whatever does not fit is a failure, and the next attempt asks for the whole."""
    file = Shelf(10 if "body" in shelf else 100_000, **shelf)
    assert (file.body, asked) == (got(file, stream=False, max_attempts=3, **options), file.asked)


AGAIN: dict[str, Callable[[RecordedRequest, Reply], Behaviour]] = {
    "length": lambda _, reply: Reply(200, {"ETag": TAG}, BODY),
    "chunked": lambda _, reply: Reply(200, {"ETag": TAG}, BODY, framing="chunked"),
}


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("again", AGAIN)
@pytest.mark.parametrize("way", WAYS)
def test_the_whole_in_place_of_the_rest_is_read_past_what_came(way: str, again: str, framing: str) -> None:
    """A server without ranges, or a cold cache, sends the same version again; a further break is like the first."""
    shelf = Shelf(100_000, framing=framing)
    turns: list[Any] = [50_000, 150_000, None]

    def rest(request: RecordedRequest, reply: Reply) -> Behaviour:
        whole, cut = AGAIN[again](request, reply), turns.pop(0)
        return whole if cut is None else CutBody(whole, at=cut)

    shelf.rest = rest
    with nothing_left(), FaultServer(shelf) as server, session() as made:
        response = made.get(server.url, stream=True, timeout=60)
        assert BODY == WAYS[way](response)
        del response
    assert 4 == len(shelf.asked)
    assert shelf.asked[1] == shelf.asked[2] != shelf.asked[3]


@pytest.mark.parametrize("options", [{}, {"raise_on_status": True, "retry_status_codes": {416}}])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_rest_that_does_not_exist_is_the_end(way: str, stream: bool, options: dict[str, Any]) -> None:
    """All that was missing was the end of the framing, as a 416 with the length of what came proves."""
    lengths = {"Content-Range": f"bytes */{len(BODY)}"}

    def file(request: RecordedRequest) -> Behaviour:
        if request.header("Range"):
            return Reply(416, lengths, b"none")
        return MissingLastChunk(Reply(200, {"ETag": TAG}, BODY, framing="chunked"))

    with nothing_left(), FaultServer(file) as server, session(**options) as made:
        response = made.get(server.url, stream=stream, timeout=60)
        assert BODY == (WAYS[way](response) if stream else response.content)
        assert 200 == response.status_code
        del response
    assert [None, f"bytes={len(BODY)}-"] == [request.header("Range") for request in server.requests][:2]


@pytest.mark.parametrize("stream", [False, True])
def test_the_rest_is_still_asked_for_after_another_failure(stream: bool) -> None:
    """A 503, or an answer that never comes, between two attempts for the rest loses nothing of what came."""
    turns = iter((Reply(503), CutBody(Reply(500, body=b"12345")), None))
    shelf = Shelf(100_000, rest=lambda _, reply: next(turns) or reply)
    assert BODY == got(shelf, stream, max_attempts=5)
    assert [None, *["bytes=100000-"] * 3] == shelf.asked


@pytest.mark.parametrize("tag", [{}, {"ETag": TAG}, {"ETag": '"v2"'}])
def test_an_error_in_a_200_between_two_attempts_for_the_rest_is_retried(tag: dict[str, str]) -> None:
    """A classifier that looks at successes is asked about an answer that is no rest, as about the first answer."""
    busy = ErrorInBodyClassifier(lambda body: body["error"] == "BUSY", "BUSY")
    error = Reply(200, {"Content-Type": "application/json", **tag}, b'{"error": "BUSY"}')
    turns = iter((error, Reply(503), error, None))
    shelf = Shelf(150_000, rest=lambda _, reply: next(turns) or reply)
    assert BODY == got(shelf, max_attempts=5, classifiers=[busy], backoff=0)
    assert [None, *["bytes=150000-"] * 4] == shelf.asked


@pytest.mark.parametrize(
    ("rest", "framing", "stream"),
    [
        (lambda _, reply: CutBody(reply, at=0), "length", False),
        (lambda _, reply: CutBody(reply, at=0), "length", True),
        (lambda _, reply: Reply(200, {"ETag": TAG}, BODY[:5], "chunked"), "chunked", True),
    ],
    ids=["right after its head", "right after its head, streamed", "the whole, before what came"],
)
def test_a_rest_without_a_new_byte_is_a_failure(rest: Any, framing: str, stream: bool) -> None:
    """Answers that end so soon are counted as attempts, so they come to an end."""
    shelf = Shelf(100_000, framing=framing, rest=rest)
    error = got(shelf, stream, max_attempts=4)
    assert (True, 4) == (is_cut(error), len(shelf.asked))
    assert StopReason.MAX_ATTEMPTS is retry_history(error).stop_reason


OLD, DATE = "Sun, 06 Nov 1994 08:48:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"


@pytest.mark.parametrize(
    ("method", "status", "headers"),
    [
        # Without a strong validator.
        *(("GET", 200, {"ETag": tag}) for tag in ('W/"v1"', "v1", '"a", "b"')),
        ("GET", 200, {"ETag": 'W/"v1"', "Last-Modified": OLD, "Date": DATE}),
        ("GET", 200, {"ETag": TAG, "Accept-Ranges": "none"}),
        ("GET", 200, {"Last-Modified": OLD}),
        ("GET", 200, {"Last-Modified": "yesterday", "Date": DATE}),
        ("GET", 200, {"Last-Modified": "Sun, 06 Nov 1994 08:48:38 GMT", "Date": DATE}),
        # No answer to a GET that has the whole, or a range that the caller asked for.
        ("POST", 200, {"ETag": TAG}),
        ("GET", 203, {"ETag": TAG}),
        ("GET", 206, {"ETag": TAG, "Content-Range": "bytes 0-9/20"}),
    ],
)
def test_a_stream_that_does_not_go_on(method: str, status: int, headers: dict[str, str]) -> None:
    """It ends with the original error."""
    with FaultServer(CutBody(Reply(status, headers, BODY), at=100_000)) as server, session() as made:
        error = error_of(lambda: made.request(method, server.url, stream=True, timeout=60).content)
    assert (True, 1) == (is_cut(error), len(server.requests))


@pytest.mark.parametrize("later", [OLD, DATE])
def test_a_date_that_is_old_enough_is_a_strong_validator(later: str) -> None:
    """A minute before the answer, the file cannot have changed twice within the second (RFC 9110 8.8.2.2)."""

    def moved(_: RecordedRequest, reply: Reply) -> Behaviour:
        headers = [(name, later if name == "Last-Modified" else value) for name, value in reply.headers]
        return replace(reply, headers=headers)

    shelf = Shelf(100_000, headers={"Last-Modified": OLD, "Date": DATE}, rest=moved)
    assert (later == OLD) == (got(shelf) == BODY)
    assert "bytes=100000-" == shelf.asked[1]


@pytest.mark.parametrize("how", ["adapter", "block", "environment", "disabled"])
@pytest.mark.parametrize("stream", [False, True])
def test_it_can_be_switched_off(stream: bool, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``resume=False`` a stream ends with the error, and an attempt is begun anew."""
    if how == "environment":
        monkeypatch.setenv("SMITHY_RETRY_RESUME", "no")
    options = {"adapter": {"resume": False}, "disabled": {"enabled": False}}.get(how, {})
    block = {"resume": False} if how == "block" else {}
    shelf = Shelf(100_000)
    with retry_options(**block):
        found = got(shelf, stream, **options)
    if how != "disabled":  # plain urllib3 1.26 does not notice the cut
        assert (found == BODY) == (not stream)
    assert {None} == set(shelf.asked)


@pytest.mark.parametrize("stream", [False, True])
def test_a_block_can_switch_it_on(stream: bool) -> None:
    """``retry_options(resume=True)`` is heeded where the adapter has ``resume=False``."""
    shelf = Shelf(150_000)
    with retry_options(resume=True):
        assert BODY == got(shelf, stream, resume=False)
    assert [None, "bytes=150000-"] == [asked and asked[:13] for asked in shelf.asked]


@pytest.mark.parametrize("stream", [False, True])
def test_a_stall_breaks_off_and_goes_on(stream: bool) -> None:
    """A body that brings nothing for the read time-out goes on over another connection."""
    assert BODY == got(Shelf(100_000, then="stall"), stream, timeout=0.5)


def test_a_stall_without_a_validator_is_an_error() -> None:
    """A stream that stalls and cannot be continued ends with the exception of a read timeout."""
    stalls = CutBody(Reply(body=BODY), at=100_000, then="stall")
    assert requests.exceptions.ConnectionError is type(got(stalls, timeout=0.5, operation_timeout=60))


def test_a_stall_before_the_head_of_the_rest_is_a_failed_attempt() -> None:
    """The usual time-outs hold for the answers that bring the rest."""
    turns = [True]
    shelf = Shelf(100_000, rest=lambda _, reply: Stall(reply=reply) if turns and turns.pop() else reply)
    assert (BODY, 3) == (got(shelf, timeout=0.5), len(shelf.asked))


@pytest.mark.parametrize("stream", [False, True])
def test_a_listener_hears_of_the_progress(stream: bool) -> None:
    """Each part that comes is told with what came so far, the length, and how often the body was continued."""
    heard: list[tuple[int, int | None, int]] = []
    bar = SimpleNamespace(body_progress=lambda event: heard.append((event.received, event.total, event.resumes)))
    assert BODY == got(Shelf(100_000, 50_000), stream, listeners=[bar])
    assert (sorted(heard), (len(BODY), len(BODY), 2)) == (heard, heard[-1])


class Stopped(Exception):
    """What a listener raises."""


@pytest.mark.parametrize("error", [RuntimeError, TimeoutError, OSError, requests.Timeout, ProtocolError, Stopped])
@pytest.mark.parametrize("length", [100, 100_000])
def test_what_a_listener_raises_while_a_body_comes_ends_the_call(error: type[Exception], length: int) -> None:
    """It reaches the caller unchanged, and nothing is sent again, though the wire raises errors of its class, too."""
    made = error("by the listener")

    def stop(event: Any) -> None:
        if event.received == event.total:  # of a long one not before it is read
            raise made

    with FaultServer(default=Reply(200, {"ETag": '"1"'}, b"x" * length)) as server:
        with session(listeners=[SimpleNamespace(body_progress=stop)]) as asking, pytest.raises(error) as caught:
            asking.get(server.url)
        assert (made, 1) == (caught.value, len(server.requests))
        wrapped = error, requests.RequestException  # urllib3 makes an error of the wire of one
        with session(listeners=[SimpleNamespace(body_progress=stop)]) as asking, pytest.raises(wrapped):
            asking.get(server.url, stream=True).content  # noqa: B018
        assert 2 == len(server.requests)


def test_each_attempt_of_a_continued_body_is_told_once() -> None:
    """An attempt whose body breaks off in the caller's hands is told when its head is there, and not again."""
    heard: list[tuple[str, int, Any]] = []
    listener = SimpleNamespace(
        before_attempt=lambda event: heard.append(("before", event.number, None)),
        after_attempt=lambda event: heard.append(("after", event.number, event.status)),
        retry_scheduled=lambda event: heard.append(("retry", event.number, event.record.error)),
        succeeded=lambda event: heard.append(("succeeded", event.number, None)),
    )
    assert BODY == got(Shelf(100_000), listeners=[listener])
    assert [
        ("before", 1, None),
        ("after", 1, 200),
        ("retry", 1, "ChunkedEncodingError"),
        ("before", 2, None),
        ("after", 2, 206),
        ("succeeded", 2, None),
    ] == heard


@pytest.mark.parametrize(
    ("bug", "told"),
    [
        (LookupError("a bug"), "a bug"),
        # An exception of requests that a listener makes is no history: the stream ends with the original error.
        (requests.ConnectionError("of my own"), "not continued: the last attempt ended with ConnectionError"),
    ],
    ids=["of its own", "of requests"],
)
def test_a_listeners_bug_is_the_callers(bug: Exception, told: str) -> None:
    """An exception of a listener during a continuation reaches the reader of the body."""

    class Bug(RetryListener):
        def retry_scheduled(self, event: Any) -> None:
            raise bug

    error = got(Shelf(100_000), listeners=[Bug()])
    assert (isinstance(bug, LookupError), True) == (error is bug, told in str(error))


def test_a_body_that_no_attempt_may_continue_says_so() -> None:
    """With ``max_attempts=1``, the error names the rule that forbade to ask for the rest."""
    error = got(Shelf(100_000), max_attempts=1)
    assert "not continued: the last attempt ended with ChunkedEncodingError: no attempts are left" in str(error)


def test_the_history_has_every_piece() -> None:
    """The response of a stream knows each piece: how it ended, what it brought, and how long it waited."""
    with FaultServer(Shelf(100_000, 50_000)) as server, session(max_attempts=2) as made:
        response = made.get(server.url, stream=True, timeout=60)
        assert BODY == response.content
    history = retry_history(response)
    assert [1, 2, 3] == [item.number for item in history.attempts]
    assert [100_000, 50_000, None] == [item.received for item in history.attempts]
    assert ["ChunkedEncodingError", "ChunkedEncodingError", "206"] == [item.ending for item in history.attempts]
    assert StopReason.SUCCESS is history.stop_reason


def test_a_continued_body_counts_as_a_success() -> None:
    """A continuation that brought bytes gives its tokens back, so that a bad link does not use the quota up."""
    assert BODY[:70_000] == got(Shelf(*[1000] * 60, body=BODY[:70_000]), quota=20, max_attempts=2)


@pytest.mark.parametrize("stream", [False, True])
def test_cookies_headers_and_auth_are_those_of_the_first_answer(stream: bool) -> None:
    """Cookies are the first answer's, once; the rest is asked for with the same credentials."""

    def rest(request: RecordedRequest, reply: Reply) -> Behaviour:
        return replace(reply, headers=[*reply.headers, ("Set-Cookie", "second=2"), ("X-Which", "second")])

    shelf = Shelf(100_000, headers={"ETag": TAG, "Set-Cookie": "first=1", "X-Which": "first"}, rest=rest)
    with FaultServer(shelf) as server, session() as made:
        response = made.get(server.url, stream=stream, timeout=60, auth=("user", "password"))
        assert BODY == response.content
        assert {"first": "1"} == response.cookies.get_dict() == made.cookies.get_dict()
    assert "first" == response.headers["X-Which"]
    assert 1 == len({request.header("Authorization") for request in server.requests})
    assert "Range" not in response.request.headers


@pytest.mark.parametrize("stream", [False, True])
def test_a_body_behind_a_redirect_goes_on_where_it_is(stream: bool) -> None:
    """The rest is asked for at the address that the body came from; ``response.history`` is as it was."""
    shelf = Shelf(100_000)

    def act(request: RecordedRequest) -> Behaviour:
        return Reply(302, {"Location": "/b"}) if request.path == "/" else shelf(request)

    with FaultServer(act) as server, session() as made:
        response = made.get(server.url, stream=stream, timeout=60)
        assert BODY == response.content
    assert ["/", "/b", "/b"] == [request.path for request in server.requests]
    assert [302] == [step.status_code for step in response.history]


LEAVING: dict[str, Callable[[requests.Response], Any]] = {
    "read": lambda response: response.content,
    "part": lambda response: response.raw.read(150_000),
    "close": lambda response: (response.raw.read(150_000), response.close()),
    "generator": lambda response: next(response.iter_content(150_000)),
    "unread": lambda response: None,
}


@pytest.mark.untraced
@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("way", LEAVING)
@pytest.mark.parametrize("misfit", [None, "200", "503", "another range"])
def test_nothing_is_left(misfit: str | None, way: str, framing: str) -> None:
    """However a stream is left, no socket is open once the response is gone, with no help from the collector."""

    def call() -> None:
        shelf = Shelf(100_000, framing=framing, rest=MISFITS[misfit] if misfit else None)
        with FaultServer(shelf) as server, session(max_attempts=2) as made:
            response = made.get(server.url, stream=True, timeout=60)
            error_of(lambda: LEAVING[way](response))

    with nothing_left():
        call()


@pytest.mark.parametrize("stream", [False, True])
def test_the_connection_of_the_rest_is_used_again(stream: bool) -> None:
    """The connection that brought the end goes back to its pool."""
    with FaultServer(Shelf(100_000)) as server, session() as made:
        for _ in range(2):
            assert BODY == made.get(server.url, stream=stream, timeout=60).content
    assert [0, 1, 1] == [request.connection_id for request in server.requests]


def test_deadlines_hold_for_the_rest() -> None:
    """A block's deadline ends a stream that would have to go on after it."""
    shelf = Shelf(100_000, rest=lambda _, reply: Stall(reply=reply))
    with retry_options(deadline=0.5):
        error = got(shelf, max_attempts=100)
    assert "not continued" in str(error)
    assert StopReason.DEADLINE is retry_history(error).stop_reason


def test_hooks_get_a_body_that_goes_on() -> None:
    """With hooks, a body of up to 1 MiB that is whole is left unread; one that breaks off is continued."""
    seen: list[bytes] = []
    hooks = {"response": lambda response, **_: seen.append(response.content)}
    shelf = Shelf(100_000)
    with FaultServer(shelf) as server, session() as made:
        for _ in range(2):
            assert BODY == made.get(server.url, hooks=hooks, timeout=60).content
    assert [BODY, BODY] == seen
    assert [None, "bytes=100000-", None] == shelf.asked


def test_more_than_was_announced_is_an_error() -> None:
    """A rest that goes on after its end is not believed."""
    shelf = Shelf(100_000, rest=lambda _, reply: Reply(206, reply.headers, reply.body + b"more", framing="chunked"))
    assert "more than the" in str(got(shelf))


def in_shorter_parts(request: RecordedRequest, reply: Reply) -> Behaviour:
    first = len(BODY) - len(reply.body)
    part = reply.body[:70_000]
    headers = {"ETag": TAG, "Content-Range": f"bytes {first}-{first + len(part) - 1}/{len(BODY)}"}
    return Reply(206, headers, part, framing="chunked" if first % 2 else "length")


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize(
    "rest",
    [in_shorter_parts, lambda _, reply: CutBody(replace(reply, framing="chunked"), at=-5)],
    ids=["chunked, or less than was asked for", "whole but for the last chunk"],
)
@pytest.mark.parametrize("way", WAYS)
def test_a_rest_may_come_in_other_ways(way: str, rest: Any, framing: str) -> None:
    """It is whole once all bytes that Content-Range announced are there, though the framing's end may be missing."""
    with FaultServer(Shelf(99_999, framing=framing, rest=rest)) as server, session(max_attempts=2) as made:
        assert BODY == WAYS[way](made.get(server.url, stream=True, timeout=60))


def test_a_chunk_of_negative_size_breaks_off() -> None:
    """A negative size is a break like any other, and the body goes on."""
    turns: list[Behaviour] = [BadChunkSize(b"-5", Reply(200, {"ETag": TAG}, BODY[:100_000], framing="chunked"))]
    shelf = Shelf()
    assert BODY == got(lambda request: turns.pop() if turns else shelf(request))
    assert ["bytes=100000-"] == shelf.asked


def test_no_body_is_watched_without_a_validator() -> None:
    """Where a body could not be continued in any case, it is read as ever."""
    with FaultServer(default=Reply(body=BODY)) as server, session() as made:
        assert urllib3.HTTPResponse is type(made.get(server.url, timeout=60, stream=True).raw)


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204)])
def test_an_answer_without_a_body_ends_at_once(method: str, status: int, framing: Any) -> None:
    """A validator in a head that no body follows changes nothing, and the connection is used again."""
    reply = Reply(status, {"ETag": TAG}, BODY if method == "HEAD" else b"", framing=framing)
    with FaultServer(default=reply) as server, session() as made:
        for stream in (False, True, False):
            assert b"" == made.request(method, server.url, stream=stream, timeout=60).content
    assert [0, 0, 0] == [request.connection_id for request in server.requests]


def test_headers_of_another_class_are_read_as_well() -> None:
    """A mix-in that gives the response a plain dict of headers breaks nothing."""

    class Plain(HTTPAdapter):
        def send(self, *args: Any, **kwargs: Any) -> requests.Response:
            response = super().send(*args, **kwargs)
            response.headers = dict(response.headers)  # type: ignore[assignment]
            return response

    class Ours(RetryAdapter, Plain):
        pass

    for options in ({}, {"timeout": 5.0}):
        script = [Reply(body=BODY), Reply(404, body=b"gone"), CutBody(Reply(headers={"ETag": '"1"'}, body=BODY))]
        with FaultServer(script) as server, requests.Session() as made:
            made.mount("http://", Ours(quota=None, backoff=0, max_attempts=2, **options))
            assert BODY == made.get(server.url, timeout=60).content
            assert b"gone" == made.get(server.url, timeout=60).content
            assert is_cut(error_of(lambda: made.get(server.url, timeout=60, stream=True).content))


def test_a_failed_upload_of_a_file_tells_how_much_went_out() -> None:
    """The history has the bytes of the file that were sent in each failed attempt; of other bodies nothing is known."""
    with FaultServer([StopReading(0), Reply(503)], default=Reply()) as server, session() as made:
        file = io.BytesIO(bytes(20_001_000))
        file.seek(1000)
        sent = [item.sent for item in retry_history(made.put(server.url, data=file, timeout=60)).attempts]
        assert 0 <= sent[0] < 20_000_000
        assert [20_000_000, None] == sent[1:]
    with FaultServer([Reply(503)], default=Reply()) as server, session() as made:
        history = retry_history(made.put(server.url, data=b"bytes", timeout=60))
    assert [None, None] == [item.sent for item in history.attempts]


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_cache_reads_is_read_through_it(stream: bool) -> None:
    """A file that a mix-in put before the connection sees each byte, and its body is not continued behind its back."""
    seen = bytearray()

    class Wrapper:
        def __init__(self, fp: Any) -> None:
            self.fp = fp

        def read(self, amt: int | None = None) -> bytes:
            data: bytes = self.fp.read(amt)
            seen.extend(data)
            return data

        def __getattr__(self, name: str) -> Any:
            return getattr(self.fp, name)

    class Caching(HTTPAdapter):
        def send(self, *args: Any, **kwargs: Any) -> requests.Response:
            response = super().send(*args, **kwargs)
            response.raw._fp = Wrapper(response.raw._fp)
            return response

    class Ours(RetryAdapter, Caching):
        pass

    with FaultServer(Shelf()) as server, session_with(Ours(quota=None, max_attempts=1)) as made:
        assert BODY == made.get(server.url, stream=stream, timeout=60).content
    assert BODY == bytes(seen)
    shelf = Shelf(100_000)
    with FaultServer(shelf) as server, session_with(Ours(quota=None, max_attempts=2, backoff=0)) as made:
        error = error_of(lambda: made.get(server.url, stream=stream, timeout=60).content)
    assert {None} == set(shelf.asked)
    assert stream == (error is not None)


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_the_socket_below_can_be_found(framing: str) -> None:
    """Who looks for the socket below a response, as some authentications do, finds it as ever."""
    with FaultServer(Shelf(framing=framing)) as server, session() as made:
        response = made.get(server.url, stream=True, timeout=60)
        fp: Any = response.raw._fp
        assert server.port == fp.fp.raw._sock.getpeername()[1]
        assert b"" == fp.read1(0)
        response.close()


def test_a_chunk_beyond_the_end_is_an_error() -> None:
    """A chunk that promised more than the file turns out to have is not made up."""

    class LongChunk(Behaviour):
        def act(self, wire: Any, request: RecordedRequest) -> None:
            head = Reply(200, {"ETag": TAG}, framing="chunked").head(request)
            wire.send(head + b"%x\r\n" % (2 * len(BODY)) + BODY[:1000])
            wire.close()

    turns, shelf = [LongChunk()], Shelf()
    assert is_cut(got(lambda request: turns.pop() if turns else shelf(request)))


def test_a_long_history_keeps_its_ends() -> None:
    """Of more pieces than are kept, the first and the last ones are."""
    with FaultServer(Shelf(*[10] * 200)) as server, session() as made:
        response = made.get(server.url, stream=True, timeout=60)
        assert BODY == response.content
    history = retry_history(response)
    assert (100, 1, 201) == (len(history.attempts), history.attempts[0].number, history.attempts[-1].number)


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("body", [BODY[:100], BODY])
def test_a_redirect_whose_cut_body_is_watched_is_followed(body: bytes, framing: Any) -> None:
    """As without the listener: nobody needs the body."""
    bar = SimpleNamespace(body_progress=lambda event: None)
    cut = CutBody(Reply(302, {"Location": "/there", "ETag": TAG}, body, framing=framing))
    for stream in (False, True):
        with FaultServer([cut, Reply(body=b"done")]) as server, session(listeners=[bar]) as made:
            assert b"done" == made.get(server.url, timeout=60, stream=stream).content


@pytest.mark.parametrize(("headers", "durations"), [({"ETag": TAG}, [2.5, 0.0]), ({}, [2.5])], ids=["asked", "lost"])
def test_the_duration_of_an_attempt_ends_where_its_body_breaks_off(headers: Any, durations: list[float]) -> None:
    """The reading of the body is part of it, whether or not the rest can be asked for."""
    clock, cut = FakeClock(), CutBody(Reply(200, headers, BODY), at=1000)
    with FaultServer([cut, Reply(404)]) as server, session(clock=clock) as made:
        response = made.get(server.url, timeout=60, stream=True)
        clock.advance(2.5)
        history = retry_history(error_of(lambda: response.content))
    assert history is not None
    assert durations == [attempt.duration for attempt in history.attempts]
    assert [1000, None][: len(durations)] == [attempt.received for attempt in history.attempts]


def test_each_piece_has_a_beginning_and_a_duration_of_its_own() -> None:
    """The second piece begins where it is asked for, and lasts until it breaks off."""
    clock = FakeClock()
    with FaultServer(Shelf(100_000, 50_000)) as server, session(clock=clock, backoff=0) as made:
        response = made.get(server.url, timeout=60, stream=True)
        for part in response.iter_content(50_000):
            clock.advance(len(part) / 50_000)
    first, second, last = retry_history(response).attempts
    assert (2.0, 1.0) == (first.duration, second.duration)
    assert (first.started + 2, second.started + 1) == (second.started, last.started)


@pytest.mark.parametrize("stream", [True, False])
def test_the_log_the_events_and_the_history_number_the_pieces_alike(
    stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Each attempt has one number, however often the body broke off, and whoever reads it."""
    sent: list[int] = []
    listener = SimpleNamespace(before_attempt=lambda event: sent.append(event.number))
    shelf = Shelf(*[100_000] * 3)
    file = lambda request: Reply(503) if sent == [1, 2, 3] else shelf(request)  # noqa: E731
    caplog.set_level(logging.INFO, "requests_smithy_retry")
    with FaultServer(file) as server, session(listeners=[listener]) as made:
        response = made.get(server.url, stream=stream, timeout=60)
        assert BODY == response.content
    retries = [vars(record)["retry_attempt"] for record in caplog.records if "retry_delay" in vars(record)]
    history = retry_history(response)
    assert [1, 2, 3, 4, 5] == sent == [attempt.number for attempt in history.attempts]
    assert [1, 2, 3, 4] == retries


def test_a_piece_has_the_address_that_brought_it() -> None:
    """Other requests of the thread meanwhile change nothing."""
    with FaultServer(Shelf(100_000)) as server, FaultServer(host="127.0.0.2") as other, session() as made:
        response = made.get(server.url, stream=True, timeout=60)
        made.get(other.url, timeout=60)
        assert BODY == response.content
    assert ["127.0.0.1", "127.0.0.1"] == [attempt.address for attempt in retry_history(response).attempts]


def test_the_wait_for_a_rate_limit_stays_in_the_history_of_a_body_that_goes_on() -> None:
    """The wait came before the attempt whose body broke off."""
    limit = {"X-RateLimit-Limit": "1", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4"}
    shelf, turns = Shelf(100_000), [Reply(200, limit)]
    file = lambda request: turns.pop() if turns else shelf(request)  # noqa: E731
    with FaultServer(file) as server, session(clock=FakeClock()) as made:
        made.get(server.url, timeout=60)
        response = made.get(server.url, stream=True, timeout=60)
        assert BODY == response.content
    assert 4.0 == pytest.approx(retry_history(response).attempts[0].gate_wait, abs=0.5)


def test_a_body_that_an_attempt_reads_is_given_up_once(caplog: pytest.LogCaptureFixture) -> None:
    """One record, one event, and each piece with what it brought; the limit counts from the last one that did."""
    shelf, told = Shelf(100_000, 50_000), Told()
    file = lambda request: shelf(request) if shelf.cuts else Reply(503)  # noqa: E731
    with FaultServer(file) as server, session(max_attempts=2, listeners=[told]) as made:
        history = retry_history(error_of(lambda: made.get(server.url, timeout=60)))
        assert "gave up after attempt 3: no attempts are left; last answer: 503" == history.sentence
        assert [("ChunkedEncodingError", 100_000), ("ChunkedEncodingError", 50_000), ("503", None)] == [
            (attempt.ending, attempt.received) for attempt in history.attempts
        ]
        assert [StopReason.MAX_ATTEMPTS] == told.ends
    assert 1 == len([record for record in caplog.records if "gave up" in record.getMessage()])


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("options", "sent"), [({"max_attempts": 3}, 3), ({"patience": 0, "backoff": 0}, 4)])
def test_a_rest_that_gets_no_answer_is_no_progress(options: dict[str, Any], sent: int, stream: bool) -> None:
    """The bytes before the break count once: each connection that is closed then is an attempt that failed."""
    cut, closed = CutBody(Reply(200, {"ETag": TAG}, BODY), at=1000), CloseAfterRequest()
    with FaultServer([cut, *[closed] * 20]) as server, session(**options) as made:
        error = error_of(lambda: made.get(server.url, timeout=60, stream=stream).content)
        history = retry_history(error)
        assert history is not None
        assert (sent, sent) == (len(server.requests), len(history.attempts))


class Told(RetryListener):
    """Keeps the last event of each operation."""

    def __init__(self) -> None:
        self.ends: list[Any] = []

    def gave_up(self, event: Any) -> None:
        self.ends.append(event.history.stop_reason)

    def succeeded(self, event: Any) -> None:
        self.ends.append(event.number)


LOST: dict[str, tuple[Any, int, str]] = {
    "no validator": (CutBody(Reply(200, {}, BODY), at=1000), 1, "no strong validator"),
    "chunked": (CutBody(Reply(200, {}, BODY, framing="chunked"), at=1000), 1, "no strong validator"),
    "a POST": (CutBody(Reply(200, {"ETag": TAG}, BODY), at=1000), 1, "the answer 200 to a POST"),
    "no ranges": (CutBody(Reply(200, {"ETag": TAG, "Accept-Ranges": "none"}, BODY), at=1000), 1, "sends no ranges"),
    "changed": (Shelf(1000, rest=MISFITS["200"]), 2, "the etag has changed|answered with 200"),
    "gone": (Shelf(1000, rest=MISFITS["404"]), 2, "answered with 404"),
    "down": (Shelf(1000, rest=MISFITS["503"]), 2, "attempts"),
}


@pytest.mark.parametrize("kind", LOST)
def test_a_stream_that_is_lost_is_told_of_everywhere(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """The exception, the history of both, the log, the listeners and the summary say it, and why; once."""
    file, attempts, why = LOST[kind]
    file = Shelf(1000, rest=file.rest) if isinstance(file, Shelf) else file
    told = Told()
    with FaultServer(file) as server, session(max_attempts=2, listeners=[told]) as made:
        response = made.request("POST" if kind == "a POST" else "GET", server.url, stream=True, timeout=60)
        error = error_of(lambda: response.content)
        summary = retry_summary(made)
    assert is_cut(error)
    assert re.search(f"at byte {1000 if kind != 'chunked' else ''}.*; not continued: ", str(error))
    history = retry_history(error)
    assert history == retry_history(response)
    assert (attempts, True) == (len(history.attempts), history.gave_up)
    assert re.search(why, history.sentence)
    assert [history.stop_reason] == told.ends
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno > 20]
    assert warning.split(": ", 1)[1].startswith(history.sentence)
    assert (1, 0, 1) == (summary.operations, summary.saved, summary.lost)


@pytest.mark.parametrize("stream", [False, True])
def test_a_body_that_went_on_is_one_operation_that_was_saved(stream: bool) -> None:
    """However often it broke off, and also if its head came at the second attempt."""
    turns: list[Behaviour] = [Reply(503)]
    shelf = Shelf(100_000, 50_000)
    told = Told()
    server = FaultServer(lambda request: turns.pop() if turns else shelf(request))
    with server, session(max_attempts=3, listeners=[told]) as made:
        assert BODY == made.get(server.url, stream=stream, timeout=60).content
        summary = retry_summary(made)
    assert (1, 1, 0) == (summary.operations, summary.saved, summary.lost)
    assert ([2, 3, 4] if stream else [4]) == told.ends


def test_the_error_of_a_lost_stream_leads_to_what_broke_it() -> None:
    """As with plain requests: the exception of urllib3 has what the connection raised as its cause."""
    with FaultServer(CutBody(Reply(200, body=BODY), at=1000)) as server, session() as made:
        response = made.get(server.url, stream=True, timeout=60)
        error = error_of(lambda: response.content)
    assert isinstance(error.args[0].__cause__, urllib3.exceptions.IncompleteRead)


def test_who_switched_it_off_is_told_as_well() -> None:
    """The stream is lost all the same."""
    with FaultServer(Shelf(1000)) as server, session(resume=False) as made:
        error = error_of(lambda: made.get(server.url, stream=True, timeout=60).content)
        assert 1 == retry_summary(made).lost
    assert "not continued: resume=False" in str(error)


def test_a_lost_stream_whose_response_is_gone_is_an_error_alone() -> None:
    """Only ``raw`` was kept, which has no history."""
    with FaultServer(CutBody(Reply(body=BODY), at=1000)) as server, session() as made:
        raw = made.get(server.url, stream=True, timeout=60).raw
        error = error_of(raw.read)
        assert 0 == retry_summary(made).lost
    assert "not continued" in str(error)
    assert retry_history(error) is None


class Beginning:
    """A server that sends the first third to who asks for the whole."""

    def __init__(self, headers: dict[str, str], framing: Any = "length", rest: bool = True, first: int = 0) -> None:
        self.headers, self.framing, self.rest, self.first = headers, framing, rest, first

    def __call__(self, request: RecordedRequest) -> Behaviour:
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", request.header("Range") or "")
        first, end = (int(asked[1]), int(asked[2] or len(BODY) - 1) + 1) if asked else (self.first, 100_000)
        if asked and not self.rest:
            return Reply(416)
        headers = {**self.headers, "Content-Range": f"bytes {first}-{end - 1}/{len(BODY)}"}
        return Reply(206, headers, BODY[first:end], framing=self.framing)


@pytest.mark.parametrize("framing", ["length", "close"])
@pytest.mark.parametrize("way", WAYS)
def test_a_beginning_that_nobody_asked_for_goes_on(way: str, framing: Any) -> None:
    """A 206 to a request without ``Range`` is a body that breaks off at its end, where it can be continued."""
    for stream in (False, True):
        with FaultServer(Beginning({"ETag": TAG}, framing)) as server, session() as made:
            response = made.get(server.url, stream=stream, timeout=60)
            assert BODY == (WAYS[way](response) if stream else response.content)
            assert [206, 206] == [200 + (item.status or 6) % 200 for item in retry_history(response).attempts]
        assert 2 == len(server.requests)


ONLY_A_PART: dict[str, tuple[Any, dict[str, Any]]] = {
    "no validator": (Beginning({}), {}),
    "chunked": (Beginning({"ETag": TAG}, "chunked"), {}),
    "the middle": (Beginning({"ETag": TAG}, first=1000), {}),
    "one attempt": (Beginning({"ETag": TAG}), {"max_attempts": 1}),
    "resume=False": (Beginning({"ETag": TAG}), {"resume": False}),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ONLY_A_PART)
def test_a_part_that_nobody_asked_for_is_told_of(kind: str, stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Where the rest cannot be had, the caller gets the part, and the log and the history say that it is one."""
    file, options = ONLY_A_PART[kind]
    with FaultServer(file) as server, session(**options) as made:
        response = made.get(server.url, stream=stream, timeout=60)
        assert BODY[file.first : 100_000] == response.content
    told = f"the server sent bytes {file.first} to 99999 of {len(BODY)}, though the whole was asked for"
    assert f"succeeded at attempt 1: {told}" == retry_history(response).sentence.replace(" of 1:", ":")
    assert told in caplog.text


def test_a_part_after_a_retry_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """Its history is made in another place."""
    turns: list[Behaviour] = [Reply(503)]
    with FaultServer(lambda request: turns.pop() if turns else Beginning({})(request)) as server, session() as made:
        assert "of 324000" in retry_history(made.get(server.url, timeout=60)).sentence.replace(str(len(BODY)), "324000")
    assert "though the whole was asked for" in caplog.text


@pytest.mark.parametrize("stream", [False, True])
def test_a_beginning_whose_rest_does_not_come_is_an_error(stream: bool) -> None:
    """As with any body that may be continued, and cannot be."""
    error = got(Beginning({"ETag": TAG}, rest=False), stream, max_attempts=2)
    assert is_cut(error)


@pytest.mark.parametrize(("own", "content"), [("bytes=0-99999", None), (None, f"bytes 0-{len(BODY) - 1}/{len(BODY)}")])
def test_a_part_that_was_asked_for_or_is_all_is_no_part(own: str | None, content: str | None) -> None:
    """Nothing is to be told of."""
    body = BODY if content else BODY[:100_000]
    headers = {"Content-Range": content or f"bytes 0-99999/{len(BODY)}"}
    with FaultServer(Reply(206, headers, body)) as server, session() as made:
        response = made.get(server.url, headers={"Range": own} if own else {}, timeout=60)
        assert body == response.content
    assert "succeeded at attempt 1" == retry_history(response).sentence
