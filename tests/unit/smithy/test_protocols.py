from __future__ import annotations

import pytest

from requests_smithy_retry.smithy import Protocol, SmithyModel

from .asts import service


@pytest.mark.parametrize(
    ("traits", "expected"),
    [
        ("aws.protocols#restJson1", (Protocol.REST_JSON,)),
        ("aws.protocols#restXml", (Protocol.REST_XML,)),
        ("aws.protocols#awsJson1_0", (Protocol.JSON_TARGET,)),
        ("aws.protocols#awsJson1_1", (Protocol.JSON_TARGET,)),
        ("aws.protocols#awsJson1_1 aws.protocols#awsJson1_0", (Protocol.JSON_TARGET,)),
        ("aws.protocols#awsQuery", (Protocol.QUERY,)),
        ("aws.protocols#ec2Query", (Protocol.EC2_QUERY,)),
        ("smithy.protocols#rpcv2Cbor aws.protocols#awsQuery", (Protocol.RPC_V2, Protocol.QUERY)),
        ("aws.protocols#awsQuery aws.protocols#restJson1", (Protocol.QUERY, Protocol.REST_JSON)),
        ("smithy.protocols#rpcv2Json", (Protocol.RPC_V2,)),
        ("alloy#simpleRestJson", (Protocol.REST_JSON,)),
        ("", (Protocol.REST_JSON,)),
    ],
)
def test_the_protocols_of_a_service(traits, expected):
    """The protocols follow from the traits of the service; one that names none known uses HTTP bindings."""
    assert SmithyModel.from_dict(service(protocol=traits)).protocols == expected
