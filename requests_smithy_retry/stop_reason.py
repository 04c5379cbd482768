"""Why an operation ended (contract 2.6): the names, each with the phrase that a person reads."""

from __future__ import annotations

import enum


class StopReason(enum.Enum):
    """Why no further attempt was made. ``value`` is the phrase used in histories and logs."""

    SUCCESS = "it succeeded"
    """The last attempt was a success."""
    NOT_RETRYABLE = "no classifier asked for a retry"
    """The outcome is none that a retry would help."""
    FORBIDDEN = "a classifier forbade a retry"
    """A classifier said that this must not be retried."""
    NOT_RESENDABLE = "the request may have been applied and is not idempotent"
    """Contract 4: sending it again might do the work twice."""
    BODY_NOT_REPLAYABLE = "the body cannot be replayed"
    """Contract 5: the body was read and cannot be read again."""
    REQUEST_FAULT = "the request itself is at fault"
    """Contract 2: an invalid URL, a bad certificate and the like; nothing was classified."""
    MAX_ATTEMPTS = "no attempts are left"
    """``max_attempts`` attempts were made."""
    HINT_TOO_LONG = "the server asked for a longer wait than max_retry_after"
    """Contract 7.3: such a wait is neither slept nor shortened."""
    DEADLINE = "the wait would not end before the deadline"
    """Contract 8: a wait that would pass the deadline is not begun."""
    QUOTA_EXCEEDED = "the retry quota is empty"
    """Contract 6: the bucket of this scope has too few tokens."""
    RATE_LIMITED = "no send permit in time"
    """Contract 9: the client's own rate limiter had no permit before the deadline or within ``max_permit_wait``."""
    STRATEGY_REFUSED = "the retry strategy refused"
    """A strategy raised :class:`~requests_smithy_retry.RetryError` without a reason of its own."""
    DISABLED = "retries are switched off"
    """``enabled=False``: the adapter behaves as a plain ``HTTPAdapter``."""
