"""The guard against retries within retries: three attempts of three attempts are nine requests.

It looks only when an attempt has failed, so it costs nothing while all is well.

Two adapters of ours are found on the stack. A loop of other code is known by what it does: the same thread sends the
same request again, soon after it failed in spite of its retries.
"""

from __future__ import annotations

import sys
import threading
import warnings
import weakref
from types import CodeType, FrameType
from typing import Any, NamedTuple

from requests import PreparedRequest, Response

from ..checks import is_first
from ..errors import RetryConfigError, RetryConfigWarning
from ..observing.history import retry_history
from ..observing.log import logger
from ..urls import safe_url
from .replay import SIMPLE_BODIES

_SEND: list[CodeType] = []
_SETTLE: list[CodeType] = []

_warned: dict[str, object] = {}
"""The warnings that were given, so that each is given once."""

MAX_FRAMES = 200
"""The most frames of the stack that are searched for another adapter."""

CALLS_OF_A_LOOP = 3
"""The number of calls in a row that fail in spite of their retries before they are taken for a loop."""
PAUSE_OF_A_LOOP = 2.0
"""The longest pause of a loop that did not pause before, in seconds: who asks less often is never taken for one."""
GROWTH_OF_PAUSES = 3.0
"""The most by which the next pause of a loop that backs off is longer than its longest one."""
TOO_MANY_REQUESTS = 429


def recognise(send: CodeType, settle: CodeType) -> None:
    """Have adapters recognised on the stack by the code of their loop."""
    _SEND.append(send)
    _SETTLE.append(settle)


def refuse_own_max_retries(adapter_class: Any, base: type) -> None:
    """Refuse a subclass that has a ``max_retries`` of its own: urllib3 would retry each of our attempts."""
    own = adapter_class.max_retries
    if own is not vars(base)["max_retries"]:
        raise RetryConfigError(
            "max_retries",
            own,
            f"class {adapter_class.__name__}",
            "no max_retries in a subclass is allowed: urllib3 would retry beneath this adapter, and multiply each "
            "of its attempts. Give max_retries or max_attempts to the constructor",
        )


def warn_of_nesting(own: Any, request: PreparedRequest, response: Response | None) -> None:
    """Warn, once per process, if another of our adapters, or a urllib3 ``Retry``, multiplies our attempts."""
    outer = _outer_adapter(request, own)
    history = getattr(getattr(getattr(response, "raw", None), "retries", None), "history", None)
    if outer is None and not history:
        return
    attempts = own.port.strategy.max_attempts
    most = None if outer is None else outer.port.strategy.max_attempts
    if outer is not None and 1 not in (most, attempts):
        product = f": up to {most} x {attempts} = {most * attempts} requests" if most and attempts else ""
        _warn_once(
            f"{type(own).__name__} runs inside {type(outer).__name__}, and both retry{product}. "
            "Give one of them max_attempts=1"
        )
    if history and retry_history(response) is None:  # an adapter of ours beneath fills the history in as well
        each = len(history) + 1
        product = f": {attempts} x {each} = {attempts * each} requests or more" if attempts else ""
        _warn_once(
            f"a urllib3 Retry beneath {type(own).__name__} made {each} requests of one attempt{product}. "
            "Let what is beneath send with max_retries=0"
        )


def _outer_adapter(request: PreparedRequest, own: Any) -> Any:
    """Return another adapter whose ``send`` of the same request is further up this thread's stack, or None."""
    frame: FrameType | None = sys._getframe(2)
    below_own = True
    for _ in range(MAX_FRAMES):
        if frame is None or (not below_own and frame.f_code in _SETTLE):
            return None  # a classifier of the outer adapter may send requests as it likes
        if frame.f_code in _SEND and below_own:
            below_own = False  # its locals are not looked at: that would keep them alive
        elif frame.f_code in _SEND:
            there = frame.f_locals
            outer, sent = there["self"], there["request"]
            if outer is not own and (sent.method, sent.url) == (request.method, request.url):
                return outer
        frame = frame.f_back
    return None


def _warn_once(message: str) -> None:
    if is_first(_warned, message):
        warnings.warn(message, RetryConfigWarning, stacklevel=3)


class Streak(NamedTuple):
    """Calls of one thread with the same request that failed in spite of their retries, each soon after the one before.

    :param owner: the strategy that decided on their retries.
    :param ended: the end of the last one, on the clock.
    :param pause: the longest pause between two of them, in seconds.
    """

    key: int
    owner: weakref.ref[Any]
    calls: int = 0
    requests: int = 0
    ended: float = 0.0
    pause: float = 0.0


class _ThisThread(threading.local):
    streak: Streak | None = None
    """The latest streak of the thread."""


_this_thread = _ThisThread()


def note_end(
    request: PreparedRequest, strategy: Any, status: int | None, requests: int, began: float, now: float
) -> None:
    """Take note of the end of a call that had retries; log, once per process, that a loop around it retries as well.

    :param status: the status of the last response; None: it raised.
    :param began: the start of the call, on the clock; ``now`` is its end.
    """
    is_answer = status is not None and status < 500 and status != TOO_MANY_REQUESTS  # programs poll by a 404
    if is_answer or type(request.body) not in SIMPLE_BODIES:
        _this_thread.streak = None
        return
    key, last = hash((request.method, request.url, request.body)), _this_thread.streak
    if last is None or last.key != key or last.owner() is not strategy or not _is_soon(began - last.ended, last.pause):
        last, began = Streak(key, weakref.ref(strategy)), 0.0
    pause = max(last.pause, began - last.ended)
    streak = Streak(key, last.owner, last.calls + 1, last.requests + requests, now, pause)
    _this_thread.streak = streak
    if streak.calls == CALLS_OF_A_LOOP and is_first(_warned, "loop"):
        logger.warning(
            "%s %s failed %d times in a row in one thread, with %d requests: a loop around the call retries as well. "
            "Give one of the two a single attempt, here with max_attempts=1",
            request.method,
            safe_url(request.url),
            streak.calls,
            streak.requests,
        )


def _is_soon(pause: float, longest: float) -> bool:
    return 0 <= pause <= max(PAUSE_OF_A_LOOP, GROWTH_OF_PAUSES * longest)
