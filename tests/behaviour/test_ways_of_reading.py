"""A response is read, left and given back as with a plain adapter, whatever its framing, also where it is continued."""

from __future__ import annotations

import io
import queue
import shutil
from collections.abc import Callable
from typing import Any

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

from requests_smithy_retry import RetryAdapter
from tests.behaviour.test_resume import TAG, Shelf
from tests.faults import FaultServer, Reply

pytestmark = [  # of responses that are left, as by programs
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

BODY = b"".join(b"line %d of a file\n" % number for number in range(1500))
EMPTY_TAG = {"ETag": TAG}


def copied(raw: Any) -> bytes:
    file = io.BytesIO()
    shutil.copyfileobj(raw, file, 1000)
    return file.getvalue()


def into(raw: Any, size: int) -> bytes:
    parts, buffer = [], bytearray(size)
    while count := raw.readinto(buffer):
        parts.append(bytes(buffer[:count]))
    return b"".join(parts)


def lines_of(file: Any) -> list[Any]:
    return list(file)


def unclosed(raw: Any) -> Any:
    """As urllib3's own documentation says for readers that look at ``closed``."""
    raw.auto_close = False
    return raw


READS: dict[str, Callable[[requests.Response], Any]] = {
    "content": lambda r: r.content,
    "text": lambda r: r.text,
    "iter_content(1)": lambda r: b"".join(r.iter_content(1)),
    "iter_content(1000)": lambda r: b"".join(r.iter_content(1000)),
    "iter_content(None)": lambda r: b"".join(r.iter_content(None)),
    "iter_lines": lambda r: list(r.iter_lines(512)),
    "iter": lambda r: b"".join(r),
    "raw.read()": lambda r: r.raw.read(),
    "raw.read() twice": lambda r: (r.raw.read(), r.raw.read(), r.raw.read(5)),
    "raw.read(0)": lambda r: (r.raw.read(0), r.raw.read()),
    "raw.read(7)": lambda r: b"".join(iter(lambda: r.raw.read(7), b"")),
    "raw.read(1000)": lambda r: list(iter(lambda: r.raw.read(1000), b"")),
    "raw.read(all)": lambda r: r.raw.read(len(BODY)),
    "raw.read(more)": lambda r: r.raw.read(10 * len(BODY)),
    "raw.read(decoded)": lambda r: r.raw.read(decode_content=True),
    "raw.read(cached)": lambda r: (r.raw.read(cache_content=True), r.raw.data),
    "raw.data": lambda r: (r.raw.data, r.raw.data),
    "raw.read1()": lambda r: b"".join(iter(lambda: r.raw.read1(), b"")),
    "raw.read1(700)": lambda r: b"".join(iter(lambda: r.raw.read1(700), b"")),
    "raw.readinto": lambda r: into(r.raw, 1000),
    "raw.stream(7)": lambda r: b"".join(r.raw.stream(7)),
    "raw.stream(None)": lambda r: b"".join(r.raw.stream(None)),
    "raw.read_chunked": lambda r: b"".join(r.raw.read_chunked(1000)),
    "raw.readline": lambda r: list(iter(lambda: r.raw.readline(), b"")),
    "raw.readlines": lambda r: r.raw.readlines(),
    "lines of raw": lambda r: lines_of(r.raw),
    "BufferedReader": lambda r: lines_of(io.BufferedReader(r.raw)),
    "BufferedReader, unclosed": lambda r: io.BufferedReader(unclosed(r.raw), 100).read(),
    "TextIOWrapper": lambda r: lines_of(io.TextIOWrapper(r.raw)),
    "TextIOWrapper of BufferedReader": lambda r: lines_of(io.TextIOWrapper(io.BufferedReader(r.raw))),
    "copyfileobj": lambda r: copied(r.raw),
    "_fp.read": lambda r: r.raw._fp.read(),
    "_fp.read1": lambda r: b"".join(iter(lambda: r.raw._fp.read1(500), b"")),
    "_fp.readinto": lambda r: into(r.raw._fp, 500),
    "in turns": lambda r: r.raw.read(100) + b"".join(r.iter_content(50)),
}
if hasattr(urllib3, "BaseHTTPResponse"):  # 1.26 would read past the end, for as long as the connection is open
    READS["raw.read(-1)"] = lambda r: r.raw.read(-1)
LEAVES: dict[str, Callable[[requests.Response], Any]] = {
    "drain_conn": lambda r: r.raw.drain_conn(),
    "part, drain_conn": lambda r: (r.raw.read(100), r.raw.drain_conn()),
    "close": lambda r: r.close(),
    "part, close": lambda r: (r.raw.read(100), r.close()),
    "part, raw.close": lambda r: (r.raw.read(100), r.raw.close()),
    "part, raw.close, release_conn": lambda r: (r.raw.read(100), r.raw.close(), r.raw.release_conn()),
    "all, release_conn": lambda r: (r.raw.read(), r.raw.release_conn()),
    "with": lambda r: r.__exit__(r.__enter__()),
    "with, part": lambda r: r.__exit__(next(r.__enter__().iter_content(10))),
    "generator": lambda r: next(r.iter_content(10)),
    "unread": lambda r: None,
}


def outcome(use: Callable[[requests.Response], Any], response: requests.Response) -> Any:
    """What a way of reading gives, and what the response says of itself afterwards."""
    raw: Any = response.raw
    try:
        found: Any = use(response)
    except Exception as error:
        found = type(error)
    return found, raw.closed, raw.isclosed(), raw.tell(), raw._connection is None


def seen(
    adapter: HTTPAdapter, url: str, use: Callable[[requests.Response], Any], method: str = "GET", *, stream: bool = True
) -> Any:
    """The outcome of a way of reading, and what is left of a pool of one once the response is gone."""
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", adapter)
        response = session.request(method, url, stream=stream, timeout=60)
        found = outcome(use, response)
        del response
        pool = adapter.poolmanager.connection_from_url(url).pool
        try:
            connection = pool.get_nowait()
        except queue.Empty:
            return found, "the place is lost"
        return found, "open" if connection is not None and connection.sock is not None else "free"


def plain() -> HTTPAdapter:
    return HTTPAdapter(pool_block=True, pool_maxsize=1)


def ours() -> RetryAdapter:
    return RetryAdapter(pool_block=True, pool_maxsize=1, backoff=0, quota=None)


FRAMINGS: dict[str, Any] = {"length": "length", "chunked": "chunked", "close": "close"}


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("way", {**READS, **LEAVES})
def test_a_body_that_might_go_on_is_read_and_given_back_as_any(way: str, framing: Any) -> None:
    """The same bytes or exceptions, the same state of ``raw``, the same place in the pool, as with plain requests."""
    use = {**READS, **LEAVES}[way]
    with FaultServer(default=Reply(200, {"ETag": TAG}, BODY, framing=framing)) as server:
        assert seen(plain(), server.url, use) == seen(ours(), server.url, use)


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("way", READS)
def test_a_body_that_goes_on_is_read_as_one_that_was_never_cut(way: str, framing: Any) -> None:
    """Who reads it notices nothing, wherever it broke off, and the place in the pool is there again."""
    with FaultServer(default=Reply(200, {"ETag": TAG}, BODY, framing=framing)) as server:
        expected = seen(plain(), server.url, READS[way])
    for cuts in ([1], [len(BODY) - 1], [10_000, 3, 9_000]):
        with FaultServer(Shelf(*cuts, body=BODY, framing=framing)) as server:
            assert expected == seen(ours(), server.url, READS[way])
            assert len(cuts) + 1 == len(server.requests) or isinstance(expected[0][0], type)


@pytest.mark.parametrize("size", [1, 1000, 65_536, 200_000])
@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_body_that_was_read_for_the_caller_is_left_as_any(framing: Any, size: int) -> None:
    """Whether it came with its head or later, every way of reading it again does as with plain requests."""
    with FaultServer(default=Reply(200, {}, (BODY * 8)[:size], framing=framing)) as server:
        for way, use in READS.items():
            expected = seen(plain(), server.url, use, stream=False)
            assert (way, expected) == (way, seen(ours(), server.url, use, stream=False))


EMPTY: dict[str, tuple[str, Reply]] = {
    "Content-Length: 0": ("GET", Reply(200, EMPTY_TAG)),
    "no chunk": ("GET", Reply(200, EMPTY_TAG, framing="chunked")),
    "closed": ("GET", Reply(200, EMPTY_TAG, framing="close")),
    "HEAD": ("HEAD", Reply(200, EMPTY_TAG, BODY)),
    "HEAD, chunked": ("HEAD", Reply(200, EMPTY_TAG, BODY, framing="chunked")),
    "204": ("GET", Reply(204, EMPTY_TAG)),
    "304": ("GET", Reply(304, EMPTY_TAG)),
    "206": ("GET", Reply(206, EMPTY_TAG)),
    "404": ("GET", Reply(404, EMPTY_TAG)),
    "coded": ("GET", Reply(200, {**EMPTY_TAG, "Content-Encoding": "gzip"})),
}


@pytest.mark.parametrize("kind", EMPTY)
def test_an_empty_body_gives_its_place_back(kind: str) -> None:
    """Each way of reading nothing leaves the pool as with plain requests; without the place, a program hangs."""
    method, reply = EMPTY[kind]
    with FaultServer(default=reply) as server:
        for way, use in {**READS, **LEAVES}.items():
            assert (way, seen(plain(), server.url, use, method)) == (way, seen(ours(), server.url, use, method))
