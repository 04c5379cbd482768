"""Quotas that are named by a URL: the schemes, and the place of each (contract 10.1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from ..checks import Refused
from ..clock import SYSTEM_CLOCK, Clock
from ..errors import RetryConfigError
from .bucket import RetryQuota, TokenBucket

SENTINEL_SCHEMES = ("redis+sentinel", "rediss+sentinel")
REDIS_SCHEMES = ("redis", "rediss", "unix", *SENTINEL_SCHEMES)
SCHEMES = (*REDIS_SCHEMES, "shm", "memory")
NAME = r"[A-Za-z0-9._-]{1,64}"
"""The names that a shared memory may have. Such a name becomes a file's name."""

ALLOWED = (
    "redis://host:6379/0, rediss://host:6379/0, unix:///path/to/socket, redis+sentinel://host:26379,host:26379/MASTER, "
    "shm://NAME, memory:// or None is allowed; "
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

    @property
    def name(self) -> str:
        """The part that follows ``shm://``."""
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
    if parts.scheme == "shm":
        return parts.netloc if re.fullmatch(NAME, parts.netloc) and not parts.path else None
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


QuotaFactory = Callable[[str], RetryQuota]
"""Makes the bucket of a scope. Buckets of one factory share connections, or the memory."""


def quota_factory(
    url: str | QuotaUrl,
    *,
    capacity: float = 500,
    refill_rate: float = 0.0,
    on_empty: str = "fail",
    clock: Clock = SYSTEM_CLOCK,
    source: str = "code",
) -> QuotaFactory:
    """Return the factory that makes each scope's bucket in the place that a URL names.

    Connects to nothing yet; shared memory is opened, so that what is wrong with it is said here.

    >>> quota_factory("memory://", capacity=28)("https://api.example.com:443")
    <TokenBucket 28 of 28>

    :param url: ``redis://``, ``rediss://``, ``unix://``, ``shm://NAME`` or ``memory://``; the query may hold settings.
    :param capacity: the most a bucket holds; the same in every process.
    :param refill_rate: tokens per second that come back whatever happens.
    :param on_empty: ``"wait"`` is for ``memory://`` alone: who waits on what other processes hold is not told of it.
    :param clock: tells the time.
    :param source: where the URL came from, for the error.
    :raises RetryConfigError: for a bad URL or setting, or where what it needs is missing; no secret is shown.
    """
    looked_at, why = None, ""
    try:
        looked_at = url if isinstance(url, QuotaUrl) else QuotaUrl(url)
        make = _factory(looked_at, capacity, refill_rate, on_empty, clock)
    except (Refused, ValueError, ImportError, OSError, RuntimeError) as error:
        why = str(error)
    if why:
        raise RetryConfigError("quota_url", url if looked_at is None else looked_at, source, why)
    return make


def _factory(url: QuotaUrl, capacity: float, refill_rate: float, on_empty: str, clock: Clock) -> QuotaFactory:
    if url.scheme != "memory" and on_empty != "fail":
        raise ValueError("a quota that processes share does not wait: on_empty='fail' is allowed")
    # Each module is imported only if its scheme is used.
    if url.scheme in REDIS_SCHEMES:
        from .redis import RedisTokenBucket, link_to

        handle = link_to(url, None, clock)
        return lambda scope: RedisTokenBucket(handle, scope, capacity=capacity, refill_rate=refill_rate)
    if url.scheme == "shm":
        from .settings import SharedQuotaSettings, settings_from
        from .shared_memory import SharedMemoryTokenBucket
        from .shared_memory.records import SharedMemory

        settings = settings_from(SharedQuotaSettings, url.settings)
        memory = SharedMemory(url.name, settings, clock)
        return lambda scope: SharedMemoryTokenBucket(memory, scope, capacity=capacity, refill_rate=refill_rate)
    if url.settings:
        raise ValueError("memory:// has no settings")
    return lambda _: TokenBucket(capacity, refill_rate=refill_rate, on_empty=on_empty, clock=clock)
