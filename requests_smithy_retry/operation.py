"""One operation: everything that belongs to a single call of ``send`` (contract 2, 6.1), in one object per call.

It asks the strategy and keeps the record; it neither sends nor sleeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import requests.exceptions
from requests import PreparedRequest, Response

from .answer import Answer, as_requests_error
from .classification import Classification, classification_of
from .classifier import sees_successes
from .ending import held_back, is_raised, status_error
from .errors import RetryError
from .given_strategy import check_for_foreign
from .history import attach
from .nested_retries import warn_of_nesting
from .observed import ObservedOperation
from .operation_options import NOTHING, OperationOptions
from .outcome import Outcome, RetryContext, carrier_of
from .recorder import Recorder
from .request_facts import RequestFacts
from .stop_reason import StopReason
from .time_limits import TimeLimits
from .timeouts import read_part
from .transport_faults import forget_frames, is_request_fault, never_left
from .wire import Peeked
from .wire import attempt as attempt_state

if TYPE_CHECKING:
    from .classifier import RetryClassifier
    from .clock import Clock
    from .config import RetryConfig
    from .interfaces import RetryStrategy
    from .send_loop import SendLoop


class Operation:
    """One call of ``send``.

    :param adapter: whose configuration and strategy hold.
    :param request: the caller's request; it is not changed.
    :param stream: the caller wants the body unread.
    :param options: what ``retry_options`` says, or None.
    :param observed: what listeners know of it already, or None.
    """

    stop_reason: StopReason
    why: str
    is_lost: bool
    started: float

    def __init__(
        self,
        adapter: SendLoop,
        request: PreparedRequest,
        stream: bool,
        options: OperationOptions | None,
        observed: ObservedOperation | None = None,
    ) -> None:
        self.adapter: SendLoop = adapter
        self.config: RetryConfig = adapter.retry_config
        self.clock: Clock = adapter.clock
        self.strategy: RetryStrategy = adapter.strategy
        self.foreign_fold: tuple[RetryClassifier, ...] | None = adapter.foreign_fold
        self.request = request
        self.preload: bool = not stream and self.config.preload_content
        self.options: OperationOptions = options or NOTHING
        self.scope: str = adapter.scope_of(request)
        self.facts: RequestFacts = RequestFacts(request, self.config, self.options)
        self.limits: TimeLimits = TimeLimits(self.config, self.options, self.clock)
        self.sees_successes: bool = adapter.sees_successes or any(map(sees_successes, self.options.classifiers))
        self.number: int = 0
        if observed is None and adapter.listeners is not None:
            observed = ObservedOperation(adapter, request)
            observed.own_max_attempts = self.options.max_attempts
        self.observed: ObservedOperation | None = observed
        self.record: Recorder = Recorder(request, self.scope, self.clock, observed)
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

    def never_sent(self) -> Exception:
        """The exception for an operation that was held back before its first attempt."""
        return held_back(self.request, self.record.history(self.stop_reason, self.why, self._most_attempts()))

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
        answer = None
        try:
            self.number, self.started = self.number + 1, started
            unwritten = error is not None and (attempt_state.connecting or never_left(error))
            if error is not None:
                error = as_requests_error(error, response, self.limits, self.request)
            attempt_state.connecting = False  # an attempt whose body made this one shall not take it for its own
            if isinstance(error, requests.exceptions.RequestException):
                error.request = self.request  # not the copy that a watched body was sent with
            if response is not None:
                response.request = self.request
                answer = Answer(response, preload=self.preload)
            if answer is not None and not answer.look():
                error = answer.read(self.limits)
            self.error = error
            waited = self.wait, self.wait_source
            peeked = None if answer is None else answer.peeked
            classification, again = self._decide(response, error, unwritten=unwritten, peeked=peeked)
            if answer is not None and peeked is not None and not again:
                classification, again = self._read_late(answer, classification)
            self.record.note(response, self.error, started, waited, classification, self.token if again else None)
            if answer is not None and again:
                # A permit may be refused after the wait, when there is nothing left to read.
                self.is_lost = bool(self.ask_permit) and not answer.is_read_at_once(self.limits)
                answer.discard(keep=classification is not None and classification.is_throttling)
            elif answer is not None:
                self.is_lost = False
                raised = self.config.raise_on_status and is_raised(answer.response, self.stop_reason)
                answer.hand_on(self.limits, is_broken=self.error is not None, is_raised=raised)
        except BaseException:
            # A bug in a classifier, or Ctrl-C: the connection goes, the caller gets the exception.
            if response is not None:
                (answer or response).close()
            raise
        finally:
            self.limits.end()
        if again and self.error is not None:
            forget_frames(self.error)
        return again

    def _read_late(self, answer: Answer, classification: Classification | None) -> tuple[Classification | None, bool]:
        """Read the long or slow body of a response that is final. If that fails, it is the attempt that failed."""
        self.error = error = answer.read(self.limits)
        if error is None or self.stop_reason is not StopReason.NOT_RETRYABLE:
            return classification, False
        unredeem = getattr(self.token, "unredeem", None)
        if unredeem is not None:
            unredeem()  # the strategy said that the response was none to retry; a cut body is another matter
        return self._decide(None, error, unwritten=False)

    def _decide(
        self, response: Response | None, error: Exception | None, *, unwritten: bool, peeked: Peeked | None = None
    ) -> tuple[Classification | None, bool]:
        self.wait = 0.0
        if error is not None and is_request_fault(error):
            return self._stop(StopReason.REQUEST_FAULT, StopReason.REQUEST_FAULT.value)
        if isinstance(error, requests.exceptions.UnrewindableBodyError):
            return self._stop(StopReason.BODY_NOT_REPLAYABLE, str(error))
        is_success = error is None and response is not None and response.status_code < 400
        if is_success and not self.sees_successes:
            return self._succeed()
        if self.number == 1 and not is_success:
            warn_of_nesting(self.adapter, self.request, response)
        outcome = Outcome(
            error=error,
            response=response if error is None else None,
            request=self.request,
            attempt=self.number,
            stream=not self.preload,
            resend=self.facts.resend(unwritten=unwritten),
            peeked=None if peeked is None else peeked.prefix,
        )
        context = RetryContext(outcome, deadline=self.limits.at, options=self.facts.full_options)
        carrier = carrier_of(context)
        try:
            if self.refusal is not None:
                raise self.refusal
            if self.foreign_fold is not None:
                check_for_foreign(self.foreign_fold, outcome, self.options, carrier)
            token: Any = self.strategy.refresh_retry_token_for_retry(token_to_renew=self.token, error=carrier)
        except RetryError as refusal:
            if is_success and refusal.stop_reason is StopReason.NOT_RETRYABLE:
                return self._succeed()
            self.wait = refusal.delay or 0.0
            self._stop(refusal.stop_reason, str(refusal))
            return refusal.classification, False
        finally:
            del carrier.retry_context
        if self.limits.forbids(token.retry_delay):  # a strategy of somebody else's need not look at the deadline
            self._stop(StopReason.DEADLINE, f"the next wait of {token.retry_delay:.3g} s would not end in time")
            return classification_of(token), False
        self.token, self.wait = token, token.retry_delay
        self.wait_source = getattr(token, "delay_source", "strategy")
        return classification_of(token), True

    def _succeed(self) -> tuple[None, bool]:
        if self.token is not None:
            if getattr(self.strategy, "wants_latency", False):
                allowed = read_part(self.limits.allowed)
                self.token = self.token.answered(self.clock.now() - self.started, allowed)
            self.strategy.record_success(token=self.token)
        return self._stop(StopReason.SUCCESS, StopReason.SUCCESS.value)

    def _stop(self, reason: StopReason, why: str) -> tuple[None, bool]:
        self.stop_reason, self.why = reason, why
        return None, False

    def finish(self, response: Response | None) -> Exception | None:
        """Attach the record to the outcome. Returns the exception to raise, or None to return the response."""
        try:
            history = self.record.history(self.stop_reason, self.why, self._most_attempts())
        except BaseException:
            # A listener's bug: nobody is left who could read the response.
            if response is not None:
                response.close()
            raise
        if self.error is not None:
            attach(self.error, history)
            return self.error
        assert response is not None
        if self.is_lost:
            return held_back(self.request, history)
        attach(response, history)
        self.record.fill_urllib3_history(response)
        return status_error(response, history) if self.config.raise_on_status else None
