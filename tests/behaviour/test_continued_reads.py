"""``response.raw.read(n)`` of a body that goes on over another connection is as it is over one (contract 14.6)."""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3.exceptions

from requests_smithy_retry.features.resume import body as body_module
from tests.behaviour.test_resume import TAG, Shelf
from tests.faults import CutBody, FaultServer, Reply
from tests.unit.wire.support import session

BODY = random.Random(7).randbytes(300_000)
Cut = partial(Shelf, body=BODY)
"""A server with one file, whose connections break off after so many bytes of the body; then one that does not."""


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("size", [7, 1000, 65_536, 200_000])
def test_a_read_is_short_only_at_the_end(size: int, framing: str) -> None:
    """Readers of records take a short one for the end of the body."""
    body = BODY[: max(3000, min(len(BODY), 300 * size))]
    cuts = [len(body) // 3 + 1, len(body) // 4 + 2]
    with FaultServer(Cut(*cuts, body=body, framing=framing)) as server, session() as made:
        raw = made.get(server.url, stream=True, timeout=60).raw
        blocks = list(iter(lambda: raw.read(size), b""))
        assert 3 == len(server.requests)
    assert body == b"".join(blocks)
    assert [size] * (len(blocks) - 1) == [len(block) for block in blocks[:-1]]


WAYS: dict[str, Callable[[Any], bytes]] = {
    "content": lambda response: response.content,
    "iter_content": lambda response: b"".join(response.iter_content(10)),
    "stream": lambda response: b"".join(response.raw.stream(10)),
    "lines": lambda response: b"".join(response.raw),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("coding", ["gzip, chunked", "identity, chunked", "Chunked"])
def test_chunks_behind_another_transfer_coding_are_read(coding: str, way: str) -> None:
    """``http.client`` does not know them, urllib3 does; such a body was empty, without an error, or never ended."""
    reply = Reply(200, {"ETag": TAG, "Transfer-Encoding": coding}, b"5\r\na\nb\nc\r\n2\r\nde\r\n0\r\n\r\n")
    with FaultServer([reply]) as server, session() as made:
        assert b"a\nb\ncde" == WAYS[way](made.get(server.url, stream=way != "content", timeout=10))


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_small_reads_ask_the_connection_for_more_at_once(framing: str) -> None:
    """Ten thousand short reads of a file with an ``ETag`` would cost twice the CPU time of a plain adapter's."""
    heard: list[int] = []
    bar: Any = SimpleNamespace(body_progress=lambda event: heard.append(event.received))
    with FaultServer(Cut(100_003, framing=framing)) as server, session(listeners=[bar]) as made:
        raw = made.get(server.url, stream=True, timeout=60).raw
        assert BODY == b"".join(iter(lambda: raw.read(30), b""))
    assert heard[-1] == len(BODY)
    assert len(heard) < 1000


def test_a_buffer_above_is_filled() -> None:
    """``io.BufferedReader`` and ``readinto`` read records."""
    with FaultServer(Cut(100_003, 50_001)) as server, session() as made:
        raw: Any = made.get(server.url, stream=True, timeout=60).raw
        raw.auto_close = False
        with io.BufferedReader(raw, 5000) as file:
            blocks = list(iter(lambda: file.read(7777), b""))
    assert BODY == b"".join(blocks)
    assert [7777] * (len(blocks) - 1) == [len(block) for block in blocks[:-1]]


@pytest.mark.parametrize("size", [1000, 10_000])
def test_a_decoded_read_is_empty_only_at_the_end(size: int) -> None:
    """A few coded bytes may decode to nothing; that is no end."""
    coded = Cut(5, 20_001, body=gzip.compress(BODY, 1), headers={"ETag": TAG, "Content-Encoding": "gzip"})
    with FaultServer(coded) as server, session() as made:
        raw = made.get(server.url, stream=True, timeout=60).raw
        assert BODY == b"".join(iter(lambda: raw.read(size, decode_content=True), b""))


def test_what_came_before_an_error_is_read_first() -> None:
    """A body that may not go on gives out what there is, a short block at last, and then raises."""
    blocks: list[bytes] = []
    with FaultServer([CutBody(Reply(200, {"ETag": TAG}, BODY), at=100_003)]) as server, session() as made:
        raw = made.get(server.url, stream=True, timeout=60).raw
        with pytest.raises(urllib3.exceptions.ProtocolError, match="at byte 100003 of 300000; not continued"):
            blocks.extend(iter(lambda: raw.read(1000), b""))
        assert 2 == len(server.requests)
    assert BODY[:100_003] == b"".join(blocks)
    assert [1000] * 100 + [3] == [len(block) for block in blocks]


def test_so_it_is_after_a_connection_was_given_back() -> None:
    """Nothing is continued then, and the last bytes come before the error all the same."""
    blocks: list[bytes] = []
    with FaultServer([CutBody(Reply(200, {}, BODY), at=5_003)]) as server, session() as made:
        raw = made.get(server.url, stream=True, timeout=60).raw
        raw.release_conn()
        with pytest.raises(urllib3.exceptions.ProtocolError):
            blocks.extend(iter(lambda: raw.read(1000), b""))
    assert [1000] * 5 + [3] == [len(block) for block in blocks]


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("size", [100, 20_000])
def test_a_connection_that_was_given_back_unread_is_not_used_again(size: int, is_kept: bool) -> None:
    """The next request goes over another one; a POST, which may not be sent again, ended in an error."""
    with FaultServer([Reply(200, {}, BODY[:size])]) as server, session() as made:
        unread = made.get(server.url, stream=True, timeout=60).raw
        unread.release_conn()
        if not is_kept:
            unread.close()
        assert 200 == made.post(server.url, timeout=60).status_code
        assert (2, 2) == (server.connections, len(server.requests))


def test_what_a_signals_handler_raises_is_no_break(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exception reaches the reader, and no rest is asked for."""
    with FaultServer(Cut(100_003)) as server, session() as made:
        raw = made.get(server.url, stream=True, timeout=60).raw
        monkeypatch.setattr(body_module, "is_interruption", lambda error: True)
        with pytest.raises(urllib3.exceptions.HTTPError):
            raw.read()
        assert 1 == len(server.requests)


def test_a_signal_at_the_end_of_a_rest_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a signal's handler raises while the last chunk is read reaches the reader, too."""
    shelf = Cut(100_003, framing="chunked", rest=lambda _, reply: CutBody(reply, at=-5))
    with FaultServer(shelf) as server, session() as made:
        raw = made.get(server.url, stream=True, timeout=60).raw
        assert BODY[:200_000] == raw.read(200_000)
        monkeypatch.setattr(body_module, "is_interruption", lambda error: True)
        with pytest.raises(urllib3.exceptions.HTTPError):
            raw.read()


def test_a_body_whose_connection_was_given_back_is_not_continued() -> None:
    """A program that calls ``release_conn`` early may read on, as with urllib3, until another request takes it."""
    with FaultServer(Cut(100_003)) as server, session() as made:
        raw = made.get(server.url, stream=True, timeout=60).raw
        assert BODY[:1000] == raw.read(1000)
        raw.release_conn()
        with pytest.raises(urllib3.exceptions.ProtocolError):
            raw.read()
        assert 1 == len(server.requests)


def test_a_rest_that_is_left_in_any_order_gives_its_place_back() -> None:
    """Closed, given back and closed once more, as programs do."""
    with FaultServer(Cut(1000)) as server, session(pool_block=True, pool_maxsize=1) as made:
        for leave in ("release_conn", "close"), ("close", "release_conn"):
            raw = made.get(server.url, stream=True, timeout=60).raw
            assert BODY[:5000] == raw.read(5000)
            for name in leave:
                getattr(raw, name)()
        assert BODY == made.get(server.url, timeout=60).content


@pytest.mark.parametrize("size", [50_000, 300_000])
@pytest.mark.parametrize("status", [200, 302, 404])
def test_a_read_of_all_says_why_it_is_not_all(size: int, status: int) -> None:
    """What came is lost with the error, as with urllib3; but for a success the error is urllib3's own."""
    bar: Any = SimpleNamespace(body_progress=lambda event: None)
    cut = CutBody(Reply(status, {}, BODY[:size]), at=10_003)
    with FaultServer([cut]) as server, session(listeners=[bar]) as made:
        raw = made.get(server.url, stream=True, timeout=60, allow_redirects=False).raw
        with pytest.raises(urllib3.exceptions.ProtocolError) as raised:
            raw.read()
    assert (status == 200) == ("not continued" in str(raised.value))
