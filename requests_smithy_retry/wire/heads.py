"""Heads of responses (contract 14.4): one with plain fields that arrives whole is parsed here.

``http.client`` uses the e-mail parser, which takes a tenth of the time of a request. It still reads every other head:
one that comes in parts, has long or folded lines, bytes other than printable ASCII, or deviates from RFC 9112. The
result is the same.
"""

from __future__ import annotations

import re
from http.client import HTTPMessage
from typing import NamedTuple

FIRST = rb"HTTP/1\.([01]) ([2-9][0-9][0-9]) ([ -~]{0,200})\r\n"
FIELD = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~]{0,8000}\r\n"
PLAIN = re.compile(FIRST + rb"((?:%b){1,64})\r\n" % FIELD).match
"""Matches a final answer's head: minor version, status, reason, and fields (``http.client`` takes a hundred)."""
WITH_PARTS = ("multipart", "message")
"""Content types for which the e-mail parser expects parts."""
MOST_DIGITS = 20
"""The most digits of a length that is parsed here."""


class Head(NamedTuple):
    """A plain head, which ends before the byte ``end``; ``version`` is 10 or 11.

    ``length`` is the announced length of the body; None if there is none, or the body is chunked.
    """

    end: int
    version: int
    status: int
    reason: str
    fields: HTTPMessage
    chunked: bool
    length: int | None


def plain_head(data: bytes) -> Head | None:
    """Return the head at the beginning of these bytes; None if it is not plain, or not whole."""
    found = PLAIN(data)
    if found is None:
        return None
    minor, status, reason, lines = found.groups()
    fields = HTTPMessage()
    for line in lines.decode("ascii").split("\r\n")[:-1]:
        name, _, value = line.partition(":")
        fields.set_raw(name, value.lstrip(" \t"))
    fields.set_payload("")
    if fields.get("content-type", "").lower().startswith(WITH_PARTS):
        return None
    chunked, length = fields.get("transfer-encoding", "").lower() == "chunked", fields.get("content-length")
    if length is not None and not (length.isdigit() and len(length) <= MOST_DIGITS):
        return None
    announced = None if length is None or chunked else int(length)
    text = reason.decode("ascii").strip()
    return Head(found.end(), 10 + int(minor), int(status), text, fields, chunked, announced)
