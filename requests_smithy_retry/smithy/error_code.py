"""The error code of a response, in the places of the AWS protocols (contract 3.4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ..classifiers.outcome import BODY_PREFIX

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
    """
    value = headers.get(ERROR_TYPE_HEADER)
    code = bare_error_code(value) if isinstance(value, str) else ""
    return code or (code_in_body(body[:BODY_PREFIX]) if body else None)


def code_in_body(body: bytes) -> str | None:
    text = body.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    if text.startswith(b"{"):
        found = _code_in_json(text)
    elif text.startswith(b"<"):
        found = element_text(text, lambda path: path[-1] == XML_ELEMENT) or ""
    else:
        return None
    return bare_error_code(found) or None


def _code_in_json(text: bytes) -> str:
    """Return the first string among the members that carry the code in some protocol; "" if there is none."""
    try:
        # Converting thousands of digits takes long, and no number is a code: their count will do.
        document = json.loads(text, parse_int=len)
    except (ValueError, RecursionError):
        return ""
    values = [document.get(name) for name in JSON_MEMBERS]
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


class _Ended(Exception):
    """Raised to end the parsing."""


def element_text(text: bytes, is_meant: Callable[[list[str]], bool]) -> str | None:
    """Return the text of the first matching element of a document, which may be cut off after it.

    :param is_meant: called with the names from the root to an element, without prefixes.
    :returns: None if there is none, or if the document has a DOCTYPE.
    """
    parts: list[str] = []
    path: list[str] = []
    is_found = False

    def start(tag: str, attributes: object) -> None:
        path.append(tag.rpartition(":")[2])

    def end(tag: str) -> None:
        nonlocal is_found
        is_found = is_meant(path)
        path.pop()
        if is_found:
            raise _Ended

    def characters(data: str) -> None:
        if is_meant(path):
            parts.append(data)

    def refuse(*declaration: object) -> None:
        raise _Ended

    from xml.parsers import expat  # few services speak XML

    # The encoding is fixed, so that a declaration cannot make Python look up a codec.
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = refuse
    with suppress(_Ended, expat.ExpatError):
        parser.Parse(text, True)
    return "".join(parts) if is_found else None
