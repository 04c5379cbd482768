"""The rules for continuing a body that broke off (contract 14.6): which body, by which request, with which answer.

Pure. Positions in a body begin at 0; those in a representation are the ones in a range.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from requests import PreparedRequest, Response

from ...checks import copy_of
from ...core.server_hints import parse_http_date
from ...wire.decoding import PARTIAL, ContentRange, content_range

NOT_SATISFIABLE = 416
STRONG_AFTER = 60.0
"""Seconds between a date and its answer that make it a strong validator (RFC 9110 8.8.2.2)."""

_ETAG = r'"[\x21\x23-\x7e\x80-\xff]*"'
_RANGE = r"(?i)bytes=(?:[0-9]{1,18}-[0-9]{0,18}|-[0-9]{1,18})"
_LENGTH = r"(?i)bytes \*/([0-9]{1,18})"


class Piece(NamedTuple):
    """A continuation that fits.

    :param until: the position in the body after its last byte; None if it is the end of a body of unknown length.
    :param total: the length of the body; None if it is not known.
    :param skipped: the bytes before it, which were already received.
    """

    until: int | None
    total: int | None
    skipped: int = 0


class Resumable(NamedTuple):
    """A body that may be continued.

    :param field: the header field of its validator, in lower case.
    :param coding: its content coding, as the server wrote it.
    :param start: the position of its first byte in the representation; more than 0 only for a caller's own range.
    :param end: the position after its last byte; None if it is the end of a representation of unknown length.
    :param total: the length of the representation; None if it is not known.
    """

    field: str
    validator: str
    coding: str
    start: int = 0
    end: int | None = None
    total: int | None = None

    def request_from(self, request: PreparedRequest, received: int) -> PreparedRequest:
        """Return a copy of a request that asks for the rest, if the version is still the same."""
        last = "" if self.end is None or self.end == self.total else str(self.end - 1)
        made = copy_of(request)
        made.headers["Range"] = f"bytes={self.start + received}-{last}"
        made.headers["If-Range"] = self.validator
        return made

    def fit(self, response: Response, received: int) -> Piece | str:
        """Return the piece of the body that an answer to :meth:`request_from` brings; or why it does not fit, as a
        phrase.
        """
        if response.status_code != PARTIAL:
            return self._fit_other(response, received)
        found = content_range(response)
        if found is None:
            return "the server sent no usable Content-Range"
        total = found.total if self.total is None else self.total
        end = total if self.end is None else self.end
        if end is None or total is None or found.total not in (None, total):
            return "the length of the whole has changed, or is not known"
        if found.first != self.start + received or found.end > end:
            return "the server sent another range than was asked for"
        return self._odd_field(response, str(found.end - found.first)) or Piece(
            found.end - self.start, end - self.start
        )

    def _fit_other(self, response: Response, received: int) -> Piece | str:
        """Return the piece that an answer other than a 206 brings: the whole, or nothing if nothing is missing."""
        status = response.status_code
        if status == NOT_SATISFIABLE and self.end is None and _length_of_whole(response) == received:
            return Piece(received, received)
        if status != 200 or self.field != "etag" or (self.start, self.end) != (0, self.total):
            return f"the server answered with {status} where the rest was asked for"
        total = _length(response) if self.total is None else self.total
        if total is None and "transfer-encoding" not in response.headers:
            return "the server sent the whole again, without a length"
        return self._odd_field(response, str(total)) or Piece(total, total, received)

    def _odd_field(self, response: Response, length: str) -> str:
        """Return a phrase for the header field of an answer that does not fit; "" if all do."""
        headers = response.headers
        validator = headers.get(self.field, "").strip()
        if validator != self.validator:
            return f"the {self.field} has changed" if validator else f"the answer has no {self.field}"
        if headers.get("content-encoding", "").strip().lower() != self.coding:
            return "the content coding has changed"
        if headers.get("content-length", length).strip() != length:
            return "the Content-Length contradicts the length that the answer must have"
        return ""


def resumable(request: PreparedRequest, response: Response) -> Resumable | str:
    """Return how an unread body may be continued; or why not, as a phrase."""
    if request.method != "GET" or response.status_code not in (200, PARTIAL):
        return f"it is the answer {response.status_code} to a {request.method}"
    validator = _validator(response)
    if validator is None:
        return "the server sent no strong validator, such as an ETag"
    if "none" in response.headers.get("accept-ranges", "").lower():
        return "the server says that it sends no ranges"
    coding = response.headers.get("content-encoding", "").strip().lower()
    if response.status_code == 200:
        length = _length(response)
        return Resumable(*validator, coding, 0, length, length)
    return _resumable_part(request, response, validator, coding)


def _resumable_part(
    request: PreparedRequest, response: Response, validator: tuple[str, str], coding: str
) -> Resumable | str:
    found, own = content_range(response), request.headers.get("Range")
    if found is None or (own is not None and (not isinstance(own, str) or not re.fullmatch(_RANGE, own.strip()))):
        return "it is a part of several ranges"
    if own is None:
        is_beginning = found.first == 0 and found.total is not None
        return Resumable(*validator, coding, 0, found.total, found.total) if is_beginning else "nobody asked for a part"
    return Resumable(*validator, coding, found.first, found.end, found.total)


def unasked_part(request: PreparedRequest, response: Response) -> ContentRange | None:
    """Return the part that answers a request for the whole; None: it is the whole, or unknown."""
    found = content_range(response) if response.status_code == PARTIAL and "range" not in request.headers else None
    return None if found is None or (found.first, found.end) == (0, found.total) else found


def _length_of_whole(response: Response) -> int | None:
    match = re.fullmatch(_LENGTH, response.headers.get("content-range", "").strip())
    return None if match is None else int(match[1])


def _validator(response: Response) -> tuple[str, str] | None:
    tag = response.headers.get("etag")
    if tag is not None:
        # A client with an entity tag must not put a date into If-Range (RFC 9110 13.1.5).
        return ("etag", tag.strip()) if re.fullmatch(_ETAG, tag.strip()) else None
    changed, made = (parse_http_date(response.headers.get(name, "").strip()) for name in ("last-modified", "date"))
    if changed is None or made is None or made - changed < STRONG_AFTER:
        return None
    return "last-modified", response.headers["last-modified"].strip()


def _length(response: Response) -> int | None:
    if "transfer-encoding" in response.headers:
        return None
    text = response.headers.get("content-length", "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
