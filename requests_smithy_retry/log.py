"""What is logged, and at which level (contract 12): DEBUG per attempt, INFO per retry, WARNING on giving up.

Records go to ``requests_smithy_retry``. They name method, origin and path, never userinfo, a query, a header's value or
a body. What each says is in its ``extra`` as well, under names that begin with ``retry_``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from .history import AttemptRecord, RetryHistory
from .redact import safe_url
from .stop_reason import StopReason

logger: logging.Logger = logging.getLogger("requests_smithy_retry")
logger.addHandler(logging.NullHandler())  # a program that set up no logging gets nothing on its stderr

may_log: Callable[[int, bool], bool] = getattr(logger, "_cache", {}).get
"""``may_log(level, True)``: False where the level is known to be off.

It is the lookup in logging's own cache of ``isEnabledFor``, which every change of a level empties. That method is
too dear for each success; where logging keeps no such cache, the answer is True, and the method is asked after all.
"""

QUIET_ENDINGS = frozenset({StopReason.SUCCESS, StopReason.NOT_RETRYABLE, StopReason.REQUEST_FAULT, StopReason.DISABLED})
"""Endings that are nobody's giving up: no retry was wanted."""


def log_attempt(method: str | None, url: str | None, record: AttemptRecord) -> None:
    """DEBUG: an attempt ended."""
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug(
            "attempt %d of %s %s ended with %s after %.3f s",
            record.number,
            method,
            safe_url(url),
            record.ending,
            record.duration,
            extra=_extra(method, url, record),
        )


def log_first_try(method: str | None, url: str | None, status: int, duration: float) -> None:
    """DEBUG: the first attempt was a success, of which there is no record."""
    log_attempt(method, url, AttemptRecord(1, 0.0, duration, status))


def log_retry(method: str | None, url: str | None, record: AttemptRecord, delay: float, source: str) -> None:
    """INFO: a retry follows."""
    if logger.isEnabledFor(logging.INFO):
        logger.info(
            "retry %d of %s %s in %.3f s (%s): attempt %d ended with %s",
            record.number,
            method,
            safe_url(url),
            delay,
            source,
            record.number,
            record.ending,
            extra={**_extra(method, url, record), "retry_delay": delay, "retry_delay_source": source},
        )


def log_end(method: str | None, url: str | None, history: RetryHistory) -> None:
    """WARNING: a retry was wanted and could not be had."""
    if history.stop_reason not in QUIET_ENDINGS and logger.isEnabledFor(logging.WARNING):
        unsent = AttemptRecord(0, 0.0, None)
        extra = _extra(method, url, history.attempts[-1] if history.attempts else unsent)
        logger.warning(
            "%s %s: %s",
            method,
            safe_url(url),
            history.sentence,
            extra={**extra, "retry_stop_reason": history.stop_reason.name},
        )


def _extra(method: str | None, url: str | None, record: AttemptRecord) -> dict[str, object]:
    return {
        "retry_method": method,
        "retry_url": safe_url(url),
        "retry_attempt": record.number,
        "retry_status": record.status,
        "retry_error": record.error,
    }
