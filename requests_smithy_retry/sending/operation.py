"""One operation: a single call of ``send`` (contract 2, 6.1), in one object per call.

It asks the strategy, decides and keeps the record. It neither sends nor sleeps, reads no network and closes nothing.

::

     begin_attempt -> [send] -> Attempt -> examine -> judge --+-> Retry -> note -> discard -> [wait] -> [permit] -+
           ^                                             ^    |                                              |    |
           |                          body broken off    |    +-> Stop --> note --> keep --> [wait] -+       |    |
           |                          as it is read on   +----+                                      v       v no |
           |                                                                              [hand over] <------+    |
           +----------------------------------------------------------------------------------------------- yes --+

What stands in brackets is done by the send loop. An attempt owns its response and its connection. ``discard`` gives the
connection up, before anything is waited for; ``keep`` leaves it with the response that the caller gets.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import requests.exceptions
from requests import PreparedRequest, Response

from ..classifiers.actions import NO_ACTION, RetryIndicated
from ..classifiers.fold import Classification, classification_of
from ..classifiers.outcome import Outcome
from ..classifiers.protocol import sees_successes
from ..classifiers.resend import may_be_applied
from ..classifiers.transport_faults import forget_frames, is_request_fault
from ..config.retry_options import NOTHING, OperationOptions
from ..errors import RetryError, StopReason, without_text_of
from ..interruptions import is_interruption
from ..observing import events
from ..observing.history import attach
from ..observing.log import log_end_of_tape
from ..observing.recorder import Recorder
from ..strategies.foreign import StrategyPort
from ..strategies.protocol import RetryContext, StandardRetryToken, carrier_of
from ..strategies.simple import delay_of
from ..urls import scope_of
from ..wire.state import read_part
from .caller_errors import is_raised, not_sent_error, status_error
from .credentials import UNAUTHORIZED, Renew, has_credentials, origin_chosen, renewed
from .nested_retries import note_end
from .receiving import InHand, Rest, rest_of
from .replay import FOLLOWED_STATUSES, RequestFacts

if TYPE_CHECKING:
    from ..clock import Clock
    from ..config.max_retries import ShownRetry
    from ..config.retry_config import RetryConfig
    from .attempt import Attempt, Call


TAPES = frozenset({"betamax", "vcr"})
"""The packages that record answers in a test and play them later."""
END_OF_TAPE = (
    "the tape has no answer to a retry; requests_smithy_retry.testing.retries_disabled() plays it without retries"
)
RENEWED = "on_unauthorized"
"""The source of an attempt that is made because the credentials were renewed."""


class Retry(NamedTuple):
    """The decision that another attempt follows.

    :param wait: seconds to wait first.
    :param source: the rule that made the wait that long.
    :param classification: the verdict behind it, where the strategy tells.
    """

    token: StandardRetryToken
    wait: float
    source: str
    classification: Classification | None = None


class Stop(NamedTuple):
    """The decision that the operation is over.

    :param reason: the rule that said so.
    :param why: one phrase for histories and logs.
    :param wait: seconds to wait before the outcome is handed over; a long poll has some.
    :param classification: the verdict behind it, where there is one.
    """

    reason: StopReason
    why: str
    wait: float = 0.0
    classification: Classification | None = None


class Sender(events.Sender, Protocol):
    """The part of the sending adapter that an operation uses."""

    _shown: ShownRetry | None


class Operation:
    """One call of ``send``.

    :param rest: the rest of a body in the caller's hands, which its first attempt brought no further; or None.
    """

    def __init__(self, adapter: Sender, call: Call, rest: InHand | None = None) -> None:
        self.adapter: Sender = adapter
        self.config: RetryConfig = call.config
        self.clock: Clock = adapter.clock
        self.port: StrategyPort = adapter.port
        self.call = call
        self.request: PreparedRequest = call.request
        self.options: OperationOptions = call.options or NOTHING
        self.scope: str = adapter.scope_of(self.request)
        self.facts: RequestFacts = RequestFacts(self.request, self.config, self.options)
        self.deadline: float | None = None if call.limits is None else call.limits.at
        """The moment by which it must end, on the clock; None: there is none."""
        self.sees_successes: bool = self.port.sees_successes or any(map(sees_successes, self.options.classifiers))
        self.number: int = 0
        self.has_renewed: bool = False
        """The program was asked for new credentials."""
        self._told_gate: int = 0
        """The attempt of which the gate was told last."""
        self.began: float | None = None
        """The moment from which it is patient, on the clock: it was about to send, or waited to do so."""
        self.record: Recorder = Recorder(self.request, self.scope, self.clock, call.observed)
        self.record.is_told = rest is not None
        self.rest: Rest | InHand | None = rest
        """The rest of a body that broke off, which the next attempt asks for."""
        self.played: Response | None = None
        """The last answer, if it came from a tape."""
        self.waited: tuple[float, str] = (0.0, "backoff")
        """Seconds before the attempt under way, and the rule that made them that many."""
        self.tried: set[tuple[str, str]] = set()
        """The addresses at which it failed, each with its origin; a retry prefers others (contract 14.5)."""
        self.token: Any = None
        self.refusal: RetryError | None = None
        try:
            self.token = self.port.strategy.acquire_initial_retry_token(token_scope=self.scope)
            wait = delay_of(self.token, self.port.strategy) if self.port.needs_first_token else 0.0
            if wait > 0 and self._forbids(wait):
                raise RetryError("no time is left", stop_reason=StopReason.DEADLINE)
            self.waited = wait, "backoff"
        except RetryError as refusal:
            # The first attempt is made all the same, and it will be the only one (contract 2.1).
            self.refusal = refusal

    def _forbids(self, wait: float) -> bool:
        return self.call.limits is not None and self.call.limits.forbids(wait)

    def begin_attempt(self) -> PreparedRequest:
        """Return the request to send now. Listeners may have changed this attempt's own copy."""
        base = self.facts.to_send if self.rest is None else self.rest.request(self.facts.to_send)
        observed = self.call.observed
        return base if observed is None else observed.begin(self.number + 1, base)

    def renew_credentials(self, renew: Renew, made: Attempt) -> Retry | None:
        """Have the program renew the credentials after a 401, once; return None where the attempt is to be judged.

        The connection is let go before the program is asked: it may send requests of its own.
        """
        response = made.answer
        if response is None or response.status_code != UNAUTHORIZED or not self._may_renew():
            return None
        self.has_renewed = True
        if not self.facts.body.rewind(unwritten=made.unwritten) or not made.let_go(keep=True):
            return None
        headers = renewed(renew, response)
        if headers is None or self._forbids(0.0):
            return None
        self.facts.send_with(headers)
        self.number += 1
        return Retry(self.token, 0.0, RENEWED)

    def _may_renew(self) -> bool:
        """Return True once, if the program itself sent credentials here, and another attempt may be made."""
        if self.has_renewed or self.token is None or (self._most is not None and self.number + 1 >= self._most):
            return False
        chosen = self.rest.origin if isinstance(self.rest, InHand) else origin_chosen(self.request)
        return chosen == scope_of(str(self.request.url)) and has_credentials(self.request)

    def judge(self, made: Attempt) -> Retry | Stop:
        """Decide what follows an attempt.

        :raises Exception: an exception of a classifier or a strategy, which is a bug in it.
        """
        self.number += 1
        if not made.is_success and self.facts.body.position is not None:
            self.record.sent = self.facts.body.taken()  # before the body is rewound
        return self._stop_at_once(made) or self._ask(made)

    def judge_anew(self, made: Attempt, stop: Stop) -> Retry | Stop:
        """Decide again about a final response whose body turned out to be cut when its rest was read."""
        if stop.reason is not StopReason.NOT_RETRYABLE:
            return stop
        if self.token is not None:
            self.token.unredeem()  # the strategy judged the response; a cut body is another matter
        return self._stop_at_once(made) or self._ask(made)

    def _stop_at_once(self, made: Attempt) -> Stop | None:
        """Return the decision in cases that do not depend on the strategy."""
        error = made.error
        if error is None:
            return self._succeed(made) if made.is_success and not self.sees_successes else None
        if is_interruption(error):
            return Stop(StopReason.NOT_RETRYABLE, "the handler of a signal raised it")
        if is_request_fault(error):
            return Stop(StopReason.REQUEST_FAULT, StopReason.REQUEST_FAULT.value)
        if isinstance(error, requests.exceptions.UnrewindableBodyError):
            return Stop(StopReason.BODY_NOT_REPLAYABLE, str(error))
        if self.number > 1 and is_of_a_tape(error):
            return Stop(StopReason.NOT_RETRYABLE, END_OF_TAPE)
        return None

    def _ask(self, made: Attempt) -> Retry | Stop:
        """Ask the strategy."""
        if self.began is None:
            self.began = made.started
        context = RetryContext(
            self._outcome(made),
            deadline=self.deadline,
            options=self.facts.options,
            began=self.began,
            before_waiting=partial(self._begin_waiting, made),
        )
        carrier = carrier_of(context)
        try:
            if self.refusal is not None:
                raise self.refusal
            refresh = self.port.strategy.refresh_retry_token_for_retry
            # An interruption from now on gives up what was paid for the token.
            token = self.token = refresh(token_to_renew=self.token, error=carrier)
        except RetryError as refusal:
            return self._refused(made, refusal)
        except Exception as raised:
            if raised is not carrier:
                raise
            # The Smithy guide's strategies propagate the error that they were shown: that is a refusal.
            return Stop(StopReason.STRATEGY_REFUSED, StopReason.STRATEGY_REFUSED.value)
        finally:
            vars(carrier).pop("retry_context", None)
        delay = delay_of(token, self.port.strategy)
        if self._forbids(delay):  # a foreign strategy need not look at the deadline
            why = f"the next wait of {delay:.3g} s would not end in time"
            return Stop(StopReason.DEADLINE, why, 0.0, token.classification)
        if self.request.method == "DELETE" and self.record.in_doubt is None:
            self._note_doubt(context.outcome, token.classification)
        return Retry(token, delay, token.delay_source, token.classification)

    def _note_doubt(self, outcome: Outcome, verdict: Classification | None) -> None:
        """Remember the first failed deletion on which the server may have acted: a retry will find nothing."""
        action = NO_ACTION if verdict is None else verdict.action
        self.record.in_doubt = self.number if may_be_applied(outcome, action) else None

    def _begin_waiting(self, made: Attempt, classification: Classification) -> bool:
        """Let go of an attempt and record it: its operation waits for the service, for an unknown time.

        :returns: False if it cannot be let go, and nothing is written down.
        """
        self._tell_gate(made, classification)  # what the response announces would be stale after the wait
        can_wait = made.let_go(keep=classification.is_throttling)
        if can_wait:
            self._count_received(made)
            self.record.begin_waiting(made, self.waited, classification)
        return can_wait

    def _outcome(self, made: Attempt) -> Outcome:
        return Outcome(
            error=made.error,
            response=made.answer,
            request=self.request,
            attempt=self.number,
            stream=self.call.stream,
            resend=self.facts.resend(
                unwritten=made.unwritten,
                is_cut=made.error is not None and made.response is not None and made.response.status_code < 400,
            ),
            peeked=None if made.peeked is None else made.peeked.prefix,
        )

    def _refused(self, made: Attempt, refusal: RetryError) -> Stop:
        if made.is_success and refusal.stop_reason is StopReason.NOT_RETRYABLE:
            return self._succeed(made)
        why = without_text_of(made.error, str(refusal))
        return Stop(refusal.stop_reason, why, refusal.delay or 0.0, classification_of(refusal))

    def _succeed(self, made: Attempt) -> Stop:
        if self.token is not None:
            if isinstance(self.token, StandardRetryToken):
                allowed = self.call.timeout if self.call.limits is None else self.call.limits.allowed
                timeout = None if allowed is None else read_part(allowed)
                self.token = replace(self.token, latency=self.clock.now() - made.started, timeout=timeout)
            self.port.strategy.record_success(token=self.token)
        return Stop(StopReason.SUCCESS, StopReason.SUCCESS.value)

    def _tell_gate(self, made: Attempt, verdict: Classification | None) -> None:
        """Tell the gate of the scope once what an attempt's response announced (contract 7.4)."""
        gates, response = self.port.gates, made.answer
        if gates is None or self._told_gate == self.number:
            return
        self._told_gate = self.number
        if response is None:
            gate = gates.of(self.scope)
            if gate is not None:
                gate.lost()
            return
        action = NO_ACTION if verdict is None else verdict.action
        throttled = verdict is not None and verdict.is_throttling
        if made.is_success and not throttled:
            gates.first_look(self.scope, response.headers, once=False)
        else:
            gates.failed(
                self.scope,
                response.headers,
                throttled=throttled,
                floor=action.reason.retry_after if isinstance(action, RetryIndicated) else None,
                longest=self.config.max_retry_after,
            )

    def note(self, made: Attempt, decision: Retry | Stop) -> None:
        """Tell the gate of an attempt and record it, and go on to the next one if there is one."""
        self._tell_gate(made, decision.classification)
        token = decision.token if isinstance(decision, Retry) else None
        if token is not None and decision == (token, 0.0, RENEWED, None):
            token = StandardRetryToken(issuer=self, delay_source=RENEWED)  # nothing was paid for this one
        verdict, wait = decision.classification, decision.wait
        self._count_received(made)
        self.record.note(made, self.waited, verdict, token, wait)
        if isinstance(decision, Retry):
            self.waited = decision.wait, decision.source
            self.played = made.response if is_played(made.response) else None
            rest = None if made.response is None or made.body is None else rest_of(made.response, made.body)
            self.rest = rest or (None if self.rest is None or self.rest.is_void else self.rest)

    def _count_received(self, made: Attempt) -> None:
        """Have an attempt that went on with an earlier body tell the bytes that it brought of that."""
        if self.rest is not None and self.rest.brought is not None:
            made.received = self.rest.brought

    def raises(self, made: Attempt, stop: Stop) -> bool:
        """Return True if ``raise_on_status``, where it is set, has the caller get an exception with the response."""
        return made.response is not None and is_raised(made.response, stop.reason, self.config.retry_status_codes)

    def abandon(self) -> None:
        """Take note that it is over, by any exception: its tokens will not come back, and others may wait for them.

        Where it was over before, this changes nothing. The exception may be kept, and so may its traceback's frames.
        """
        if isinstance(self.token, StandardRetryToken) and self.token.standing.loan is not None:
            self.token.standing.loan.write_off()

    def never_sent(self, stop: Stop) -> Exception:
        """Return the exception for an operation that was refused permission to send before it had any outcome."""
        return not_sent_error(self.request, self._history(stop))

    def finish(self, made: Attempt, stop: Stop) -> Exception | None:
        """Attach the record to the outcome.

        :returns: the exception to raise, or None to return the response.
        """
        if self.played is not None and made.error is not None and stop.why == END_OF_TAPE:
            forget_frames(made.error)
            log_end_of_tape(self.request, END_OF_TAPE)
            made.response, made.answer, made.error = self.played, self.played, None
        if self.number > 1 and self.began is not None:
            status = None if made.answer is None else made.answer.status_code
            note_end(self.request, self.port.strategy, status, self.number, self.began, self.clock.now())
        history = self._history(stop)
        if made.error is not None:
            attach(made.error, history)
            self.record.rows.clear()  # they refer to errors, whose tracebacks lead to this operation
            return made.error
        response = made.response
        assert response is not None
        if response.status_code in FOLLOWED_STATUSES:
            self.facts.body.answered(response)
        if made.is_lost:
            return not_sent_error(self.request, history)
        attach(response, history)
        self.record.fill_urllib3_history(response, self.adapter._shown)
        return status_error(response, history, self.config.retry_status_codes) if self.config.raise_on_status else None

    def _history(self, stop: Stop) -> Any:
        return self.record.history(stop.reason, stop.why, self._most, self.port.strategy.gave_up)

    @property
    def _most(self) -> int | None:
        """The most requests that it sends, where that is known."""
        most: int | None = self.options.max_attempts or self.port.strategy.max_attempts
        return most


def is_played(response: Response | None) -> bool:
    """Return True for an answer that came from a tape."""
    return is_of_a_tape(getattr(getattr(response, "raw", None), "_original_response", None))


def is_of_a_tape(thing: object) -> bool:
    """Return True for what a tape plays, and for the error of one that has no answer: no outcome of a server."""
    return type(thing).__module__.partition(".")[0] in TAPES
