"""Retries within retries: three attempts of three attempts are nine requests. A loop around the call is told of once.

It is known by what it does: the same thread sends the same request again, soon after it failed in spite of its retries.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from requests import PreparedRequest

from ..checks import is_first
from ..observing.log import logger
from ..urls import safe_url
from .replay import SIMPLE_BODIES

CALLS_OF_A_LOOP = 3
PAUSE_OF_A_LOOP, GROWTH_OF_PAUSES = 2.0, 3.0
"""A loop goes on within two seconds, or, as it may back off, within three times its longest pause."""
MESSAGE = (
    "%s %s failed %d times in a row in one thread, with %d requests: a loop around the call retries as well. "
    "Give one of the two a single attempt, here with max_attempts=1"
)

_told: dict[str, object] = {}
_this_thread = threading.local()


class Streak(NamedTuple):
    """Calls of one thread with the same request that failed in spite of their retries, each soon after the last."""

    key: int
    calls: int = 0
    requests: int = 0
    ended: float = 0.0
    pause: float = 0.0
    """The longest pause between two of them, in seconds."""


def note_end(
    request: PreparedRequest, strategy: Any, status: int | None, requests: int, began: float, now: float
) -> None:
    """Take note of the end of a call that had retries; log, once per process, that a loop around it retries as well.

    :param status: the status of the last response; None: it raised.
    :param began: the start of the call, on the clock; ``now`` is its end.
    """
    if (status is not None and status < 500 and status != 429) or type(request.body) not in SIMPLE_BODIES:
        _this_thread.streak = None  # an answer, as to programs that poll by a 404
        return
    key, pause = hash((request.method, request.url, request.body, id(strategy))), 0.0
    last = getattr(_this_thread, "streak", None) or Streak(key)
    if last.key != key or not 0 <= began - last.ended <= max(PAUSE_OF_A_LOOP, GROWTH_OF_PAUSES * last.pause):
        last = Streak(key)
    elif last.calls:
        pause = max(last.pause, began - last.ended)
    _this_thread.streak = streak = Streak(key, last.calls + 1, last.requests + requests, now, pause)
    if streak.calls == CALLS_OF_A_LOOP and is_first(_told, "loop"):
        logger.warning(MESSAGE, request.method, safe_url(request.url), streak.calls, streak.requests)
