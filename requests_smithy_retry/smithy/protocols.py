"""The protocols of a service, by the AWS and Smithy specifications: where a request has its operation and its token.

Parsing is bounded and linear, and never raises: a part that is too large or not understood counts as missing. An
``@idempotencyToken`` makes a request resendable only if it is found and not blank (contract 4.2).
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote

from ..checks import header_text
from .error_code import element_text
from .json_ast import Node

MAX_BODY = 16 * 1024 * 1024  # bytes: the largest request of DynamoDB


def header(headers: Mapping[str, Any], name: str) -> str | None:
    """Return the value of a header by its name in any case; None if it is missing or neither text nor bytes."""
    value = next((headers[key] for key in headers if str(key).lower() == name.lower()), None)
    return header_text(value) if isinstance(value, (bytes, str)) else None


def split_target(target: str) -> tuple[str, str]:
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


HTTP_HEADER = "smithy.api#httpHeader"
HTTP_QUERY = "smithy.api#httpQuery"
HTTP_LABEL = "smithy.api#httpLabel"
HTTP_PAYLOAD = "smithy.api#httpPayload"
JSON_NAME = "smithy.api#jsonName"
XML_NAME = "smithy.api#xmlName"
XML_ATTRIBUTE = "smithy.api#xmlAttribute"
EC2_NAME = "aws.protocols#ec2QueryName"


class Protocol(enum.Enum):
    """How a request names its operation and carries its input."""

    REST_JSON = "rest-json"
    """By ``@http``; a JSON body."""
    REST_XML = "rest-xml"
    """By ``@http``; an XML body."""
    JSON_TARGET = "json-target"
    """By ``X-Amz-Target``; a JSON body; HTTP bindings do not apply."""
    QUERY = "query"
    """By ``Action=``; a form."""
    EC2_QUERY = "ec2-query"
    """By ``Action=``; a form, with EC2's rule for names."""
    RPC_V2 = "rpc-v2"
    """By ``/service/Name/operation/Name`` and the ``smithy-protocol`` header; the body is not parsed."""


TRAITS = {
    "aws.protocols#restJson1": Protocol.REST_JSON,
    "aws.protocols#restXml": Protocol.REST_XML,
    "aws.protocols#awsJson1_0": Protocol.JSON_TARGET,
    "aws.protocols#awsJson1_1": Protocol.JSON_TARGET,
    "aws.protocols#awsQuery": Protocol.QUERY,
    "aws.protocols#ec2Query": Protocol.EC2_QUERY,
    "smithy.protocols#rpcv2Cbor": Protocol.RPC_V2,
    "smithy.protocols#rpcv2Json": Protocol.RPC_V2,
}


def protocols_of(service_traits: dict[str, Node]) -> tuple[Protocol, ...]:
    """Return the protocols of a service, in the model's order; ``@http`` with JSON if it names no known one."""
    named = dict.fromkeys(TRAITS[name] for name in service_traits if name in TRAITS)
    return tuple(named) or (Protocol.REST_JSON,)


class TokenLocation(enum.Enum):
    """The place in a request to which a token is bound."""

    QUERY = "query"
    """A query parameter."""
    HEADER = "header"
    """A header."""
    LABEL = "label"
    """A label of the URI; every matching request has it."""
    PAYLOAD = "payload"
    """The whole body."""
    JSON = "json"
    """A top-level member of the JSON body."""
    XML = "xml"
    """A child of the root of the XML body."""
    FORM = "form"
    """A parameter of the form in the body, or of the query string."""
    OPAQUE = "opaque"
    """A place that is not parsed (CBOR, an XML attribute); the token is never found."""


@dataclass(frozen=True, slots=True)
class IdempotencyToken:
    """The token member of one operation."""

    member: str
    """The member's name in the model."""
    location: TokenLocation
    """The place to which it is bound."""
    name: str
    """The name there: of the parameter, the header, the JSON member, ..."""

    def present_in(self, url: str, headers: Mapping[str, Any], body: object) -> bool:
        """Return True if a request of the operation has a token that is not blank.

        :param url: the URL, or the path with the query.
        :param body: bytes or text; in anything else no token is found.
        """
        value = self._value(url, headers, body)
        return value is not None and value.strip() != ""

    def _value(self, url: str, headers: Mapping[str, Any], body: object) -> str | None:
        if self.location is TokenLocation.HEADER:
            return header(headers, self.name)
        if self.location is TokenLocation.LABEL:
            return self.name
        text = None if self.location is TokenLocation.QUERY else body_text(body)
        if self.location in (TokenLocation.QUERY, TokenLocation.FORM):
            query = split_target(url)[1]
            return parameters(query if text is None else f"{query}&{text}").get(self.name, [None])[0]
        if text is None or self.location is TokenLocation.PAYLOAD:
            return text
        if self.location is TokenLocation.JSON:
            return json_member(text, self.name)
        if self.location is TokenLocation.XML:
            return element_text(text.encode(errors="replace"), lambda path: path[1:] == [self.name])
        return None


_HTTP_BINDINGS = {
    HTTP_HEADER: TokenLocation.HEADER,
    HTTP_QUERY: TokenLocation.QUERY,
    HTTP_LABEL: TokenLocation.LABEL,
    HTTP_PAYLOAD: TokenLocation.PAYLOAD,
}
_BODIES = {
    Protocol.REST_JSON: (TokenLocation.JSON, JSON_NAME),
    Protocol.REST_XML: (TokenLocation.XML, XML_NAME),
    Protocol.JSON_TARGET: (TokenLocation.JSON, ""),
    Protocol.QUERY: (TokenLocation.FORM, XML_NAME),
    Protocol.EC2_QUERY: (TokenLocation.FORM, XML_NAME),
    Protocol.RPC_V2: (TokenLocation.OPAQUE, ""),
}
"""The place of a member in the input of each protocol, and the trait that renames it there."""


def bind_token(member: str, traits: dict[str, Node], protocol: Protocol) -> IdempotencyToken:
    if protocol in (Protocol.REST_JSON, Protocol.REST_XML):
        for trait, location in _HTTP_BINDINGS.items():
            if trait in traits:
                name = traits[trait].string() if trait in (HTTP_HEADER, HTTP_QUERY) else member
                return IdempotencyToken(member, location, name)
    location, renaming = _BODIES[protocol]
    name = traits[renaming].string() if renaming in traits else member
    if protocol is Protocol.EC2_QUERY:
        name = traits[EC2_NAME].string() if EC2_NAME in traits else name[:1].upper() + name[1:]
    if location is TokenLocation.XML and XML_ATTRIBUTE in traits:
        location = TokenLocation.OPAQUE
    return IdempotencyToken(member, location, name)
