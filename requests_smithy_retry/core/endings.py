"""The end of an operation for its caller (contract 2.8): what replaces the last attempt's own outcome."""

from __future__ import annotations

from typing import Any, NoReturn
from urllib.parse import urlsplit

import requests.exceptions
from requests import PreparedRequest, Response
from urllib3.exceptions import MaxRetryError, ResponseError

from ..errors import StopReason
from ..observing.history import RetryHistory, attach
from .waiting import WaitEnded

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
"""The reasons for which ``raise_on_status`` raises: a retry was wanted, and not possible."""


class TooManyResponses(MaxRetryError):
    """The cause of a ``RetryError``, in urllib3's words for a status that its retries did not cure."""

    reason: ResponseError

    def __init__(self, pool: Any, path: str, status: int, sentence: str) -> None:
        super().__init__(pool, path, ResponseError(ResponseError.SPECIFIC_ERROR.format(status_code=status)))
        self.status = status
        self.sentence = sentence

    def __str__(self) -> str:
        return f"{super().__str__()}; {self.sentence}"

    def __reduce__(self) -> Any:
        return type(self), (str(self.pool), self.url, self.status, self.sentence)


def is_raised(response: Response | None, stop_reason: StopReason) -> bool:
    """Return True if ``raise_on_status`` applies to this response: a retry was wanted, and none is left."""
    return response is not None and stop_reason in EXHAUSTED


def status_error(response: Response, history: RetryHistory) -> Exception:
    """Return the exception of ``raise_on_status``, as urllib3 raises it."""
    url = urlsplit(str(response.request.url))  # neither userinfo nor query is shown
    pool = getattr(response.raw, "_pool", None)  # a stand-in for a urllib3 response may lack the attribute
    where = pool or f"{url.scheme}://{url.hostname}", url.path or "/"
    cause = TooManyResponses(*where, response.status_code, history.sentence)
    error = requests.exceptions.RetryError(cause, response=response)  # has its request too
    attach(error, history)
    return error


def not_sent_error(request: PreparedRequest, history: RetryHistory) -> Exception:
    """Return the exception for an operation that was not allowed to send, and so has no outcome."""
    error = requests.exceptions.ConnectTimeout(f"not sent: {history.why}", request=request)
    attach(error, history)
    return error


def wait_that_ended(error: Exception | None) -> WaitEnded | None:
    """Return the exception that ended a wait for the rest of a body, which is raised instead of the body's."""
    causes = [getattr(part, "__cause__", None) for part in getattr(error, "args", ())]
    return next((cause for cause in causes if isinstance(cause, WaitEnded)), None)


class BrokenBody:
    """The raw stream of a response whose body broke off: as it was, but reading it raises the error (contract 11.2).

    :param raw: the urllib3 response.
    :param error: the error that its body ended with.
    """

    def __init__(self, raw: Any, error: Exception) -> None:
        self._broken_raw = raw
        self._broken_error = error

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_broken"):  # on a copy, which is still empty
            raise AttributeError(name)
        return getattr(self._broken_raw, name)

    def stream(self, *_: Any, **__: Any) -> NoReturn:
        """Raise the error; afterwards one like it, since the traceback of a raised error refers to this stream."""
        error = self._broken_error
        self._broken_error = again = type(error).__new__(type(error))
        vars(again).update(vars(error))
        again.args = (str(error),)
        try:
            raise error
        finally:
            del error

    read = stream


def with_broken_body(response: Response, error: Exception) -> Response:
    """Return a response whose body raises an error when it is read.

    ``requests`` keeps the cookies of each head before it reads the body, so it gets both.
    """
    raw: Any = BrokenBody(response.raw, error.with_traceback(None))
    response.raw, response._content, response._content_consumed = raw, False, False
    return response
