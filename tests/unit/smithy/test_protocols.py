"""The parts of a request, the protocols, and where each has its token."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from requests_smithy_retry.smithy import IdempotencyToken, Protocol, SmithyModel, SmithyModelError, TokenLocation

from .asts import operation, service


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


REST, XML = "aws.protocols#restJson1", "aws.protocols#restXml"
JSON, QUERY, EC2 = "aws.protocols#awsJson1_1", "aws.protocols#awsQuery", "aws.protocols#ec2Query"
CBOR = "smithy.protocols#rpcv2Cbor"


def token_of(protocol, **traits):
    named = {
        (f"smithy.api#{key}" if "__" not in key else key.replace("__", "#")): value for key, value in traits.items()
    }
    members = {"other": {}, "token": {"smithy.api#idempotencyToken": {}, **named}}
    model = SmithyModel.from_dict(service(operation("Op", members=members), protocol=protocol))
    return model.operations["Op"].idempotency_token


@pytest.mark.parametrize(
    ("protocol", "traits", "location", "name"),
    [
        (REST, {}, TokenLocation.JSON, "token"),
        (REST, {"jsonName": "other-name"}, TokenLocation.JSON, "other-name"),
        (REST, {"httpHeader": "X-Token"}, TokenLocation.HEADER, "X-Token"),
        (REST, {"httpQuery": "t"}, TokenLocation.QUERY, "t"),
        (REST, {"httpLabel": {}}, TokenLocation.LABEL, "token"),
        (REST, {"httpPayload": {}}, TokenLocation.PAYLOAD, "token"),
        (XML, {"jsonName": "x"}, TokenLocation.XML, "token"),
        (XML, {"xmlName": "Token"}, TokenLocation.XML, "Token"),
        (XML, {"xmlAttribute": {}}, TokenLocation.OPAQUE, "token"),
        (XML, {"httpHeader": "X-Token"}, TokenLocation.HEADER, "X-Token"),
        (JSON, {"jsonName": "x", "httpHeader": "X-Token"}, TokenLocation.JSON, "token"),
        (QUERY, {}, TokenLocation.FORM, "token"),
        (QUERY, {"xmlName": "Tok"}, TokenLocation.FORM, "Tok"),
        (EC2, {}, TokenLocation.FORM, "Token"),
        (EC2, {"xmlName": "tok"}, TokenLocation.FORM, "Tok"),
        (EC2, {"xmlName": "tok", "aws.protocols__ec2QueryName": "tAk"}, TokenLocation.FORM, "tAk"),
        (CBOR, {"httpHeader": "X-Token"}, TokenLocation.OPAQUE, "token"),
    ],
)
def test_where_a_protocol_binds_a_token(protocol, traits, location, name):
    """A token is where its protocol puts it, under its protocol's name; HTTP bindings count for REST only."""
    assert token_of(protocol, **traits) == IdempotencyToken("token", location, name)


def test_a_binding_needs_a_name():
    """A binding trait without a name is an error at the trait."""
    with pytest.raises(SmithyModelError) as caught:
        token_of(REST, httpHeader="")
    assert caught.value.place == "/shapes/t#OpInput/members/token/traits/smithy.api#httpHeader"


def bodies(location, present, *values):
    """Rows for bodies of a request without anything else."""
    return [(location, "/", {}, value, present) for value in values]


@pytest.mark.parametrize(
    ("location", "url", "headers", "body", "expected"),
    [
        (TokenLocation.QUERY, "https://h.example/?t=1", {}, None, True),
        (TokenLocation.QUERY, "/?t=1#x", {}, None, True),
        *((TokenLocation.QUERY, url, {}, None, False) for url in ("/?t=", "/?t=&t=1", "/?T=1", "/#?t=1")),
        (TokenLocation.QUERY, "/", {"t": "1"}, b"t=1", False),
        (TokenLocation.HEADER, "/?t=1", {"T": "1"}, None, True),
        (TokenLocation.HEADER, "/", {"t": b"1"}, None, True),
        (TokenLocation.HEADER, "/", {"T": b"\xe9"}, None, True),
        (TokenLocation.HEADER, "/", CaseInsensitiveDict({"T": "1"}), None, True),
        *((TokenLocation.HEADER, "/", headers, None, False) for headers in ({"t": " "}, {b"t": "1"}, {"t": 3}, {})),
        (TokenLocation.HEADER, "/?t=1", {}, b'{"t": "1"}', False),
        (TokenLocation.LABEL, "/1", {}, None, True),
        (TokenLocation.PAYLOAD, "/", {}, b"1", True),
        (TokenLocation.PAYLOAD, "/", {}, b"", False),
        *bodies(TokenLocation.JSON, True, b'{"t": "1"}', '{"t": "\u00e9"}', bytearray(b'{"t": "1"}')),
        *bodies(TokenLocation.JSON, False, b'{"t": ""}', b'{"t": null}', '{"t": 1}', '{"T": "x"}', '{"a": {"t": "x"}}'),
        *bodies(
            TokenLocation.JSON, False, '["t"]', "{", "[" * 100_000, '{"t": ' + "9" * 5000 + "}", b"", b"\xff", None
        ),
        *bodies(TokenLocation.JSON, False, iter([b'{"t": "1"}'])),
        *bodies(TokenLocation.XML, True, b"<r><t>1</t></r>", "<r><a>z</a><t>x</t><b>z</b></r>"),
        *bodies(TokenLocation.XML, True, "<?xml version='1.0' encoding='UTF-8'?><r xmlns='u'><a/><t>&amp;</t></r>"),
        *bodies(
            TokenLocation.XML, False, b"<r><t/></r>", "<r><a><t>x</t></a></r>", "<t>x</t>", "<r><t>x", "\ud800", ""
        ),
        *bodies(TokenLocation.XML, False, "<!DOCTYPE r [<!ENTITY e 'x'>]><r><t>&e;</t></r>"),
        (TokenLocation.FORM, "/", {}, "Action=A&t=1", True),
        (TokenLocation.FORM, "/?Action=A&t=1", {}, None, True),
        (TokenLocation.FORM, "/?Action=A&t=1", {}, b"\xff", True),
        (TokenLocation.FORM, "/", {}, b"t=", False),
        (TokenLocation.OPAQUE, "/?t=1", {"t": "1"}, b'{"t": "1"}', False),
    ],
    ids=lambda value: "iterator" if hasattr(value, "__next__") else repr(value)[:40],
)
def test_a_token_counts_only_where_it_is_bound(location, url, headers, body, expected):
    """It is there, not blank, as a text at the top of a whole document without a DOCTYPE that is in memory."""
    assert IdempotencyToken("token", location, "t").present_in(url, headers, body) is expected


@pytest.mark.parametrize("body", ['{"t": "1"}', b'{"t": "1"}'])
def test_a_large_body_is_not_looked_at(body):
    """A body of 16 MiB, the largest that DynamoDB takes, is read; a larger one is not."""
    token = IdempotencyToken("token", TokenLocation.JSON, "t")
    assert [True, False] == [token.present_in("/", {}, body.ljust(size)) for size in (16_777_216, 16_777_217)]


@given(st.text(st.characters()), st.text())
def test_no_text_raises(text, name):
    """For any text in a request, a token is there or not, wherever it is bound."""
    for location in TokenLocation:
        assert IdempotencyToken("token", location, name).present_in(text, {name: text}, text) in (True, False)
