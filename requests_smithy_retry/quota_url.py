"""Where a shared quota is kept, as one value that never shows its secrets (contract 10.1, 12).

Here is the only place that takes such a URL apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from .option_types import Refused

REDIS_SCHEMES = ("redis", "rediss", "unix")
SCHEMES = (*REDIS_SCHEMES, "shm", "memory")
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""What a shared memory may be called: it becomes a file's name."""

ALLOWED = (
    "redis://host:6379/0, rediss://host:6379/0, unix:///path/to/socket, shm://NAME, memory:// or None is allowed; "
    "special characters in a user name or password are percent-encoded"
)


class QuotaUrl:
    """A ``quota_url`` that was looked at. Its ``str`` and ``repr`` leave out user, password and query.

    >>> QuotaUrl("redis://app:secret@cache.example.com:6380/2?budget=0.05")
    <QuotaUrl redis://cache.example.com:6380/2>

    :param text: the URL.
    :raises Refused: for anything else; the message shows nothing of the text.
    """

    __slots__ = ("_text", "place", "scheme", "settings")

    place: str
    scheme: str
    settings: dict[str, str]

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
        """What an error shows of it."""
        return self.place

    def without(self, names: Iterable[str]) -> str:
        """The URL with those settings taken out of its query, for whoever connects."""
        parts = urlsplit(self._text)
        left = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] not in names]
        return self._text.partition("?")[0] + (f"?{urlencode(left)}" if left else "")

    @property
    def name(self) -> str:
        """What follows ``shm://``."""
        return self.place.partition("://")[2]

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
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    scheme = parts.scheme
    # An @ behind the host, or a fragment: an unquoted character of a password ended the host too early.
    if scheme not in SCHEMES or not text.startswith(f"{scheme}://") or "#" in text or "@" in parts.path + parts.query:
        return None
    settings = dict(parse_qsl(parts.query, keep_blank_values=True))
    if scheme == "memory":
        return (scheme, "memory://", settings) if not parts.netloc + parts.path else None
    if scheme == "shm":
        return (scheme, f"shm://{parts.netloc}", settings) if NAME.fullmatch(parts.netloc) and not parts.path else None
    if scheme == "unix":
        return (scheme, f"unix://{unquote(parts.path)}", settings) if parts.path and host is None else None
    if host is None or not re.fullmatch(r"/?|/\d+", parts.path):
        return None
    shown = f"[{host}]" if ":" in host else host
    return scheme, f"{scheme}://{shown}:{6379 if port is None else port}{parts.path.rstrip('/')}", settings
