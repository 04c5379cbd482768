"""The operation (contract 2): takes the machine's steps for a call that is not over with its first attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import requests.exceptions
from requests import Response

from ..classifiers.outcome import Outcome
from ..classifiers.transport_faults import forget_frames, is_request_fault, never_left
from ..clock import Clock, wait_in, wait_on
from ..config.retry_options import NOTHING
from ..errors import TOO_LATE, StopReason
from ..interruptions import is_interruption
from ..observing.history import RetryHistory, attach, given_up, pieces_of
from ..observing.log import log_back, log_end_of_tape
from ..observing.recorder import Recorder
from ..wire.state import this_thread
from .endings import END_OF_TAPE, is_of_a_tape, is_played, is_raised, not_sent_error, note_end, status_error
from .held import Held
from .line import Back
from .machine import Context, Gate, decide, operation
from .plan import Call, Plan
from .policy import leaves_time
from .port import WaitEnded
from .replay import FOLLOWED_STATUSES, RequestFacts
from .scope import Scope
from .steps import Again, Ask, AskProgram, Before, Join, Noted, Pause, Place, Refused, Send, Steps, Stop

if TYPE_CHECKING:
    import threading

    from ..classifiers.fold import Classification
    from ..wire.state import Peer
    from .driver import Driver
    from .foreign import ForeignOperation

BODY_TOO_LONG = Refused(
    StopReason.QUOTA_EXCEEDED, 0.0, "the response of {service} is too long to be let go, so it cannot wait"
)


class Operation:
    """One operation in the hands of the driver: takes the machine's steps, and hands over what the last attempt got."""

    def __init__(self, driver: Driver, plan: Plan, call: Call, scope: Scope, held: Held) -> None:
        self.driver = driver
        self.plan = plan
        self.call = call
        self.scope = scope
        self.held = held
        self.facts: RequestFacts = RequestFacts(call.request, call.config, call.options, plan.vouch)
        self.recorder: Recorder = Recorder(
            call.request, scope.shown, driver.clock, call.observed, is_told=call.receives is not None
        )
        self.tried: set[tuple[str, str]] = set()
        """The addresses at which it failed, each with its origin; a retry prefers others (contract 14.5)."""
        self.number: int = 0
        """Of the last attempt, as the machine counts; 0: none was made."""
        self.began: float = driver.clock.now()
        begin = plan.begin_foreign
        self.foreign: ForeignOperation | None = None if begin is None else begin(str(scope.name))
        self.before: Before = Before()
        """The waits before the last attempt."""
        self.outcome: Outcome | None = None
        """What came of it."""
        self.decision: Again | Stop | None = None
        """What was decided about it, once that is known; ``is_noted``: and recorded."""
        self.is_noted: bool = False
        self.previous: Response | None = None
        """The answer before the last attempt, if there was one."""
        self.waits: Waits = Waits(driver.clock, plan, call)

    def run(self) -> Response:
        """Take the machine's steps to the end, and hand over the last attempt's own response or exception."""
        steps = self._steps()
        step: Any
        answer: Any = None
        this_thread.tried = self.tried
        try:
            while True:
                match step := steps.send(answer):
                    case Send():
                        answer = self._send(step)
                    case Ask():
                        answer = step.function(*step.arguments)
                    case Join():
                        answer = self._wait(step.place, step.verdict)
                    case Noted():
                        self.decision = step.decision
                        self._begin_wait(step.decision)
                        self._note(step.decision)
                    case Pause():
                        self.waits.sleep(step.seconds)
                    case AskProgram():
                        answer = step.function(*step.arguments) if self.held.release(reusable=True) else None
                        answer = answer, self.driver.clock.now()
                    case _:  # ReadOn
                        answer = self._noticed() if self.held.read_on() else None
        except StopIteration as ended:
            return self._hand_over(ended.value)
        except WaitEnded as ended:
            return self._end(ended)
        finally:
            steps.close()
            step = None
            del answer, steps  # an error's traceback refers to this frame

    def _steps(self) -> Steps:
        """Begin the operation."""
        call, scope, plan, foreign = self.call, self.scope, self.plan, self.foreign
        first, succeeded, decider, wait = None, self._succeeded, decide, 0.0
        if foreign is not None:
            succeeded, decider = foreign.succeeded, foreign.decide
            wait = foreign.first_wait(call.deadline, self.began)
        if self.held.response is not None or self.held.error is not None:
            self.number = 1
            first = self._outcome()
        elif foreign is None:
            scope.quota.began(self.began)
        verdict_listeners = tuple(partial(tell, call, scope) for tell in plan.on_verdict)
        bounds = plan.policy.bounds(call.options, None if call.time_limits is None else call.deadline)
        context = Context(plan.policy, scope.quota, succeeded, call.options, bounds, scope.name, verdict_listeners)
        remedies = tuple(filter(None, [remedy(call) for remedy in plan.remedies]))
        return operation(
            context, self.began if first is None else first.started, decider, first, self._find_gates, remedies, wait
        )

    def _find_gates(self) -> Iterator[Gate]:
        """Look for what holds back the next attempt: what was heard meanwhile may have closed a gate."""
        own = None if self.foreign is None else self.foreign.gate(self.call.deadline, self.waits)
        if own is not None:
            yield own
        for find in self.plan.gate_finders:
            gate = find(self.call, self.scope)
            if gate is not None:
                yield gate

    def _succeeded(self, *facts: Any) -> None:
        back: Back | None = self.scope.quota.succeeded(*facts)
        if back is not None:
            log_back(self.scope.name, *back)

    def _send(self, step: Send) -> Outcome | Stop:
        if not leaves_time(self.driver.clock.now(), self.call.deadline, is_first=step.number == 1):
            return self._unsent()
        self.decision, self.is_noted, self.waits.waited = None, False, 0.0
        self.number = step.number
        if step.headers is not None:
            self.facts.send_with(step.headers)
        self.before = step.before
        request = self.call.begin(step.number, self.facts.to_send)
        self.held.begin_again()
        self.driver._attempt(self.plan, self.call, self.scope, self.held, request)
        return self._outcome()

    def _unsent(self) -> Stop:
        """End the operation with what it has: the waits before an attempt took so long that it is not made."""
        decision = self.decision
        if isinstance(decision, Again):
            self.scope.quota.unsent(decision.progress)
        return Stop(StopReason.DEADLINE, TOO_LATE, None if decision is None else decision.verdict)

    def _outcome(self) -> Outcome:
        """Look at what came of the attempt that is held, and have features take it in."""
        error = self.held.error
        unwritten = error is not None and (this_thread.connecting is True or never_left(error))
        this_thread.connecting = False  # an attempt whose body made this one must not take it for its own
        self.held.examine(self.call.request)
        del error  # its traceback may refer to this frame
        return self._noticed(unwritten=unwritten)

    def _noticed(self, *, unwritten: bool = False) -> Outcome:
        """Return what came of the attempt, once features have heard of it.

        :param unwritten: no byte of its request was written.
        """
        if self.call.time_limits is not None:
            this_thread.deadline = self.call.time_limits.outer
        peer = this_thread.peer
        outcome = self.outcome = self._described(peer, unwritten=unwritten)
        for tell in () if self.held.is_success else self.plan.attempted:
            tell(self.call, outcome, peer, self.tried)
        return outcome

    def _described(self, peer: Peer | None, *, unwritten: bool) -> Outcome:
        """Describe the attempt for the machine, and prepare the request for the next one, if it may come to that."""
        held, call, clock, sent_body = self.held, self.call, self.driver.clock, self.facts.body
        error, is_success = held.error, held.is_success
        is_judged = not is_success or self.plan.policy.sees_successes or call.options.sees_successes
        return Outcome(
            error=error,
            response=held.response if error is None else None,
            request=call.request,
            attempt=self.number,
            stream=call.stream,
            sent=None if is_success or sent_body is None else sent_body.taken(),
            resend=self.facts.prepare_resend(unwritten=unwritten, is_cut=held.is_cut) if is_judged else None,
            peeked=getattr(held.peeked, "prefix", None),
            started=held.started,
            ended=clock.now(),
            wall=clock.wall(),
            allowed=None if (call.timeout, call.time_limits) == (None, None) else call.allowed,
            address=getattr(peer, "address", None),
            received=held.received,
            final=None if error is None else self._final(error),
            is_unread=held.is_unread,
            has_progressed=bool(held.brought),
            head=held.head,
        )

    def _final(self, error: Exception) -> tuple[StopReason, str] | None:
        """Return the reason for which nothing is to be decided about an error; None: there is no such reason."""
        if is_interruption(error):
            return StopReason.NOT_RETRYABLE, "the handler of a signal raised it"
        if is_request_fault(error):
            return StopReason.REQUEST_FAULT, StopReason.REQUEST_FAULT.value
        if isinstance(error, requests.exceptions.UnrewindableBodyError):
            return StopReason.BODY_NOT_REPLAYABLE, str(error)
        if self.number > 1 and is_of_a_tape(error):
            return StopReason.NOT_RETRYABLE, END_OF_TAPE
        return given_up(error)

    def _wait(self, place: Place, verdict: Classification | None) -> Any:
        """Wait in a place, with no connection. Who waits for the service has its attempt recorded first."""
        if verdict is not None:
            assert self.outcome is not None
            if not self.held.release(reusable=verdict.is_throttling):
                return BODY_TOO_LONG
            self.recorder.begin_waiting(self.outcome, self.before, verdict)
        self.waits.what = "a rate limit" if verdict is None else "the failing service"
        return wait_in(place, self.waits)

    def _begin_wait(self, decision: Again | Stop) -> None:
        """Begin the wait that follows a decision, or is forbidden: features may end the call in its place."""
        if isinstance(decision, Again):
            self.waits.begin(decision.delay, decision.source)
        elif decision.unmade is not None:
            self.waits.begin(*decision.unmade)
        elif decision.delay:
            self.waits.begin(decision.delay, "the long poll")

    def _note(self, decision: Again | Stop) -> None:
        """Record an attempt, and let go of it unless it is handed over."""
        assert self.outcome is not None
        held = self.held
        self.recorder.note(self.outcome, self.before, decision)
        self.is_noted = True
        if held.error is not None:
            self.recorder.add(pieces_of(held.response))
        if isinstance(decision, Again):
            self.previous = held.response
            # After throttling the retry may use the connection, unlike after a transient failure (contract 2.7).
            reusable = decision.verdict is not None and decision.verdict.is_throttling
            held.discard(reusable=reusable)
        else:
            response, config = held.response, self.call.config
            held.finalize(
                raises=config.raise_on_status and is_raised(response, decision.reason, config.retry_status_codes)
            )

    def _hand_over(self, stop: Stop) -> Response:
        """Return the last attempt's own response, or raise its own exception, with the record attached."""
        held, call = self.held, self.call
        if held.error is not None:
            self._replace(held.error, stop)
        history = self._history(stop, getattr(held.error, "seconds", None))
        self.outcome = self.previous = None  # an error's traceback leads to this operation, and must not lead on
        is_lost = held.is_lost or (held.response is None and held.error is None)
        if is_lost:
            held.error = not_sent_error(call.request, history)
        response: Any = held.response
        error = held.error
        if error is None:
            if response.status_code in FOLLOWED_STATUSES and self.facts.body is not None:
                self.facts.body.answered(response)
            attach(response, history)
            self.driver._fill_retries(response, self.recorder)
            if call.config.raise_on_status:
                error = held.error = status_error(response, history, call.config.retry_status_codes)
        elif not is_lost:
            attach(error, history)
        context = None if error is None else error.__context__
        try:
            return held.hand_over()  # as late as possible: until then an interruption closes it
        finally:
            if error is not None:
                # Raised while the caller handles some other exception, it would lose its own cause to that one.
                error.__context__ = context
            del error, context, response, held

    def _replace(self, error: Exception, stop: Stop) -> None:
        """Put what the caller is to get in the place of an error: the last answer of a tape, or what ended a wait."""
        held = self.held
        if stop.why == END_OF_TAPE and is_played(self.previous):
            forget_frames(error)
            log_end_of_tape(self.call.request, END_OF_TAPE)
            held.response, held.error = self.previous, None
        else:
            held.error, self.recorder.rows = _wait_ended(error), []

    def _end(self, ended: WaitEnded) -> Response:
        """Raise the exception by which a feature ends the operation in place of a wait, with the record attached."""
        held, decision = self.held, self.decision
        stop = Stop(ended.stop_reason, str(ended), None if decision is None else decision.verdict)
        if isinstance(decision, Again):
            self.scope.quota.unsent(decision.progress)
        if self.outcome is not None and not self.is_noted:
            self._note(stop)
        held.finalize(raises=True)
        history = self._history(stop, ended.seconds)
        self.outcome, self.previous, self.recorder.rows = None, None, []
        try:
            attach(ended, history)
            ended.request, ended.response = self.call.request, None if held.is_lost else held.response
            ended.__cause__, held.error = held.error, ended
            return held.hand_over()
        finally:
            del ended  # its traceback refers to this frame

    def _history(self, stop: Stop, seconds: float | None = None) -> RetryHistory:
        """Return the record of the operation, which is over.

        :param seconds: after which it is worth to call again; None: the last answer may tell.
        """
        outcome, policy, now = self.outcome, self.plan.policy, self.driver.clock.now()
        if seconds is None and outcome is not None and stop.reason is not StopReason.SUCCESS:
            asked = policy.asked(outcome, stop.verdict)
            seconds = None if asked is None else max(0.0, asked - (now - outcome.ended))
        held, call = self.held, self.call
        if self.number > 1:
            status = None if held.response is None or held.error is not None else held.response.status_code
            note_end(call.request, self.plan.strategy, status, self.number, self.began, now)
        most = call.options.max_attempts or self.plan.most_attempts
        history = self.recorder.history(stop, most, self.scope.quota.gave_up, held.error, seconds)
        self.plan.scopes.count(self.scope, history)
        return history


def _wait_ended(error: Exception | None) -> Exception | None:
    """Return the exception that ended a wait for the rest of a body, in place of that of the body; or the error."""
    causes = [getattr(part, "__cause__", None) for part in getattr(error, "args", ())]
    return next((cause for cause in causes if isinstance(cause, WaitEnded)), error)


class Waits:
    """The clock by which an operation waits: features may end each wait, or look again after a part of it."""

    def __init__(self, clock: Clock, plan: Plan, call: Call) -> None:
        self._clock, self._call = clock, call
        self._asks = plan.waits if call.options is NOTHING else plan.waits_in_blocks
        self.now: Callable[[], float] = clock.now
        self.wall: Callable[[], float] = clock.wall
        self.what: str = "the strategy"
        """Is waited for, in a phrase."""
        self.waited: float = 0.0
        """Seconds since the last attempt."""

    def begin(self, seconds: float, what: str) -> float:
        """Return the part of a wait to be made before features look again; they may end the call here."""
        self.what, part = what, seconds
        for ask in self._asks:
            part = min(part, ask(self._call, seconds, self.waited, what))
        return part

    def sleep(self, seconds: float) -> None:
        """Wait, by the end of the call at the latest."""
        time_limits = self._call.time_limits
        left = seconds if time_limits is None else time_limits.at_most(seconds)
        while left > 0:
            part = self.begin(left, self.what)
            self._clock.sleep(part)
            self.waited += part
            left -= part

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Wait with the lock released."""
        began = self._clock.now()
        wait_on(self._clock, condition, self.begin(seconds, self.what))
        self.waited += self._clock.now() - began
