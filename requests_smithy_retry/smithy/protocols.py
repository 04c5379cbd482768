"""The protocols of a service (contract 3; the AWS and Smithy protocol specifications)."""

from __future__ import annotations

import enum

from .json_ast import Node


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
