"""The digests that a server sends with a body, and their check against the bytes that came (contract 14.6).

Each is over the encoded bytes of the body. Unknown algorithms and malformed values are passed over.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import importlib
import re
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import requests.exceptions
import urllib3.exceptions as uex

CONTENT_DIGEST = "content-digest"
REPR_DIGEST = "repr-digest"
CONTENT_MD5 = "content-md5"
GOOG_HASH = "x-goog-hash"
STORED_CODING = "x-goog-stored-content-encoding"
AMZ_CHECKSUMS = {
    "x-amz-checksum-crc32": "crc32",
    "x-amz-checksum-crc32c": "crc32c",
    "x-amz-checksum-sha1": "sha1",
    "x-amz-checksum-sha256": "sha256",
}
DIGEST_FIELDS = frozenset({CONTENT_DIGEST, REPR_DIGEST, CONTENT_MD5, GOOG_HASH, *AMZ_CHECKSUMS})
"""The header fields that may hold a digest, in lower case."""

STANDARD_NAMES = {"sha-256": "sha256", "sha-512": "sha512"}
"""The algorithms of RFC 9530 that are checked."""
SIZES = {"crc32": 4, "crc32c": 4, "md5": 16, "sha1": 20, "sha256": 32, "sha512": 64}
PARTIAL = 206

_MEMBER = r"\s*([a-z*][a-z0-9_.*-]*)=:([A-Za-z0-9+/=]*):\s*(?:;[^,]*)?"
_GOOG_MEMBER = r"\s*(crc32c|md5)=([A-Za-z0-9+/=]+)\s*"


class DigestError(uex.ProtocolError):
    """The body does not match its digest. Readers of ``response.raw`` get this error."""


class DigestMismatch(requests.exceptions.ChunkedEncodingError):
    """The body that arrived does not match its digest.

    The message names the header field. Inside an attempt it is a transient failure.
    """


class Hasher(Protocol):
    """One running hash."""

    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


class Crc:
    """A running CRC of 32 bits, of a function of more bytes and the CRC so far."""

    __slots__ = ("_extend", "_value")

    def __init__(self, extend: Callable[[bytes, int], int]) -> None:
        self._extend = extend
        self._value = 0

    def update(self, data: bytes, /) -> None:
        self._value = self._extend(data, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(4, "big")


class Expected(NamedTuple):
    """One digest that a server sent: its field in lower case, its key in :data:`SIZES`, and its bytes."""

    field: str
    algorithm: str
    digest: bytes


class Checks:
    """The running check of one body."""

    __slots__ = ("_expected", "_hashers", "_updates")

    def __init__(self, expected: list[Expected]) -> None:
        made = {algorithm: _hasher(algorithm) for algorithm in {item.algorithm for item in expected}}
        self._hashers = {algorithm: hasher for algorithm, hasher in made.items() if hasher is not None}
        self._updates = [hasher.update for hasher in self._hashers.values()]
        self._expected = [item for item in expected if item.algorithm in self._hashers]

    def __bool__(self) -> bool:
        return self._expected != []

    def update(self, data: bytes) -> None:
        for update in self._updates:
            update(data)

    def mismatch(self) -> Expected | None:
        """Return the first digest that all bytes so far do not come to; None if they come to each."""
        found = {algorithm: hasher.digest() for algorithm, hasher in self._hashers.items()}
        return next((item for item in self._expected if found[item.algorithm] != item.digest), None)


def expected_digests(headers: Mapping[str, str], status: int) -> list[Expected]:
    """Return the digests that cover the encoded bytes of one response's body.

    :param status: of the response. A part (206) is covered by Content-Digest alone: the others are of the whole.
    """
    found = _standard(headers, CONTENT_DIGEST)
    if status == PARTIAL:
        return found
    found += _standard(headers, REPR_DIGEST)
    # A proxy that codes the body itself makes an entity tag weak, and digests of the object void.
    if _coding(headers) != "identity" and headers.get("etag", "").lstrip().startswith("W/"):
        return found
    found += _decoded(CONTENT_MD5, "md5", headers.get(CONTENT_MD5, ""))
    for field, algorithm in AMZ_CHECKSUMS.items():
        # The checksum of checksums of parts ends with their number, as in "...==-3": it is not one of bytes.
        found += _decoded(field, algorithm, headers.get(field, ""))
    if _coding(headers, STORED_CODING, _coding(headers)) == _coding(headers):
        for match in map(re.compile(_GOOG_MEMBER).fullmatch, headers.get(GOOG_HASH, "").split(",")):
            found += [] if match is None else _decoded(GOOG_HASH, match[1], match[2])
    return found


def _coding(headers: Mapping[str, str], field: str = "content-encoding", default: str = "identity") -> str:
    return headers.get(field, "").strip().lower() or default


def _standard(headers: Mapping[str, str], field: str) -> list[Expected]:
    """Return the members of a dictionary of digests (RFC 9530 2, 3); of members of one name, the last one counts."""
    matches = map(re.compile(_MEMBER).fullmatch, headers.get(field, "").split(","))
    members = {match[1]: match[2] for match in matches if match}
    found: list[Expected] = []
    for name, algorithm in STANDARD_NAMES.items():
        found += _decoded(field, algorithm, members.get(name, ""))
    return found


def _decoded(field: str, algorithm: str, text: str) -> list[Expected]:
    """Return the digest in Base64; nothing if it is malformed or has another length than its algorithm's."""
    try:
        digest = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        return []
    return [Expected(field, algorithm, digest)] if len(digest) == SIZES[algorithm] else []


def _hasher(algorithm: str) -> Hasher | None:
    """Return a new hasher; None if nothing on this machine can compute the algorithm."""
    if algorithm == "crc32":
        return Crc(zlib.crc32)
    if algorithm == "crc32c":
        extend = _crc32c()
        return None if extend is None else Crc(extend)
    return hashlib.new(algorithm, usedforsecurity=False)


def _crc32c() -> Callable[[bytes, int], int] | None:
    """Return the CRC-32C of an installed library, or None."""
    with suppress(ImportError):
        google: Any = importlib.import_module("google_crc32c")
        return lambda data, value: int(google.extend(value, data))
    with suppress(ImportError):
        found: Callable[[bytes, int], int] = importlib.import_module("crc32c").crc32c
        return found
    return None
