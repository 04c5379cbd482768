"""Statuses that a retry may help, and what each of them says (contract 3.4): the whole rule. Pure.

Whether the request may be sent again after one is another rule, in :mod:`resend`.
"""

from __future__ import annotations

from .actions import RetryAction

RETRY_STATUS_CODES = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Retried by default: what the option ``retry_status_codes`` is where nobody sets it."""

THROTTLING_STATUSES = frozenset({429})
"""Those by which a server asks for fewer requests."""


def verdict_on_status(status: int) -> RetryAction:
    """What a status says, once somebody wants it retried.

    >>> verdict_on_status(503), verdict_on_status(429)
    (RetryIndicated(kind=transient), RetryIndicated(kind=throttling))
    """
    return RetryAction.throttling_error() if status in THROTTLING_STATUSES else RetryAction.transient_error()
