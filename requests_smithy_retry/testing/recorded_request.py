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
    if not has_upload(request):
        return b"", True
    reader = _BodyReader(wire)
    try:
        if is_chunked(request):
            reader.read_chunks()
        else:
            reader.read_exactly(int(request.header("Content-Length") or "", 10))
    except (HangUp, ValueError):
        return bytes(reader.body), False
    return bytes(reader.body), True


class _BodyReader:
    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.body = bytearray()

    def read_chunks(self) -> None:
        while size := int(self.read_line().partition(b";")[0], 16):
            self.read_exactly(size)
            if self.read_line():
                raise ValueError("a chunk is longer than its size says")
        while self.read_line():
            pass  # a trailer

    def read_exactly(self, size: int) -> None:
        if size < 0:
            raise ValueError("a length below 0")
        end = len(self.body) + size
        while len(self.body) < end:
            piece = self._receive()
            missing = end - len(self.body)
            self.body += piece[:missing]
            self.wire.put_back(piece[missing:])

    def read_line(self) -> bytes:
        line = b""
        while b"\n" not in line:
            line += self._receive()
        line, _, rest = line.partition(b"\n")
        self.wire.put_back(rest)
        return line.rstrip(b"\r")

    def _receive(self) -> bytes:
        piece = self.wire.receive()
        if not piece:
            raise HangUp("the upload ends early")
        return piece
