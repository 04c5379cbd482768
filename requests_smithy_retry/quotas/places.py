"""The parts of a ``quota_url``: its scheme, the place that it names, and its settings (contract 10.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from ..checks import Refused

SENTINEL_SCHEMES = ("redis+sentinel", "rediss+sentinel")
REDIS_SCHEMES = ("redis", "rediss", "unix", *SENTINEL_SCHEMES)
SCHEMES = (*REDIS_SCHEMES, "memory")
NAME = r"[A-Za-z0-9._-]{1,64}"
"""The names that a master of sentinels may have."""

ALLOWED = (
    "redis://host:6379/0, rediss://host:6379/0, unix:///path/to/socket, redis+sentinel://host:26379,host:26379/MASTER, "
    "memory:// or None is allowed; "
    "special characters in a user name or password are percent-encoded"
)


class QuotaUrl:
    """A ``quota_url`` that was parsed. Its ``str`` and ``repr`` leave out user, password and query.

    >>> QuotaUrl("redis://app:secret@cache.example.com:6380/2?budget=0.05")
    <QuotaUrl redis://cache.example.com:6380/2>

    :param text: the URL.
    :raises Refused: for anything else; the message shows nothing of the text.
    """

    __slots__ = ("_text", "place", "scheme", "settings")

    def __init__(self, text: str) -> None:
        parts = _split(text)
        if parts is None:
            raise Refused(ALLOWED)
        self._text = text
        self.scheme: str = parts[0]
        self.place: str = parts[1]
        self.settings: dict[str, str] = parts[2]
        """The scheme; the URL without secrets; the query's settings, unquoted."""

    @property
    def without_secrets(self) -> str:
        """The URL as an error shows it."""
        return self.place

    def without(self, names: Iterable[str]) -> str:
        """Return the URL with those settings taken out of its query, for the client that connects."""
        parts = urlsplit(self._text)
        left = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] not in names]
        return self._text.partition("?")[0] + (f"?{urlencode(left)}" if left else "")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuotaUrl) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __str__(self) -> str:
        return self.place

    def __repr__(self) -> str:
        return f"<QuotaUrl {self.place}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return QuotaUrl, (self._text,)


def quota_url(value: Any) -> QuotaUrl | None:
    """Accept a URL, or None for a quota of this process alone."""
    if value is None or isinstance(value, QuotaUrl):
        return value
    if not isinstance(value, str):
        raise Refused(ALLOWED)
    return QuotaUrl(value)


def _split(text: str) -> tuple[str, str, dict[str, str]] | None:
    try:
        parts = urlsplit(text)
        scheme = parts.scheme
        # An @ behind the host, or a fragment: an unquoted character of a password ended the host too early.
        is_odd = "#" in text or "@" in parts.path + parts.query
        if is_odd or scheme not in SCHEMES or not text.startswith(f"{scheme}://"):
            return None
        place = _sentinels(parts) if scheme in SENTINEL_SCHEMES else _place(parts)
    except ValueError:
        return None
    settings = dict(parse_qsl(parts.query, keep_blank_values=True))
    return None if place is None else (scheme, f"{scheme}://{place}", settings)


def _place(parts: SplitResult) -> str | None:
    host, port = parts.hostname, parts.port
    if parts.scheme == "memory":
        return "" if not parts.netloc + parts.path else None
    if parts.scheme == "unix":
        return unquote(parts.path) if parts.path and host is None else None
    if host is None or not re.fullmatch(r"/?|/\d+", parts.path):
        return None
    return _host_and_port(host, 6379 if port is None else port) + parts.path.rstrip("/")


def _sentinels(parts: SplitResult) -> str | None:
    if not re.fullmatch(rf"/{NAME}(/\d*)?", parts.path):
        return None
    return ",".join(_host_and_port(*each) for each in sentinels_of(parts)) + parts.path.rstrip("/")


def sentinels_of(parts: SplitResult) -> list[tuple[str, int]]:
    """Take apart the hosts of a URL that names sentinels."""
    hosts = [urlsplit(f"//{each}") for each in parts.netloc.rpartition("@")[2].split(",")]
    if not all(each.hostname for each in hosts):
        raise ValueError("a host is missing")
    return [(str(each.hostname), 26379 if each.port is None else each.port) for each in hosts]


def _host_and_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
