"""What the explored adapter talks to: it checks each byte that it gets, and sends what the plan has."""

from __future__ import annotations

import functools
import gzip
import itertools
from typing import Any

from .network import DATA, END, RESET, Arrival, Link
from .plans import Op, Try
from .tasks import tasks

NO_BODY = frozenset({204, 304})
KERNEL = 16_384
"""Bytes that a socket takes before it has to wait."""
GARBAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad"
"""Bytes that nobody asked for."""


@functools.lru_cache(4096)
def content(number: int, version: int, size: int) -> bytes:
    """Return the body of a version of an object; each place in it tells whose it is, which version, and where."""
    unit = 16
    parts = (b"%04d.%d.%08d;" % (number, version, at) for at in range(size // unit + 1))
    return b"".join(parts)[:size]


@functools.lru_cache(4096)
def error_content(number: int, attempt: int, size: int) -> bytes:
    """Return the body of an error."""
    return (b"error of %d, attempt %d. " % (number, attempt) * (size // 20 + 1))[:size]


@functools.lru_cache(4096)
def request_body(number: int, size: int) -> bytes:
    """Return the body of an operation's request."""
    return (b"<%04d>" % number * (size // 6 + 1))[:size]


@functools.lru_cache(4096)
def _zipped(data: bytes) -> bytes:
    return gzip.compress(data, 1, mtime=0)


class Exchange:
    """One attempt as it was on the wire.

    :param number: of the attempt, from 1.
    :param met: what the plan has for it.
    """

    def __init__(self, number: int, met: Try) -> None:
        self.number = number
        self.met = met
        self.written = 0
        """Bytes of the request that reached the server."""
        self.was_whole = False
        """The server has the whole request."""
        self.answer: tuple[int, bytes] | None = None
        """The status and the body that the server sent, or would have sent but for the fault."""
        self.is_of_rest = False
        """The rest of a body was asked for."""
        self.is_cut = False
        """The answer broke off within its body, where only the end of the connection tells its end."""


class _Side:
    """What the server knows of one connection."""

    def __init__(self) -> None:
        self.buffer = b""
        self.headers: dict[str, str] | None = None
        """Of the request that is under way."""
        self.exchange: Exchange | None = None
        self.is_dead = False


class Server:
    """All servers.

    :param report: is told of what may not be.
    """

    def __init__(self, report: Any) -> None:
        self.report = report

    def accept(self, link: Link) -> None:
        """Take a connection."""
        link.state = _Side()

    def sending(self, link: Link, exchange: Exchange) -> None:
        """Prepare for the bytes of an attempt, which may be the first ones."""
        side: _Side = link.state
        if side.exchange is exchange:
            return
        if side.buffer:
            self.report("spliced: a request follows half of another one")
        if side.exchange is not None and any(each.kind is DATA and each.data != GARBAGE for each in link.arriving):
            self.report("spliced: a request follows an answer that was not read to its end")
        side.exchange = exchange
        # The kernel takes the first bytes even where the far end reads nothing.
        room = {"reset": 0, "stall": KERNEL}.get(exchange.met.request)
        link.room = None if room is None else room + exchange.met.request_at

    def receive(self, link: Link, data: bytes, number: int, op: Op, exchange: Exchange) -> None:
        """Take bytes of a request, and answer once it is whole."""
        side: _Side = link.state
        exchange.written += len(data)
        side.buffer += data
        if side.headers is None:
            head, end, rest = side.buffer.partition(b"\r\n\r\n")
            if not end:
                return
            side.headers, side.buffer = self._headers(head, number, op), rest
            if exchange.met.request == "early":
                self._answer(link, number, op, exchange, side.headers)
                link.is_deaf = True
        headers = side.headers
        body = None if link.is_deaf else self._body(side, headers)
        if body is None:
            return
        side.headers, side.buffer = None, b""
        if body != request_body(number, op.length if op.body else 0):
            self.report(f"spliced: the body of operation {number} is another one: {body[:40]!r}, {len(body)} bytes")
        exchange.was_whole = True
        if side.is_dead:
            link.arriving.append(Arrival(tasks.now + exchange.met.latency, RESET))
            return
        self._answer(link, number, op, exchange, headers)

    def awaited(self, link: Link) -> None:
        """Take note that a client waits for an answer, which half of a request never gets."""
        side: _Side = link.state
        if side.headers is not None and side.exchange is not None and not (link.is_deaf or side.exchange.met.request):
            self.report("spliced: an answer is waited for, and half of the request's body was sent")

    def _headers(self, head: bytes, number: int, op: Op) -> dict[str, str]:
        line, *lines = head.decode("latin-1").split("\r\n")
        if line != f"{op.method} /{number} HTTP/1.1":
            self.report(f"spliced: operation {number} sent the line {line!r}")
        return {name.lower(): value for name, _, value in (text.partition(": ") for text in lines)}

    def _body(self, side: _Side, headers: dict[str, str]) -> bytes | None:
        """Return the body of a request; None: it is not whole."""
        if "transfer-encoding" not in headers:
            length = int(headers.get("content-length", "0"))
            return side.buffer if len(side.buffer) >= length else None
        found, rest = b"", side.buffer
        while True:
            size, end, rest = rest.partition(b"\r\n")
            if not end:
                return None
            count = int(size, 16)
            if len(rest) < count + 2:
                return None
            if not count:
                return found
            found, rest = found + rest[:count], rest[count + 2 :]

    def _answer(self, link: Link, number: int, op: Op, exchange: Exchange, asked: dict[str, str]) -> None:
        met, exchange.is_of_rest = exchange.met, "range" in asked
        head, body, tail = self._written(number, op, exchange, asked)
        raw = b"HTTP/1.1 103 Early Hints\r\n\r\n" * met.interim + head + body + tail
        ends = met.framing == "close" or met.after in ("close", "end")
        cut = met.at % max(1, len(raw)) if met.fault else len(raw)
        at = tasks.now + met.latency
        arrivals = self._pieces(raw[:cut], at, met.pieces)
        if met.fault in ("end", "reset"):
            exchange.is_cut = met.framing == "close" and met.fault == "end" and cut >= len(raw) - len(body)
            arrivals.append(Arrival(at, END if met.fault == "end" else RESET))
        elif met.fault:
            late = raw[cut:]
            if met.fault == "drip":
                for byte in late[:20]:
                    at += met.seconds / 20
                    arrivals.append(Arrival(at, DATA, bytes([byte])))
                late = late[20:]
            else:
                at += met.seconds
            arrivals += self._pieces(late, at, 1)
        at = arrivals[-1].at if arrivals else at
        if ends:
            arrivals.append(Arrival(at, END))
        elif met.after == "garbage":
            arrivals.append(Arrival(at, DATA, GARBAGE))
        link.state.is_dead = met.after == "dead"
        link.arriving.extend(arrivals)

    def _written(self, number: int, op: Op, exchange: Exchange, asked: dict[str, str]) -> tuple[bytes, bytes, bytes]:
        """Return the head, the body as it is framed, and what ends it."""
        met = exchange.met
        status, fields = met.status, [*met.headers]
        if status < 300 and status not in NO_BODY:
            plain = content(number, met.version, op.answer)
        else:
            plain = b"" if status in NO_BODY else error_content(number, exchange.number, met.size)
        body = _zipped(plain) if met.coding and status not in NO_BODY else plain
        exchange.answer = status, plain
        if met.coding:
            fields.append(("Content-Encoding", met.coding))
        if status == 200:
            tag = f'"{number}-{met.version}-{met.coding}"'
            fields.append(("ETag", tag))
            status, body = self._part(met, asked, tag, body, fields)
        tail = b""
        if status in NO_BODY:
            pass
        elif met.framing == "length":
            fields.append(("Content-Length", str(len(body))))
        elif met.framing == "chunked":
            fields.append(("Transfer-Encoding", "chunked"))
            parts = [body[at : at + 4000] for at in range(0, len(body), 4000)]
            body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
            tail = b"0\r\n\r\n"
        if met.framing == "close" or met.after == "close":
            fields.append(("Connection", "close"))
        if op.method == "HEAD":
            body, tail, exchange.answer = b"", b"", (status, b"")
        lines = itertools.chain([f"HTTP/1.1 {status} Said"], (f"{name}: {value}" for name, value in fields))
        return "\r\n".join(lines).encode() + b"\r\n\r\n", body, tail

    def _part(
        self, met: Try, asked: dict[str, str], tag: str, body: bytes, fields: list[tuple[str, str]]
    ) -> tuple[int, bytes]:
        """Return the status and the body of an answer to a request for a range."""
        range_ = asked.get("range", "")
        is_other = met.ranges != "blind" and asked.get("if-range") not in (None, tag)
        if not range_ or met.ranges == "ignored" or is_other:
            return 200, body
        first = int(range_.removeprefix("bytes=").split("-")[0])
        if met.ranges == "wrong":
            first += 1
        if first >= len(body):
            return 200, body
        end = len(body) - (len(body) - first) // 2 if met.ranges == "half" else len(body)
        fields.append(("Content-Range", f"bytes {first}-{end - 1}/{len(body)}"))
        return 206, body[first:end]

    def _pieces(self, data: bytes, at: float, count: int) -> list[Arrival]:
        size = max(1, -(-len(data) // count))
        parts = range(0, len(data), size)
        return [Arrival(at + 0.001 * which, DATA, data[begin : begin + size]) for which, begin in enumerate(parts)]
