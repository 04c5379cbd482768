"""Digests in the head of an answer are the program's own to check: they seldom are of the bytes that came with it.

Services answer an upload with the digest of what they stored, and proxies leave the origin's digest in place when they
compress an answer.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import zlib
from collections.abc import Callable

import pytest
import requests

from requests_smithy_retry import mount, retry_history
from requests_smithy_retry.testing import FaultServer, Reply

DATA = b"".join(b"%06d the quick brown fox\n" % number for number in range(3000))
CODED = gzip.compress(DATA)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


MD5 = b64(hashlib.md5(DATA).digest())
SHA256 = b64(hashlib.sha256(DATA).digest())
CRC32 = b64(zlib.crc32(DATA).to_bytes(4, "big"))

UPLOADS = {
    # learn.microsoft.com/rest/api/storageservices/put-blob, "Response headers"
    "Azure, Put Blob": ("PUT", Reply(201, {"Content-MD5": MD5, "ETag": '"0x8D1"', "x-ms-request-id": "1"})),
    # learn.microsoft.com/rest/api/storageservices/append-block, "Response headers"
    "Azure, Append Block": ("PUT", Reply(201, {"Content-MD5": MD5, "ETag": '"0x8D2"'})),
    # cloud.google.com/storage/docs/xml-api/reference-headers, "x-goog-hash"
    "Google, XML API": ("PUT", Reply(200, {"x-goog-hash": f"md5={MD5}", "ETag": '"1"'})),
    # docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html, "Response Elements"
    "S3, SHA-256": ("PUT", Reply(200, {"x-amz-checksum-sha256": SHA256, "ETag": '"1"'})),
    "S3, CRC-32": ("PUT", Reply(200, {"x-amz-checksum-crc32": CRC32, "x-amz-checksum-type": "FULL_OBJECT"})),
    # RFC 9530, appendix B, "Client Provides Full Representation Data and Server Provides No Representation Data"
    "RFC 9530, 204": ("PUT", Reply(204, {"Repr-Digest": f"sha-256=:{SHA256}:"})),
    # The same by a server that gives its answer a length, and of the content that it received.
    "RFC 9530, 201": ("POST", Reply(201, {"Repr-Digest": f"sha-256=:{SHA256}:", "Location": "/1"})),
    "Content-Digest": ("POST", Reply(201, {"Content-Digest": f"sha-256=:{SHA256}:"}, b'{"id": 1}')),
}
"""Each service's method, and its answer to an upload: the digest is of what was stored."""


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("service", UPLOADS)
def test_an_upload_whose_answer_has_the_digest_of_what_was_stored_is_sent_once(service: str, stream: bool) -> None:
    """The service's answer comes back, whole, and the data went out once."""
    method, reply = UPLOADS[service]
    with FaultServer(default=reply) as server, mount(requests.Session()) as session:
        response = session.request(method, server.url, data=DATA, stream=stream, timeout=60)
        assert (reply.status, reply.body) == (response.status_code, response.content)
    assert [DATA] == [request.body for request in server.requests]


ORIGINS: dict[str, dict[str, str]] = {
    # Each is what nginx, HAProxy or Apache hand on of the origin's head when they compress its answer.
    "Content-MD5": {"Content-MD5": MD5},
    "Content-Digest": {"Content-Digest": f"sha-256=:{SHA256}:"},
    "Repr-Digest and the weak ETag of nginx": {"Repr-Digest": f"sha-256=:{SHA256}:", "ETag": 'W/"e"'},
    "x-amz-checksum-sha256 and the ETag of Apache": {"x-amz-checksum-sha256": SHA256, "ETag": '"e-gzip"'},
    "x-goog-hash": {"x-goog-hash": f"md5={MD5}", "x-goog-stored-content-encoding": "identity"},
}
"""The fields with which an answer arrives that a proxy compressed: the digest is of the body before."""

WAYS: dict[str, Callable[[requests.Response], bytes]] = {
    "content": lambda response: response.content,
    "iter_content": lambda response: b"".join(response.iter_content(7000)),
    "raw.read": lambda response: response.raw.read(decode_content=True),
}


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("origin", ORIGINS)
def test_an_answer_that_a_proxy_compressed_is_read_where_the_origins_digest_is_left(
    origin: str, way: str, framing: str
) -> None:
    """Its body arrives in one attempt, however it is read."""
    reply = Reply(200, {**ORIGINS[origin], "Content-Encoding": "gzip"}, CODED, framing=framing)  # type: ignore[arg-type]
    with FaultServer(default=reply) as server, mount(requests.Session()) as session:
        response = session.get(server.url, stream=way != "content", timeout=60)
        assert DATA == WAYS[way](response)
    assert (1, 1) == (len(server.requests), len(retry_history(response).attempts))
