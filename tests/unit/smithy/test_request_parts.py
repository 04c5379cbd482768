from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from requests_smithy_retry.smithy.protocols import (
    body_text,
    header,
    json_member,
    parameters,
    path_segments,
    split_target,
    xml_child,
)


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
        ("<r><a><t>x</t></a></r>", ""),
        ("<t>x</t>", ""),
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
