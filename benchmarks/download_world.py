"""Downloads in a simulated transport: servers that break off, change or refuse, each drawn from a seed.

There is no network and no waiting: a connection is a list of bytes that ends in some way. What a client takes for the
body is compared with the versions that the server had.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import re
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import requests
import urllib3.exceptions
from urllib3.util import connection as urllib3_connection

from requests_smithy_retry import RetryAdapter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

URL = "http://files.example.com/file"
RIGHT, FAILED, WRONG, LEAK = OUTCOMES = ("right", "error", "wrong bytes", "leak")
WAYS = ("content", "iter_content", "iter_lines", "raw.read", "raw.read(n)", "copyfileobj")
MISDEEDS = (
    *("ignores Range", "other range", "shorter range", "no Content-Range", "other total", "416", "multipart"),
    *("redirects", "503", "changes", "weakens", "drops its ETag", "other coding", "too much"),
    *("ignores If-Range", "ignores If-Range"),
)
"""The faults of a server that is asked for the rest of a body."""
FULL_DATE, OLD_DATE = "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 07:00:00 GMT"


class Version:
    """One version of the file."""

    def __init__(self, draw: random.Random, number: int, coding: str, size: int) -> None:
        self.plain = draw.randbytes(size // 2) + bytes(size - size // 2)
        if draw.random() < 0.5:
            lines = b"".join(b"%d %d\n" % (number, line) for line in range(size // 8 + 1))
            self.plain = lines[:size]
        self.coded = gzip.compress(self.plain, 1, mtime=0) if coding else self.plain
        if coding and draw.random() < 0.3:  # several members
            middle = len(self.plain) // 2
            parts = self.plain[:middle], self.plain[middle:]
            self.coded = b"".join(gzip.compress(part, 1, mtime=0) for part in parts)
        self.tag = f'"{number}"'


class World:
    """A server and its network.

    :param seed: everything is drawn from it.
    """

    def __init__(self, seed: int) -> None:
        self.draw = draw = random.Random(seed)
        self.coding = draw.choice(("", "", "gzip"))
        sizes = (0, 1, draw.randrange(200), draw.randrange(20_000), draw.randrange(200_000))
        size = draw.choice(sizes)
        # The next version often has the same length, so that no length tells it from the first.
        other = size if draw.random() < 0.7 else draw.choice(sizes)
        self.versions = [Version(draw, number, self.coding, size) for number, size in enumerate((size, other))]
        self.now = 0
        self.framing = draw.choice(("length", "length", "chunked", "close"))
        self.validator = draw.choice(("strong", "strong", "strong", "weak", "none", "date", "young date"))
        self.version_line = "HTTP/1.0" if self.framing == "close" and draw.random() < 0.5 else "HTTP/1.1"
        self.trouble = draw.choice((0.2, 0.5, 0.9))
        self.malice = draw.choice((0.0, 0.2, 0.6))
        self.first, self.last = 0, None
        if draw.random() < 0.15:
            self.first = draw.randrange(len(self.versions[0].coded) + 1)
            self.last = draw.choice((None, self.first + draw.randrange(1, 50_000)))
        self.way = draw.choice(WAYS)
        self.sockets: list[Wire] = []
        self.requests = 0
        self.troubles = draw.randrange(6)

    @property
    def has_own_range(self) -> bool:
        """The caller asks for a part."""
        return self.first > 0 or self.last is not None

    def answer(self, head: str) -> tuple[bytes, str]:
        """The bytes that come in answer to a request, and how they end: close, reset or stall."""
        self.requests += 1
        draw, is_rest = self.draw, "if-range:" in head.lower()
        misdeed = draw.choice(MISDEEDS) if is_rest and draw.random() < self.malice else ""
        if misdeed in ("changes", "ignores If-Range") or (not is_rest and self.requests > 1 and draw.random() < 0.2):
            self.now = 1
        data = self._reply(head, misdeed)
        if self.troubles and draw.random() < self.trouble:
            self.troubles -= 1
            # Where the end of the connection is that of the body, no client knows that it came too early; nor does one
            # in Python that TLS was reset.
            ends = ("stall",) if self.framing == "close" else ("close", "reset", "stall")
            return data[: draw.randrange(len(data) + 1)], draw.choice(ends)
        return data, "close"

    def _reply(self, head: str, misdeed: str) -> bytes:
        version = self.versions[self.now]
        is_coded = self.coding and not re.search(r"^accept-encoding: identity\r$", head, re.IGNORECASE | re.MULTILINE)
        whole, status = version.coded if is_coded else version.plain, 200
        headers = self._headers(version)
        if is_coded:
            headers["Content-Encoding"] = self.coding
        asked = re.search(r"^range: bytes=(\d+)-(\d*)\r$", head, re.IGNORECASE | re.MULTILINE)
        wanted = re.search(r"^if-range: (.*)\r$", head, re.IGNORECASE | re.MULTILINE)
        if misdeed == "503":
            return b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        if misdeed == "redirects":
            return b"HTTP/1.1 302 Found\r\nLocation: http://edge.example.com/\r\nContent-Length: 0\r\n\r\n"
        if misdeed == "416":
            return b"HTTP/1.1 416 No\r\nContent-Range: bytes */9\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        fits = (
            wanted is None
            or misdeed == "ignores If-Range"
            or wanted[1] in (headers.get("ETag"), headers.get("Last-Modified"))
        )
        if asked and fits and misdeed != "ignores Range" and int(asked[1]) < len(whole):
            status, whole, headers = self._part(whole, headers, misdeed, int(asked[1]), asked[2])
        elif asked and fits and misdeed != "ignores Range":
            return b"HTTP/1.1 416 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        if misdeed == "weakens" and "ETag" in headers:
            headers["ETag"] = "W/" + headers["ETag"]
        if misdeed == "drops its ETag":
            headers.pop("ETag", None)
        if misdeed == "other coding":
            headers["Content-Encoding"] = "br"
        return self._framed(status, headers, whole, misdeed)

    def _part(
        self, whole: bytes, headers: dict[str, str], misdeed: str, first: int, last: str
    ) -> tuple[int, bytes, dict[str, str]]:
        end = min(int(last) + 1, len(whole)) if last else len(whole)
        total = len(whole)
        if misdeed == "shorter range" and end - first > 1:
            end = first + self.draw.randrange(1, end - first)
        if misdeed == "other range":
            first = max(0, first + self.draw.choice((-1, 1)))
        if misdeed == "other total":
            total += 1
        part = whole[first:end]
        if misdeed == "multipart":
            headers["Content-Type"] = "multipart/byteranges; boundary=x"
            return 206, b"--x\r\n\r\n" + part + b"\r\n--x--\r\n", headers
        if misdeed != "no Content-Range":
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{total}"
        if misdeed == "too much":
            part += b"more"
        return 206, part, headers

    def _headers(self, version: Version) -> dict[str, str]:
        headers = {"Date": FULL_DATE, "Connection": "close"}
        if self.validator in ("strong", "weak"):
            headers["ETag"] = ("W/" if self.validator == "weak" else "") + version.tag
        elif self.validator == "date":
            headers["Last-Modified"] = OLD_DATE if version is self.versions[0] else FULL_DATE
        elif self.validator == "young date":
            headers["Last-Modified"] = FULL_DATE
        return headers

    def _framed(self, status: int, headers: dict[str, str], body: bytes, misdeed: str) -> bytes:
        framing = self.framing if status == 200 or misdeed == "too much" else self.draw.choice(("length", "chunked"))
        if framing == "length":
            headers["Content-Length"] = str(len(body))
        elif framing == "chunked":
            headers["Transfer-Encoding"] = "chunked"
            size, chunks = self.draw.choice((7, 1000, 30_000)), []
            for start in range(0, len(body), max(size, len(body) // 50 + 1)):
                part = body[start : start + max(size, len(body) // 50 + 1)]
                chunks.append(b"%x\r\n%s\r\n" % (len(part), part))
            body = b"".join(chunks) + b"0\r\n\r\n"
        line = f"{self.version_line} {status} X\r\n"
        return (line + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n").encode() + body

    def connect(self, *_: Any, **__: Any) -> Wire:
        """Open a connection, in place of urllib3's ``create_connection``."""
        self.sockets.append(Wire(self))
        return self.sockets[-1]


class Wire:
    """A connection, in place of a socket."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._sent = b""
        self._data: io.BytesIO | None = None
        self._end = "close"
        self._io_refs = 0
        self._is_closed = False

    def sendall(self, data: bytes) -> None:
        """Take a request."""
        self._sent += bytes(data)
        if self._sent.endswith(b"\r\n\r\n"):
            data, self._end = self._world.answer(self._sent.decode("latin-1"))
            self._data = io.BytesIO(data)

    def recv_into(self, buffer: Any) -> int:
        """Give some bytes, or end."""
        assert self._data is not None
        part = self._data.read(min(len(buffer), self._world.draw.choice((1, 100, 5000, 100_000))))
        if not part and self._end == "reset":
            raise ConnectionResetError(104, "reset")
        if not part and self._end == "stall":
            raise TimeoutError("timed out")
        buffer[: len(part)] = part
        return len(part)

    def settimeout(self, seconds: float | None) -> None:
        """Do nothing."""

    def gettimeout(self) -> float:
        """Some seconds."""
        return 9.0

    def setsockopt(self, *_: Any) -> None:
        """Do nothing."""

    def _decref_socketios(self) -> None:
        self._io_refs -= 1

    def close(self) -> None:
        """Close; as with a socket, what was made of it may still read."""
        self._is_closed = True

    @property
    def is_open(self) -> bool:
        """Neither it nor what was made of it is closed."""
        return self._io_refs > 0 or not self._is_closed


@contextlib.contextmanager
def inside(world: World) -> Iterator[None]:
    """Have urllib3 connect to a world."""
    with mock.patch.object(urllib3_connection, "create_connection", world.connect):
        yield


def download(session: requests.Session, world: World) -> bytes:
    """Download the file in the world's way; return the bytes that the client takes for the body."""
    headers = {}
    if world.has_own_range:
        headers["Range"] = f"bytes={world.first}-{'' if world.last is None else world.last}"
    with session.get(URL, headers=headers, stream=world.way != "content", timeout=9) as response:
        if response.status_code not in (200, 206):
            raise requests.HTTPError(str(response.status_code), response=response)
        world.status = response.status_code
        return _read(response, world)


def _read(response: requests.Response, world: World) -> bytes:
    size = world.draw.choice((10, 1000, 8192, 65_536, 1 << 20))
    raw: Any = response.raw
    if world.way == "content":
        return response.content
    if world.way == "iter_content":
        return b"".join(response.iter_content(size))
    if world.way == "iter_lines":
        return b"".join(response.iter_lines(size))
    if world.way == "raw.read":
        return raw.read()
    if world.way == "raw.read(n)":
        return b"".join(iter(lambda: raw.read(size), b""))
    file = io.BytesIO()
    shutil.copyfileobj(raw, file, size)
    return file.getvalue()


def right_bodies(world: World) -> list[Any]:
    """The bodies that a client may end with: one version, whole or the part that was asked for, decoded or not."""
    found: list[Any] = []
    for version in world.versions:
        is_raw = world.way.startswith(("raw", "copy"))
        if world.status == 200:
            found.append(version.coded if is_raw else version.plain)
            continue
        part = version.coded[world.first : None if world.last is None else world.last + 1]
        found.append(part)
        if world.coding and not is_raw:
            with contextlib.suppress(Exception):
                found.append(gzip.decompress(part))
            found.append(Ellipsis)  # a part of a coded body decodes to something, or not at all
    if world.way == "iter_lines":
        return [body if body is Ellipsis else body.translate(None, b"\r\n") for body in found]
    return found


def ours() -> requests.Session:
    """The session under test."""
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", RetryAdapter(max_attempts=4, initial_backoff=0, quota=None))
    return session


def run(seed: int, make: Callable[[], requests.Session] = ours) -> tuple[str, World]:
    """One download: its outcome, and the world it went through."""
    world = World(seed)
    with inside(world), make() as session:
        try:
            got = download(session, world)
        except (requests.RequestException, urllib3.exceptions.HTTPError):
            outcome = FAILED
        else:
            bodies = right_bodies(world)
            outcome = RIGHT if got in bodies or Ellipsis in bodies else WRONG
    if any(wire.is_open for wire in world.sockets):
        outcome = LEAK
    return outcome, world


def many(seeds: range, make: Callable[[], requests.Session] = ours) -> Counter[str]:
    """The outcomes of many downloads."""
    return Counter(run(seed, make)[0] for seed in seeds)


if __name__ == "__main__":
    begin, count = (int(text) for text in sys.argv[1:3])
    print(many(range(begin, begin + count)))
