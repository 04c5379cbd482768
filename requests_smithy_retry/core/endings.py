"""The end of an operation for its caller (contract 2, 9): exceptions in place of the last attempt's own outcome, tapes,
and loops around the call.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import requests.exceptions
from requests import PreparedRequest, Response
from urllib3.exceptions import MaxRetryError, ResponseError

from ..checks import is_first
from ..errors import StopReason
from ..observing.history import RetryHistory, attach
from ..observing.log import logger
from ..urls import safe_url
from .replay import SIMPLE_BODIES

EXHAUSTED = frozenset(
    {
        StopReason.MAX_ATTEMPTS,
        StopReason.QUOTA_EXCEEDED,
        StopReason.PATIENCE,
        StopReason.LINE_FULL,
        StopReason.DEADLINE,
        StopReason.HINT_TOO_LONG,
        StopReason.RATE_LIMITED,
        StopReason.BODY_NOT_REPLAYABLE,
    }
)
"""The reasons for which ``raise_on_status`` raises: a retry was wanted and could not be had."""


class TooManyResponses(MaxRetryError):
    """The cause of a ``RetryError``, with urllib3's words for a status that its retries did not mend."""

    reason: ResponseError

    def __init__(self, pool: Any, path: str, status: int, sentence: str) -> None:
        super().__init__(pool, path, ResponseError(ResponseError.SPECIFIC_ERROR.format(status_code=status)))
        self.status = status
        self.sentence = sentence

    def __str__(self) -> str:
        return f"{super().__str__()}; {self.sentence}"

    def __reduce__(self) -> Any:
        return type(self), (str(self.pool), self.url, self.status, self.sentence)


def is_raised(response: Response | None, stop_reason: StopReason, listed: Collection[int] = ()) -> bool:
    """Return True if ``raise_on_status`` means this response."""
    if response is None or stop_reason not in EXHAUSTED:
        return False
    return response.status_code >= 400 or response.status_code in listed


def status_error(response: Response, history: RetryHistory, listed: Collection[int] = ()) -> Exception | None:
    """Return the exception of ``raise_on_status``, which is urllib3's habit; None if the response is to be returned."""
    if not is_raised(response, history.stop_reason, listed):
        return None
    url = urlsplit(str(response.request.url))  # neither userinfo nor query is shown
    pool = getattr(response.raw, "_pool", None)  # a stand-in for a urllib3 response may lack the attribute
    where = pool or f"{url.scheme}://{url.hostname}", url.path or "/"
    cause = TooManyResponses(*where, response.status_code, history.sentence)
    error = requests.exceptions.RetryError(cause, response=response)  # has its request too
    attach(error, history)
    return error


def not_sent_error(request: PreparedRequest, history: RetryHistory) -> Exception:
    """Return the exception for an operation that was refused permission to send, and has no outcome to hand over."""
    error = requests.exceptions.ConnectTimeout(f"not sent: {history.why}", request=request)
    attach(error, history)
    return error


# Tapes of vcrpy and betamax (contract 2.8): the end of a tape is no outcome of the server.

TAPES = frozenset({"betamax", "vcr"})
"""The packages that record answers in a test and play them later."""
END_OF_TAPE = (
    "the tape has no answer to a retry; requests_smithy_retry.testing.retries_disabled() plays it without retries"
)


def is_of_a_tape(thing: object) -> bool:
    """Return True for what a tape plays, and for the error of one that has no answer."""
    return type(thing).__module__.partition(".")[0] in TAPES


def is_played(response: Response | None) -> bool:
    """Return True for an answer that came from a tape."""
    return is_of_a_tape(getattr(getattr(response, "raw", None), "_original_response", None))


# Retries within retries: three attempts of three attempts are nine requests. A loop around the call is told of once.
# It is known by what it does: a thread sends the same request again, soon after it failed in spite of its retries.

CALLS_OF_A_LOOP = 3
PAUSE_OF_A_LOOP, GROWTH_OF_PAUSES = 2.0, 3.0
"""A loop goes on within two seconds, or, as it may back off, within three times its longest pause."""
MESSAGE = (
    "%s %s failed %d times in a row in one thread, with %d requests: a loop around the call retries as well. "
    "Give one of the two a single attempt, here with max_attempts=1"
)

_logged: dict[str, object] = {}
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
    """Record the end of a call that had retries; log, once per process, that a loop around it retries as well.

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
    if streak.calls == CALLS_OF_A_LOOP and is_first(_logged, "loop"):
        logger.warning(MESSAGE, request.method, safe_url(request.url), streak.calls, streak.requests)
