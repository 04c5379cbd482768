"""What the server does with a bucket: one script, atomic, and its arguments and answer (no I/O here).

A bucket is a hash with a level and, where it refills, the server's time at which that was. A missing bucket is a full
one, so a full one is not kept.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, NamedTuple

SCRIPT = """
local capacity, rate = tonumber(ARGV[1]), tonumber(ARGV[2])
local give, take, ttl = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local kept = redis.call('HMGET', KEYS[1], 'level', 'at')
local level = tonumber(kept[1] or '') or capacity
local now = 0
if rate > 0 then
    local time = redis.call('TIME')
    now = tonumber(time[1]) + tonumber(time[2]) / 1000000
    level = level + math.max(0, now - (tonumber(kept[2] or '') or now)) * rate
end
level = math.min(capacity, math.max(0, level) + give)
local granted = 0
if level >= take then
    granted, level = 1, level - take
end
if level >= capacity then
    redis.call('DEL', KEYS[1])
else
    redis.call('HSET', KEYS[1], 'level', string.format('%.17g', level), 'at', string.format('%.17g', now))
    redis.call('PEXPIRE', KEYS[1], ttl)
end
return {granted, string.format('%.17g', level)}
"""
DIGEST = hashlib.sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()


class NonsenseError(ValueError):
    """The server's answer is none that the script gives."""


class Reply(NamedTuple):
    """What the server answered.

    :param granted: whether it took what was to be taken.
    :param level: what the bucket holds now.
    """

    granted: bool
    level: float


def key_of(prefix: str, name: str) -> str:
    """The bucket's key. The braces make a cluster go by the scope alone, so that each script has one slot."""
    return f"{prefix}:{{{name}}}"


def arguments(capacity: float, refill_rate: float, give: float, take: float, ttl: float) -> tuple[str, ...]:
    """The script's arguments; the time to live, here in seconds, goes as whole milliseconds."""
    numbers = (repr(float(value)) for value in (capacity, refill_rate, give, take))
    return (*numbers, str(math.ceil(ttl * 1000)))


def reply_of(answer: Any) -> Reply:
    """The script's answer as a value.

    :raises NonsenseError: if it is none.
    """
    try:
        granted, text = answer
        level = float(text)
    except (TypeError, ValueError, OverflowError):
        level = math.nan  # which is none, whatever was granted
    if not math.isfinite(level) or level < 0 or granted not in (0, 1):
        raise NonsenseError("not the script's answer")
    return Reply(granted == 1, level)
