"""The script that the server runs on a bucket, atomically, with its arguments and its answer (no I/O here).

A bucket is a hash with a level and, where it refills, the server's time at which that was. A missing bucket is a full
one, so a full one is not kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

SCRIPT = """
local capacity, rate = tonumber(ARGV[1]), tonumber(ARGV[2])
local give, ttl = tonumber(ARGV[3]), tonumber(ARGV[4])
local kept = redis.call('HMGET', KEYS[1], 'level', 'at')
local level = tonumber(kept[1] or '') or capacity
local now = 0
if rate > 0 then
    local time = redis.call('TIME')
    now = tonumber(time[1]) + tonumber(time[2]) / 1000000
    level = level + math.max(0, now - (tonumber(kept[2] or '') or now)) * rate
end
level = math.min(capacity, math.max(0, level) + give)
local answer = {''}
for position = 5, #ARGV do
    local take = tonumber(ARGV[position])
    local granted = level >= take
    if granted then
        level = level - take
    end
    answer[position - 3] = granted and 1 or 0
end
if level >= capacity then
    redis.call('DEL', KEYS[1])
else
    redis.call('HSET', KEYS[1], 'level', string.format('%.17g', level), 'at', string.format('%.17g', now))
    redis.call('PEXPIRE', KEYS[1], ttl)
end
answer[1] = string.format('%.17g', level)
return answer
"""
"""Gives back first, then takes one amount after the other; each take is granted whole or refused."""


class NonsenseError(ValueError):
    """The server's answer is not one that the script can give."""


class Reply(NamedTuple):
    """The server's answer."""

    level: float
    granted: tuple[bool, ...] = ()


def key_of(prefix: str, name: str) -> str:
    """Return the bucket's key. The braces make a cluster go by the scope alone, so that each script has one slot."""
    return f"{prefix}:{{{name}}}"


def arguments(
    capacity: float, refill_rate: float, give: float, ttl: float, takes: Iterable[float] = ()
) -> tuple[str, ...]:
    """Return the script's arguments; the time to live, here in seconds, goes as whole milliseconds."""
    capacity_, rate, give_, *taken = (repr(float(value)) for value in (capacity, refill_rate, give, *takes))
    return (capacity_, rate, give_, str(math.ceil(ttl * 1000)), *taken)


def reply_of(answer: Any, takes: int) -> Reply:
    """Return the script's answer as a value."""
    try:
        text, *granted = answer
        level = float(text)
    except (TypeError, ValueError, OverflowError):
        raise NonsenseError("not the script's answer") from None
    if not 0 <= level < math.inf or len(granted) != takes or any(each not in (0, 1) for each in granted):
        raise NonsenseError("not the script's answer")
    return Reply(level, tuple(each == 1 for each in granted))
