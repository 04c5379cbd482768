"""The record of an operation in progress (contract 11.2, 12); the finished one is in :mod:`history`."""

from __future__ import annotations

from collections.abc import Iterable
from logging import DEBUG, INFO
from typing import TYPE_CHECKING, cast

from requests import PreparedRequest
from urllib3.util.retry import RequestHistory

from ..classifiers.actions import NO_ACTION
from ..classifiers.fold import Classification
from ..classifiers.outcome import Outcome
from ..classifiers.resend import may_be_applied
from ..classifiers.transport_faults import cause_in_words
from ..clock import Clock
from ..errors import StopReason, without_text_of
from .events import ObservedOperation
from .history import MAX_KEPT, AttemptRecord, Before, RetryHistory, ScheduledRetry, with_pieces
from .log import log_attempt, log_end, log_retry, log_wait, log_waiting, logger

if TYPE_CHECKING:
    from ..core.health import Health
    from ..core.port import Rest
    from ..core.quota import Payment

GONE = frozenset({404, 410})
"""The statuses of a server that has nothing to delete."""


class Recorder:
    """The attempts of one operation so far; of more than :data:`MAX_KEPT`, the first and the last ones.

    :param scope: the scope whose quota the operation spends, without secrets.
    :param observed: emits the events to the listeners, or None.
    :param rest: the rest of the body that the operation continues. Its first attempt is the one that brought the body,
        whose head was reported to listeners already.
    """

    def __init__(
        self,
        request: PreparedRequest,
        scope: str,
        clock: Clock,
        observed: ObservedOperation | None = None,
        rest: Rest | None = None,
    ) -> None:
        self.request = request
        self.scope = scope
        self.clock = clock
        self.observed: ObservedOperation | None = observed
        self.attempts: list[AttemptRecord] = []
        self.rows: list[RequestHistory] = []
        self._is_told = rest is not None
        self._tells_its_end = rest is None or rest.is_streamed
        self.earlier: int = 0 if rest is None else rest.brought_by.number - 1
        """The number of attempts before the first one, and of those that continued a body within others."""
        self._waiting: tuple[AttemptRecord, float] | None = None
        """The last attempt, if it is noted already, and the moment at which its operation began to wait."""
        self._in_vain: float = 0.0
        self._in_doubt: int | None = None
        """The first failed attempt on which the server may have acted."""

    @property
    def is_waiting(self) -> bool:
        """True from :meth:`begin_waiting` on, until :meth:`note`."""
        return self._waiting is not None

    def begin_waiting(self, outcome: Outcome, before: Before, verdict: Classification, what: str) -> None:
        """Record an attempt whose operation waits for the service from now on; :meth:`note` comes after the wait.

        :param what: what is waited for, as a phrase.
        """
        record = self._record(outcome, before, None, verdict)
        self._waiting = record, self.clock.now()
        log_waiting(self.request, record, self.scope)
        if self.observed is not None:
            self.observed.waits(record.number, what, None)

    def wait_begins(self, number: int, what: str, seconds: float) -> None:
        """Report a wait before the next attempt.

        :param number: the number of the last attempt; 0: there was none.
        :param what: what is waited for, as a phrase.
        """
        log_wait(self.request, seconds, what)
        if self.observed is not None:
            self.observed.waits(number, what, seconds)

    def note(
        self, outcome: Outcome, before: Before, retry: ScheduledRetry | None, verdict: Classification | None = None
    ) -> None:
        """Record an attempt, if :meth:`begin_waiting` did not, and the retry that follows.

        :param retry: the retry that follows; None: none does.
        :param verdict: the verdict on the last attempt.
        """
        waiting, self._waiting = self._waiting, None
        if retry is None:
            if waiting is None:
                self._record(outcome, before, None, verdict)
            self._in_vain = 0.0 if waiting is None else self.clock.now() - waiting[1]
            return
        if waiting is None:
            record = self._record(outcome, before, retry.payment, retry.verdict)
        else:
            record = waiting[0]
            if retry.payment is not None:
                self.attempts[-1] = record = record._replace(**retry.payment._asdict())
        if self.request.method == "DELETE" and self._in_doubt is None:
            action = NO_ACTION if retry.verdict is None else retry.verdict.action
            self._in_doubt = record.number if may_be_applied(outcome, action) else None
        if logger.isEnabledFor(INFO):
            log_retry(self.request, record, self.scope, retry.before)
        if self.observed is not None:
            self.observed.retry_follows(record, retry.before)

    def add(self, pieces: tuple[RetryHistory, ...]) -> None:
        """Record the attempts that tried, in vain, to continue the body of the last one."""
        if pieces:
            rows = with_pieces(pieces[0], pieces[1:]).attempts
            self.attempts[-1] = self.attempts[-1]._replace(duration=rows[0].duration, received=rows[0].received)
            self.attempts += rows[1:]
            self.earlier += rows[-1].number - rows[0].number
            self._keep_few()

    def _keep_few(self) -> None:
        for kept in (self.attempts, self.rows):
            del kept[MAX_KEPT // 2 : MAX_KEPT // 2 + max(0, len(kept) - MAX_KEPT)]

    def _record(
        self, outcome: Outcome, before: Before, payment: Payment | None, verdict: Classification | None
    ) -> AttemptRecord:
        response, duration = outcome.response, outcome.ended - outcome.started
        error = cast("Exception | None", outcome.error)  # an attempt that is interrupted is not recorded
        status = outcome.status if error is None else None
        record = AttemptRecord(
            number=outcome.attempt + self.earlier,
            started=outcome.wall - duration,
            duration=duration,
            status=status,
            error=None if error is None else type(error).__name__,
            cause=cause_in_words(error),
            votes=() if verdict is None else verdict.votes,
            address=outcome.address,
            received=outcome.received,
            sent=outcome.sent,
            **before._asdict(),
            **({} if payment is None else payment._asdict()),
        )
        self.attempts.append(record)
        self.rows.append(RequestHistory(self.request.method, self.request.path_url, error, status, None))
        if len(self.rows) > MAX_KEPT:
            self._keep_few()
        if logger.isEnabledFor(DEBUG):
            log_attempt(self.request, record)
        if self.observed is not None and not self._is_told:
            self.observed.attempt_ended(record, response, error, verdict)
        self._is_told = False
        return record

    def history(
        self,
        reason: StopReason,
        why: str,
        most: int | None,
        health: Health,
        began: float | None,
        error: Exception | None,
        retry_after: float | None = None,
        pieces: Iterable[RetryHistory] = (),
        waited: float = 0.0,
        had_time: bool = True,
    ) -> RetryHistory:
        """Return the history of the ended operation; log it and emit its last event.

        :param reason: the reason why it is over; ``why`` is the phrase.
        :param most: the most attempts that it might have made, if that is known.
        :param health: of the service, which counts the operations that give up.
        :param began: when the last attempt was sent; None: nothing was.
        :param error: of the last attempt; its text is left out.
        :param retry_after: seconds after which a new call is worthwhile, if that is known.
        :param pieces: the continuations of the body of a success, which are reported to listeners, too.
        :param waited: seconds that the operation has waited since the last attempt.
        :param had_time: as in :class:`RetryHistory`.
        """
        attempts = tuple(self.attempts)
        is_gone = self.request.method == "DELETE" and bool(attempts) and attempts[-1].status in GONE
        deleted_by = self._in_doubt if is_gone else None
        # The error for a body that cannot be sent again is our own.
        is_ours = error is None or reason is StopReason.BODY_NOT_REPLAYABLE
        why = why if is_ours else without_text_of(error, why)
        history = RetryHistory(
            self.scope, attempts, reason, why, most, deleted_by, self._in_vain, retry_after, waited, had_time
        )
        if not self._tells_its_end:
            return history
        number = 0
        if history.gave_up and not history.is_ended_by_program:
            number = health.gave_up(began, self.clock.now())
        if history.gave_up or deleted_by is not None:
            log_end(self.request, history, number)
        if self.observed is not None:
            self.observed.ended(with_pieces(history, pieces))
        return history
