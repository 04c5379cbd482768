"""The parts of a request (contract 3, 4). Parsing is bounded and linear, and never raises.

A part that is too large or not understood counts as missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote
from xml.parsers import expat

MAX_BODY = 16 * 1024 * 1024  # bytes: the largest request of DynamoDB


def header(headers: Mapping[str, Any], name: str) -> str | None:
    """Return the value of a header by its name in any case; None if it is missing or neither text nor bytes."""
    value = next((headers[key] for key in headers if str(key).lower() == name.lower()), None)
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str) else None


def split_target(target: str) -> tuple[str, str]:
    """Return the path and the query of a URL, or of a path with a query."""
    path, _, query = target.partition("#")[0].partition("?")
    return path, query


def path_segments(path: str) -> tuple[str, ...] | None:
    """Return the decoded segments of an absolute path; None for an ambiguous path.

    One slash at the end is ignored, as in the Smithy specification. An encoded slash does not separate segments. A path
    with a dot segment, plain or encoded, is ambiguous: client, proxy and server may each read it differently.
    """
    if path in ("", "/"):
        return ()
    segments = tuple(map(unquote, path[1:].removesuffix("/").split("/")))
    return None if path[0] != "/" or "." in segments or ".." in segments else segments


def parameters(text: str) -> dict[str, list[str]]:
    """Return the parameters of a query string or of a form, each with all its values."""
    return parse_qs(text, keep_blank_values=True)


def body_text(body: object) -> str | None:
    """Return the text of a body in memory, or None; a file or a generator is never read."""
    if not isinstance(body, (str, bytes, bytearray)) or len(body) > MAX_BODY:
        return None
    if isinstance(body, str):
        return body
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None


def json_member(text: str, name: str) -> str | None:
    """Return a top-level string member of a JSON object, or None."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    value = document.get(name) if isinstance(document, dict) else None
    return value if isinstance(value, str) else None


def xml_child(text: str, name: str) -> str | None:
    """Return the text of a child of the root element, or None for an invalid document or one with a DOCTYPE."""
    parser = expat.ParserCreate()
    path: list[str] = []
    found: list[str] = []

    def refuse(*_: object) -> None:
        raise ValueError("a DOCTYPE")

    def characters(data: str) -> None:
        if path[1:] == [name]:
            found.append(data)

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = lambda tag, _: path.append(tag)
    parser.EndElementHandler = lambda _: path.pop()
    parser.CharacterDataHandler = characters
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, ValueError):
        return None
    return "".join(found)
