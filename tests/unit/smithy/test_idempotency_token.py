from __future__ import annotations

import pytest

from requests_smithy_retry.smithy import IdempotencyToken, SmithyModel, SmithyModelError, TokenLocation

from .asts import operation, service

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


@pytest.mark.parametrize(
    ("location", "url", "headers", "body", "expected"),
    [
        (TokenLocation.QUERY, "https://h.example/?t=1", {}, None, True),
        (TokenLocation.QUERY, "/?t=1#x", {}, None, True),
        (TokenLocation.QUERY, "/?t=", {}, None, False),
        (TokenLocation.QUERY, "/?t=&t=1", {}, None, False),
        (TokenLocation.QUERY, "/?T=1", {}, None, False),
        (TokenLocation.QUERY, "/#?t=1", {}, None, False),
        (TokenLocation.QUERY, "/", {"t": "1"}, b"t=1", False),
        (TokenLocation.HEADER, "/?t=1", {"T": "1"}, None, True),
        (TokenLocation.HEADER, "/", {"t": b"1"}, None, True),
        (TokenLocation.HEADER, "/", {"t": " "}, None, False),
        (TokenLocation.HEADER, "/?t=1", {}, b'{"t": "1"}', False),
        (TokenLocation.LABEL, "/1", {}, None, True),
        (TokenLocation.PAYLOAD, "/", {}, b"1", True),
        (TokenLocation.PAYLOAD, "/", {}, b"", False),
        (TokenLocation.JSON, "/", {}, b'{"t": "1"}', True),
        (TokenLocation.JSON, "/", {}, '{"t": "1"}', True),
        (TokenLocation.JSON, "/", {}, b'{"t": ""}', False),
        (TokenLocation.JSON, "/", {}, b'{"t": null}', False),
        (TokenLocation.JSON, "/", {}, b"", False),
        (TokenLocation.JSON, "/", {}, None, False),
        (TokenLocation.JSON, "/", {}, iter([b'{"t": "1"}']), False),
        (TokenLocation.XML, "/", {}, b"<r><t>1</t></r>", True),
        (TokenLocation.XML, "/", {}, b"<r><t/></r>", False),
        (TokenLocation.FORM, "/", {}, "Action=A&t=1", True),
        (TokenLocation.FORM, "/?Action=A&t=1", {}, None, True),
        (TokenLocation.FORM, "/?Action=A&t=1", {}, b"\xff", True),
        (TokenLocation.FORM, "/", {}, b"t=", False),
        (TokenLocation.OPAQUE, "/?t=1", {"t": "1"}, b'{"t": "1"}', False),
    ],
)
def test_a_token_counts_only_where_it_is_bound(location, url, headers, body, expected):
    """A request has a token if it is where it is bound, and not blank; elsewhere it does not count."""
    assert IdempotencyToken("token", location, "t").present_in(url, headers, body) is expected
