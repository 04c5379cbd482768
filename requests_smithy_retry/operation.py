"""One operation: everything that belongs to a single call of ``send`` (contract 2, 6.1), in one object per call.

It asks the strategy and keeps the record; it neither sends nor sleeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import requests.exceptions
from requests import PreparedRequest, Response

from .actions import ErrorKind, RetryIndicated
from .bodies import BodyChanged
from .classification import Classification
from .classifier import sees_successes
from .discarded import HeldConnection
from .errors import RetryError
from .given_strategy import check_for_foreign
from .history import RetryHistory, attach
from .nested_retries import warn_of_nesting
from .observed import ObservedOperation
from .operation_options import NOTHING, OperationOptions
from .outcome import Outcome, ResponseError, RetryContext
from .recorder import Recorder
from .request_facts import RequestFacts
from .stop_reason import StopReason
from .time_limits import TimeLimits, as_body_failure
from .timeouts import read_part
from .transport_faults import forget_frames, is_request_fault, never_left
from .wire import Peeked, peek, verify_whole
from .wire import attempt as attempt_state

if TYPE_CHECKING:
    from .adapter import RetryAdapter
    from .classifier import RetryClassifier
    from .clock import Clock
    from .config import RetryConfig
    from .interfaces import RetryStrategy

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


class Operation:
    """One call of ``send``.

    :param adapter: whose configuration and strategy hold.
    :param request: the caller's request; it is not changed.
    :param stream: the caller wants the body unread.
    :param options: what ``retry_options`` says, or None.
    :param observed: what listeners know of it already, or None.
    """

    def __init__(
        self,
        adapter: RetryAdapter,
        request: PreparedRequest,
        stream: bool,
        options: OperationOptions | None,
        observed: ObservedOperation | None = None,
    ) -> None:
        self.adapter: RetryAdapter = adapter
        self.config: RetryConfig = adapter.retry_config
        self.clock: Clock = adapter.clock
        self.strategy: RetryStrategy = adapter.strategy
        self.foreign_fold: tuple[RetryClassifier, ...] | None = adapter.foreign_fold
        self.request = request
        self.stream = stream
        self.preload: bool = not stream and self.config.preload_content
        self.options: OperationOptions = options or NOTHING
        self.scope: str = adapter.scope_of(request)
        self.facts: RequestFacts = RequestFacts(request, self.config, self.options)
        self.limits: TimeLimits = TimeLimits(self.config, self.options, self.clock)
        self.sees_successes: bool = adapter.sees_successes or any(map(sees_successes, self.options.classifiers))
        self.number: int = 0
        self.started: float = 0.0
        if observed is None and adapter.listeners is not None:
            observed = ObservedOperation(adapter, request)
            observed.own_max_attempts = self.options.max_attempts
        self.observed: ObservedOperation | None = observed
        self.record: Recorder = Recorder(request, self.scope, self.clock, observed)
        self.stop_reason: StopReason = StopReason.SUCCESS
        self.why: str = StopReason.SUCCESS.value
        self.wait: float = 0.0
        self.wait_source: str = "backoff"
        self.ask_permit: Any | None = adapter.ask_permit
        self._acquire()

    def _acquire(self) -> None:
        self.token: Any = None
        self.refusal: RetryError | None = None
        try:
            self.token = self.strategy.acquire_initial_retry_token(token_scope=self.scope)
            self.wait = self.token.retry_delay
            if self.wait > 0 and self.limits.forbids(self.wait):
                self.wait, self.refusal = 0.0, RetryError("no time is left", stop_reason=StopReason.DEADLINE)
        except RetryError as refusal:
            # The first attempt is made all the same, and it will be the only one (contract 2.1).
            self.refusal = refusal

    def hold_back(self, refusal: RetryError) -> None:
        """Take note that the strategy gives no leave to send (contract 9)."""
        self._stop(refusal.stop_reason, str(refusal))

    @property
    def is_held_back_unread(self) -> bool:
        """Whether so late that the last response is closed, while the caller wanted to read it."""
        return self.stop_reason is StopReason.RATE_LIMITED and not self.preload

    def never_sent(self) -> Exception:
        """The exception for an operation that was held back before its first attempt."""
        return self._held_back(self.record.history(self.stop_reason, self.why, self._most_attempts()))

    def _held_back(self, history: RetryHistory) -> Exception:
        error = requests.exceptions.ConnectTimeout(f"not sent: {self.why}", request=self.request)
        attach(error, history)
        return error

    def _most_attempts(self) -> int | None:
        return self.options.max_attempts or getattr(self.strategy, "max_attempts", None)

    def begin_attempt(self) -> PreparedRequest:
        """The request to send now. Listeners may have changed this attempt's own copy."""
        if self.observed is None:
            return self.facts.to_send
        return self.observed.begin(self.number + 1, self.facts.to_send)

    def settle(self, response: Response | None, error: Exception | None, started: float) -> bool:
        """Take note of an attempt and decide. True: wait, then send again. False: it is over.

        In either case ``wait`` seconds are to be waited first. No connection is held meanwhile, unless the caller
        asked for an unread body and gets this one.

        :param response: what came, or None.
        :param error: what was raised while sending or reading the body, or None.
        :param started: when the attempt began, on the clock.
        """
        self.number += 1
        self.started = started
        unwritten = error is not None and (attempt_state.connecting or never_left(error))
        held = None
        if error is not None:
            error = self._named(error, response)
        if isinstance(error, requests.exceptions.RequestException):
            error.request = self.request  # not the copy that a watched body was sent with
        if response is not None:
            response.request = self.request
            if error is None and response.status_code >= 400:
                held = HeldConnection(response)
        try:
            peeked = None
            if held is not None and self.preload:
                assert response is not None
                peeked = peek(response)
                if peeked is None or peeked.whole:
                    peeked, error = None, self._read(response)
            self.error = error
            waited = self.wait, self.wait_source
            classification, again = self._decide(response, error, unwritten, peeked)
            if peeked is not None and not again:
                assert response is not None
                classification, again = self._read_late(response, classification)
            self.record.note(response, self.error, started, waited, classification, self.token if again else None)
            if response is not None and self.error is None and not self.preload and not again:
                self.limits.hand_on(response)
            self._let_go(response, held, classification, again)
        except BaseException:
            # A bug in a classifier, or Ctrl-C: the connection goes, the caller gets the exception.
            if held is not None:
                held.close()
            if response is not None:
                response.close()
            raise
        finally:
            self.limits.end()
        if again and self.error is not None:
            forget_frames(self.error)
        return again

    def _read(self, response: Response) -> Exception | None:
        """Read a failed response's body; what goes wrong in it is the attempt's failure."""
        try:
            _ = response.content
            verify_whole(response)
        except Exception as error:
            return self._named(error, response)
        return None

    def _read_late(
        self, response: Response, classification: Classification | None
    ) -> tuple[Classification | None, bool]:
        """Read the long or slow body of a response that is final. If that fails, it is the attempt that failed."""
        self.error = error = self._read(response)
        if error is None or self.stop_reason is not StopReason.NOT_RETRYABLE:
            return classification, False
        unredeem = getattr(self.token, "unredeem", None)
        if unredeem is not None:
            unredeem()  # the strategy said that the response was none to retry; a cut body is another matter
        return self._decide(response, error, False)

    def _named(self, error: Exception, response: Response | None) -> Exception:
        if isinstance(error, BodyChanged):
            return requests.exceptions.UnrewindableBodyError(str(error), request=self.request)
        named = self.limits.translated(error, self.request)
        return named if response is None else as_body_failure(named, self.request)

    def _decide(
        self, response: Response | None, error: Exception | None, unwritten: bool, peeked: Peeked | None = None
    ) -> tuple[Classification | None, bool]:
        self.wait, self.wait_source = 0.0, "backoff"
        if error is not None and is_request_fault(error):
            return self._stop(StopReason.REQUEST_FAULT, StopReason.REQUEST_FAULT.value)
        if isinstance(error, requests.exceptions.UnrewindableBodyError):
            return self._stop(StopReason.BODY_NOT_REPLAYABLE, str(error))
        is_success = error is None and response is not None and response.status_code < 400
        if is_success and not self.sees_successes:
            return self._succeed()
        if self.number == 1 and not is_success:
            warn_of_nesting(self.adapter, self.request, response)
        outcome = self._outcome(response, error, unwritten, peeked)
        context = RetryContext(outcome, deadline=self.limits.at, options=self.facts.full_options)
        try:
            if self.refusal is not None:
                raise self.refusal
            if error is None:
                assert response is not None
                token = self._ask(ResponseError(response, context), outcome)
            else:
                error.retry_context = context  # type: ignore[attr-defined]
                try:
                    token = self._ask(error, outcome)
                finally:
                    del error.retry_context  # type: ignore[attr-defined]
        except RetryError as refusal:
            if is_success and refusal.stop_reason is StopReason.NOT_RETRYABLE:
                return self._succeed()
            self.wait = refusal.delay or 0.0
            self._stop(refusal.stop_reason, str(refusal))
            return refusal.classification, False
        if self.limits.forbids(token.retry_delay):
            # A strategy of somebody else's need not look at the deadline.
            self._stop(StopReason.DEADLINE, f"the next wait of {token.retry_delay:.3g} s would not end in time")
            return getattr(token, "classification", None), False
        self.token = token
        self.wait = token.retry_delay
        self.wait_source = getattr(token, "delay_source", "strategy")
        return getattr(token, "classification", None), True

    def _ask(self, error: Exception, outcome: Outcome) -> Any:
        """Have the strategy renew the token."""
        if self.foreign_fold is not None:
            check_for_foreign(self.foreign_fold, outcome, self.options, error)
        return self.strategy.refresh_retry_token_for_retry(token_to_renew=self.token, error=error)

    def _outcome(
        self, response: Response | None, error: Exception | None, unwritten: bool, peeked: Peeked | None
    ) -> Outcome:
        return Outcome(
            error=error,
            response=response if error is None else None,
            request=self.request,
            attempt=self.number,
            stream=not self.preload,
            resend=self.facts.resend(unwritten=unwritten),
            peeked=None if peeked is None else peeked.prefix,
        )

    def _succeed(self) -> tuple[None, bool]:
        if self.token is not None:
            if getattr(self.strategy, "wants_latency", False):
                allowed = read_part(self.limits.allowed)
                self.token = self.token.answered(self.clock.now() - self.started, allowed)
            self.strategy.record_success(token=self.token)
        return None, self._stop(StopReason.SUCCESS, StopReason.SUCCESS.value)[1]

    def _stop(self, reason: StopReason, why: str) -> tuple[None, bool]:
        self.stop_reason, self.why = reason, why
        return None, False

    def _let_go(
        self, response: Response | None, held: HeldConnection | None, verdict: Classification | None, again: bool
    ) -> None:
        """Release the discarded response, or ready the one that is handed on."""
        if response is None:
            return
        if again:
            if held is not None:
                held.discard(keep=_is_throttling(verdict))
            response.close()
        elif self.error is not None:
            if held is not None:
                held.close()
            response.close()
        elif held is not None:
            if self.preload:
                held.put_back()
            else:
                held.return_to_response()

    def finish(self, response: Response | None) -> Exception | None:
        """Attach the record to the outcome. Returns the exception to raise, or None to return the response."""
        try:
            history = self.record.history(self.stop_reason, self.why, self._most_attempts())
        except BaseException:
            # A listener's bug: nobody is left who could read the response.
            if response is not None:
                response.close()
            raise
        error = self.error
        if error is not None:
            attach(error, history)
            return error
        assert response is not None
        if self.is_held_back_unread:
            return self._held_back(history)
        attach(response, history)
        self.record.fill_urllib3_history(response)
        if self.config.raise_on_status and response.status_code >= 400 and self.stop_reason in EXHAUSTED:
            raised = requests.exceptions.RetryError(history.sentence, request=self.request, response=response)
            attach(raised, history)
            return raised
        return None


def _is_throttling(classification: Classification | None) -> bool:
    action = None if classification is None else classification.action
    return isinstance(action, RetryIndicated) and action.reason.kind is ErrorKind.THROTTLING
