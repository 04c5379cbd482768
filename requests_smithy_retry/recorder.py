"""Keeping the record of an operation while it goes on (contract 11.2, 12); what it becomes is in :mod:`history`."""

from __future__ import annotations

from requests import PreparedRequest, Response
from urllib3.util.retry import RequestHistory

from .classification import Classification
from .clock import Clock
from .history import MAX_KEPT, AttemptRecord, RetryHistory
from .log import log_attempt, log_end, log_retry
from .observed import ObservedOperation
from .stop_reason import StopReason
from .tokens import RetryToken


class Recorder:
    """The attempts of one operation so far; of more than :data:`MAX_KEPT`, the first and the last ones.

    :param request: the caller's request.
    :param scope: whose quota the operation spends.
    :param clock: tells when and how long.
    :param observed: who tells the listeners, or None.
    """

    permit_wait: float = 0.0
    """Seconds that the next attempt waited for a permit to send; set by the operation."""

    def __init__(
        self, request: PreparedRequest, scope: str, clock: Clock, observed: ObservedOperation | None = None
    ) -> None:
        self.request = request
        self.scope = scope
        self.clock = clock
        self.number: int = 0
        self.observed: ObservedOperation | None = observed
        self.attempts: list[AttemptRecord] = []
        self.rows: list[RequestHistory] = []

    def note(
        self,
        response: Response | None,
        error: Exception | None,
        started: float,
        waited: tuple[float, str],
        classification: Classification | None,
        next_token: RetryToken | None,
    ) -> None:
        """Write down an attempt.

        :param response: what came, or None.
        :param error: what was raised, or None; then the response is void.
        :param started: when the attempt began, on the clock.
        :param waited: seconds waited before it, and what made them so many.
        :param classification: the verdict, where one was asked for.
        :param next_token: the token of the retry that follows, or None.
        """
        now = self.clock.now()
        self.number += 1
        status = response.status_code if response is not None and error is None else None
        record = AttemptRecord(
            number=self.number,
            started=self.clock.wall() - (now - started),
            duration=now - started,
            status=status,
            error=None if error is None else type(error).__name__,
            delay=waited[0],
            delay_source=waited[1],
            votes=() if classification is None else classification.votes,
            quota_before=getattr(next_token, "quota_before", None),
            quota_after=getattr(next_token, "quota_after", None),
            quota_source=getattr(next_token, "quota_source", None),
            permit_wait=self.permit_wait,
        )
        self.permit_wait = 0.0
        self.attempts.append(record)
        self.rows.append(RequestHistory(self.request.method, self.request.path_url, error, status, None))
        if len(self.rows) > MAX_KEPT:
            del self.attempts[MAX_KEPT // 2], self.rows[MAX_KEPT // 2]
        log_attempt(self.request.method, self.request.url, record)
        if self.observed is not None:
            self.observed.attempt_ended(record, response, error, classification)
        if next_token is not None:
            source = getattr(next_token, "delay_source", "strategy")
            log_retry(self.request.method, self.request.url, record, next_token.retry_delay, source)
            if self.observed is not None:
                self.observed.retry_follows(record, next_token.retry_delay, source)

    def history(self, stop_reason: StopReason, why: str, max_attempts: int | None) -> RetryHistory:
        """The record as a value, when the operation has ended."""
        history = RetryHistory(self.scope, tuple(self.attempts), stop_reason, why, max_attempts)
        log_end(self.request.method, self.request.url, history)
        if self.observed is not None:
            self.observed.ended(history)
        return history

    def fill_urllib3_history(self, response: Response) -> None:
        """Put the discarded attempts where tools look for urllib3's own retries (contract 11.2)."""
        retries = getattr(response.raw, "retries", None)
        if retries is not None and len(self.rows) > 1:
            response.raw.retries = retries.new(history=(*retries.history, *self.rows[:-1]))
