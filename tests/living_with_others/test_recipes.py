"""The recipes of the page do what they say, on sockets."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import requests

from requests_smithy_retry import mount
from requests_smithy_retry.testing import CutBody, FaultServer, RecordedRequest, Reply, skipped_waits
from tests.project.test_docs import blocks_of
from tests.unit.features.redis.servers import RedisServer

pytestmark = [pytest.mark.real_time, pytest.mark.untraced]
PAGE = Path(__file__).resolve().parents[2] / "docs/howto/recipes.md"


def after(words: str, *others: str) -> dict[str, Any]:
    """Run the first block and the one with some words in it, with others in place of some."""
    space: dict[str, Any] = {"__name__": "page"}
    first, block = blocks_of(PAGE)[0], next(block for block in blocks_of(PAGE) if words in block)
    exec(compile(first, PAGE.name, "exec"), space)
    for old, new in zip(others[::2], others[1::2], strict=True):
        block = block.replace(old, new)
    exec(compile(block, PAGE.name, "exec"), space)
    return space


def test_a_stream_of_events_goes_on_where_it_broke_off() -> None:
    """The second request names the last whole event; each event comes once; a 204 is the end."""
    stream = b"id: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\nda"
    kind = {"Content-Type": "text/event-stream"}
    cut = CutBody(Reply(200, kind, stream + b"ta: c\n\n" * 9, framing="chunked"), at=44)
    rest = Reply(200, kind, b": welcome back\nid: 3\ndata: c\n\n")
    with FaultServer([cut, rest, Reply(204)]) as server:
        space = after("def events")
        assert [("1", "a"), ("2", "b"), ("3", "c")] == list(space["events"](server.url, wait=0))
        space["session"].close()
    assert [None, "2", "3"] == [request.header("Last-Event-ID") for request in server.requests]


NEW, DONE = Reply(200, {}, b'{"status": "new"}'), Reply(200, {}, b'{"status": "done"}')


@pytest.mark.parametrize(
    ("words", "url", "script", "sent"),
    [
        ("not_there_yet", "/things/1", [Reply(200), *[Reply(404)] * 4, Reply(200)], 6),
        ("finished", "/jobs/1", [*[NEW] * 4, DONE], 5),
        ("is_abc", "/abc.bin", [Reply(200, {}, b"other"), Reply(200, {}, b"abc")], 2),
        ("health", "/health", [*[Reply(503)] * 4, Reply(200)], 5),
    ],
)
def test_a_recipe_ends_with_the_answer(words: str, url: str, script: list[Any], sent: int) -> None:
    """After as many requests as it takes."""
    with FaultServer(script) as server:
        after(words, "https://api.example.com", server.url, "https://example.com", server.url, "2.0", "0.05")[
            "session"
        ].close()
        assert (sent, url) == (len(server.requests), server.requests[-1].path)


@pytest.mark.parametrize(
    ("options", "polls"),
    [
        ({"max_attempts": 1}, [Reply(401), NEW, Reply(401), NEW, Reply(401)]),
        ({"operation_timeout": 1}, [NEW] * 4),
        ({"enabled": False}, [NEW] * 4),
    ],
)
def test_no_option_of_an_sdks_user_ends_the_loop_of_polls(options: dict[str, Any], polls: list[Any]) -> None:
    """It ends with the job, or when its own time is up; a token may expire before each poll."""
    with FaultServer([DONE, *polls, DONE], default=NEW) as server, requests.Session() as session:
        space = after("def finished", "https://api.example.com", server.url)
        space["session"].close()
        space["session"] = mount(session, on_unauthorized=lambda _: {"Authorization": "new"}, **options)
        session.headers["Authorization"] = "old"
        assert {"status": "done"} == space["finished"](f"{server.url}/jobs/1", pause=0.3)
        assert 2 + len(polls) == len(server.requests)
        with pytest.raises(TimeoutError):
            space["finished"](f"{server.url}/jobs/1", seconds=0.5, pause=0.1)


def test_a_long_poll_waits_through_an_outage() -> None:
    """The loop gets each answer and no exception; few requests go to a service that is down for 15 s."""
    with FaultServer() as server, skipped_waits() as clock:

        def news(request: RecordedRequest) -> Reply:
            is_down = len(server.requests) > 1 and sum(clock.sleeps) < 15
            return Reply(503 if is_down else 200, {}, b"[1, 2]")

        server.script(news)
        space = after("def news")
        polls = space["news"](server.url)
        assert [1, 2, 1, 2, 1] == list(itertools.islice(polls, 5))
        space["session"].close()
    assert len(server.requests) < 20


def test_each_attempt_takes_a_permit_of_the_limiter_on_redis() -> None:
    """Two failures and a success are three of five a second."""
    pytest.importorskip("requests_ratelimiter")
    text = PAGE.read_text(encoding="utf-8")
    block = re.search(r"<!-- not run.*?-->\n```python\n(.*?)```", text, re.DOTALL)
    assert block is not None
    redis = RedisServer()
    try:
        space: dict[str, Any] = {"session": requests.Session()}
        code = block[1].replace("Redis()", f"Redis(port={redis.port})").replace('"https://"', '"http://"')
        exec(compile(code, PAGE.name, "exec"), space)
        with FaultServer([Reply(503), Reply(503), Reply(200)]) as server:
            assert 200 == space["session"].get(server.url).status_code
        assert 3 == space["bucket"].count()
        space["session"].get_adapter(server.url).limiter.close()  # its thread would ask a Redis that is gone
        space["session"].close()
    finally:
        redis.kill()
