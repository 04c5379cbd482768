"""1,000 cuts of a response at random offsets: the body as it was meant, or an error."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import random
import socket
import sys
import threading
import zlib
from collections.abc import Iterator

import brotli
import pytest
import requests
from urllib3.response import HTTPResponse

from .support import session

pytestmark = pytest.mark.untraced

CUTS = 250
BODY = random.Random(4).randbytes(3000) + b"a line that compresses\n" * 200
HASH = hashlib.sha256(BODY).digest()
CODINGS = {"identity": BODY, "gzip": gzip.compress(BODY), "deflate": zlib.compress(BODY)}
CODINGS["members"] = gzip.compress(BODY[:4000]) + gzip.compress(BODY[4000:])
CODINGS["br"] = brotli.compress(BODY)
if "zstd" in HTTPResponse.CONTENT_DECODERS:  # from urllib3 2 on
    zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")

    CODINGS["zstd"] = zstd.compress(BODY)


class CuttingServer:
    """Sends each answer up to an offset and closes; as fast as a single thread can."""

    def __init__(self, answer: bytes, offsets: list[int]) -> None:
        self.answer, self.offsets = answer, offsets
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        for offset in self.offsets:
            sock, _ = self.listener.accept()
            with sock:
                sock.recv(65536)
                sock.sendall(self.answer[:offset])
        self.listener.close()


def answer(coding: str, framing: str) -> bytes:
    data = CODINGS[coding]
    name = {"identity": "identity", "members": "gzip"}.get(coding, coding)
    # Each request has a connection of its own: over one that is just being closed, the server would not see it.
    head = f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: {name}\r\nX-Filler: {'x' * 200}\r\n"
    if framing == "length":
        return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data
    parts = (data[at : at + 700] for at in range(0, len(data), 700))
    # Sizes are padded, as many a server's are: cut after the first 0, one looks like the last chunk.
    chunks = b"".join(b"%04x\r\n%b\r\n" % (len(part), part) for part in parts)
    return f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunks + b"0000\r\n\r\n"


@pytest.fixture(params=[(coding, framing) for coding in CODINGS for framing in ("length", "chunked")], ids="-".join)
def cut(request: pytest.FixtureRequest) -> Iterator[tuple[CuttingServer, bytes]]:
    whole = answer(*request.param)
    draw = random.Random(str(request.param))
    server = CuttingServer(whole, [draw.randrange(len(whole) + 1) for _ in range(CUTS // 2)])
    yield server, whole
    server.thread.join(60)
    assert not server.thread.is_alive()


def test_a_cut_response_is_never_taken_for_whole(cut: tuple[CuttingServer, bytes]) -> None:
    """Equal to what was meant, or a requests exception; and equal only where nothing that matters was missing."""
    server, whole = cut
    with session(max_attempts=1) as made:
        for offset in server.offsets:
            try:
                content = made.get(server.url, timeout=60).content
            except requests.RequestException:
                continue
            assert hashlib.sha256(content).digest() == HASH
            assert offset >= len(whole) - len(b"\r\n")


@pytest.mark.parametrize("tail", [b"0", b"00", b"0\r", b"0;ext"])
def test_a_size_that_was_cut_after_its_zeros_is_no_last_chunk(tail: bytes) -> None:
    """Such a size may have been the beginning of ``00ff``, so the body counts as cut."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0003\r\nabc\r\n"
    server = CuttingServer(head + tail, [len(head + tail)])
    with session(max_attempts=1) as made, pytest.raises(requests.exceptions.ChunkedEncodingError):
        made.get(server.url, timeout=60)
    server.thread.join()


@pytest.mark.parametrize("tail", [b"0\r\n", b"0\n", b"000\r\nX: y", b"0;ext\r\n\r\n"])
def test_the_last_chunk_is_the_end_whatever_follows(tail: bytes) -> None:
    """Trailers may be missing (RFC 9112 8)."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0003\r\nabc\r\n"
    server = CuttingServer(head + tail, [len(head + tail)])
    with session(max_attempts=1) as made:
        assert made.get(server.url, timeout=60).content == b"abc"
    server.thread.join()
