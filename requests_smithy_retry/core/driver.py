"""The driver (contract 2): it carries out what the machine decides.

It alone sends, outside :mod:`~requests_smithy_retry.wire`, and it makes the waits. :mod:`~.held` closes for it, and
:mod:`~requests_smithy_retry.observing.recorder` tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from logging import DEBUG
from typing import TYPE_CHECKING, Any

import requests.exceptions
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from ..classifiers.outcome import Outcome
from ..classifiers.transport_faults import forget_frames, is_request_fault, never_left
from ..clock import Clock, wait_in, wait_on
from ..config.retry_config import RetryConfig
from ..config.retry_options import NOTHING, OperationOptions, current_options
from ..errors import StopReason
from ..interruptions import is_interruption
from ..observing.events import ObservedOperation
from ..observing.history import AttemptRecord, RetryHistory, attach, given_up, pieces_of
from ..observing.log import log_attempt, log_back, log_end_of_tape, logger
from ..observing.recorder import Recorder
from ..urls import ORIGIN
from ..wire.response import CheckedResponse
from ..wire.state import read_part, this_thread
from .endings import END_OF_TAPE, is_of_a_tape, is_played, is_raised, not_sent_error, note_end, status_error
from .held import Held, complete
from .line import Back
from .machine import Context, Gate, decide, operation
from .plan import Call, Plan
from .port import WaitEnded
from .replay import FOLLOWED_STATUSES, SIMPLE_BODIES, RequestFacts
from .scope import MOST_SCOPES, OVERFLOW, Scope
from .server_hints import names_in
from .steps import Again, Ask, AskProgram, Before, Join, Noted, Pause, Place, Refused, Send, Steps, Stop
from .strategy import RetryStrategy
from .time_limits import TimeLimits

if TYPE_CHECKING:
    import threading

    from ..classifiers.fold import Classification

BODY_TOO_LONG = Refused(
    StopReason.QUOTA_EXCEEDED, 0.0, "the response of {service} is too long to be let go, so it cannot wait"
)


class Driver(HTTPAdapter):
    """Sends by a :class:`Plan`, which the adapter makes."""

    clock: Clock
    plan: Plan
    listeners: Any
    retry_config: RetryConfig
    strategy: RetryStrategy
    scope_of: Callable[[PreparedRequest], str]

    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> Response:
        """Send a request, as often as the policy allows; the arguments are those of ``HTTPAdapter.send``."""
        how = {"verify": verify, "cert": cert, "proxies": proxies}
        plan, options = self.plan, current_options.get()
        if plan.shown is not None:
            plan = self._plan_now()
        if not plan.config.enabled or options.enabled is False or this_thread.retries_off:
            return self._send_once(plan, request, stream, timeout, how, options)
        time_limits, observed = None, None
        if plan.is_special or options.deadline is not None:
            time_limits, observed, timeout = self._special(plan, request, timeout, options)
        call = Call(plan.config, request, stream, timeout, how, options, time_limits, observed, {})
        held, scope, first = Held(stream, time_limits), self._scope(plan, request), None
        try:
            first = self._first_request(plan, call, scope)
            if first is not None and self._attempt(plan, call, scope, held, first):
                return self._hand_over_at_once(plan, call, scope, held)
            return self._operate(plan, call, scope, held)
        except BaseException as stopped:
            self._break_off(call, held, stopped)
            raise
        finally:
            if time_limits is not None:
                this_thread.deadline = time_limits.outer
            # An error's traceback refers to this frame; a response in it would keep the idle connections of its pool.
            del call, held, request, first

    def _plan_now(self) -> Plan:
        """Return the plan in force. Only a feature that shows what urllib3 calls a ``Retry`` makes another one."""
        return self.plan

    def _special(
        self, plan: Plan, request: PreparedRequest, timeout: Any, options: OperationOptions
    ) -> tuple[TimeLimits | None, ObservedOperation | None, Any]:
        """Return the time limits of a call that begins now, the call as listeners see it, and its time-out."""
        config, time_limits, observed = plan.config, None, None
        if (config.operation_timeout, config.operation_attempt_timeout, options.deadline) != (None, None, None):
            time_limits = TimeLimits(config, options, self.clock)
        if plan.listeners is not None:
            observed = ObservedOperation(self, request, options)
        return time_limits, observed, config.timeout if timeout is None else timeout

    def _scope(self, plan: Plan, request: PreparedRequest) -> Scope:
        """Return the scope of a request. Where scopes are origins, it is found by the beginning of the URL."""
        known = plan.by_origin
        if known is None:
            return plan.scopes.get(self.scope_of(request))
        origin = ORIGIN(request.url)[0]  # type: ignore[arg-type, index]
        scope = known.get(origin)
        if scope is None or scope.is_retired:
            scope = plan.scopes.get(self.scope_of(request))
            if scope.name != OVERFLOW:
                if len(known) >= MOST_SCOPES:
                    known.clear()
                known[origin] = scope
        return scope

    def _first_request(self, plan: Plan, call: Call, scope: Scope) -> PreparedRequest | None:
        """Return the request for the first attempt; None: the machine has to be asked before it is sent."""
        deadline = call.options.deadline
        is_simple = (
            plan.begins_at_once
            and call.options.can_wait
            and call.request.body.__class__ in SIMPLE_BODIES
            and (deadline is None or deadline.left() > 0)
        )
        for find in plan.gate_finders if is_simple else ():
            gate = find(call, scope)
            if gate is not None and not gate.is_open(self.clock.now()):
                return None
        if not is_simple:
            return None
        return call.request if call.observed is None else call.observed.begin(1, call.request)

    def _attempt(self, plan: Plan, call: Call, scope: Scope, held: Held, request: PreparedRequest) -> bool:
        """Send once, and read the body if it is wanted: a cut one is this attempt's failure. True: it is a success.

        :param held: has what came of it, from the first moment on.
        :param request: to be sent.
        """
        held.started = scope.used_at = self.clock.now()
        this_thread.connecting = this_thread.peer = None
        time_limits, outer, is_success = call.time_limits, this_thread.sender, False
        try:
            this_thread.sender = self
            allowed = call.timeout if time_limits is None else time_limits.begin(call.timeout)
            response = held.response = super().send(request, stream=call.stream, timeout=allowed, **call.how)
            hears = plan.hears if call.options is NOTHING else None
            if hears is None or scope.parts or not hears.isdisjoint(names_in(response.headers)):
                for receive in plan.received:
                    receive(self, call, request, response, scope)
            if call.receives is not None:
                call.receives(response)
            if response.status_code < 400:
                if not call.stream:
                    complete(response, request)
                is_success = True
        except Exception as error:
            held.error = error
        finally:
            this_thread.sender = outer
            del request, call  # an error's traceback refers to this frame
        return is_success

    def _fill_retries(self, response: Response, recorder: Recorder | None = None) -> None:
        """Have a response refer to the attempts before it, where tools look for those of urllib3 (contract 11.2).

        Nothing is done here: that is the part of the feature on which the adapter is built, if it is there.
        """

    def _hand_over_at_once(self, plan: Plan, call: Call, scope: Scope, held: Held) -> Response:
        """Return the success of a first attempt."""
        response, started = held.response, held.started
        assert response is not None
        if call.time_limits is not None and call.stream:
            call.time_limits.lift(response)
        if call.observed is not None:
            call.observed.succeeded_at_once(response, started)
        now = self.clock.now()
        next(scope.tally.at_once)
        back = scope.quota.first_try(now, now - started, None if call.timeout is None else read_part(call.timeout))
        if back is not None:
            log_back(scope.name, *back)
        response._retry_started = started  # type: ignore[attr-defined]
        if plan.shown is not None:
            self._fill_retries(response)
        if logger.isEnabledFor(DEBUG):
            log_attempt(call.request, AttemptRecord(1, 0.0, now - started, response.status_code))
        return response  # ``held`` still has it, so an interruption on the way closes it

    def _operate(self, plan: Plan, call: Call, scope: Scope, held: Held) -> Response:
        """Drive the machine until there is an attempt to hand over.

        :param held: has the first attempt, if that was made.
        """
        # There may be room by now for one that had to share the last one.
        name = self.scope_of(call.request) if scope.name == OVERFLOW else scope.name
        with plan.scopes.use(name) as scope:
            running = _Operation(self, plan, call, scope, held)
            outer = this_thread.tried
            try:
                return running.run()
            finally:
                this_thread.tried = outer
                del running, call, held

    def _send_once(
        self,
        plan: Plan,
        request: PreparedRequest,
        stream: bool,
        timeout: Any,
        how: dict[str, Any],
        options: OperationOptions,
    ) -> Response:
        """Send once, without checking whether head and body are whole (contract 10.2).

        Where this adapter is not switched off, only the one that is sending in this thread, whose body sends a request
        of its own, that is sent as ever.
        """
        is_enabled = plan.config.enabled and options.enabled is not False
        outer = this_thread.retries_off, this_thread.sender
        try:
            this_thread.retries_off = not is_enabled
            this_thread.sender = None if is_enabled else self
            send = self.send if is_enabled else super().send
            response = send(request, stream=stream, timeout=timeout, **how)
        finally:
            this_thread.retries_off, this_thread.sender = outer
            this_thread.connecting = False
        original = getattr(response.raw, "_original_response", None)
        if not is_enabled and isinstance(original, CheckedResponse):
            original.retries_off = True  # its body is read later
        return response

    def _break_off(self, call: Call, held: Held, stopped: BaseException) -> None:
        """Clean up after an interruption, and tell listeners of an attempt of whose end they have not heard."""
        this_thread.connecting = False
        is_under_way = held.response is not None or held.error is not None
        held.close()
        observed = call.observed
        if observed is not None and observed.is_under_way:
            observed.interrupted(stopped, held.started if is_under_way or held.started else None)

    def go_on(
        self,
        call: Call,
        request: PreparedRequest,
        receives: Callable[[Response], object],
        error: Exception,
        brought: int,
    ) -> Response:
        """Go on with a body that broke off, as a retry of the call that brought it.

        :param request: for the rest.
        :param receives: takes in the answer.
        :param error: of the body that broke off.
        :param brought: the bytes that came before over the connection that broke off.
        """
        plan, outer = self.plan, (this_thread.deadline, this_thread.connecting, this_thread.peer)
        time_limits, observed, _ = self._special(plan, request, call.timeout, call.options)
        # A body in its reader's hands has time of its own; any other one has that of its attempt.
        time_limits = time_limits if call.stream else call.time_limits
        again = replace(
            call,
            config=plan.config,
            request=request,
            stream=True,
            time_limits=time_limits,
            observed=observed,
            receives=receives,
        )
        held = Held(True, time_limits)
        held.started, held.error, held.brought = self.clock.now(), error, brought
        try:
            return self._operate(plan, again, self._scope(plan, call.request), held)
        except BaseException as stopped:
            self._break_off(again, held, stopped)
            raise
        finally:
            this_thread.deadline, this_thread.connecting, this_thread.peer = outer
            if time_limits is not None and not call.stream:
                this_thread.deadline = time_limits.bound  # the body is read on
            del call, again, held, error  # an error's traceback refers to this frame


class _Operation:
    """One operation in the hands of the driver: the machine's steps, taken."""

    def __init__(self, driver: Driver, plan: Plan, call: Call, scope: Scope, held: Held) -> None:
        self.driver = driver
        self.plan = plan
        self.call = call
        self.scope = scope
        self.held = held
        self.facts = RequestFacts(call.request, call.config, call.options, plan.vouch)
        self.recorder = Recorder(
            call.request, scope.shown, driver.clock, call.observed, is_told=call.receives is not None
        )
        self.tried: set[tuple[str, str]] = set()
        """The addresses at which it failed, each with its origin; a retry prefers others (contract 14.5)."""
        self.number = 0
        """Of the last attempt, as the machine counts; 0: none was made."""
        self.began = driver.clock.now()
        self.foreign = None if plan.begin_foreign is None else plan.begin_foreign(str(scope.name))
        self.before = Before()
        """The waits before the last attempt."""
        self.outcome: Outcome | None = None
        """What came of it."""
        self.decision: Again | Stop | None = None
        """What was decided about it, once that is known; ``is_noted``: and recorded."""
        self.is_noted = False
        self.previous: Response | None = None
        """The answer before the last attempt, if there was one."""
        self.waits = _Waits(driver.clock, plan, call)

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
                        self._act_on(step.decision)
                    case Pause():
                        self.waits.sleep(step.seconds)
                    case AskProgram():
                        answer = step.function(*step.arguments) if self.held.release(reusable=True) else None
                        answer = answer, self.driver.clock.now()
                    case _:  # ReadOn
                        answer = self._tell() if self.held.read_on() else None
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

    def _send(self, step: Send) -> Outcome:
        self.decision, self.is_noted, self.waits.waited = None, False, 0.0
        self.number = step.number
        if step.headers is not None:
            self.facts.send_with(step.headers)
        self.before, request, observed = step.before, self.facts.to_send, self.call.observed
        if observed is not None:
            request = observed.begin(step.number, request)
        self.held.begin_again()
        self.driver._attempt(self.plan, self.call, self.scope, self.held, request)
        return self._outcome()

    def _outcome(self) -> Outcome:
        """Look at what came of the attempt that is held."""
        error = self.held.error
        unwritten = error is not None and (this_thread.connecting is True or never_left(error))
        this_thread.connecting = False  # an attempt whose body made this one must not take it for its own
        self.held.examine(self.call.request)
        del error  # its traceback may refer to this frame
        return self._tell(unwritten=unwritten)

    def _tell(self, *, unwritten: bool = False) -> Outcome:
        """Tell features, and then the machine, what came of the attempt that is held.

        :param unwritten: no byte of its request was written.
        """
        held, call, clock, peer = self.held, self.call, self.driver.clock, this_thread.peer
        error, is_success, sent_body = held.error, held.is_success, self.facts.body
        if call.time_limits is not None:
            this_thread.deadline = call.time_limits.outer
        is_judged = not is_success or self.plan.policy.sees_successes or call.options.sees_successes
        outcome = self.outcome = Outcome(
            error=error,
            response=held.response if error is None else None,
            request=call.request,
            attempt=self.number,
            stream=call.stream,
            sent=None if is_success or sent_body is None else sent_body.taken(),
            resend=self.facts.resend(unwritten=unwritten, is_cut=held.is_cut) if is_judged else None,
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
        for tell in () if is_success else self.plan.attempted:
            tell(call, outcome, peer, self.tried)
        return outcome

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

    def _act_on(self, decision: Again | Stop) -> None:
        """Record a decision. Features may end the call in place of the wait that follows, or is forbidden."""
        self.decision = decision
        if isinstance(decision, Again):
            self.waits.begin(decision.delay, decision.source)
        elif decision.unmade is not None:
            self.waits.begin(*decision.unmade)
        elif decision.delay:
            self.waits.begin(decision.delay, "the long poll")
        self._note(decision)

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


class _Waits:
    """The clock by which an operation waits: features may end each wait, or look again after a part of it."""

    def __init__(self, clock: Clock, plan: Plan, call: Call) -> None:
        self._clock, self._call = clock, call
        self._asks = plan.waits if call.options is NOTHING else plan.waits_in_blocks
        self.now, self.wall = clock.now, clock.wall
        self.what = "the strategy"
        """Is waited for, in a phrase."""
        self.waited = 0.0
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
