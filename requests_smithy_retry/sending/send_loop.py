"""The send loop (contract 2): the one place that sends and sleeps. An ``Operation`` decides what it does."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from types import FrameType
from typing import Any

from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from ..clock import Clock
from ..config.max_retries import ChangedOr, ShownRetry
from ..config.retry_config import RetryConfig
from ..config.retry_options import NOTHING, OperationOptions, current_options, options_in_force
from ..errors import RetryError
from ..observing.events import ObservedOperation
from ..observing.log import log_first_try, log_gate, may_log
from ..strategies.first_tries import ORIGIN, BusyBesides, FirstTryHook
from ..strategies.foreign import StrategyPort
from ..strategies.protocol import RetryStrategy, rest_until_permitted
from ..wire.state import this_thread
from .attempt import NO_HOOKS, Attempt, complete
from .continuing import InHand, Rest
from .credentials import Credentials
from .nested_retries import recognise
from .operation import Operation, Retry, Stop
from .plain import send_plainly, send_within
from .receiving import is_plain, receive, unless_of_odd_headers
from .replay import SIMPLE_BODIES
from .time_limits import TimeLimits

NO_WAIT = (0.0, "")
"""An attempt that waited for no rate limit."""
NO_BOUNDS = (None, NO_WAIT)
"""An operation without time limits, whose first attempt waited for no rate limit."""


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
    credentials: Credentials | None
    _watches_bodies: bool
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
        """Send a request, as often as the strategy allows; the arguments are those of ``HTTPAdapter.send``."""
        if self._in_full or request.body.__class__ not in SIMPLE_BODIES or current_options.get() is not None:
            return self._send_in_full(request, stream, timeout, verify=verify, cert=cert, proxies=proxies)
        if not self._hears_attempts:
            return self._send_once(request, request, None, stream, timeout, verify, cert, proxies)
        observed = ObservedOperation(self, request, None)
        return self._send_once(observed.begin_first(), request, observed, stream, timeout, verify, cert, proxies)

    def _send_once(
        self,
        to_send: PreparedRequest,
        request: PreparedRequest,
        observed: ObservedOperation | None,
        stream: bool,
        timeout: Any,
        verify: Any,
        cert: Any,
        proxies: Any,
    ) -> Response:
        """Make nearly every send: one attempt that goes well, which needs neither a token nor an operation."""
        response = first = None
        error: Exception | None
        started = self.clock.now()
        this_thread.connecting = None
        try:
            try:
                response = super().send(
                    to_send, stream=stream, timeout=timeout, verify=verify, cert=cert, proxies=proxies
                )
                if response.status_code < 400:
                    if not stream and is_plain(response.headers._store) and to_send.hooks == NO_HOOKS:
                        response.content  # noqa: B018
                    else:
                        how = {"timeout": timeout, "verify": verify, "cert": cert, "proxies": proxies}
                        receive(self, response, to_send, None, preload=not stream, **how)
            except Exception as caught:
                how = {"timeout": timeout, "verify": verify, "cert": cert, "proxies": proxies}
                error = unless_of_odd_headers(caught, self, response, to_send, None, preload=not stream, **how)
            else:
                if response.status_code < 400:
                    return self._first_try(request, response, started, timeout, observed)
                error = None
            first = Attempt(started, response, error)
            response = error = None
            operation = self._operation(request, stream, None, first, observed)
            return self._retry(operation, first, timeout, verify=verify, cert=cert, proxies=proxies)
        except BaseException as stopped:
            # An interruption may come between any two steps. What was handed over or let go is not touched.
            drop(response, first, stopped, started, observed)
            raise
        finally:
            del response, first, observed

    def _send_in_full(self, request: PreparedRequest, stream: bool, timeout: Any, **how: Any) -> Response:
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
            return self._send_by_operation(request, stream, timeout, options, **how)
        return self._send_watched(request, stream, timeout, options, **how)

    def _send_watched(
        self, request: PreparedRequest, stream: bool, timeout: Any, options: OperationOptions | None, **how: Any
    ) -> Response:
        """Send within time limits, and tell listeners; the first attempt needs no operation unless it fails."""
        config, made = self.retry_config, Attempt(0.0)
        response: Response | None = None
        timeout = config.timeout if timeout is None else timeout
        preload = not stream and config.preload_content
        observed = ObservedOperation(self, request, options) if self._hears_attempts else None
        limits, gate_wait = self._enter(request, options)
        outer = this_thread.deadline
        try:
            to_send = request if observed is None else observed.begin_first()
            self._attempt(made, to_send, stream, timeout, preload, options, limits, observed, **how)
            response = made.response
            if made.error is None and response is not None and response.status_code < 400:
                if limits is not None and not preload:
                    limits.lift(response)
                if gate_wait[0]:
                    response._retry_gate_wait = gate_wait  # type: ignore[attr-defined]
                return self._first_try(request, response, made.started, timeout, observed)
            return self._retry(
                self._operation(request, stream, options, made, observed, limits, gate_wait), made, timeout, **how
            )
        except BaseException:
            made.close()  # unless it was let go or handed over
            raise
        finally:
            this_thread.deadline = outer
            # An error's traceback refers to this frame; a response in it would keep the idle connections of its pool.
            del observed, made, response

    def _send_by_operation(
        self, request: PreparedRequest, stream: bool, timeout: Any, options: OperationOptions | None, **how: Any
    ) -> Response:
        """Send with an operation from the first attempt on."""
        if this_thread.plain or not self._is_enabled(options):
            plain, ours = super().send, functools.partial(SendLoop.send, self)
            with_, send = (send_within, ours) if self._is_enabled(options) else (send_plainly, plain)
            return with_(send, request, stream=stream, timeout=timeout, **how)
        timeout = self.retry_config.timeout if timeout is None else timeout
        return self._retry(self._admitted(request, stream, options), None, timeout, **how)

    def _admitted(self, request: PreparedRequest, stream: bool, options: OperationOptions | None) -> Operation:
        """Return an operation whose first attempt may be made now."""
        operation = self._operation(request, stream, options)
        self._sleep(operation.waited[0], operation.limits)
        refused = self._wait_for_permit(operation)
        if refused is not None:
            raise operation.never_sent(refused)
        return operation

    def _retry(self, operation: Operation, made: Attempt | None, timeout: Any, **how: Any) -> Response:
        """The loop: attempt, judge, wait; until there is an attempt to hand over."""
        observed, outer = None, (this_thread.deadline, this_thread.tried)
        try:
            this_thread.tried = operation.tried
            while True:
                if made is None:
                    request, observed = operation.begin_attempt(), operation.observed
                    made = Attempt(0.0)
                    self._attempt(
                        made,
                        request,
                        operation.stream,
                        timeout,
                        operation.preload,
                        operation.options,
                        operation.limits,
                        observed,
                        operation.rest,
                        **how,
                    )
                decision = self._settle(operation, made)
                self._sleep(decision.wait, operation.limits)
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
            del operation, made, observed

    def _settle(self, operation: Operation, made: Attempt) -> Retry | Stop:
        """Decide what follows an attempt, record it, and let go of it unless it is handed over."""
        try:
            made.examine(operation.request, operation.limits, preload=operation.preload)
            renewed = self.credentials and operation.renew_credentials(self.credentials, made)
            decision = renewed or operation.judge(made)
            if isinstance(decision, Stop) and made.read_rest(operation.limits):
                decision = operation.judge_anew(made, decision)
            if not made.is_success:
                made.blame(operation.tried)
            operation.tell_gate(made, decision.classification)
            operation.note(made, decision)
            if isinstance(decision, Retry):
                may_be_refused = operation.port.send_permit is not None or operation.played is not None
                # After throttling the retry may use the connection, unlike after a transient failure (contract 2.7).
                keep = decision.classification is not None and decision.classification.is_throttling
                made.discard(operation.limits, keep=keep, may_be_refused=may_be_refused)
            else:
                raises = self.retry_config.raise_on_status and operation.raises(made, decision)
                made.keep(operation.limits, raises=raises)
        finally:
            operation.limits.end()
            del operation, made  # an error's traceback refers to this frame
        return decision

    def _wait_for_permit(self, operation: Operation) -> Stop | None:
        """Wait until the strategy permits the next attempt (contract 9); return why it does not, or None."""
        ask, token = operation.port.send_permit, operation.token
        if ask is not None and token is not None:
            try:
                operation.record.permit_wait = rest_until_permitted(
                    ask, self.strategy, token, operation.limits.at, self.clock
                )
            except RetryError as refusal:
                return Stop(refusal.stop_reason, str(refusal))
        operation.record.gate_wait = self._pass_gate(
            operation.request, operation.options, operation.limits, operation.waited[0]
        )
        return None

    def _pass_gate(
        self,
        request: PreparedRequest,
        options: OperationOptions | None,
        limits: TimeLimits | None,
        waited: float = 0.0,
    ) -> tuple[float, str]:
        """Wait while the server has announced that it would refuse the next attempt (contract 7.4).

        :param limits: have the operation's deadline, or None.
        :param waited: seconds that the attempt has waited already; the server asked for both together.
        :returns: the seconds that it took, and the header behind it.
        """
        if not self._shut:
            return NO_WAIT
        gates = self.port.gates
        if gates is None or (options is not None and options.pacing == "off"):
            return NO_WAIT
        gate = gates.of(self.scope_of(request))
        if gate is None or not gate.is_limiting:
            return NO_WAIT
        deadline = None if limits is None else limits.at
        wait = gate.enter(deadline, max(0.0, self.retry_config.max_retry_after - waited))
        log_gate(request, *wait)
        return wait

    def _attempt(
        self,
        made: Attempt,
        request: PreparedRequest,
        stream: bool,
        timeout: Any,
        preload: bool,
        options: OperationOptions | None,
        limits: TimeLimits | None,
        observed: ObservedOperation | None,
        rest: Rest | InHand | None = None,
        **how: Any,
    ) -> None:
        """Send once, and read the body if it is wanted: a cut one is this attempt's failure.

        :param made: the attempt. It is the caller's from the beginning, who closes it after an interruption.
        """
        made.started = self.clock.now()
        this_thread.connecting = None
        try:
            allowed = timeout if limits is None else limits.begin(timeout)
            response = made.response = super().send(request, stream=stream, timeout=allowed, **how)
            if rest is not None or self._watches_bodies or not is_plain(response.headers._store):
                how["timeout"] = timeout
                made.response = self._take(response, request, preload, options, limits, observed, rest, how)
            elif preload and response.status_code < 400:
                if limits is None and request.hooks == NO_HOOKS:
                    response.content  # noqa: B018
                else:
                    complete(response, request)
        except Exception as caught:
            how["timeout"] = timeout
            made.error = unless_of_odd_headers(caught, self, made.response, request, options, preload=preload, **how)
        except BaseException as stopped:
            break_off(made, stopped, limits, observed)
            raise
        finally:
            del observed, rest, made  # an error's traceback refers to this frame

    def _take(
        self,
        response: Response,
        request: PreparedRequest,
        preload: bool,
        options: OperationOptions | None,
        limits: TimeLimits | None,
        observed: ObservedOperation | None,
        rest: Rest | InHand | None,
        how: dict[str, Any],
    ) -> Response:
        """Take a response of whose body something is to be known, or which goes on with an earlier one."""
        if limits is not None:
            limits.watch_for_stalls(response)
        continued = None if rest is None else rest.receive(response)
        if continued is None and response.status_code < 400:
            heard = None if observed is None else observed.heard
            receive(self, response, request, options, preload=preload, heard=heard, **how)
        return response if continued is None else continued

    def go_on(
        self,
        request: PreparedRequest,
        rest: InHand,
        error: Exception,
        /,
        *,
        timeout: Any,
        options: OperationOptions | None,
        **how: Any,
    ) -> Response:
        """Ask for the rest of a body that broke off in the caller's hands, as a retry of what brought it so far."""
        made = Attempt(self.clock.now(), None, error)
        operation = self._operation(request, True, options, made)
        operation.rest, operation.record.is_told = rest, True
        try:
            return self._retry(operation, made, timeout, **how)
        finally:
            del operation, made, error, rest  # an error's traceback refers to this frame

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
        if self._shown is not None or may_log(10, True):
            self._show_first_try(request, response, started)
        return response

    def _show_first_try(self, request: PreparedRequest, response: Response, started: float) -> None:
        """Put the ``Retry`` where tools look for it."""
        if self._shown is not None:
            self._shown.put_into(response.raw)
        if may_log(10, True):
            log_first_try(request, response.status_code, self.clock.now() - started)

    def _hook_of(self, request: PreparedRequest, response: Response) -> FirstTryHook:
        """Return the hook for first-try successes in a request's scope, if none is remembered for its origin."""
        gates = self.port.gates
        if gates is not None:
            known = gates.known.get(ORIGIN(request.url)[0])  # type: ignore[index, arg-type]
            if known is not None and not known[0].retired:
                known[1].look(response.headers)
                return known[0]  # type: ignore[no-any-return]
        try:
            strategy: Any = self.strategy
            scope = self.scope_of(request)
            gate = None if gates is None else gates.first_look(scope, response.headers, once=not self._by_origin)
            url = str(request.url) if self._by_origin and gate is None else None
            hook: FirstTryHook = strategy.first_try_hook(scope, url)
            if self._by_origin and gates is not None and gate is not None:
                gates.remember(ORIGIN(request.url)[0], hook, gate)  # type: ignore[index, arg-type]
        except BaseException:
            response.close()  # a bug in the caller's function for the scope
            raise
        return hook

    def _enter(
        self, request: PreparedRequest, options: OperationOptions | None
    ) -> tuple[TimeLimits | None, tuple[float, str]]:
        """Return the limits of an operation, and the wait for an announced limit that its first attempt had to make."""
        limits = None
        if self._has_limits or options is not None:
            limits = TimeLimits(self.retry_config, options or NOTHING, self.clock)
        elif not self._shut:
            return NO_BOUNDS
        return limits, self._pass_gate(request, options, limits)

    def _is_enabled(self, options: OperationOptions | None) -> bool:
        if options is not None and options.enabled is not None:
            return options.enabled and self.retry_config.enabled
        return self.retry_config.enabled

    def _operation(
        self,
        request: PreparedRequest,
        stream: bool,
        options: OperationOptions | None,
        first: Attempt | None = None,
        observed: ObservedOperation | None = None,
        limits: TimeLimits | None = None,
        gate_wait: tuple[float, str] | None = None,
    ) -> Operation:
        try:
            operation = Operation(self, request, stream, options, observed, limits)
        except BaseException:
            if first is not None:
                first.close()
            raise
        if gate_wait is not None:
            operation.record.gate_wait = gate_wait
        return operation

    def _sleep(self, seconds: float, limits: TimeLimits) -> None:
        if seconds > 0:
            self.clock.sleep(limits.at_most(seconds))


recognise(SendLoop.send.__code__, SendLoop._settle.__code__)

_SENDING = frozenset(
    way.__code__
    for way in (
        SendLoop.send,
        SendLoop._send_once,
        SendLoop._send_watched,
        SendLoop._send_by_operation,
        SendLoop._attempt,
    )
)
_DECIDING = frozenset(
    {SendLoop._retry.__code__, SendLoop._first_try.__code__, SendLoop._operation.__code__, SendLoop._hook_of.__code__}
)


def is_within_send(adapter: SendLoop, frame: FrameType | None) -> bool:
    """Return True if code runs beneath an attempt of an adapter, in this thread: between us and the connection."""
    while frame is not None:
        code = frame.f_code
        if (code in _SENDING or code in _DECIDING) and frame.f_locals["self"] is adapter:
            return code in _SENDING
        frame = frame.f_back
    return False


def drop(
    response: Response | None,
    made: Attempt | None,
    stopped: BaseException,
    started: float,
    observed: ObservedOperation | None,
) -> None:
    """Clean up after a first attempt that was interrupted, or after what followed it."""
    is_told = made is not None or observed is None or observed.is_over
    break_off(made or Attempt(started, response), stopped, None, None if is_told else observed)


def break_off(
    made: Attempt, stopped: BaseException, limits: TimeLimits | None, observed: ObservedOperation | None
) -> None:
    """Clean up after an attempt that ended in an interruption."""
    this_thread.connecting = False
    made.close()
    if limits is not None:
        limits.end()
    if observed is not None:
        observed.interrupted(stopped, made.started)


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
