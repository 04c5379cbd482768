"""A body on its way to a connection (contract 5): never more bytes than its head declares, and an error if it is short.

More bytes than declared would be the server's next request on the connection; fewer would keep it waiting. The error
is raised in the middle of an upload, so the connection is closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import urllib3

from ..checks import header_text

BLOCK = 16_384
"""The bytes of one read, if a whole file is asked for at once."""

TEXT_CODING = "utf-8" if hasattr(urllib3, "BaseHTTPResponse") else "iso-8859-1"
"""The encoding in which this urllib3 sends a text-mode file whose length is declared."""


class BodyChanged(RuntimeError):
    """A body is not as long as its head says, or has nothing left; the attempt was broken off before its end."""


def declared_length(headers: Mapping[str, Any]) -> int | None:
    """Return the length that a request's head declares; None if there is none, or it is not a number."""
    text = header_text(headers.get("Content-Length")).strip()
    return int(text) if text.isascii() and text.isdigit() else None


class Upload:
    """A body that counts the bytes it yields, at most the declared number; it has the body's attributes.

    :param length: the declared length; None: none is declared, and all of it is sent.
    """

    def __init__(self, body: Any, length: int | None) -> None:
        self._body = body
        self.length = length
        self.given: int | None = None
        """The bytes yielded so far; None before the first read."""
        self.is_whole: bool = False
        """It was read to its end."""
        self.has_more: bool = False
        """It is longer than declared."""
        self.is_again: bool = False
        """An earlier request sent it; if it yields nothing now, it is used up."""

    def _parts(self) -> Iterator[Any]:
        """Iterate over the body, up to the first part that goes beyond the declared length."""
        self.given, self.is_whole, self.has_more = 0, False, False
        for part in self._body:
            yield self._counted(part) if part else part  # urllib3 skips what is empty
            del part  # the traceback of an error in the next one shows the locals of this frame
            if self.has_more:
                break
        self._end()

    def _counted(self, part: Any) -> Any:
        """Count a part, and return as much of it as is declared; whole bytes and buffers are not copied."""
        if isinstance(part, str):
            part = part.encode()
        size, given = _size(part), self.given or 0
        if self.length is not None and given + size > self.length:
            size, self.has_more = self.length - given, True
            part = bytes(memoryview(part).cast("B")[:size])
        self.given = given + size
        return part

    def _end(self) -> None:
        """Mark the body as whole; raise :class:`BodyChanged` if it has ended before its declared length."""
        given = self.given = self.given or 0
        if self.length is not None and given < self.length:
            raise BodyChanged(f"the body ended after {given} of the {self.length} bytes that its head declares")
        self.is_whole = True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._body, name)


class IterableUpload(Upload):
    """An iterable body. Its iterator is made when the first part is needed."""

    def __iter__(self) -> Iterator[Any]:
        yield from self._parts()
        if self.is_again and self.given == 0:
            raise BodyChanged("the body was sent in an earlier request, and gives nothing more")


class ReadableUpload(Upload):
    """A body with ``read``: one call here is one call of it."""

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes, at most ``size``; all that is left if that is negative or None."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(BLOCK), b""))
        left = size if self.length is None else self.length - (self.given or 0)
        part: Any = self._body.read(min(size, left)) or b""
        if isinstance(part, str):
            part = part.encode("utf-8" if self.length is None else TEXT_CODING)
        part = self._counted(part)
        if size and not part:
            self._end()
        return part  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Any]:
        """Give its parts: urllib3 1.26 iterates over a file whose length is not declared."""
        return self._parts()


class SeekableUpload(ReadableUpload):
    """A file that can ``seek``; it is sent from the position ``start``."""

    def __init__(self, body: Any, length: int | None, start: int) -> None:
        super().__init__(body, length)
        self._start = start

    def seek(self, *where: Any) -> Any:
        """Move the position: a signer reads a body before it is sent, and goes back."""
        position = self._body.seek(*where)
        self.given: int | None = max(0, self._body.tell() - self._start)
        self.is_whole = self.has_more = False
        return position


def _size(part: Any) -> int:
    return len(part) if isinstance(part, (bytes, bytearray)) else memoryview(part).nbytes


def size_in_memory(body: Any) -> int:
    """Return the bytes of a buffer, or of a list or tuple of bytes and text."""
    parts = body if isinstance(body, (list, tuple)) else (body,)
    return sum(_size(part.encode() if isinstance(part, str) else part) for part in parts)
