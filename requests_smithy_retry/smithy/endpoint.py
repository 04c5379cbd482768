"""The endpoint of a model (contract 4): the model speaks for requests to it, and for no others.

A greedy pattern matches almost any path, so the endpoint keeps a model from allowing a retry of another service's POST.
A URL that two parsers could read differently (a backslash, a control character, a dot segment) belongs to no endpoint.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from ..urls import DEFAULT_PORTS
from .operations import ModeledOperation
from .request_parts import path_segments

if TYPE_CHECKING:
    from .model import SmithyModel

_NOT_IN_A_URL = re.compile(r"[\x00-\x20\x7f\\]")
_AUTHORITY_END = re.compile(r"[/?#]")
_HOST = re.compile(r"[a-z0-9._-]+")


class _Place(NamedTuple):
    scheme: str
    host: str
    port: int
    segments: tuple[str, ...]
    query: str


def _locate(url: str) -> _Place | None:
    if _NOT_IN_A_URL.search(url) is not None:
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        is_ipv6 = ":" in host
        host = ipaddress.ip_address(host).compressed if is_ipv6 else host
    except ValueError:
        return None
    segments = path_segments(parts.path)
    if parts.scheme not in DEFAULT_PORTS or segments is None or not (is_ipv6 or _HOST.fullmatch(host)):
        return None
    return _Place(parts.scheme, host, DEFAULT_PORTS[parts.scheme] if port is None else port, segments, parts.query)


@dataclass(frozen=True, slots=True)
class SmithyEndpoint:
    """A model and the endpoint it speaks for, made by :meth:`SmithyModel.for_endpoint`.

    A request goes to the endpoint if scheme, host (in any case), port and the segments of the path prefix are the same.
    The host may have a prefix that the model itself defines (``@endpoint``, without labels).

    :raises ValueError: if the URL is not a plain ``http://`` or ``https://`` URL without a query and a fragment.
    """

    model: SmithyModel = field(repr=False)
    """The model."""
    url: str
    """The endpoint as the user named it, but without userinfo."""
    _place: _Place = field(init=False, repr=False, compare=False)
    _prefixes: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        scheme, mark, rest = self.url.partition("://")
        authority = _AUTHORITY_END.split(rest, maxsplit=1)[0]
        object.__setattr__(self, "url", scheme + mark + authority.rpartition("@")[2] + rest[len(authority) :])
        place = _locate(self.url)
        if place is None or "?" in self.url or "#" in self.url:
            shown = self.url.rpartition("@")[2]  # even an invalid URL may hold userinfo
            raise ValueError(
                f"endpoint {shown!r}: an http:// or https:// URL with an ASCII host, and without a query, "
                "a fragment and dot segments, is allowed"
            )
        prefixes = {place.host: ""}
        # An IPv4 address takes no prefix, and an IPv6 address with one is no valid host.
        if not place.host.rpartition(".")[2].isdigit():
            for operation in self.model.operations.values():
                prefixes.setdefault(operation.host_prefix + place.host, operation.host_prefix)
        object.__setattr__(self, "_place", place)
        object.__setattr__(self, "_prefixes", prefixes)

    def speaks_for(self, url: str) -> bool:
        """Return True if a request to this URL goes to the endpoint."""
        return self._within(url) is not None

    def operation_for(self, method: str, url: str, headers: Mapping[str, Any], body: object) -> ModeledOperation | None:
        """Return the operation of a request, or None if it goes elsewhere or the model does not know it.

        :param body: bytes or text; an operation named in anything else is not found.
        """
        there = self._within(url)
        if there is None:
            return None
        below = there.segments[len(self._place.segments) :]
        operation = self.model.match_segments(method, below, there.query, headers, body)
        if operation is None or self._prefixes[there.host] not in ("", operation.host_prefix):
            return None
        return operation

    def may_resend(self, method: str, url: str, headers: Mapping[str, Any], body: object) -> bool:
        """Return True if the model allows this request to be sent again, whatever its method."""
        operation = self.operation_for(method, url, headers, body)
        return operation is not None and operation.resendable_with(url, headers, body)

    def _within(self, url: str) -> _Place | None:
        there, here = _locate(url), self._place
        if there is None or there.host not in self._prefixes or (there.scheme, there.port) != (here.scheme, here.port):
            return None
        return there if there.segments[: len(here.segments)] == here.segments else None
