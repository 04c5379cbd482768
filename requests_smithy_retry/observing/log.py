"""The log (contract 12): DEBUG per attempt, INFO per retry, wait and adapter left alone, WARNING on giving up.

Of the operations that give up until their service answers well again, only the first is logged at WARNING, and so is
that answer.

Records go to ``requests_smithy_retry``. They name method, origin and path, never userinfo, a query, a header's value or
a body. Each has its values in ``extra`` as well, under names that begin with ``retry_``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..urls import display_scope, safe_url
from .history import AttemptRecord, Before, RetryHistory, wait_text

if TYPE_CHECKING:
    from requests import PreparedRequest

    from ..core.health import Failing

logger: logging.Logger = logging.getLogger("requests_smithy_retry")
logger.addHandler(logging.NullHandler())  # a program without logging gets nothing on its stderr

LEAST_WAIT = 0.1
"""Seconds below which a wait is not worth a record at INFO."""
FIRST = "%s %s: %s. Until %s answers well again, operations that give up are logged at INFO"
"""The record of the first operation that gave up, and its service."""


def log_attempt(request: PreparedRequest, record: AttemptRecord) -> None:
    """Log the end of an attempt, at DEBUG. Check the logger's level first."""
    said = record.number, request.method, safe_url(request.url), record.told, record.duration
    logger.debug("attempt %d of %s %s ended with %s after %.3f s", *said, extra=_extra(request, record))


def log_back(scope: str | None, past: Failing | None, now: float) -> None:
    """Log that a service answers well again if operations gave up before; at WARNING if one of them did so at INFO."""
    if past is None or not past.gave_up:
        return
    service = display_scope(scope)
    level = logging.WARNING if past.gave_up > 1 else logging.INFO
    extra = {"retry_scope": service, "retry_down_for": now - past.since, "retry_gave_up": past.gave_up}
    count = f"{past.gave_up} operations" if past.gave_up > 1 else "1 operation"
    message = "%s answers well again after %.1f s, in which %s gave up"
    logger.log(level, message, service, now - past.since, count, extra=extra)


def log_short_idle(service: str, seconds: float) -> None:
    """Log once per pool, at INFO, that a connection was found dead after it had been idle for some seconds."""
    message = "%s: a connection that lay idle for %.1f s was dead; from now on none is kept for longer"
    logger.info(message, service, seconds, extra={"retry_scope": service, "retry_idle": seconds})


def log_gate(request: PreparedRequest, seconds: float, source: str) -> None:
    """Log that an attempt waited for a rate limit that the server had announced, at DEBUG."""
    if seconds and logger.isEnabledFor(logging.DEBUG):
        said, extra = (request.method, safe_url(request.url), seconds, source), _extra(request)
        message = "%s %s waited %.3f s for a rate limit (%s)"
        logger.debug(message, *said, extra={**extra, "retry_gate_wait": seconds})


def log_wait(request: PreparedRequest, seconds: float, what: str) -> None:
    """Log that an operation waits from now on, before its next attempt, at INFO, unless the wait is very short."""
    if seconds >= LEAST_WAIT and logger.isEnabledFor(logging.INFO):
        extra = {**_extra(request), "retry_wait": seconds, "retry_waits_for": what}
        logger.info("%s %s waits %.1f s for %s", request.method, safe_url(request.url), seconds, what, extra=extra)


def log_waiting(request: PreparedRequest, record: AttemptRecord, scope: str) -> None:
    """Log that an operation waits for its service from now on, at INFO."""
    if logger.isEnabledFor(logging.INFO):
        said = request.method, safe_url(request.url), display_scope(scope), record.number, record.told
        message = "%s %s waits for %s: attempt %d ended with %s"
        logger.info(message, *said, extra=_extra(request, record))


def log_retry(request: PreparedRequest, record: AttemptRecord, scope: str, waits: Before) -> None:
    """Log the retry that follows, at INFO. Check the logger's level first."""
    extra = {**_extra(request, record), "retry_delay": waits.delay, "retry_delay_source": waits.delay_source}
    said: tuple[object, ...] = record.number, request.method, safe_url(request.url)
    if waits.line_why:
        extra |= {"retry_line_wait": waits.line_wait, "retry_line_why": waits.line_why}
        logger.info("retry %d of %s %s: %s", *said, wait_text(scope, waits.line_wait, waits.line_why), extra=extra)
    else:
        said = *said, waits.delay, waits.delay_source, record.number, record.told
        logger.info("retry %d of %s %s in %.3f s (%s): attempt %d ended with %s", *said, extra=extra)


def log_left_alone(sentence: str) -> None:
    """Log that ``install`` left an adapter alone, at INFO."""
    logger.info("left alone: %s", sentence, extra={"retry_left_alone": sentence})


def log_part(request: PreparedRequest, part: str) -> None:
    """Log that the answer to a request for the whole is only a part, at WARNING."""
    logger.warning("%s %s: %s", request.method, safe_url(request.url), part, extra=_extra(request))


def log_end(request: PreparedRequest, history: RetryHistory, number: int) -> None:
    """Log an operation that gave up, or whose retry of a deletion found nothing to delete.

    It is logged at WARNING; at INFO after the first one since its service answered well, where the program ended the
    wait, and where the deadline left no time for an answer.

    :param number: the number of the operation among those that gave up since then; 0: it is not counted.
    """
    is_quiet = number > 1 or history.is_ended_by_program
    level = logging.INFO if is_quiet else logging.WARNING
    if logger.isEnabledFor(level):
        last = history.attempts[-1] if history.attempts else AttemptRecord(0, 0.0, None)
        extra = {**_extra(request, last), "retry_stop_reason": history.stop_reason.name}
        said: tuple[object, ...] = request.method, safe_url(request.url), history.sentence
        message = "%s %s: %s"
        if number == 1:
            service = display_scope(history.scope or "")
            message, said, extra["retry_scope"] = FIRST, (*said, service), service
        logger.log(level, message, *said, extra=extra)


def _extra(request: PreparedRequest, record: AttemptRecord | None = None) -> dict[str, object]:
    extra: dict[str, object] = {"retry_method": request.method, "retry_url": safe_url(request.url)}
    if record is not None:
        extra |= {"retry_attempt": record.number, "retry_status": record.status, "retry_error": record.error}
    return extra
