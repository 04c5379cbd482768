"""The digests that come with a body: which are believed, and what becomes of a body that does not match."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import shutil
import sys
import types
import zlib
from collections.abc import Callable
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from requests_smithy_retry import DigestMismatch, retry_history, retry_options
from requests_smithy_retry.sending.attempt import watched_body
from requests_smithy_retry.testing import CutBody, FaultServer, MisstatedLength, Reply
from requests_smithy_retry.wire.body import WatchedBody
from requests_smithy_retry.wire.digests import Checks, DigestError, Expected, expected_digests

from .support import nothing_left, session

BODY = b"".join(b"%06d the quick brown fox\n" % number for number in range(3000))
WRONG = BODY[:-1] + b"!"


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def crc32(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "big")


def md5(data: bytes) -> bytes:
    return hashlib.md5(data).digest()


def sha1(data: bytes) -> bytes:
    return hashlib.sha1(data).digest()


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def sha512(data: bytes) -> bytes:
    return hashlib.sha512(data).digest()


FIELDS: dict[str, Callable[[bytes], tuple[str, str]]] = {
    "repr-sha256": lambda body: ("Repr-Digest", f"sha-256=:{b64(sha256(body))}:"),
    "repr-sha512": lambda body: ("Repr-Digest", f"sha-512=:{b64(sha512(body))}:"),
    "content-sha256": lambda body: ("Content-Digest", f"unixsum=:AAAA:, sha-256=:{b64(sha256(body))}:;x=1"),
    "md5": lambda body: ("Content-MD5", b64(md5(body))),
    "amz-crc32": lambda body: ("x-amz-checksum-crc32", b64(crc32(body))),
    "amz-sha1": lambda body: ("x-amz-checksum-sha1", b64(sha1(body))),
    "amz-sha256": lambda body: ("x-amz-checksum-sha256", b64(sha256(body))),
    "goog-md5": lambda body: ("x-goog-hash", f"crc32c=AAAA, md5={b64(md5(body))}"),
}


def expected(status: int = 200, **headers: str) -> list[tuple[str, str]]:
    """Field and algorithm of each digest that is believed."""
    given_headers = CaseInsensitiveDict({name.replace("_", "-"): value for name, value in headers.items()})
    return [(item.field, item.algorithm) for item in expected_digests(given_headers, status)]


@pytest.mark.parametrize("kind", FIELDS)
def test_each_field_is_read(kind: str) -> None:
    """A digest of the body is found, believed and matched; one of another body is not matched."""
    name, value = FIELDS[kind](BODY)
    found = expected_digests(CaseInsensitiveDict({name: value}), 200)
    assert 1 == len(found)
    for body, matches in ((BODY, True), (WRONG, False)):
        checks = Checks(found)
        checks.update(body[:1000])
        checks.update(body[1000:])
        assert matches == (checks.mismatch() is None)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content_digest", "sha-256=abc"),
        ("content_digest", "sha-256=:not base64!:"),
        ("content_digest", "sha-256=:AAAA:"),
        ("content_digest", "sha-256"),
        ("content_digest", "md5=:1B2M2Y8AsgTpgAmY7PhCfg==:"),
        ("repr_digest", "sha-1024=:AAAA:"),
        ("repr_digest", ""),
        ("content_md5", "d41d8cd98f00b204e9800998ecf8427e"),
        ("content_md5", "AAAA"),
        ("content_md5", "\xe4"),
        ("x_amz_checksum_crc32", "AAAAAA==-3"),
        ("x_amz_checksum_sha256", b64(sha256(b"")) + "-2"),
        ("x_amz_checksum_crc64nvme", "AAAAAAAAAAA="),
        ("x_goog_hash", "md5=AAAA"),
        ("x_goog_hash", "sha=1B2M2Y8AsgTpgAmY7PhCfg=="),
    ],
)
def test_the_malformed_and_the_unknown_are_passed_over(field: str, value: str) -> None:
    """No value that is malformed, composite or of an unknown algorithm is believed."""
    assert [] == expected(**{field: value})


MD5 = b64(md5(b""))
SHA = f"sha-256=:{b64(sha256(b''))}:"


@pytest.mark.parametrize(
    ("status", "headers", "fields"),
    [
        (206, {"content_digest": SHA, "repr_digest": SHA, "content_md5": MD5}, ["content-digest"]),
        (206, {"x_amz_checksum_sha1": b64(sha1(b"")), "x_goog_hash": f"md5={MD5}"}, []),
        (200, {"content_md5": MD5, "content_encoding": "gzip", "etag": '"strong"'}, ["content-md5"]),
        (200, {"content_md5": MD5, "content_encoding": "gzip", "etag": 'W/"weak"'}, []),
        (200, {"content_md5": MD5, "content_encoding": "identity", "etag": 'W/"weak"'}, ["content-md5"]),
        (200, {"repr_digest": SHA, "content_encoding": "gzip", "etag": 'W/"weak"'}, ["repr-digest"]),
        (200, {"x_goog_hash": f"md5={MD5}", "x_goog_stored_content_encoding": "gzip"}, []),
        (200, {"x_goog_hash": f"md5={MD5}", "x_goog_stored_content_encoding": "identity"}, ["x-goog-hash"]),
        (
            200,
            {"x_goog_hash": f"md5={MD5}", "x_goog_stored_content_encoding": "gzip", "content_encoding": "gzip"},
            ["x-goog-hash"],
        ),
        (200, {"x_goog_hash": f"md5={MD5}", "content_encoding": "gzip"}, ["x-goog-hash"]),
        (200, {"repr_digest": f"sha-256=:AAAA:, {SHA}"}, ["repr-digest"]),
    ],
)
def test_a_digest_counts_for_what_it_covers(status: int, headers: dict[str, str], fields: list[str]) -> None:
    """Only a digest of the very bytes of this body is believed."""
    assert fields == [field for field, _ in expected(status, **headers)]


@given(st.text(max_size=60), st.sampled_from(["content-digest", "repr-digest", "content-md5", "x-goog-hash"]))
def test_no_text_of_a_server_raises(text: str, field: str) -> None:
    """For any text in a digest field, reading it raises nothing."""
    for item in expected_digests(CaseInsensitiveDict({field: text}), 200):
        assert len(item.digest) in (4, 16, 32, 64)


@given(st.lists(st.binary(max_size=50)))
def test_the_parts_of_a_body_do_not_matter(parts: list[bytes]) -> None:
    """A check comes to the same in whatever parts the bytes come."""
    whole = b"".join(parts)
    checks = Checks([Expected("x-amz-checksum-crc32", "crc32", crc32(whole)), Expected("x", "sha512", sha512(whole))])
    for part in parts:
        checks.update(part)
    assert None is checks.mismatch()


def test_crc32c_needs_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CRC-32C is checked with either library, and passed over if neither is installed."""
    item = Expected("x-goog-hash", "crc32c", (7).to_bytes(4, "big"))
    for module in ("google_crc32c", "crc32c"):
        monkeypatch.setitem(sys.modules, module, None)
    assert not Checks([item])
    monkeypatch.setitem(sys.modules, "crc32c", types.SimpleNamespace(crc32c=lambda data, value: value + len(data)))
    ours = Checks([item])
    ours.update(b"12345")
    ours.update(b"67")
    assert None is ours.mismatch()
    monkeypatch.setitem(sys.modules, "google_crc32c", types.SimpleNamespace(extend=lambda value, data: value + 1))
    google = Checks([item])
    google.update(b"1234567")
    assert item == google.mismatch()


# On real sockets.


def error_of(call: Callable[[], Any]) -> Exception | None:
    """Return the exception of a call, or None."""
    try:
        call()
    except Exception as error:
        return error.with_traceback(None)
    return None


def replies(kind: str, framing: Any = "length") -> tuple[Reply, Reply]:
    """A reply whose body is not that of its digest, and the right one."""
    header = FIELDS[kind](BODY)
    return Reply(headers=[header], body=WRONG, framing=framing), Reply(headers=[header], body=BODY, framing=framing)


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("kind", FIELDS)
def test_a_wrong_body_is_asked_for_again(kind: str, framing: str) -> None:
    """A body that is read inside the attempt and does not match its digest fails that attempt."""
    wrong, right = replies(kind, framing)
    with FaultServer([wrong, right]) as server, session(max_attempts=2) as made:
        response = made.get(server.url, timeout=60)
        assert BODY == response.content
        assert ["DigestMismatch", None] == [item.error for item in retry_history(response).attempts]


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_the_last_attempt_raises_a_class_of_its_own(framing: str) -> None:
    """The caller gets ``DigestMismatch``, which is a ChunkedEncodingError and names the field."""
    wrong, _ = replies("md5", framing)
    with FaultServer(default=wrong) as server, session(max_attempts=2) as made:
        error = error_of(lambda: made.get(server.url, timeout=60))
    assert isinstance(error, requests.exceptions.ChunkedEncodingError)
    assert DigestMismatch is type(error)
    assert "content-md5 (md5)" in str(error)


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_a_stream_ends_with_the_error(framing: str) -> None:
    """With ``stream`` the bytes come, and then the error."""
    wrong, _ = replies("repr-sha256", framing)
    got: list[bytes] = []
    with FaultServer(default=wrong) as server, session() as made:
        response = made.get(server.url, timeout=60, stream=True)
        error = error_of(lambda: got.extend(response.iter_content(1000)))
    assert DigestMismatch is type(error)
    assert WRONG.startswith(b"".join(got))
    assert len(b"".join(got)) >= len(WRONG) - 1000


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("way", ["read", "copy", "parts", "read1"])
def test_readers_of_the_raw_response_get_urllib3s_kind_of_error(way: str, framing: str) -> None:
    """Who reads ``response.raw`` gets an error that urllib3's own readers catch."""
    wrong, _ = replies("repr-sha256", framing)

    def read(raw: Any) -> None:
        if way == "read":
            raw.read()
        elif way == "copy":
            shutil.copyfileobj(raw, io.BytesIO())
        else:
            while getattr(raw, "read" if way == "parts" else "read1")(1000):
                pass

    with FaultServer(default=wrong) as server, session() as made:
        response = made.get(server.url, timeout=60, stream=True)
        if way == "read1" and not hasattr(response.raw, "read1"):
            way = "parts"  # urllib3 1.26 has no read1
        error = error_of(lambda: read(response.raw))
        response.close()
    assert DigestError is type(error)


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_right_body_is_as_ever(stream: bool, framing: str) -> None:
    """A body that matches arrives at the first attempt, and its connection is used again."""
    _, right = replies("amz-sha256", framing)
    with FaultServer(default=right) as server, session() as made:
        for _ in range(2):
            response = made.get(server.url, timeout=60, stream=stream)
            assert [line + b"\n" for line in BODY.splitlines()] == [line + b"\n" for line in response.iter_lines()]
        assert (2 if framing == "close" else 1) == len({request.connection_id for request in server.requests})


def test_a_coded_body_is_checked_before_it_is_decoded() -> None:
    """Digests are over the coded bytes; the caller gets the decoded ones."""
    coded = gzip.compress(BODY)
    headers = [FIELDS["repr-sha256"](coded), FIELDS["md5"](coded), ("Content-Encoding", "gzip")]
    with FaultServer(default=Reply(headers=headers, body=coded)) as server, session(max_attempts=1) as made:
        assert BODY == made.get(server.url, timeout=60).content
        assert BODY == b"".join(made.get(server.url, timeout=60, stream=True).iter_content(999))


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 302), ("GET", 404)])
def test_what_has_no_body_of_its_own_is_not_checked(method: str, status: int) -> None:
    """Neither an answer without a body nor an error page is held to a digest."""
    reply = Reply(status, headers=[FIELDS["md5"](b"another")], body=b"page" if status > 300 else b"")
    with FaultServer(default=reply) as server, session(max_attempts=1) as made:
        assert status == made.request(method, server.url, timeout=60, allow_redirects=False).status_code


def test_an_empty_body_is_checked() -> None:
    """A body of no bytes has a digest, too."""
    reply = Reply(headers=[FIELDS["md5"](b"x")])
    with FaultServer(default=reply) as server, session(max_attempts=1) as made, pytest.raises(DigestMismatch):
        made.get(server.url, timeout=60)


@pytest.mark.parametrize("how", ["adapter", "block", "environment"])
def test_a_server_with_wrong_digests_can_be_believed(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``verify_digests=False`` takes bodies as they come, for an adapter, in a block, or by the environment."""
    wrong, _ = replies("md5")
    if how == "environment":
        monkeypatch.setenv("SMITHY_RETRY_VERIFY_DIGESTS", "no")
    options = {"verify_digests": False} if how == "adapter" else {}
    block = {"verify_digests": False} if how == "block" else {}
    with FaultServer(default=wrong) as server, session(max_attempts=1, **options) as made, retry_options(**block):
        assert WRONG == made.get(server.url, timeout=60).content


def test_a_block_can_switch_the_check_on_again() -> None:
    """``retry_options(verify_digests=True)`` checks where the adapter does not."""
    wrong, _ = replies("md5")
    with FaultServer(default=wrong) as server, session(max_attempts=1, verify_digests=False) as made:
        error = error_of(retry_options(verify_digests=True)(lambda: made.get(server.url, timeout=60)))
    assert DigestMismatch is type(error)


@pytest.mark.parametrize("fault", ["length too small", "cut without a length"])
def test_what_no_client_could_know_is_known_by_a_digest(fault: str) -> None:
    """A body cut short in a way that no framing shows is asked for again where a digest came with it."""
    right = Reply(headers=[FIELDS["amz-sha256"](BODY)], body=BODY)
    close = Reply(headers=right.headers, body=BODY, framing="close")
    first: Any = MisstatedLength("100", right) if fault == "length too small" else CutBody(close)
    with FaultServer([first], default=right) as server, session() as made:
        assert BODY == made.get(server.url, timeout=60).content


def test_no_body_is_watched_without_a_digest() -> None:
    """Where no digest is sent, the body is read as ever; so are bodies of stand-ins for urllib3's responses."""
    with FaultServer(default=Reply(body=BODY)) as server, session() as made:
        assert None is watched_body(made.get(server.url, timeout=60, stream=True))
    response = requests.Response()
    assert None is watched_body(response)


def test_hooks_find_a_body_that_was_checked() -> None:
    """A body with a digest is read and checked before response hooks run."""
    wrong, right = replies("md5")
    seen = []
    with FaultServer([wrong, right]) as server, session() as made:
        made.get(server.url, timeout=60, hooks={"response": lambda response, **_: seen.append(response.content)})
    assert [BODY] == seen


def test_headers_of_another_class_are_read_as_well() -> None:
    """A mix-in that gives the response a plain dict of headers breaks nothing."""
    from requests.adapters import HTTPAdapter

    from requests_smithy_retry import RetryAdapter

    class Plain(HTTPAdapter):
        def send(self, *args: Any, **kwargs: Any) -> Any:
            response = super().send(*args, **kwargs)
            response.headers = dict(response.headers)
            return response

    class Ours(RetryAdapter, Plain):
        pass

    wrong, right = replies("md5")
    for options in ({}, {"timeout": 5.0}):
        script = [right, wrong, right, Reply(404, body=b"gone"), CutBody(Reply(headers={"ETag": '"1"'}, body=BODY))]
        with FaultServer(script) as server, requests.Session() as made:
            made.mount("http://", Ours(quota=None, initial_backoff=0, max_attempts=2, **options))
            assert [BODY, BODY] == [made.get(server.url, timeout=60).content for _ in range(2)]
            assert b"gone" == made.get(server.url, timeout=60).content
            error = error_of(lambda: made.get(server.url, timeout=60, stream=True).content)
        assert "not continued" in str(error)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_nothing_is_left_of_a_wrong_body(framing: str, stream: bool) -> None:
    """Once the session is closed and the error is dropped, no socket is open."""
    wrong, _ = replies("md5", framing)

    def call() -> type[Exception]:
        with FaultServer(default=wrong) as server, session(max_attempts=2) as made:
            return type(error_of(lambda: made.get(server.url, timeout=60, stream=stream).content))

    with nothing_left():
        assert DigestMismatch is call()


def test_a_copy_of_a_watched_body_has_nothing() -> None:
    """A bare copy answers with AttributeError, not with an endless recursion."""
    bare = WatchedBody.__new__(WatchedBody)
    with pytest.raises(AttributeError):
        bare.anything  # noqa: B018
