"""The protocols of a service (contract 3; the AWS and Smithy specifications), and the place of a token in each.

An ``@idempotencyToken`` makes a request resendable only if it is found and not blank (contract 4.2); a body that cannot
be parsed has none.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .json_ast import Node
from .request_parts import body_text, header, json_member, parameters, split_target, xml_child

HTTP_HEADER = "smithy.api#httpHeader"
HTTP_QUERY = "smithy.api#httpQuery"
HTTP_LABEL = "smithy.api#httpLabel"
HTTP_PAYLOAD = "smithy.api#httpPayload"
JSON_NAME = "smithy.api#jsonName"
XML_NAME = "smithy.api#xmlName"
XML_ATTRIBUTE = "smithy.api#xmlAttribute"
EC2_NAME = "aws.protocols#ec2QueryName"


class Protocol(enum.Enum):
    """The way in which a request names its operation and carries its input."""

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
        reader = {TokenLocation.JSON: json_member, TokenLocation.XML: xml_child}.get(self.location)
        return None if reader is None else reader(text, self.name)


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
    """Bind a token member as the protocol does."""
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
