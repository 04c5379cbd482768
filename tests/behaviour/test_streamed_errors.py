"""A classifier sees the bodies of short JSON answers that a program streams, and the program sees nothing of it."""

from __future__ import annotations

import gzip
import json
import threading
import time
from dataclasses import replace
from typing import Any

import pytest
import requests
import responses
from requests.adapters import HTTPAdapter

from requests_smithy_retry import (
    ErrorInBodyClassifier,
    RetryAction,
    RetryAdapter,
    SystemClock,
    classifier,
    retry_history,
)
from requests_smithy_retry.core import exchange
from requests_smithy_retry.testing import FakeClock, ScriptedReply, scripted
from requests_smithy_retry.wire import response as wire
from tests.behaviour.test_resume import TAG, Shelf
from tests.behaviour.test_ways_of_reading import LEAVES, READS, ours, plain, seen
from tests.faults import Behaviour, CutBody, Drip, FaultServer, Reply
from tests.support import URL, send, session_with

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of responses that are left, as by programs
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

JSON = {"Content-Type": "application/json"}
BUSY = json.dumps({"busy": True, "why": [f"line {number}" for number in range(900)]}).encode()
LONG = json.dumps({"busy": True, "why": "x" * 70_000}).encode()
SIZED = Reply(400, JSON, BUSY)
CODED = Reply(400, {**JSON, "Content-Encoding": "gzip"}, gzip.compress(BUSY, mtime=0))
SHORT: dict[str, Any] = {
    "sized": SIZED,
    "sized 200": replace(SIZED, status=200),
    "gzip": CODED,
    "gzip 200": replace(CODED, status=200),
    "chunked": replace(SIZED, framing="chunked"),
    "gzip, chunked": replace(CODED, framing="chunked"),
    "problem": Reply(422, {"Content-Type": "application/problem+json; charset=utf-8"}, BUSY),
}
"""Is looked at."""
OTHERS: dict[str, Any] = {
    "chunked 200": Reply(200, JSON, BUSY, framing="chunked"),
    "until the end of the connection": Reply(400, JSON, BUSY, framing="close"),
    "text": Reply(400, {"Content-Type": "text/plain"}, BUSY),
    "no type": Reply(400, {}, BUSY),
    "long": Reply(400, JSON, LONG),
    "long, chunked": Reply(400, JSON, LONG, framing="chunked"),
    "long in gzip": Reply(400, {**JSON, "Content-Encoding": "gzip"}, gzip.compress(LONG, mtime=0)),
    "cut": CutBody(SIZED),
    "cut 200": CutBody(replace(SIZED, status=200)),
    "cut chunk": CutBody(SHORT["chunked"]),
    "cut gzip": CutBody(CODED),
    "undecodable": Reply(400, {**JSON, "Content-Encoding": "gzip"}, BUSY),
    "empty": Reply(400, JSON),
    "204": Reply(204, JSON),
}
"""Is not looked at, or shows no error."""


def adapter(found: Any = True, **options: Any) -> RetryAdapter:
    """An adapter whose classifier looks for an error, in a pool of one place."""
    item = ErrorInBodyClassifier(lambda body: found if body["busy"] else None, "busy")
    options = {"clock": FakeClock(), "quota": None, "pool_block": True, "pool_maxsize": 1, **options}
    return RetryAdapter(classifiers=[item], **options)


MOCKED = {
    "an error": (ScriptedReply(400, JSON, BUSY), True),
    "a 200 with a length": (ScriptedReply(200, {**JSON, "Content-Length": str(len(BUSY))}, BUSY), True),
    "gzip": (ScriptedReply(400, {**JSON, "Content-Encoding": "gzip"}, gzip.compress(BUSY)), True),
    "a 200 without one": (ScriptedReply(200, JSON, BUSY), False),
    "long": (ScriptedReply(400, JSON, LONG), False),
    "empty": (ScriptedReply(400, JSON), False),
    "no BytesIO": (ScriptedReply(400, JSON, BUSY, cut=True), False),
}


@pytest.mark.parametrize("kind", MOCKED)
def test_the_body_of_a_mock_is_seen_as_that_of_a_server_would_be(kind: str) -> None:
    """It lies in memory; who streams it reads all of it."""
    reply, is_seen = MOCKED[kind]
    item = ErrorInBodyClassifier(lambda body: True if body["busy"] else None, "busy")
    made = scripted(reply, 200, classifiers=[item], quota=None)
    response = send(made, stream=True)
    assert (200, 2) if is_seen else (reply.status, 1) == (response.status_code, len(made.sent))
    if kind != "no BytesIO":
        assert made.responses[0].raw.closed or made.responses[0].content in (BUSY, LONG, b"")


@pytest.mark.parametrize("library", ["responses", "requests_mock"])
def test_a_streamed_error_of_a_mock_is_retried(library: str) -> None:
    """By the usual calls of both libraries; requests-mock names no type of its own."""
    pytest.importorskip(library)
    made = session_with(adapter())
    if library == "responses":
        with responses.RequestsMock() as mock:
            mock.get(URL, status=400, json={"busy": True})
            mock.get(URL, json={"busy": False})
            assert {"busy": False} == made.get(URL, stream=True).json()
        return
    import requests_mock

    service = requests_mock.Adapter()
    service.register_uri(
        "GET", URL, [{"status_code": 400, "json": {"busy": True}, "headers": JSON}, {"json": {"busy": False}}]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HTTPAdapter, "send", lambda own, request, **how: service.send(request, **how))
        assert {"busy": False} == made.get(URL, stream=True).json()


@pytest.mark.parametrize("kind", [*SHORT, *OTHERS])
def test_which_streamed_errors_are_seen(kind: str) -> None:
    """A JSON body of at most 64 KiB: of any answer by its length, of an error also in chunks."""
    with (
        FaultServer([{**SHORT, **OTHERS}[kind]], default=Reply(body=b"fine")) as server,
        session_with(adapter()) as made,
    ):
        response = made.get(server.url, stream=True, timeout=60)
        assert len(server.requests) == (2 if kind in SHORT else 1)
        assert response._content is False
        assert kind not in SHORT or response.content == b"fine"


@pytest.mark.parametrize("kind", [*SHORT, "long, chunked", "cut", "cut 200", "cut chunk", "cut gzip", "undecodable"])
def test_what_was_seen_is_read_as_if_nobody_had_looked(kind: str) -> None:
    """The same bytes or exceptions in each way of reading, the same state of ``raw``, the same place in the pool."""
    unseen = ours if kind.startswith("cut") else plain  # ours says that it was cut, whatever urllib3
    with FaultServer(default={**SHORT, **OTHERS}[kind]) as server:
        for way, use in {**READS, **LEAVES}.items():
            assert (way, seen(unseen(), server.url, use)) == (way, seen(adapter(found=None), server.url, use))


def test_the_last_one_is_handed_over_unread() -> None:
    """Whether the error is in a 200 or in a 400, its body is its reader's when no attempt follows."""
    for status in (200, 400):
        reply = replace(SIZED, status=status)
        with FaultServer(default=reply) as server, session_with(adapter(max_attempts=2)) as made:
            response = made.get(server.url, stream=True, timeout=60)
            assert len(retry_history(response).attempts) == 2
            assert response._content is False
            assert response.raw.read() == BUSY


class Gated(Behaviour):
    """Sends the head and half of the body, and the rest when it is told to."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def act(self, wire: Any, request: Any) -> None:
        wire.send(SIZED.head(request) + BUSY[:2000])
        self.gate.wait(60)
        wire.send(BUSY[2000:])
        SIZED.finish(wire, request)


@pytest.mark.parametrize(
    ("options", "timeout"),
    [({}, 60), ({}, 0.3), ({"operation_timeout": 0.3}, 60)],
    ids=["second", "timeout", "deadline"],
)
def test_a_late_body_holds_nobody_up(options: Any, timeout: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look ends in time, fails no later read, and what came is read by who streams it."""
    monkeypatch.setattr(wire, "PEEK_SECONDS", 30 if options or timeout < 1 else 0.3)
    late = Gated()
    with FaultServer(late) as server, session_with(adapter(**options)) as made:
        began = time.monotonic()
        response = made.get(server.url, stream=True, timeout=timeout)
        assert time.monotonic() - began < 20
        late.gate.set()
        assert response.content == BUSY
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("most", "delay", "options"), [(0.3, 0, {}), (30, 0.8, {"operation_timeout": 1.6})], ids=["second", "deadline"]
)
def test_a_drip_holds_nobody_up(most: float, delay: float, options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All looks together end in time, however often a byte comes, also where the head has taken half of it."""
    monkeypatch.setattr(wire, "PEEK_SECONDS", most)
    drip = Drip("body", 0.05, replace(SIZED, body=BUSY[:40], delay=delay))
    with FaultServer(drip) as server, session_with(adapter(clock=SystemClock(), **options)) as made:
        response = made.get(server.url, stream=True, timeout=60)
        assert len(response.raw._original_response.fp.raw.held_ahead) < 18
        assert response.content == BUSY[:40]


def test_nothing_is_read_that_nobody_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default classifiers look at no streamed body."""
    monkeypatch.setattr(exchange, "peek_streamed", None)
    with FaultServer(default=Reply(403, JSON, BUSY)) as server, session_with(RetryAdapter(quota=None)) as session:
        assert session.get(server.url, stream=True, timeout=60).content == BUSY


def test_a_classifier_of_the_programs_sees_it_once() -> None:
    """``body_prefix`` has it for any classifier; once the response is handed over, nobody looks at it any more."""
    outcomes = []

    @classifier
    def keeps(outcome: Any) -> RetryAction | None:
        outcomes.append(outcome)
        return RetryAction.client_error() if outcome.body_prefix == BUSY == outcome.body_prefix else None

    untold = classifier(outcomes.append)
    for item, left in ((keeps, BUSY), (untold, b"")):
        kept = RetryAdapter(classifiers=[item], max_attempts=1)
        with FaultServer(default=SIZED) as server, session_with(kept) as made:
            response = made.get(server.url, stream=True, timeout=60)
            assert response.raw.read(5) == BUSY[:5]
            assert outcomes.pop().body_prefix == left
            assert response.raw.read() == BUSY[5:]


def test_the_rest_of_a_body_is_not_looked_at() -> None:
    """A JSON body that broke off goes on in its reader's hands: a part of it shows no error, and no byte is lost."""
    prefixes = []

    @classifier(sees_successes=True)
    def looks(outcome: Any) -> None:
        prefixes.append(outcome.body_prefix)

    shelf = Shelf(100, 3, 900, body=BUSY, headers={**JSON, "ETag": TAG})
    kept = RetryAdapter(classifiers=[looks], clock=FakeClock(), quota=None)
    with FaultServer(shelf) as server, session_with(kept) as made:
        assert made.get(server.url, stream=True, timeout=60).content == BUSY
    assert ([BUSY[:100]], {b""}) == (prefixes[:1], set(prefixes[1:]))


@pytest.mark.parametrize("code", ["LOCKED", "FINAL"])
def test_an_error_in_place_of_the_rest_of_a_body_is_seen(code: str) -> None:
    """Its code decides, as that of an answer to the first request does."""

    @classifier
    def by_code(outcome: Any) -> RetryAction | None:
        known = {b"LOCKED": RetryAction.client_error(), b"FINAL": RetryAction.retry_forbidden("final")}
        return next((action for word, action in known.items() if word in outcome.body_prefix), None)

    body = b"0123456789" * 20_000
    rest = Reply(206, {"ETag": TAG, "Content-Range": f"bytes 9-{len(body) - 1}/{len(body)}"}, body[9:])
    error = Reply(503 if code == "FINAL" else 409, JSON, json.dumps({"code": code}).encode())
    with FaultServer([CutBody(Reply(200, {"ETag": TAG}, body), at=9), error, rest]) as server:
        session = session_with(RetryAdapter(classifiers=[by_code], backoff=0))
        response = session.get(server.url, stream=True)
        if code == "LOCKED":
            assert body == response.content
        else:
            with pytest.raises(requests.RequestException, match="503 where the rest was asked for"):
                response.content  # noqa: B018
        assert (3 if code == "LOCKED" else 2) == len(server.requests)
