"""A request as the server records it, and the reader of requests."""

from __future__ import annotations

from dataclasses import dataclass, field

from .wire import HangUp, Wire


@dataclass(frozen=True)
class RecordedRequest:
    """A request as it arrived.

    :param method: the method as sent.
    :param target: the request target as sent: a path with its query, or a whole URL or ``host:port`` at a proxy.
    :param headers: name and value of each header line, in order, in the case as sent.
    :param body: the bytes of the upload that were read, without chunk framing.
    :param body_complete: False if the upload was cut, malformed, without its last chunk, or not read on purpose.
    :param connection_id: the number of the connection, from 0 in the order of acceptance.
    :param arrived: the ``time.monotonic()`` after the head was read.
    :param index: the position in the server's list, from 0.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = field(default=b"", repr=False)
    body_complete: bool = True
    connection_id: int = 0
    arrived: float = 0.0
    index: int = 0

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def keep_alive(self) -> bool:
        """Return False if the client asked to close the connection."""
        return (self.header("Connection") or "").lower() != "close"

    def header(self, name: str) -> str | None:
        """Return the value of the first header line of that name, in any case; None if there is none."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def header_values(self, name: str) -> list[str]:
        """Return the values of all header lines of that name, in any case."""
        return [value for key, value in self.headers if key.lower() == name.lower()]


def read_head(wire: Wire) -> tuple[str, str, tuple[tuple[str, str], ...]] | None:
    """Return method, target and headers, up to the blank line; None if the client closed instead.

    :raises HangUp: for a head that is cut, larger than 1 MiB, or not HTTP.
    """
    data = b""
    while b"\r\n\r\n" not in data:
        piece = wire.receive()
        if not piece and not data:
            return None
        data += piece
        if not piece or len(data) > 1 << 20:
            raise HangUp("the client sent no whole head")
    head, _, rest = data.partition(b"\r\n\r\n")
    wire.put_back(rest)
    request_line, *lines = head.decode("latin-1").split("\r\n")
    words = request_line.split(" ")
    if len(words) != 3:
        raise HangUp("the client sent no HTTP request line")
    pairs = (line.partition(":") for line in lines)
    return words[0], words[1], tuple((name, value.strip()) for name, _, value in pairs)


def has_upload(request: RecordedRequest) -> bool:
    return is_chunked(request) or request.header("Content-Length") not in (None, "0")


def is_chunked(request: RecordedRequest) -> bool:
    return (request.header("Transfer-Encoding") or "").lower().endswith("chunked")


def read_body(wire: Wire, request: RecordedRequest) -> tuple[bytes, bool]:
    """Read the upload that the head announced: the bytes that came, and True if they are all."""
    body = bytearray()
    try:
        if is_chunked(request):
            _read_chunks(wire, body)
        elif has_upload(request):
            _read_exactly(wire, int(request.header("Content-Length") or "", 10), body)
    except (HangUp, ValueError):
        return bytes(body), False
    return bytes(body), True


def _read_chunks(wire: Wire, body: bytearray) -> None:
    while size := int(_read_line(wire).partition(b";")[0], 16):
        _read_exactly(wire, size, body)
        if _read_line(wire):
            raise ValueError("a chunk is longer than its size says")
    while _read_line(wire):
        pass  # a trailer


def _read_exactly(wire: Wire, size: int, body: bytearray) -> None:
    if size < 0:
        raise ValueError("a length below 0")
    while size > 0:
        piece = _receive(wire)
        body += piece[:size]
        wire.put_back(piece[size:])
        size -= len(piece)


def _read_line(wire: Wire) -> bytes:
    line = b""
    while b"\n" not in line:
        line += _receive(wire)
    line, _, rest = line.partition(b"\n")
    wire.put_back(rest)
    return line.rstrip(b"\r")


def _receive(wire: Wire) -> bytes:
    piece = wire.receive()
    if not piece:
        raise HangUp("the upload ends early")
    return piece
