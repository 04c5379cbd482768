"""What can be tuned on a shared quota: frozen values, checked when they are made."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..option_types import Parse, Refused, number, whole_number

S = TypeVar("S", bound="SharedQuotaSettings")


@dataclass(frozen=True, kw_only=True)
class SharedQuotaSettings:
    """What every shared quota has.

    :param budget: no call takes longer, in seconds.
    :param local_capacity: what the bucket of this process alone holds, by which it goes while the shared one does not
        answer. None: the shared one's capacity, at most 500.
    :param retry_interval: so many seconds after a failure the shared bucket is asked again.
    :param log_interval: a failure is logged at most once in so many seconds.
    :raises ValueError: for a number out of range.
    """

    budget: float = 0.02
    local_capacity: float | None = None
    retry_interval: float = 1.0
    log_interval: float = 60.0

    def __post_init__(self) -> None:
        for name, parse in PARSERS.items():
            if hasattr(self, name):
                try:
                    parse(getattr(self, name))
                except Refused as refusal:
                    raise ValueError(f"{name}={getattr(self, name)!r}: {refusal}") from None

    def local_bucket_size(self, capacity: float) -> float:
        """What the local bucket of a shared one of ``capacity`` holds."""
        return min(capacity, 500) if self.local_capacity is None else self.local_capacity


@dataclass(frozen=True, kw_only=True)
class RedisSettings(SharedQuotaSettings):
    """What a quota on Redis has beside that.

    :param connect_timeout: an attempt to connect ends after so many seconds. It is made in the background; a call
        waits for it no longer than ``budget``.
    :param flush_interval: what is given back goes out with the next take, or else at most once in so many seconds.
    :param ttl: a bucket that nobody used for so many seconds is forgotten, and so is full again.
    :param max_connections: so many connections are kept per process at most.
    :param prefix: the keys are ``prefix:{scope}``.
    """

    connect_timeout: float = 1.0
    flush_interval: float = 1.0
    ttl: float = 3600.0
    max_connections: int = 4
    prefix: str = "requests-smithy-retry"


def _text(value: Any) -> str:
    if not isinstance(value, str) or value == "":
        raise Refused("a text that is not empty is allowed")
    return value


PARSERS: dict[str, Parse] = {
    "budget": number(above=0),
    "local_capacity": number(unit="tokens", none=True),
    "retry_interval": number(),
    "log_interval": number(),
    "connect_timeout": number(above=0),
    "flush_interval": number(),
    "ttl": number(above=0),
    "max_connections": whole_number(1),
    "prefix": _text,
}
"""What each setting accepts."""


def settings_from(cls: type[S], query: Mapping[str, str]) -> S:
    """The settings in a URL's query.

    :raises ValueError: for a number out of range or none, or for a name that is no setting.
    """
    for name in query:
        if name not in names_of(cls):
            raise ValueError(f"there is no setting of that name: there are {', '.join(sorted(names_of(cls)))}")
    given: dict[str, Any] = {name: _number(name, text) for name, text in query.items()}
    return cls(**given)


def names_of(cls: type[SharedQuotaSettings]) -> frozenset[str]:
    """The names of the settings."""
    return frozenset(field.name for field in dataclasses.fields(cls))


def _number(name: str, text: str) -> Any:
    if name == "prefix":
        return text
    try:
        return int(text) if name == "max_connections" else float(text)
    except ValueError:
        pass
    raise ValueError(f"{name}: a number is allowed")
