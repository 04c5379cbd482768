"""The place of an operation's ``@idempotencyToken`` in a request (contract 4.2).

A token makes a request resendable only if it is found and not blank; a body that cannot be parsed has none.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .json_ast import Node
from .protocols import Protocol
from .request_parts import body_text, header, json_member, parameters, split_target, xml_child

HTTP_HEADER = "smithy.api#httpHeader"
HTTP_QUERY = "smithy.api#httpQuery"
HTTP_LABEL = "smithy.api#httpLabel"
HTTP_PAYLOAD = "smithy.api#httpPayload"
JSON_NAME = "smithy.api#jsonName"
XML_NAME = "smithy.api#xmlName"
XML_ATTRIBUTE = "smithy.api#xmlAttribute"
EC2_NAME = "aws.protocols#ec2QueryName"


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
        query = split_target(url)[1]
        if self.location is TokenLocation.QUERY:
            return _first(query, self.name)
        text = body_text(body)
        if self.location is TokenLocation.FORM:
            return _first(query if text is None else f"{query}&{text}", self.name)
        if text is None:
            return None
        readers = {TokenLocation.JSON: json_member, TokenLocation.XML: xml_child}
        if self.location in readers:
            return readers[self.location](text, self.name)
        return text if self.location is TokenLocation.PAYLOAD else None


def _first(text: str, name: str) -> str | None:
    return parameters(text).get(name, [None])[0]


def bind_token(member: str, traits: dict[str, Node], protocol: Protocol) -> IdempotencyToken:
    """Bind a token member as the protocol does.

    :raises SmithyModelError: if a binding trait has no name.
    """
    if protocol in (Protocol.REST_JSON, Protocol.REST_XML):
        for trait, location in (
            (HTTP_HEADER, TokenLocation.HEADER),
            (HTTP_QUERY, TokenLocation.QUERY),
        ):
            if trait in traits:
                return IdempotencyToken(member, location, traits[trait].string())
        if HTTP_LABEL in traits:
            return IdempotencyToken(member, TokenLocation.LABEL, member)
        if HTTP_PAYLOAD in traits:
            return IdempotencyToken(member, TokenLocation.PAYLOAD, member)
    if protocol is Protocol.REST_JSON:
        return IdempotencyToken(member, TokenLocation.JSON, _renamed(member, traits, JSON_NAME))
    if protocol is Protocol.REST_XML:
        location = TokenLocation.OPAQUE if XML_ATTRIBUTE in traits else TokenLocation.XML
        return IdempotencyToken(member, location, _renamed(member, traits, XML_NAME))
    if protocol is Protocol.JSON_TARGET:
        return IdempotencyToken(member, TokenLocation.JSON, member)
    if protocol is Protocol.QUERY:
        return IdempotencyToken(member, TokenLocation.FORM, _renamed(member, traits, XML_NAME))
    if protocol is Protocol.EC2_QUERY:
        name = _renamed(member, traits, XML_NAME)
        name = _renamed(name[:1].upper() + name[1:], traits, EC2_NAME)
        return IdempotencyToken(member, TokenLocation.FORM, name)
    return IdempotencyToken(member, TokenLocation.OPAQUE, member)


def _renamed(name: str, traits: dict[str, Node], trait: str) -> str:
    return traits[trait].string() if trait in traits else name
