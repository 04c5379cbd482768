"""The driver (contract 2): it carries out what the machine decides.

It alone sends, outside :mod:`~requests_smithy_retry.wire`, and it makes the waits. :mod:`~.held` closes for it, and
:mod:`~requests_smithy_retry.observing.recorder` tells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from logging import DEBUG
from typing import Any

from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from ..clock import Clock
from ..config.retry_config import RetryConfig
from ..config.retry_options import NOTHING, OperationOptions, current_options
from ..observing.events import ObservedOperation
from ..observing.history import AttemptRecord
from ..observing.log import log_attempt, log_back, logger
from ..observing.recorder import Recorder
from ..urls import ORIGIN
from ..wire.response import CheckedResponse
from ..wire.state import read_part, this_thread
from .held import Held, complete
from .operation import Operation
from .plan import Call, Plan
from .replay import SIMPLE_BODIES
from .scope import MOST_SCOPES, OVERFLOW, Scope
from .server_hints import names_in
from .strategy import RetryStrategy
from .time_limits import TimeLimits


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
        if not plan.config.enabled or options.enabled is False:
            return self._send_once(request, stream, timeout, how)
        if this_thread.retries_off:
            return self._send_for_a_body(request, stream, timeout, how)
        time_limits, observed = None, None
        if plan.is_special or options.deadline is not None:
            time_limits, observed, timeout = self._special(plan, request, timeout, options)
        call = Call(plan.config, request, stream, timeout, how, options, time_limits, observed, {})
        held, scope = Held(stream, time_limits), self._scope(plan, request)
        try:
            if self._begins_at_once(plan, call, scope) and self._attempt(
                plan, call, scope, held, call.begin(1, request)
            ):
                return self._hand_over_at_once(plan, call, scope, held)
            return self._operate(plan, call, scope, held)
        except BaseException as stopped:
            self._break_off(call, held, stopped)
            raise
        finally:
            if time_limits is not None:
                this_thread.deadline = time_limits.outer
            # An error's traceback refers to this frame; a response in it would keep the idle connections of its pool.
            del call, held, request

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

    def _begins_at_once(self, plan: Plan, call: Call, scope: Scope) -> bool:
        """Return True if the first attempt may be sent as it is, without the machine: it has nothing to wait for."""
        deadline = call.options.deadline
        is_simple = (
            plan.begins_at_once
            and call.options.can_wait
            and call.request.body.__class__ in SIMPLE_BODIES
            and (deadline is None or deadline.left() > 0)
        )
        if not is_simple:
            return False
        for find in plan.gate_finders:
            gate = find(call, scope)
            if gate is not None and not gate.is_open(self.clock.now()):
                return False
        return True

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
            running = Operation(self, plan, call, scope, held)
            outer = this_thread.tried
            try:
                return running.run()
            finally:
                this_thread.tried = outer
                del running, call, held

    def _send_once(self, request: PreparedRequest, stream: bool, timeout: Any, how: dict[str, Any]) -> Response:
        """Send once, without checking whether head and body are whole (contract 10.2)."""
        outer = this_thread.retries_off, this_thread.sender
        try:
            this_thread.retries_off, this_thread.sender = True, self
            response = super().send(request, stream=stream, timeout=timeout, **how)
        finally:
            this_thread.retries_off, this_thread.sender = outer
            this_thread.connecting = False
        original = getattr(response.raw, "_original_response", None)
        if isinstance(original, CheckedResponse):
            original.retries_off = True  # its body is read later
        return response

    def _send_for_a_body(self, request: PreparedRequest, stream: bool, timeout: Any, how: dict[str, Any]) -> Response:
        """Send with retries what the body of a request sends that goes out without them."""
        outer = this_thread.retries_off, this_thread.sender
        try:
            this_thread.retries_off, this_thread.sender = False, None
            return self.send(request, stream=stream, timeout=timeout, **how)
        finally:
            this_thread.retries_off, this_thread.sender = outer
            this_thread.connecting = False

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
