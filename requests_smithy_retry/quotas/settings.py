"""The settings of shared quotas: frozen values, checked when they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from ..checks import Parse, Refused, number

S = TypeVar("S", bound="SharedQuotaSettings")

LONGEST_CALL = 86_400.0
"""A socket counts its milliseconds in 32 bits, and some waits are ten budgets long."""
LONGEST = 1e9
"""31 years: neither Redis nor a lock accepts an infinite wait."""


def _text(value: Any) -> str:
    if not isinstance(value, str) or value == "":
        raise Refused("a text that is not empty is allowed")
    return value


def setting(default: Any, parse: Parse) -> Any:
    """Return the field of a setting, with the parser that refuses what is not allowed."""
    return field(default=default, metadata={"parse": parse})


@dataclass(frozen=True, kw_only=True)
class SharedQuotaSettings:
    """The settings of every shared quota.

    :param budget: no call takes longer, in seconds.
    :param local_capacity: tokens in the bucket of this process alone, which is used while the shared one does not
        answer. None: the shared one's capacity, at most 500.
    :param retry_interval: seconds after a failure until the shared bucket is asked again.
    :param log_interval: the shortest time between two log records of failures, in seconds.
    :raises ValueError: for a number out of range.
    """

    budget: float = setting(0.02, number(above=0, most=LONGEST_CALL))
    local_capacity: float | None = setting(None, number(unit="tokens", none=True))
    retry_interval: float = setting(1.0, number(most=LONGEST))
    log_interval: float = setting(60.0, number(most=LONGEST))

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            try:
                each.metadata["parse"](value)
            except Refused as refusal:
                raise ValueError(f"{each.name}={value!r}: {refusal}") from None

    def local_bucket_size(self, capacity: float) -> float:
        """Return the capacity of the local bucket beside a shared one of ``capacity``."""
        return min(capacity, 500) if self.local_capacity is None else self.local_capacity


@dataclass(frozen=True, kw_only=True)
class RedisSettings(SharedQuotaSettings):
    """The settings of a quota on Redis: these, beside those of every shared quota.

    :param connect_timeout: the longest attempt to connect, in seconds. It is made in the background; a call
        waits for it no longer than ``budget``, and for the first one of a process no longer than ten times that.
    :param flush_interval: seconds until tokens that are given back go out, unless a take goes out before.
    :param ttl: the idle time in seconds after which a bucket is forgotten, and so is full again.
    :param prefix: the keys are ``prefix:{scope}``.
    """

    connect_timeout: float = setting(1.0, number(above=0, most=LONGEST_CALL))
    flush_interval: float = setting(1.0, number(most=LONGEST))
    ttl: float = setting(3600.0, number(above=0, most=LONGEST))
    prefix: str = setting("requests-smithy-retry", _text)


def settings_from(cls: type[S], query: Mapping[str, str]) -> S:
    """The settings in a URL's query."""
    for name in query:
        if name not in names_of(cls):
            raise ValueError(f"there is no setting of that name: there are {', '.join(sorted(names_of(cls)))}")
    given: dict[str, Any] = {name: text if name == "prefix" else _number(name, text) for name, text in query.items()}
    return cls(**given)


def names_of(cls: type[SharedQuotaSettings]) -> frozenset[str]:
    return frozenset(each.name for each in fields(cls))


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    raise ValueError(f"{name}: a number is allowed")
