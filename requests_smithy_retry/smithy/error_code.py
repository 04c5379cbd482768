"""The error code of a response, in the places of the AWS protocols (contract 3.5)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..classifiers.outcome import BODY_PREFIX, Outcome

ERROR_TYPE_HEADER = "x-amzn-errortype"
JSON_MEMBERS = ("__type", "code", "Code")
XML_ELEMENT = "Code"


def bare_error_code(text: str) -> str:
    """Return an error code without the namespace before it and the URI after it.

    >>> bare_error_code("com.amazonaws.x#Throttled:http://internal.example/coral/#v1")
    'Throttled'
    """
    return text.partition(":")[0].rpartition("#")[2].strip()


def error_code(headers: Mapping[str, Any], body: bytes) -> str | None:
    """Return the bare error code of a response, or None.

    >>> error_code({}, b'{"__type": "com.example#SlowDown"}'), error_code({}, b"<Error><Code>SlowDown</Code></Error>")
    ('SlowDown', 'SlowDown')

    :param headers: looked up by lower-case name, so give a case-insensitive mapping.
    :param body: as much of the body as may be parsed.
    """
    value = headers.get(ERROR_TYPE_HEADER)
    code = bare_error_code(value) if isinstance(value, str) else ""
    return code or (code_in_body(body[:BODY_PREFIX]) if body else None)


def code_in_body(body: bytes) -> str | None:
    text = body.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    if text.startswith(b"{"):
        found = _code_in_json(text, is_cut=len(body) >= BODY_PREFIX)
    elif text.startswith(b"<"):
        found = _code_in_xml(text)
    else:
        return None
    return bare_error_code(found) or None


def _code_in_json(text: bytes, *, is_cut: bool) -> str:
    """Return the first string among the members that carry the code in some protocol; "" if there is none.

    :param is_cut: True if the text is only the beginning of the body.
    """
    try:
        # Converting thousands of digits takes long, and no number is a code: their count will do.
        document = _members(text.decode(errors="ignore")) if is_cut else json.loads(text, parse_int=len)
    except (ValueError, RecursionError):
        return ""
    values = [document.get(name) for name in JSON_MEMBERS]
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


def _members(text: str) -> dict[str, Any]:
    """Return the complete members of a JSON object, up to the end of the text or the first syntax error."""
    members: dict[str, Any] = {}
    at = 1
    name_at, comma_at = re.compile(_NAME).match, re.compile(_COMMA).match
    while (name := name_at(text, at)) is not None:
        try:
            value, end = _DECODER.raw_decode(text, name.end())
        except (ValueError, RecursionError):
            break
        members[name[1]] = value
        comma = comma_at(text, end)
        if comma is None:
            break
        at = comma.end()
    return members


_DECODER = json.JSONDecoder(parse_int=len)
_NAME = r'\s*"([^"\\]*(?:\\.[^"\\]*)*)"\s*:\s*'
_COMMA = r"\s*,"


class _Found(Exception):
    """Raised to end the parsing."""


def _code_in_xml(text: bytes) -> str:
    """Return the text of the first ``Code`` element; "" if there is none, or if there is a DOCTYPE."""
    parts: list[str] = []
    path: list[str] = []

    def start(tag: str, attributes: object) -> None:
        path.append(tag.rpartition(":")[2])

    def end(tag: str) -> None:
        if path.pop() == XML_ELEMENT:
            raise _Found

    def characters(data: str) -> None:
        if path[-1] == XML_ELEMENT:
            parts.append(data)

    def refuse(*declaration: object) -> None:
        raise _Found

    from xml.parsers import expat  # few services answer in XML

    # The encoding is fixed, so that a declaration cannot make Python look up a codec.
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


def code_of(outcome: Outcome) -> str | None:
    """Return the error code of a response of 400 or above, or None."""
    response = outcome.response
    if response is None or response.status_code < 400:
        return None
    return error_code(response.headers, outcome.body_prefix)
