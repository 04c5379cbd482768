"""What a caller gets where it is neither the last response nor the last exception (contract 2, 9)."""

from __future__ import annotations

import requests.exceptions
from requests import PreparedRequest, Response

from .history import RetryHistory, attach
from .stop_reason import StopReason

EXHAUSTED = frozenset(
    {
        StopReason.MAX_ATTEMPTS,
        StopReason.QUOTA_EXCEEDED,
        StopReason.DEADLINE,
        StopReason.HINT_TOO_LONG,
        StopReason.RATE_LIMITED,
    }
)
"""The reasons for which ``raise_on_status`` raises: a retry was wanted and could not be had."""


def is_raised(response: Response, stop_reason: StopReason) -> bool:
    """Whether ``raise_on_status`` means this response.

    :param response: the last one.
    :param stop_reason: of its operation.
    """
    return response.status_code >= 400 and stop_reason in EXHAUSTED


def status_error(response: Response, history: RetryHistory) -> Exception | None:
    """The exception of ``raise_on_status``, which is urllib3's habit; None where the response is what is wanted.

    :param response: the last one; the exception carries it.
    :param history: of its operation.
    """
    if not is_raised(response, history.stop_reason):
        return None
    error = requests.exceptions.RetryError(history.sentence, response=response)  # has its request too
    attach(error, history)
    return error


def held_back(request: PreparedRequest, history: RetryHistory) -> Exception:
    """The exception for an operation that got no leave to send, and so has nothing to hand on."""
    error = requests.exceptions.ConnectTimeout(f"not sent: {history.why}", request=request)
    attach(error, history)
    return error
