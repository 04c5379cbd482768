"""The record of an operation in progress (contract 11.2, 12); the finished one is in :mod:`history`."""

from __future__ import annotations

from dataclasses import replace
from logging import DEBUG, INFO
from typing import Protocol

from requests import PreparedRequest, Response
from urllib3.util.retry import RequestHistory

from ..classifiers.fold import Classification
from ..clock import Clock
from ..config.max_retries import ShownRetry
from ..errors import StopReason
from ..strategies.protocol import StandardRetryToken
from .events import ObservedOperation
from .history import MAX_KEPT, AttemptRecord, RetryHistory
from .log import QUIET_ENDINGS, log_attempt, log_end, log_retry, log_waiting, may_log

OUTAGES = frozenset({StopReason.PATIENCE, StopReason.LINE_FULL})
"""The reasons for giving up on a service that is down."""

GONE = frozenset({404, 410})
"""The statuses of a server that has nothing to delete."""


class Made(Protocol):
    """An attempt that was made, as its record reads it."""

    response: Response | None
    """The response, or None; ignored beside an error."""
    error: Exception | None
    started: float
    """The start of the attempt, on the clock."""
    address: str | None
    """The address that the request went to, where it is known."""
    received: int | None
    """The bytes of the body that the attempt brought, where they were counted."""


class GaveUpInOutage(Protocol):
    """Counts an operation that gave up; returns its number in an outage of its service, or 0."""

    def __call__(self, token_scope: str | None, /, *, is_outage: bool) -> int: ...


class Recorder:
    """The attempts of one operation so far; of more than :data:`MAX_KEPT`, the first and the last ones.

    :param scope: the scope whose quota the operation spends.
    :param observed: emits the events to the listeners, or None.
    """

    permit_wait: float = 0.0
    """The next attempt's wait for a send permit, in seconds; set by the operation."""
    gate_wait: tuple[float, str] = (0.0, "")
    """The next attempt's wait for an announced limit, in seconds, and the header behind it; set by the send loop."""
    is_told: bool = False
    """Listeners heard of the end of this attempt before its body broke off in the caller's hands."""
    sent: int | None = None
    """The bytes of a file that went out in the failed attempt; set by the operation."""
    _line_wait: tuple[float, str] = (0.0, "")
    """The next attempt's wait for the service to be back, in seconds, and the event that ended it."""
    _waiting: tuple[AttemptRecord, float] | None = None
    """The last attempt, which is noted already, and the moment at which its operation began to wait for the service."""
    _vain_wait: float = 0.0
    in_doubt: int | None = None
    """The first failed attempt on which the server may have acted; set by the operation."""

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

    def begin_waiting(self, made: Made, waited: tuple[float, str], classification: Classification) -> None:
        """Record an attempt whose operation waits for the service from now on: :meth:`note` comes after the wait.

        The parameters are those of :meth:`note`.
        """
        record = self._note_attempt(made, waited, classification, None)
        self._waiting = record, self.clock.now()
        log_waiting(self.request, record, self.scope)

    def note(
        self,
        made: Made,
        waited: tuple[float, str],
        classification: Classification | None,
        next_token: StandardRetryToken | None,
        next_wait: float = 0.0,
    ) -> None:
        """Record an attempt, if :meth:`begin_waiting` did not, and the retry that follows.

        :param waited: the wait before the attempt in seconds, and its source.
        :param next_token: the token of the retry that follows, or None.
        :param next_wait: the wait before that retry in seconds.
        """
        record, began = self._waiting or (None, 0.0)
        if record is None:
            record = self._note_attempt(made, waited, classification, next_token)
        elif next_token is None:
            self._vain_wait = self.clock.now() - began
        elif next_token.quota_before is not None:  # it waited for tokens
            paid = {name: getattr(next_token, name) for name in ("quota_before", "quota_after", "quota_source")}
            record = self.attempts[-1] = replace(record, **paid)
        self._waiting = None
        if next_token is None:
            return
        source = next_token.delay_source
        self._line_wait = line_wait = next_token.waited, next_token.why
        if may_log(INFO, True):
            log_retry(self.request, record, next_wait, source, self.scope, *line_wait)
        if self.observed is not None:
            self.observed.retry_follows(record, next_wait, source, *line_wait)

    def _note_attempt(
        self,
        made: Made,
        waited: tuple[float, str],
        classification: Classification | None,
        next_token: StandardRetryToken | None,
    ) -> AttemptRecord:
        response, error, duration = made.response, made.error, self.clock.now() - made.started
        self.number += 1
        status = response.status_code if response is not None and error is None else None
        record = AttemptRecord(
            number=self.number,
            started=self.clock.wall() - duration,
            duration=duration,
            status=status,
            error=None if error is None else type(error).__name__,
            delay=waited[0],
            delay_source=waited[1],
            votes=() if classification is None else classification.votes,
            quota_before=None if next_token is None else next_token.quota_before,
            quota_after=None if next_token is None else next_token.quota_after,
            quota_source=None if next_token is None else next_token.quota_source,
            permit_wait=self.permit_wait,
            gate_wait=self.gate_wait[0],
            gate_source=self.gate_wait[1],
            line_wait=self._line_wait[0],
            line_why=self._line_wait[1],
            address=made.address,
            received=made.received,
            sent=self.sent,
        )
        self.permit_wait, self.gate_wait, self._line_wait = 0.0, (0.0, ""), (0.0, "")
        self.sent = None
        self.attempts.append(record)
        self.rows.append(RequestHistory(self.request.method, self.request.path_url, error, status, None))
        if len(self.rows) > MAX_KEPT:
            del self.attempts[MAX_KEPT // 2], self.rows[MAX_KEPT // 2]
        if may_log(DEBUG, True):
            log_attempt(self.request, record)
        if self.observed is not None and not self.is_told:
            self.observed.attempt_ended(record, response, error, classification)
        self.is_told = False
        return record

    def history(
        self, stop_reason: StopReason, why: str, max_attempts: int | None, gave_up: GaveUpInOutage
    ) -> RetryHistory:
        """Return the history of the ended operation; log it and emit its last event.

        :param gave_up: counts the operations that give up in an outage of their service.
        """
        attempts, waited = tuple(self.attempts), self._vain_wait
        is_gone = self.request.method == "DELETE" and bool(attempts) and attempts[-1].status in GONE
        deleted_by = self.in_doubt if is_gone else None
        history = RetryHistory(self.scope, attempts, stop_reason, why, max_attempts, deleted_by, waited)
        is_quiet, number = stop_reason in QUIET_ENDINGS, 0
        if not is_quiet:
            number = gave_up(self.scope, is_outage=bool(waited) or stop_reason in OUTAGES)
        if not is_quiet or deleted_by is not None:
            log_end(self.request, history, number)
        if self.observed is not None:
            self.observed.ended(history)
        return history

    def fill_urllib3_history(self, response: Response, shown: ShownRetry | None = None) -> None:
        """Put the discarded attempts where tools look for urllib3's own retries (contract 11.2).

        :param response: the last response.
        :param shown: the ``Retry`` that the adapter was given, or None.
        """
        retries = getattr(response.raw, "retries", None)
        if retries is not None and len(self.rows) > 1:
            history = (*retries.history, *self.rows[:-1])
            used = retries.new(history=history) if shown is None else shown.used(self.number - 1, history)
            response.raw.retries = used
        elif shown is not None:
            shown.put_into(response.raw)
