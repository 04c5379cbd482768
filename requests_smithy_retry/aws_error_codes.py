"""AWS error codes (contract 3.5): where a response carries one, and which of them a retry may help. Pure.

The header ``x-amzn-errortype`` is looked at first, then a JSON body (awsJson, restJson), then an XML body (query,
restXml). Whatever the bytes are, nothing here raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

MAX_ERROR_BODY = 65_536
"""So many bytes of a body are looked at, at most."""

ERROR_TYPE_HEADER = "x-amzn-errortype"
JSON_MEMBERS = ("__type", "code", "Code")
XML_ELEMENT = "Code"

THROTTLING_CODES = frozenset(
    {
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottledException",
        "RequestThrottled",
        "TooManyRequestsException",
        "ProvisionedThroughputExceededException",
        "TransactionInProgressException",
        "RequestLimitExceeded",
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "SlowDown",
        "PriorRequestNotComplete",
        "EC2ThrottledException",
    }
)
"""The server asks for fewer requests. ``PriorRequestNotComplete``, which some lists have as transient, is one."""

TRANSIENT_CODES = frozenset({"RequestTimeout", "RequestTimeoutException"})
"""The server waited in vain for the rest of the request."""


def bare_error_code(text: str) -> str:
    """An error code without the namespace before it and the URI after it.

    >>> bare_error_code("com.amazonaws.x#Throttled:http://internal.example/coral/#v1")
    'Throttled'
    """
    return text.partition(":")[0].rpartition("#")[2].strip()


def error_code(headers: Mapping[str, Any], body: bytes) -> str | None:
    """The error code of a response without namespace and URI, or None where it carries none.

    >>> error_code({}, b'{"__type": "com.example#SlowDown"}'), error_code({}, b"<Error><Code>SlowDown</Code></Error>")
    ('SlowDown', 'SlowDown')

    :param headers: looked up by lower-case name, so give a case-insensitive mapping.
    :param body: as much of the body as may be looked at.
    """
    value = headers.get(ERROR_TYPE_HEADER)
    code = bare_error_code(value) if isinstance(value, str) else ""
    return code or code_in_body(body[:MAX_ERROR_BODY])


def code_in_body(body: bytes) -> str | None:
    """The error code in a JSON or an XML body, or None."""
    text = body.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    if text.startswith(b"{"):
        found = _code_in_json(text, is_cut=len(body) >= MAX_ERROR_BODY)
    elif text.startswith(b"<"):
        found = _code_in_xml(text)
    else:
        return None
    return bare_error_code(found) or None


def _code_in_json(text: bytes, *, is_cut: bool) -> str:
    """The first member that is a text, of those that name the code in one protocol or another.

    :param is_cut: the text is the beginning of one that is too long to be looked at whole.
    """
    try:
        # Turning thousands of digits into a number takes long, and no number is a code: their count will do.
        document = _members(text.decode(errors="ignore")) if is_cut else json.loads(text, parse_int=len)
    except (ValueError, RecursionError):
        return ""
    values = [document.get(name) for name in JSON_MEMBERS]
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


def _members(text: str) -> dict[str, Any]:
    """The members of a JSON object that are there whole, up to where the text ends or is none."""
    members: dict[str, Any] = {}
    at = 1
    while (name := _NAME.match(text, at)) is not None:
        try:
            value, end = _DECODER.raw_decode(text, name.end())
        except (ValueError, RecursionError):
            break
        members[name[1]] = value
        comma = _COMMA.match(text, end)
        if comma is None:
            break
        at = comma.end()
    return members


_DECODER = json.JSONDecoder(parse_int=len)
_NAME = re.compile(r'\s*"([^"\\]*(?:\\.[^"\\]*)*)"\s*:\s*')
_COMMA = re.compile(r"\s*,")


class _Found(Exception):
    """Ends the parsing: there is nothing more to look for, or nothing that may be looked at."""


def _code_in_xml(text: bytes) -> str:
    """The text of the first ``Code`` element; a document with a DOCTYPE is refused before anything in it counts."""
    parts: list[str] = []
    path: list[str] = []

    def start(tag: str, attributes: object) -> None:  # noqa: ARG001
        path.append(tag.rpartition(":")[2])

    def end(tag: str) -> None:  # noqa: ARG001
        if path.pop() == XML_ELEMENT:
            raise _Found

    def characters(data: str) -> None:
        if path[-1] == XML_ELEMENT:
            parts.append(data)

    def refuse(*declaration: object) -> None:  # noqa: ARG001
        raise _Found

    from xml.parsers import expat  # few services answer in XML

    # The encoding is fixed, so that a declaration cannot have one of Python's many codecs looked up.
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except _Found:
        return "".join(parts)
    except expat.ExpatError:
        pass
    return ""
