"""The parts of a request, the protocols, and where each has its token."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from requests_smithy_retry.smithy import IdempotencyToken, Protocol, SmithyModel, SmithyModelError, TokenLocation
from requests_smithy_retry.smithy.protocols import (
    body_text,
    header,
    json_member,
    parameters,
    path_segments,
    split_target,
    xml_child,
)

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


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (CaseInsensitiveDict({"X-TOKEN": "a"}), "a"),
        ({"x-token": "a"}, "a"),
        ({"X-Token": b"\xe9"}, "é"),
        ({b"X-Token": "a"}, None),
        ({"X-Token": 3}, None),
        ({}, None),
    ],
)
def test_a_header_is_found_whatever_its_case(headers, expected):
    """A header is found in any mapping, whatever the case of its name, as text or as bytes."""
    assert header(headers, "X-Token") == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", ()),
        ("/", ()),
        ("//", ("",)),
        ("/a", ("a",)),
        ("/a/", ("a",)),
        ("/a//", ("a", "")),
        ("/a//b", ("a", "", "b")),
        ("/a%2Fb/%c3%a9", ("a/b", "é")),
        ("/%zz/%", ("%zz", "%")),
        ("a", None),
        ("/a/../b", None),
        ("/a/./b", None),
        ("/a/%2e%2E/b", None),
        ("/a/%2e/b", None),
        ("/..", None),
        ("/a/...", ("a", "...")),
    ],
)
def test_a_path_is_taken_apart(path, expected):
    """Segments are decoded after the split, one slash at the end is ignored, a dot segment is refused."""
    assert path_segments(path) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"a=b", "a=b"),
        (bytearray(b"a"), "a"),
        ("é", "é"),
        (b"\xff", None),
        (None, None),
        (iter([b"a"]), None),
        (b"", ""),
    ],
)
def test_a_body_in_memory_has_text(body, expected):
    """Bytes and text are looked at; anything else is neither read nor understood."""
    assert body_text(body) == expected


@pytest.mark.parametrize("letter", ["a", b"a"])
def test_a_large_body_is_not_looked_at(letter):
    """The text of a body of 16 MiB, the largest that DynamoDB takes, is read; that of a larger one is not."""
    assert len(body_text(letter * 16_777_216)) == 16_777_216
    assert body_text(letter * 16_777_217) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"t": "x"}', "x"),
        ('{"t": 1}', None),
        ('{"T": "x"}', None),
        ('{"a": {"t": "x"}}', None),
        ('["t"]', None),
        ("{", None),
        ("[" * 100_000, None),
        ('{"t": ' + "9" * 5000 + "}", None),
    ],
)
def test_a_member_of_a_json_body(text, expected):
    """Only a string at the top level of an object counts, and no document raises."""
    assert json_member(text, "t") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<r><t>x</t></r>", "x"),
        ("<?xml version='1.0' encoding='UTF-8'?><r xmlns='u'><a/><t>x&amp;y</t></r>", "x&y"),
        ("<r><a>z</a><t>x</t><b>z</b></r>", "x"),
        ("<r><a><t>x</t></a></r>", None),
        ("<t>x</t>", None),
        ("<r><t>x", None),
        ("<!DOCTYPE r [<!ENTITY e 'x'>]><r><t>&e;</t></r>", None),
        ("\ud800", None),
        ("", None),
    ],
)
def test_a_child_of_an_xml_body(text, expected):
    """Only a child of the root counts; a broken document or one with a DOCTYPE gives None."""
    assert xml_child(text, "t") == expected


@given(st.text(st.characters()), st.text())
def test_no_text_raises(text, name):
    """For any text in a request, the parsers raise nothing."""
    split_target(text)
    path_segments(text)
    parameters(text)
    json_member(text, name)
    xml_child(text, name)
