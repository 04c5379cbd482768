"""The send loop (contract 2): the one place that sends and sleeps. An ``Operation`` decides what it does."""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import FrameType
from typing import Any

from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from ..clock import Clock
from ..config.max_retries import ChangedOr, ShownRetry
from ..config.retry_config import RetryConfig
from ..config.retry_options import NOTHING, OperationOptions, current_options, options_in_force, patience_given
from ..errors import RetryError
from ..observing.events import ObservedOperation
from ..observing.log import log_first_try, log_gate, may_log
from ..quotas.line import Terms
from ..strategies.first_tries import ORIGIN, BusyBesides, FirstTryHook
from ..strategies.foreign import StrategyPort
from ..strategies.protocol import RetryStrategy, rest_until_permitted
from ..wire.response import CheckedResponse
from ..wire.state import this_thread
from .attempt import NO_HOOKS, Attempt, Call, complete
from .operation import Operation, Retry, Stop
from .receiving import NOTABLE, InHand, Rest, is_plain, receive
from .replay import SIMPLE_BODIES
from .time_limits import TimeLimits

# `tuple.__new__` skips the frame that a named tuple's constructor takes.
_new: Any = tuple.__new__

NO_WAIT = (0.0, "")
"""An attempt that waited for no rate limit."""


class SendLoop(HTTPAdapter):
    """The send loop of a :class:`RetryAdapter`, which sets the attributes below."""

    retry_config: RetryConfig
    clock: Clock
    strategy: RetryStrategy
    port: StrategyPort
    listeners: Any
    _hears_attempts: bool
    _shown: ShownRetry | None = None
    _in_full: Collection[Any] | ChangedOr | bool
    _needs_operation: Collection[Any] | BusyBesides | bool
    _shut: Collection[Any]
    _unusual: Collection[Any] | bool
    _has_limits: bool
    _hears_bodies: bool
    _hook_at: Callable[[str], FirstTryHook | None]
    _by_origin: bool
    scope_of: Callable[[PreparedRequest], str]
    _heed_changes: Callable[[], bool]

    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> Response:
        """Send a request, as often as the strategy allows; the arguments are those of ``HTTPAdapter.send``.

        Nearly every send is one attempt that goes well, which needs neither a token nor an operation.
        """
        if self._in_full or request.body.__class__ not in SIMPLE_BODIES or current_options.get() is not None:
            return self._send_in_full(request, stream, timeout, {"verify": verify, "cert": cert, "proxies": proxies})
        to_send, observed = request, None
        if self._hears_attempts:
            observed = ObservedOperation(self, request, None)
            to_send = observed.begin_first()
        response: Response = None  # type: ignore[assignment]
        first = error = None
        started = self.clock.now()
        this_thread.connecting = None
        try:
            try:
                response = super().send(
                    to_send, stream=stream, timeout=timeout, verify=verify, cert=cert, proxies=proxies
                )
                is_success = response.status_code < 400
                if is_success:
                    # Another class of headers than that of requests is looked at more closely.
                    if (
                        not stream
                        and is_plain(getattr(response.headers, "_store", NOTABLE))
                        and to_send.hooks == NO_HOOKS
                    ):
                        response.content  # noqa: B018
                    else:
                        how = {"verify": verify, "cert": cert, "proxies": proxies}
                        call = self._call(request, stream, timeout, how, None, observed)
                        receive(self.go_on, response, to_send, call)
            except Exception as caught:
                error, is_success = caught, False
            if is_success:
                return self._first_try(request, response, started, timeout, observed)
            how = {"verify": verify, "cert": cert, "proxies": proxies}
            call = self._call(request, stream, timeout, how, None, observed)
            first = Attempt(started, response, error)
            response = error = observed = None  # type: ignore[assignment]
            return self._retry(call, first)
        except BaseException as stopped:
            # An interruption may come between any two steps. What was handed over or let go is not touched.
            break_off(first, response, started, stopped, observed)
            raise
        finally:
            del response, first, observed

    def _call(
        self,
        request: PreparedRequest,
        stream: bool,
        timeout: Any,
        how: dict[str, Any],
        options: OperationOptions | None,
        observed: ObservedOperation | None = None,
    ) -> Call:
        config, limits = self.retry_config, None
        if self._has_limits or (options is not None and options.deadline is not None):
            limits = TimeLimits(config, options or NOTHING, self.clock)
        if observed is None and self.listeners is not None:
            observed = ObservedOperation(self, request, options)
        timeout = config.timeout if timeout is None else timeout
        return _new(Call, (config, request, stream, timeout, how, options, limits, observed))  # type: ignore[no-any-return]

    def _send_in_full(self, request: PreparedRequest, stream: bool, timeout: Any, how: dict[str, Any]) -> Response:
        """Send in the unusual cases: options in force, limits, listeners, or a body to watch."""
        if self._shown is not None and self._heed_changes():
            # From the beginning: another policy may need less, or more.
            return SendLoop.send(self, request, stream, timeout, **how)
        options = current_options.get() and options_in_force()
        if (
            (self._unusual and self._needs_operation)
            or request.body.__class__ not in SIMPLE_BODIES
            # If this thread's attempt is a plain one, options are in force, even if they are empty.
            or (options is not None and (this_thread.plain or not options.can_wait))
        ):
            enabled = self._is_enabled(options)
            if this_thread.plain or not enabled:
                return self._send_plainly(request, enabled, stream=stream, timeout=timeout, **how)
            return self._retry(self._call(request, stream, timeout, how, options), None)
        return self._send_watched(self._call(request, stream, timeout, how, options))

    def _send_watched(self, call: Call) -> Response:
        """Send within time limits, and tell listeners; the first attempt needs no operation unless it fails."""
        made, response = Attempt(0.0), None
        request, observed = call.request, call.observed
        gate_wait = self._pass_gate(call) if self._shut else NO_WAIT
        try:
            self._attempt(made, request if observed is None else observed.begin_first(), call)
            response = made.response
            if made.error is None and response is not None and response.status_code < 400:
                if call.limits is not None and call.stream:
                    call.limits.lift(response)
                if gate_wait[0]:
                    response._retry_gate_wait = gate_wait  # type: ignore[attr-defined]
                return self._first_try(request, response, made.started, call.timeout, observed)
            return self._retry(call, made, gate_wait=gate_wait)
        except BaseException:
            made.close()  # unless it was let go or handed over
            raise
        finally:
            if call.limits is not None:
                this_thread.deadline = call.limits.outer
            # An error's traceback refers to this frame; a response in it would keep the idle connections of its pool.
            del call, observed, made, response

    def _send_plainly(self, request: PreparedRequest, enabled: bool, **how: Any) -> Response:
        """Send once, without checking whether head and body are whole (contract 10.2).

        :param enabled: this adapter is not switched off, only the one that is sending in this thread, whose body sends
            a request of its own: it is sent as ever.
        """
        outer, options = this_thread.plain, current_options.get()
        # An adapter looks closer where options are in force, even empty ones, and then sees that another one is plain.
        try:
            this_thread.plain = not enabled
            current_options.set(options or NOTHING)
            response = SendLoop.send(self, request, **how) if enabled else super().send(request, **how)
        finally:
            # First: a call might be interrupted by a signal's handler.
            this_thread.plain, this_thread.connecting = outer, False
            current_options.set(options)
        original = getattr(response.raw, "_original_response", None)
        if not enabled and isinstance(original, CheckedResponse):
            original.plain = True  # its body is read later
        return response

    def _retry(
        self,
        call: Call,
        made: Attempt | None,
        rest: InHand | None = None,
        gate_wait: tuple[float, str] = NO_WAIT,
    ) -> Response:
        """The loop: attempt, judge, wait; until there is an attempt to hand over.

        :param made: the first attempt, if it was made already, and ``gate_wait`` its wait for an announced limit.
        :param rest: the rest of a body in the caller's hands, to be asked for; ``made`` is the attempt that broke off.
        """
        operation = Operation(self, call, rest)
        operation.record.gate_wait = gate_wait
        if patience_given(self.retry_config, call.options) is not None:
            # It bounds the wait for the first attempt, too: all that is waited for a server counts from here on.
            operation.began = (self.clock.now() if made is None else made.started) - gate_wait[0]
        limits, outer = call.limits, (this_thread.deadline, this_thread.tried)
        try:
            if made is None:
                self._sleep(operation.waited[0], limits)
                refused = self._wait_for_permit(operation)
                if refused is not None:
                    raise operation.never_sent(refused)
            this_thread.tried = operation.tried
            while True:
                if made is None:
                    made = Attempt(0.0)
                    self._attempt(made, operation.begin_attempt(), call, operation.rest)
                decision = self._settle(operation, made)
                if limits is not None:
                    this_thread.deadline = limits.outer
                self._sleep(decision.wait, limits)
                stop = decision if isinstance(decision, Stop) else self._wait_for_permit(operation)
                if stop is not None:
                    return hand_over(operation, made, stop)
                made.response = made.error = None  # the tracebacks of attempts would keep them alive
                made = None
        except BaseException:
            operation.abandon()
            if made is not None:
                made.close()  # unless it was handed over
            raise
        finally:
            # A signal's handler may have raised before the attempt's own end undid it.
            this_thread.deadline, this_thread.tried = outer
            # The tracebacks of attempts refer to this frame: what it refers to would live as long as they do.
            del call, operation, made, rest

    def _settle(self, operation: Operation, made: Attempt) -> Retry | Stop:
        """Decide what follows an attempt, record it, and let go of it unless it is handed over."""
        try:
            made.examine(operation.call)
            renew = self.retry_config.on_unauthorized
            renewed = renew and operation.renew_credentials(renew, made)
            decision = renewed or operation.judge(made)
            if isinstance(decision, Stop) and made.is_unknown and made.read_rest():
                decision = operation.judge_anew(made, decision)
            if not made.is_success:
                made.blame(operation.tried)
            operation.note(made, decision)
            if isinstance(decision, Retry):
                may_be_refused = operation.port.send_permit is not None or operation.played is not None
                # After throttling the retry may use the connection, unlike after a transient failure (contract 2.7).
                keep = decision.classification is not None and decision.classification.is_throttling
                made.discard(keep=keep, may_be_refused=may_be_refused)
            else:
                made.keep(raises=self.retry_config.raise_on_status and operation.raises(made, decision))
        finally:
            del operation, made  # an error's traceback refers to this frame
        return decision

    def _wait_for_permit(self, operation: Operation) -> Stop | None:
        """Wait until the strategy permits the next attempt (contract 9); return why it does not, or None."""
        ask, token = operation.port.send_permit, operation.token
        if ask is not None and token is not None:
            try:
                operation.record.permit_wait = rest_until_permitted(
                    ask, self.strategy, token, operation.deadline, self.clock
                )
            except RetryError as refusal:
                return Stop(refusal.stop_reason, str(refusal))
        if self._shut:
            operation.record.gate_wait = self._pass_gate(operation.call, operation.waited[0], operation.began)
        return None

    def _pass_gate(self, call: Call, waited: float = 0.0, began: float | None = None) -> tuple[float, str]:
        """Wait while the server has announced that it would refuse the next attempt (contract 7.4).

        :param waited: seconds that the attempt has waited already; the server asked for both together.
        :param began: the start of the operation's first attempt, on the clock; None: this is the first.
        :returns: the seconds that it took, and the header behind it.
        """
        gates, request, limits = self.port.gates, call.request, call.limits
        if gates is None or (call.options is not None and call.options.pacing == "off"):
            return NO_WAIT
        gate = gates.of(self.scope_of(request))
        if gate is None or not gate.is_limiting:
            return NO_WAIT
        deadline, longest = None if limits is None else limits.at, self.retry_config.max_retry_after
        patience = patience_given(self.retry_config, call.options)
        if patience is not None:
            longest = min(longest, patience)
            deadline = Terms(None, patience, deadline).in_all(self.clock.now() if began is None else began)
        wait = gate.enter(deadline, max(0.0, longest - waited))
        log_gate(request, *wait)
        return wait

    def _attempt(self, made: Attempt, request: PreparedRequest, call: Call, rest: Rest | InHand | None = None) -> None:
        """Send once, and read the body if it is wanted: a cut one is this attempt's failure.

        :param made: the attempt. It is the caller's from the beginning, who closes it after an interruption.
        """
        made.started = self.clock.now()
        this_thread.connecting = None
        limits = call.limits
        try:
            allowed = call.timeout if limits is None else limits.begin(call.timeout)
            response = made.response = super().send(request, stream=call.stream, timeout=allowed, **call.how)
            if rest is not None or self._hears_bodies or not is_plain(getattr(response.headers, "_store", NOTABLE)):
                made.response = self._take(response, request, call, rest)
            elif not call.stream and response.status_code < 400:
                if limits is None and request.hooks == NO_HOOKS:
                    response.content  # noqa: B018
                else:
                    complete(response, request)
        except Exception as caught:
            made.error = caught
        except BaseException as stopped:
            break_off(made, None, made.started, stopped, call.observed)
            raise
        finally:
            del call, rest, made  # an error's traceback refers to this frame

    def _take(self, response: Response, request: PreparedRequest, call: Call, rest: Rest | InHand | None) -> Response:
        """Take a response of whose body something is to be known, or which goes on with an earlier one."""
        continued = None if rest is None else rest.receive(response)
        if continued is None and response.status_code < 400:
            receive(self.go_on, response, request, call)
        return response if continued is None else continued

    def go_on(self, call: Call, request: PreparedRequest, rest: InHand, error: Exception) -> Response:
        """Ask for the rest of a body that broke off in the caller's hands, as a retry of the call that brought it."""
        call = self._call(request, True, call.timeout, call.how, call.options)
        try:
            return self._retry(call, Attempt(self.clock.now(), None, error), rest)
        finally:
            del call, error, rest  # an error's traceback refers to this frame

    def _first_try(
        self,
        request: PreparedRequest,
        response: Response,
        started: float,
        timeout: Any,
        observed: ObservedOperation | None,
    ) -> Response:
        """Return a success that needed no operation."""
        if observed is not None:
            observed.succeeded_at_once(response, started)
        hook = self._hook_at(ORIGIN(request.url)[0]) or self._hook_of(request, response)  # type: ignore[index, arg-type]
        hook.first_try((started, timeout))
        response._retry_started = started  # type: ignore[attr-defined]
        if self._shown is not None:
            self._shown.put_into(response.raw)  # where tools look for it
        if may_log(10, True):
            log_first_try(request, response.status_code, self.clock.now() - started)
        return response

    def _hook_of(self, request: PreparedRequest, response: Response) -> FirstTryHook:
        """Return the hook for first-try successes in a request's scope, if none is remembered for its origin."""
        gates = self.port.gates
        if gates is not None:
            known = gates.known.get(ORIGIN(request.url)[0])  # type: ignore[index, arg-type]
            if known is not None and not known[0].retired:
                known[1].look(response.headers)
                return known[0]  # type: ignore[no-any-return]
        strategy: Any = self.strategy
        scope = self.scope_of(request)
        gate = None if gates is None else gates.first_look(scope, response.headers, once=not self._by_origin)
        url = str(request.url) if self._by_origin and gate is None else None
        hook: FirstTryHook = strategy.first_try_hook(scope, url)
        if self._by_origin and gates is not None and gate is not None:
            gates.remember(ORIGIN(request.url)[0], hook, gate)  # type: ignore[index, arg-type]
        return hook

    def _is_enabled(self, options: OperationOptions | None) -> bool:
        return self.retry_config.enabled and (options is None or options.enabled is not False)

    def _sleep(self, seconds: float, limits: TimeLimits | None) -> None:
        if seconds > 0:
            self.clock.sleep(seconds if limits is None else limits.at_most(seconds))


_SENDING = frozenset(
    way.__code__ for way in (SendLoop.send, SendLoop._send_watched, SendLoop._send_plainly, SendLoop._attempt)
)
_DECIDING = frozenset({SendLoop._retry.__code__, SendLoop._first_try.__code__})


def is_within_send(adapter: SendLoop, frame: FrameType | None) -> bool:
    """Return True if code runs beneath an attempt of an adapter, in this thread: between us and the connection."""
    while frame is not None:
        code = frame.f_code
        if (code in _SENDING or code in _DECIDING) and frame.f_locals["self"] is adapter:
            return code in _SENDING
        frame = frame.f_back
    return False


def break_off(
    made: Attempt | None,
    response: Response | None,
    started: float,
    stopped: BaseException,
    observed: ObservedOperation | None,
) -> None:
    """Clean up after an attempt that ended in an interruption, and tell listeners, unless they know of its end."""
    this_thread.connecting = False
    made = made or Attempt(started, response)
    made.close()
    if observed is not None and not observed.is_over:
        observed.interrupted(stopped, started)


def hand_over(operation: Operation, last: Attempt, stop: Stop) -> Response:
    """Return the last attempt's own response, or raise its own exception."""
    error, response = operation.finish(last, stop), last.response
    context = None if error is None else error.__context__
    try:
        last.response = last.error = None  # as late as possible: until then an interruption closes it
        if error is not None:
            raise error
        assert response is not None
        return response
    finally:
        if error is not None:
            # Raised while the caller handles some other exception, it would lose its own cause to that one.
            error.__context__ = context
        del error, context, operation, response, last
