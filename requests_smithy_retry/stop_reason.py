"""Why an operation ended (contract 2.6): the names, each with the phrase that a person reads.

The text under each name says what it means; what follows "The caller gets" is a column of its own in the reference.
"""

from __future__ import annotations

import enum


class StopReason(enum.Enum):
    """Why no further attempt was made. ``value`` is the phrase used in histories and logs."""

    SUCCESS = "it succeeded"
    """The last attempt was a success. The caller gets the response."""
    NOT_RETRYABLE = "no classifier asked for a retry"
    """The outcome is none that a retry would help: a 404, say. The caller gets the response or the exception."""
    FORBIDDEN = "a classifier forbade a retry"
    """A classifier said that this must not be retried. The caller gets the response or the exception."""
    NOT_RESENDABLE = "the request may have been applied and is not idempotent"
    """Sending it again might do the work twice (contract 4). The caller gets the response or the exception."""
    BODY_NOT_REPLAYABLE = "the body cannot be replayed"
    """The body was read and cannot be read again (contract 5). The caller gets the first response or exception; an
    ``UnrewindableBodyError`` where the body itself gave less at a retry than before."""
    REQUEST_FAULT = "the request itself is at fault"
    """An invalid URL, a bad certificate and the like; nothing was classified (contract 2). The caller gets the
    exception."""
    MAX_ATTEMPTS = "no attempts are left"
    """``max_attempts`` attempts were made. The caller gets the last response or exception."""
    HINT_TOO_LONG = "the server asked for a longer wait than max_retry_after"
    """Such a wait is neither slept nor shortened (contract 7.3). The caller gets the response at once, its hint in
    it."""
    DEADLINE = "the wait would not end before the deadline"
    """A wait that would pass the deadline is not begun (contract 8). The caller gets the last response or exception;
    a ``ConnectTimeout`` where not even the first attempt could begin in time."""
    QUOTA_EXCEEDED = "the retry quota is empty"
    """The bucket of this scope has too few tokens (contract 6). The caller gets the last response or exception."""
    RATE_LIMITED = "no send permit in time"
    """The client's own rate limiter had no permit before the deadline or within ``max_permit_wait`` (contract 9). The
    caller gets the last response or exception; a ``ConnectTimeout`` where there was none yet, or where its body was
    long and is lost."""
    STRATEGY_REFUSED = "the retry strategy refused"
    """A strategy raised :class:`~requests_smithy_retry.RetryError` without a reason of its own. The caller gets the
    last response or exception."""
    DISABLED = "retries are switched off"
    """``enabled=False``: the adapter behaves as a plain ``HTTPAdapter``. The caller gets what that gives; only the
    log of :func:`~requests_smithy_retry.testing.watched_attempts` has a history of it."""
