"""A download of which the program names the digest (contract 14.8): its body is hashed as it is read, and checked once
it is whole, whether it came in one piece or several. What servers say of digests is not looked at.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import requests.exceptions
import urllib3
from requests import PreparedRequest, Response
from urllib3.util.response import is_fp_closed

from ..checks import BadValue
from ..clock import Clock
from ..config.retry_config import RetryConfig
from ..core.driver import Driver
from ..core.plan import Call
from ..core.port import Feature
from ..core.scope import Scope


class DigestMismatch(requests.exceptions.RequestException):
    """A body is whole, and not the one whose digest was named. It is not retried, and its last part is not given out.

    :param expected: the digest that was named, and ``actual`` that of the body: ``"sha256:..."``.
    """

    def __init__(self, expected: str = "", actual: str = "", **rest: Any) -> None:
        super().__init__(expected, actual, **rest)
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return f"the body has the digest {self.actual}, and {self.expected} was expected"


class Named(NamedTuple):
    """A digest: an algorithm of :mod:`hashlib`, and the value in hexadecimal."""

    algorithm: str
    value: str

    def __str__(self) -> str:
        return f"{self.algorithm}:{self.value}"


def parse(value: Any) -> Named:
    algorithm, _, digits = value.lower().partition(":") if isinstance(value, str) else ("", "", "")
    size = hashlib.new(algorithm).digest_size if algorithm in hashlib.algorithms_available else 0
    if not size or len(digits) != 2 * size or not set(digits) <= set("0123456789abcdef"):
        raise BadValue(
            "an algorithm of hashlib, a colon and all hexadecimal digits, as in 'sha256:9f86...', is allowed"
        )
    return Named(algorithm, digits)


class Check:
    """The hash of one body so far."""

    def __init__(self, named: Named, request: PreparedRequest) -> None:
        self._named, self._request = named, request
        self._hash = hashlib.new(named.algorithm)

    def take(self, data: bytes, *, is_last: bool = False) -> bytes:
        """Take in a part of the body, and return it; raise :class:`DigestMismatch` if it is the last of a wrong one."""
        self._hash.update(data)
        actual = self._named._replace(value=self._hash.hexdigest()) if is_last else self._named
        if actual != self._named:
            raise DigestMismatch(str(self._named), str(actual), request=self._request)
        return data


class Hashed(urllib3.HTTPResponse):
    """A urllib3 response whose body is hashed as it is given out, by all of its ways."""

    named_digest: Check

    def read(self, amt: int | None = None, *rest: Any, **more: Any) -> bytes:
        """Read; the end is checked before its last part is given out."""
        data = super().read(amt, *rest, **more)
        is_over = is_fp_closed(self._fp) and not len(getattr(self, "_decoded_buffer", b""))
        return self.named_digest.take(data, is_last=is_over or amt is None or (amt != 0 and not data))

    def read1(self, amt: int | None = None, *rest: Any, **more: Any) -> bytes:
        data = super().read1(amt, *rest, **more)
        return self.named_digest.take(data, is_last=amt != 0 and not data)

    def read_chunked(self, *rest: Any, **more: Any) -> Iterator[bytes]:  # type: ignore[override, unused-ignore]
        for part in super().read_chunked(*rest, **more):
            yield self.named_digest.take(part)
        self.named_digest.take(b"", is_last=True)

    def stream(self, *rest: Any, **more: Any) -> Iterator[bytes]:  # type: ignore[override, unused-ignore]
        """Read in parts. A body without any is checked, too, and a wrong one that is read again is still wrong."""
        yield from super().stream(*rest, **more)
        self.named_digest.take(b"", is_last=True)


@functools.lru_cache
def hashed(kind: type) -> type:
    return type(f"Hashed{kind.__name__}", (Hashed, kind), {})


class Digest(Feature):
    """The hook."""

    hears: frozenset[str] | None = frozenset()

    def received(self, driver: Driver, call: Call, request: PreparedRequest, response: Response, scope: Scope) -> None:
        """Have the body of a 2xx hashed. What brings the rest of one is a part of it."""
        named: Any = call.options.digest
        if named is None or response.status_code >= 300 or call.receives is not None or request.method == "HEAD":
            return
        raw: Any = response.raw
        if not isinstance(raw, urllib3.HTTPResponse):
            raise DigestMismatch(str(named), f"(a {type(raw).__name__} cannot be hashed)", request=call.request)
        body: Any = raw
        body.__class__, body.named_digest = hashed(type(raw)), Check(named, call.request)


def feature(config: RetryConfig, clock: Clock) -> Digest:
    return Digest()
