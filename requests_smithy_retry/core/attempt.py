"""A failed attempt as a strategy gets it (contract 1): one exception, for responses and for errors alike."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..classifiers.actions import RetryForbidden, RetryIndicated, RetryReason
from ..classifiers.fold import Classification, classify, joined
from ..classifiers.outcome import ErrorRetryInfo, Fault, Outcome, floor_of
from ..classifiers.resend import RESEND_RULE, resend_ruling
from ..clock import SYSTEM_CLOCK, Clock, Place, wait_in
from ..config.retry_options import NOTHING, OperationOptions, current_options
from ..errors import RetryError, StopReason, safe_error
from .policy import leaves_time
from .rules import too_late

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

    from ..classifiers.protocol import RetryClassifier
    from .call import Call
    from .policy import Policy
else:  # pragma: no branch - for typing.get_type_hints; strategies know no HTTP library
    PreparedRequest = Response = RetryClassifier = Call = Policy = Any


class AttemptFailed(Exception):
    """One failed attempt, as it is passed to ``refresh_retry_token_for_retry``.

    It implements :class:`ErrorRetryInfo` and :class:`HasFault`; a strategy needs to know nothing else about it. The
    exception that the attempt raised, if it raised one, is its ``__cause__``. A caller never gets it.

    :param outcome: the outcome of the attempt.
    :param clock: the clock of the call. A wait on it holds no connection, ends with the call's ``cancel`` and
        ``max_wait``, and is part of its history. A ``sleep`` past the deadline raises ``RetryError`` at once.
    :param deadline: the moment on that clock by which each wait must end; None for no limit.
    :param options: those of the ``retry_options`` blocks around the call.
    :param call: the adapter's call; None if a program drives the strategy by hand.
    """

    _fault: Fault = None

    def __init__(
        self,
        outcome: Outcome,
        *,
        clock: Clock = SYSTEM_CLOCK,
        deadline: float | None = None,
        options: OperationOptions = NOTHING,
        call: Call | None = None,
    ) -> None:
        super().__init__(
            f"the server answered {outcome.status}" if outcome.error is None else safe_error(outcome.error)
        )
        self.outcome = outcome
        self.clock: Clock = clock
        self.deadline = deadline
        self.options = options
        self._call = call
        self.__cause__: BaseException | None = outcome.error

    @classmethod
    def around(cls, error: BaseException, clock: Clock) -> AttemptFailed:
        """Return the failed attempt itself, or one around the exception of a program that drives a strategy by hand.

        :param clock: the strategy's; options and deadline are those of the surrounding ``retry_options`` blocks.
        """
        if isinstance(error, cls):
            return error
        options = current_options.get()
        deadline = None if options.deadline is None else options.deadline.on(clock).at
        outcome = outcome_of(error, ended=clock.now(), wall=clock.wall())
        return cls(outcome, clock=clock, deadline=deadline, options=options)

    @property
    def response(self) -> Response | None:
        """The response, if there is one. With ``stream=True`` its body must not be read."""
        return self.outcome.response

    @property
    def request(self) -> PreparedRequest | None:
        """The request of the call."""
        return self.outcome.request

    @property
    def verdict(self) -> Classification:
        """The verdict of all classifiers and of the resend rule; they are asked once."""
        return self.judged(None)

    def judged(self, policy: Policy | None) -> Classification:
        """Return the verdict, and compute it first, by the classifiers of a policy, if it is not known yet.

        :param policy: None: that of the call, or the default classifiers.
        """
        known = self.known_verdict
        if known is None:
            call = self._call
            if policy is None and call is not None:
                policy = call.policy
            classifiers = _defaults() if policy is None else policy.classifiers
            if call is not None and policy is not call.plan.policy:
                classifiers = joined(classifiers, call.plan.beside)
            classifiers = (*joined(classifiers, self.options.classifiers), RESEND_RULE)
            known = self._verdict = classify(classifiers, self.outcome)
            if call is not None:
                call.tell_of_verdict(self.outcome, known)
        return known

    @property
    def known_verdict(self) -> Classification | None:
        """The verdict; None if it was not computed yet."""
        return self.__dict__.get("_verdict")

    def judge_as(self, verdict: Classification, fault: Fault) -> None:
        """Use a given verdict in place of those of the classifiers and of the error itself."""
        self._verdict, self._own, self._fault = verdict, None, fault

    def indicated(self, policy: Policy) -> RetryReason:
        """Return the reason for which a retry is indicated.

        :raises RetryError: if none is.
        """
        verdict = self.judged(policy)
        action = verdict.action
        if isinstance(action, RetryIndicated):
            return action.reason
        if isinstance(action, RetryForbidden):
            raise RetryError(action.why or "", stop_reason=action.stop_reason, classification=verdict)
        raise RetryError(stop_reason=StopReason.NOT_RETRYABLE, classification=verdict)

    def check_resend(self) -> None:
        """Apply the resend rule, whatever a strategy says (contract 4).

        :raises RetryError: if the request may not be sent again.
        """
        outcome, action = self.outcome, self.verdict.action
        ruling = action if isinstance(action, RetryForbidden) and outcome.is_success else None
        if ruling is None and outcome.resend is not None:
            ruling = resend_ruling(outcome.resend, outcome.status, action)
        if ruling is not None:
            raise RetryError(ruling.why or "", stop_reason=ruling.stop_reason, classification=self.verdict)

    def check_limits(self, delay: float, source: str) -> None:
        """Apply the bounds of the call, whatever a strategy says: its number of attempts, and its deadline.

        :param delay: seconds before the next attempt.
        :raises RetryError: if no attempt may follow.
        """
        most, number = self.options.max_attempts, self.outcome.attempt
        if most is not None and not self.outcome.has_progressed and number >= most:
            raise RetryError(stop_reason=StopReason.MAX_ATTEMPTS)
        now = self.clock.now()
        if not leaves_time(now + delay, self.deadline):
            raise too_late(delay, source, is_over=not leaves_time(now, self.deadline))

    def wait_in(self, place: Place, what: str) -> Any:
        """Wait in a place on the clock of the call, and return its answer."""
        return wait_in(place, self.clock) if self._call is None else self._call.clock.wait_in(place, what)

    # The attributes that the Smithy papers want an error to have.

    @property
    def _reason(self) -> RetryReason | None:
        action = self.verdict.action
        return action.reason if isinstance(action, RetryIndicated) else None

    @cached_property
    def _own(self) -> Any:
        """The exception that the attempt raised, if it has these attributes itself."""
        error: object = self.outcome.error
        return error if isinstance(error, ErrorRetryInfo) else None

    @property
    def is_retry_safe(self) -> bool | None:
        """True: a classifier asks for a retry. False: one forbids it, or the client is at fault. None: unknown."""
        if self._own is not None:
            return self._own.is_retry_safe  # type: ignore[no-any-return]
        if self._reason is not None:
            return True
        is_refused = isinstance(self.verdict.action, RetryForbidden)
        return False if is_refused or self.fault == "client" else None

    @property
    def retry_after(self) -> float | None:
        """The least delay before a retry, in seconds, which the server or a classifier asks for; None: neither does."""
        asked = None if self._call is None else self._call.policy.asked(self.outcome, self.verdict)
        said = [asked, floor_of(self.outcome.error), None if self._reason is None else self._reason.retry_after]
        return max((seconds for seconds in said if seconds is not None), default=None)

    @property
    def is_throttling_error(self) -> bool:
        """True if the server asks for fewer requests."""
        return self.verdict.is_throttling if self._own is None else bool(self._own.is_throttling_error)

    @property
    def is_timeout_error(self) -> bool:
        """True for a time-out of the client."""
        if self._own is not None:
            return bool(self._own.is_timeout_error)
        return self._reason is not None and self._reason.timeout

    @property
    def fault(self) -> Fault:
        """``"client"`` for a 4xx, ``"server"`` for a 5xx, or what the exception says; None for anything else."""
        status, error = self.outcome.status, self.outcome.error
        if error is not None or status is None:
            return getattr(error, "fault", None) if self._fault is None else self._fault
        return "client" if 400 <= status < 500 else "server" if status >= 500 else None


def _defaults() -> tuple[RetryClassifier, ...]:
    # Imported here: the strategies need no HTTP library, only their default classifiers do.
    from ..classifiers.defaults import default_classifiers

    return default_classifiers()


def outcome_of(error: Any, *, ended: float = 0.0, wall: float = 0.0) -> Outcome:
    """Return an exception as an outcome, with the response that it carries, if any, as from ``raise_for_status``."""
    if isinstance(error, AttemptFailed):
        return error.outcome
    if error is None:
        return Outcome(ended=ended, wall=wall)
    response = getattr(error, "response", None)
    if not isinstance(getattr(response, "status_code", None), int) or not hasattr(response, "headers"):
        return Outcome(error=error, ended=ended, wall=wall)
    # An unread body stays unread: reading it could take long, and the caller may want to stream it.
    unread = getattr(response, "_content", None) is False
    return Outcome(error=error, response=response, stream=unread, ended=ended, wall=wall)
