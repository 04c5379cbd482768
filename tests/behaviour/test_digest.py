"""``retry_options(digest=...)``: a body is checked once it is whole, by whichever way it is read."""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest
import requests
import urllib3

from requests_smithy_retry import DigestMismatch, RetryConfigError, mount, retry_history, retry_options
from requests_smithy_retry.testing import CutBody, FaultServer, Reply
from tests import support

BODY = random.Random(1).randbytes(300_000)
RIGHT, WRONG = (f"sha256:{hashlib.sha256(body).hexdigest()}" for body in (BODY, BODY[:-1]))


WAYS: dict[str, Callable[[requests.Response], bytes]] = {
    "content": lambda response: response.content,
    "iter_content": lambda response: b"".join(response.iter_content(1000)),
    "raw.read": lambda response: response.raw.read(),
    "raw in parts": lambda response: b"".join(iter(lambda: response.raw.read(70_000), b"")),
    "raw.stream": lambda response: b"".join(response.raw.stream(1000)),
}
if hasattr(urllib3.HTTPResponse, "read1"):
    WAYS["raw.read1"] = lambda response: b"".join(iter(lambda: response.raw.read1(70_000), b""))
WHOLE = Reply(200, {"ETag": '"1"'}, BODY)
REST = Reply(206, {"ETag": '"1"', "Content-Range": "bytes 150000-299999/300000"}, BODY[150_000:])
SERVERS: dict[str, list[Any]] = {
    "length": [WHOLE],
    "chunks": [Reply(200, {}, BODY, framing="chunked")],
    "close": [Reply(200, {}, BODY, framing="close")],
    "resumed": [CutBody(WHOLE, at=150_000), REST],
}


def read(script: list[Any], digest: str, way: Callable[[requests.Response], bytes], *, stream: bool) -> bytes:
    with FaultServer(script) as server, mount(requests.Session(), backoff=0) as session:
        with retry_options(digest=digest):
            response = session.get(server.url, stream=stream)
        return way(response)


@pytest.mark.real_time
@pytest.mark.parametrize("way", [*WAYS, "in the attempt"])
@pytest.mark.parametrize("script", SERVERS)
def test_a_body_is_checked(script: str, way: str) -> None:
    """However it comes and is read: the right one is given out, and a wrong one fails with both values, once."""
    how = WAYS.get(way, WAYS["content"])
    assert BODY == read(SERVERS[script], RIGHT, how, stream=way in WAYS)
    with pytest.raises(DigestMismatch, match=r"sha256:.* was expected") as caught:
        read(SERVERS[script], WRONG, how, stream=way in WAYS)
    assert (WRONG, RIGHT) == (caught.value.expected, caught.value.actual)
    if way == "in the attempt":
        assert (1 + (script == "resumed")) == len(retry_history(caught.value).attempts)


@pytest.mark.real_time
def test_a_compressed_body_has_the_digest_of_what_the_program_gets() -> None:
    """Decoded by ``requests``, and coded by ``raw``."""
    coded = gzip.compress(BODY)
    script = [Reply(200, {"Content-Encoding": "gzip"}, coded)]
    assert BODY == read(script, RIGHT, WAYS["iter_content"], stream=True)
    assert coded == read(script, f"sha256:{hashlib.sha256(coded).hexdigest()}", WAYS["raw.read"], stream=True)


@pytest.mark.real_time
@pytest.mark.parametrize("stream", [False, True])
def test_an_empty_body_is_checked_too(stream: bool) -> None:
    """Of it no part is ever given out; and what was wrong stays so when it is asked for again."""
    with FaultServer([Reply(200)]) as server, mount(requests.Session()) as session, retry_options(digest=RIGHT):
        with pytest.raises(DigestMismatch):
            session.get(server.url, stream=stream).content  # noqa: B018
        response = session.get(server.url, stream=True)
        for _ in range(2):
            with pytest.raises(DigestMismatch):
                b"".join(response.iter_content(10))


def test_what_is_no_download_is_not_checked() -> None:
    """A redirect, an error, the answer to HEAD; and a body outside of the block."""
    with retry_options(digest=RIGHT):
        for reply in (support.Reply(302, {"Location": "/"}), support.Reply(404)):
            assert reply.status == support.send(support.scripted(reply)).status_code
        assert 200 == support.send(support.scripted(200), "HEAD").status_code
        with pytest.raises(DigestMismatch):
            support.send(support.scripted(200))
    assert 200 == support.send(support.scripted(200)).status_code


def test_an_error_can_be_pickled() -> None:
    """With both values."""
    error = pickle.loads(pickle.dumps(DigestMismatch("md5:a", "md5:b")))
    assert ("md5:a", "md5:b") == (error.expected, error.actual)


@pytest.mark.parametrize("name", ["md5", "sha1", "sha512", "blake2b", "sha3_256"])
def test_any_algorithm_of_hashlib_will_do(name: str) -> None:
    """In any case."""
    with retry_options(digest=f"{name.upper()}:{hashlib.new(name, b'').hexdigest().upper()}"):
        assert 200 == support.send(support.scripted(200)).status_code


def test_a_body_that_cannot_be_hashed_fails() -> None:
    """One of a stand-in for urllib3's responses."""

    class Odd(support.ScriptedAdapter):
        def build_response(self, request: Any, raw: Any) -> requests.Response:
            response = super().build_response(request, raw)
            response.raw = io.BytesIO()
            return response

    with retry_options(digest=RIGHT), pytest.raises(DigestMismatch, match="a BytesIO cannot be hashed"):
        Odd(script=[support.Reply(200)]).send(support.prepare())


def test_it_is_refused_where_the_feature_was_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would have no effect is an error."""
    monkeypatch.setattr("requests_smithy_retry.features.table.found", lambda name: None)
    with pytest.raises(RetryConfigError, match=r"\(from retry_options\): None is allowed: it was deleted"):
        retry_options(digest=RIGHT)
