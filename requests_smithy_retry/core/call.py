"""One call of ``send``: its arguments and its state (contract 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import requests.exceptions
from requests import PreparedRequest, Response

from ..checks import most_attempts
from ..classifiers.outcome import Outcome
from ..classifiers.transport_faults import forget_frames, is_request_fault, never_left
from ..config.beside import warn_of_wrapped
from ..config.retry_config import RetryConfig
from ..config.retry_options import OperationOptions, current_options
from ..errors import TOO_LATE, RetryError, StopReason
from ..interruptions import ask_program, is_interruption
from ..observing.events import ObservedOperation
from ..observing.history import Before, ScheduledRetry, given_up, pieces_of
from ..observing.recorder import Recorder
from ..urls import display_scope
from ..wire.state import read_timeout_of, this_thread
from .attempt import AttemptFailed
from .exchange import Exchange, named, received_by, release_connection
from .health import had_time
from .policy import Policy, leaves_time
from .port import Feature, Rest, Sent
from .replay import RequestFacts
from .scope import Scope, Scopes
from .strategy import RetryStrategy, StandardRetryToken
from .time_limits import TimeLimits
from .wait_queue import UNLIMITED
from .waiting import CallClock

if TYPE_CHECKING:
    from ..adapter import RetryAdapter
    from ..classifiers.fold import Classification
    from ..classifiers.protocol import RetryClassifier
    from .port import Send

AT_ONCE = Before()
"""No wait at all."""
BODY_TOO_LONG = "the response of {} is too long to be let go, so it cannot wait"


class Plan(NamedTuple):
    """The values that all calls of an adapter share, computed once.

    :param policy: of the config, for a strategy whose tokens have none of their own.
    :param beside: classifiers of the config, which are asked in addition to those of a strategy that is not built in.
    :param scopes: for a strategy whose tokens have none of their own.
    """

    config: RetryConfig
    strategy: RetryStrategy
    policy: Policy
    beside: tuple[RetryClassifier, ...]
    scopes: Scopes
    send: Send
    ahead: tuple[Feature, ...]
    listening: tuple[Feature, ...]
    listeners: Any
    has_limits: bool


class Call:
    """One call of an adapter's ``send``, which one thread makes.

    :param request: the caller's; it is not changed.
    :param how: the other arguments of ``send``.
    :param rest: continues a body that broke off, with a response that is still unread; None for any other call.
    """

    scope: Scope
    """Set by :meth:`go_by`, before the first attempt."""

    def __init__(
        self,
        adapter: RetryAdapter,
        request: PreparedRequest,
        stream: bool,
        timeout: Any,
        how: dict[str, Any],
        options: OperationOptions,
        rest: Rest | None = None,
    ) -> None:
        plan = adapter.plan
        config = plan.config
        self.plan: Plan = plan
        self.config: RetryConfig = config
        self.adapter = adapter
        self.request = request
        self.stream = stream
        self.timeout: Any = config.timeout if timeout is None else timeout
        self.how = how
        self.options = options
        self.rest = rest
        self.strategy: RetryStrategy = plan.strategy
        self.policy: Policy = plan.policy
        self.limits: TimeLimits | None = None
        if plan.has_limits or options.deadline is not None or this_thread.deadline is not None:
            self.limits = TimeLimits(config, options, adapter.clock)
        self.scope_name: str = adapter.scope_of(request)
        self.observed: ObservedOperation | None = None
        if plan.listeners is not None:
            self.observed = ObservedOperation(adapter, request, options, self.scope_name)
        self.facts: RequestFacts = RequestFacts(request, config, options, plan.policy)
        self.began: float = adapter.clock.now()
        self.number: int = 0
        """The number of the attempt under way, or of the last one; 0: none was made."""
        self.token: Any = None
        """The token of the last attempt, or of the next one; None: the strategy refused the first one."""
        self.before: Before = AT_ONCE
        """The waits before the attempt."""
        self.started: float = 0.0
        self.sent: PreparedRequest = self.facts.to_send
        """The request of the last attempt, which listeners may have changed."""
        self.is_sent: bool = False
        """The attempt under way was sent, or is about to be."""
        self.response: Response | None = None
        """The response of the attempt under way."""
        self.exchange: Exchange | None = None
        """The response or the error of the last attempt, once it was looked at."""
        self.last: Outcome | None = None
        """The outcome of the last attempt."""
        self.failed: AttemptFailed | None = None
        """The last attempt, while a strategy decides about it."""
        self.is_unsent: bool = False
        """The token is that of a retry that was not sent yet: if it never is, its cost is given back."""
        self.brought: int | None = None
        """The bytes received of a body before it broke off; None: there is none, or its rest was requested."""
        self.tried: set[tuple[str, str]] = set()
        """The addresses at which it failed, each with its origin; a retry prefers others (contract 14.5)."""
        self.data: dict[str, Any] = {}
        """The features' own state of this call."""
        self._noted: Outcome | None = None
        self._clock: CallClock | None = None
        self._history: Recorder | None = None

    @property
    def clock(self) -> CallClock:
        """The clock for its waits, from one attempt to the next."""
        if self._clock is None:
            self._clock = CallClock(self, self.adapter.clock)
        return self._clock

    @property
    def history(self) -> Recorder:
        """The record of its attempts."""
        if self._history is None:
            clock, scope = self.adapter.clock, self.scope.shown
            self._history = Recorder(self.request, scope, clock, self.observed, self.rest)
        return self._history

    @property
    def number_shown(self) -> int:
        """The number of the attempt in the history, which keeps counting when a body is continued."""
        return self.number if self._history is None else self.number + self._history.earlier

    @property
    def as_sent(self) -> Sent:
        """The attempt under way, for a body that it brings."""
        return Sent(self.number_shown, self.started, this_thread.peer, self.sent)

    @property
    def deadline(self) -> float | None:
        """The moment on the adapter's clock by which any wait must end; None for no limit."""
        return None if self.limits is None or self.limits.deadline is None else self.limits.deadline.at

    @property
    def allowed(self) -> float | None:
        """The read time-out of the last attempt, in seconds; None for no limit."""
        if self.limits is None:
            return None if self.timeout is None else read_timeout_of(self.timeout)
        return read_timeout_of(self.limits.allowed)

    @property
    def sees_successes(self) -> bool:
        """True if a classifier is asked about responses below 400."""
        return self.policy.sees_successes or self.plan.policy.sees_successes or self.options.sees_successes

    # The attempt.

    def begin_attempt(self) -> PreparedRequest:
        """Begin another attempt, and return the request to be sent, which listeners may have changed.

        :raises RetryError: if the deadline has passed, or the body cannot be sent again; nothing is sent then.
        """
        self.is_sent = False
        now = self.adapter.clock.now()
        if not leaves_time(now, self.deadline, is_first=self.number == 0):
            raise RetryError(TOO_LATE, stop_reason=StopReason.DEADLINE)
        if self.number:
            self.facts.rewind()
        self.number += 1
        self.started = now
        self.response = self.exchange = self._clock = self.brought = None
        self.sent = self.facts.to_send
        if self.observed is not None:
            self.sent = self.observed.begin(self.number_shown, self.sent)
        self.is_sent, self.is_unsent = True, False
        return self.sent

    @property
    def is_done(self) -> bool:
        """True if the response under way is a success that no classifier needs to see."""
        response = self.response
        return response is not None and response.status_code < 400 and not self.sees_successes

    def look_at(self, error: Exception | None) -> Outcome:
        """Return the outcome of an attempt, and keep its response or its error."""
        response, request = self.response, self.request
        unwritten = error is not None and (this_thread.connecting is True or never_left(error))
        this_thread.connecting = False  # an attempt whose body made this one must not take it for its own
        if response is not None:
            response.request = request
        if error is not None:
            error = named(error, request, has_response=response is not None, limits=self.limits)
        exchange = self.exchange
        if exchange is None or exchange.response is not response:
            exchange = self.exchange = Exchange(response, error, is_streamed=self.stream, limits=self.limits)
        return self._described(exchange, unwritten=unwritten)

    def look_again(self) -> Outcome | None:
        """Read the long or late rest of a body whose response is the last; return the outcome if it broke off."""
        exchange = self.exchange
        if exchange is None or not exchange.is_unread or exchange.is_released or not exchange.read_on():
            return None
        return self._described(exchange, unwritten=False)

    def _described(self, exchange: Exchange, *, unwritten: bool) -> Outcome:
        if self.limits is not None:
            this_thread.deadline = self.limits.outer
        clock, peer, error, body = self.adapter.clock, this_thread.peer, exchange.error, self.facts.body
        is_judged = not exchange.is_success or self.sees_successes
        outcome = Outcome(
            error=error,
            response=exchange.response if error is None else None,
            request=self.request,
            attempt=self.number,
            stream=self.stream,
            sent=None if exchange.is_success or body is None else body.bytes_read(),
            resend=self.facts.for_resend(unwritten=unwritten, is_cut=exchange.is_cut) if is_judged else None,
            peeked=getattr(exchange.peeked, "prefix", None),
            started=self.started,
            ended=clock.now(),
            wall=clock.wall(),
            allowed=self.allowed,
            address=getattr(peer, "address", None),
            received=self.brought if exchange.response is None else received_by(exchange.response),
            final=self._final(error),
            has_progressed=bool(self.brought) and exchange.response is None,
            head=exchange.head,
            look=exchange.look if self.stream and not self._is_a_rest else None,
        )
        if not outcome.is_success:
            self.adapter.addresses.attempt_failed(outcome, peer, self.tried)
        self.last = outcome
        return outcome

    @property
    def _is_a_rest(self) -> bool:
        """True for an answer that continues a body that broke off, and that the reader of that body reads."""
        return self.rest is not None and self.rest.is_taken

    def _final(self, error: Exception | None) -> tuple[StopReason, str] | None:
        """Return the reason why an error is final, whatever a strategy would decide; None: there is no such reason."""
        if error is None:
            return None
        if is_interruption(error):
            return StopReason.NOT_RETRYABLE, "the handler of a signal raised it"
        if is_request_fault(error):
            return StopReason.REQUEST_FAULT, StopReason.REQUEST_FAULT.value
        if isinstance(error, requests.exceptions.UnrewindableBodyError):
            return StopReason.BODY_NOT_REPLAYABLE, str(error)
        return given_up(error) if self.rest is None else self.rest.refusal

    # The decision.

    def shown(self, outcome: Outcome) -> AttemptFailed:
        """Return an attempt in the form that a strategy gets."""
        self.failed = AttemptFailed(outcome, clock=self.clock, deadline=self.deadline, options=self.options, call=self)
        return self.failed

    def check_ahead(self, delay: float) -> None:
        """Have the features check whether the attempt after a delay would be in vain.

        :raises RetryError: if it is, or :class:`WaitEnded`.
        """
        for feature in self.plan.ahead:
            feature.check_ahead(self, delay)

    def tell_of_verdict(self, outcome: Outcome, verdict: Classification) -> None:
        """Report a verdict to the features."""
        for feature in self.plan.listening:
            feature.judged(self, outcome, verdict)

    @property
    def holds_a_connection(self) -> bool:
        """True while a strategy decides about an attempt whose connection was not released."""
        return self.failed is not None and not self.history.is_waiting

    def let_go_to_wait(self) -> None:
        """Release the connection of the last attempt before the strategy waits, and record the attempt.

        :raises RetryError: if its response is too long for that, and the caller may still want it.
        """
        if self.failed is None or self.history.is_waiting:
            return
        verdict = self.failed.verdict
        if self.exchange is not None and not self.exchange.release(reusable=verdict.is_throttling):
            raise RetryError(BODY_TOO_LONG.format(self.service), stop_reason=StopReason.QUOTA_EXCEEDED)
        self.history.begin_waiting(self.failed.outcome, self.before, verdict, self.clock.what)

    @property
    def service(self) -> str:
        """The name of the service, for messages."""
        return display_scope(self.scope_name)

    def goes_anew(self, function: Callable[[Response], Mapping[str, str] | None], source: str) -> bool:
        """Ask the program for headers to send the request again with; return False if it is not to be sent.

        :param function: takes the response under way; it may send requests, so no connection is held meanwhile.
        """
        response = self.response
        assert response is not None
        self.look_at(None)
        assert self.exchange is not None
        if not self.exchange.release(reusable=True):
            return False
        self.is_sent = False  # what ends the call from here on is not this attempt's failure
        kept = current_options.set(self.options.within())
        try:
            headers = ask_program(function, response)
        finally:
            current_options.reset(kept)
        if headers is None or (self.deadline is not None and self.clock.now() >= self.deadline):
            self.is_sent = True
            return False
        self.facts.send_with(headers)
        self.retry(ScheduledRetry(Before(delay_source=source)))
        return True

    def retry(self, retry: ScheduledRetry) -> None:
        """Record the last attempt and the retry that follows, and discard the response of the attempt.

        :raises WaitEnded: if the wait before the retry is too long for the call.
        """
        exchange = self.exchange
        assert self.last is not None
        assert exchange is not None
        self.clock.check(retry.before.delay, retry.before.delay_source)
        self.note(retry)
        exchange.discard(reusable=retry.verdict is not None and retry.verdict.is_throttling)
        if exchange.error is not None:
            forget_frames(exchange.error)  # they lead to idle connections, which are to close with their session
        self.before, self.is_sent = retry.before, False

    def note(self, retry: ScheduledRetry | None, verdict: Classification | None = None) -> None:
        """Record the last attempt, and the retry that follows, if any."""
        assert self.last is not None
        self.history.note(self.last, self.before, retry, verdict)
        self._noted = self.last
        if self.exchange is not None and self.exchange.error is not None:
            self.history.add(pieces_of(self.exchange.response))
        self.failed = None

    # The end.

    @property
    def is_noted(self) -> bool:
        """True if the last attempt is recorded already, with the retry that follows."""
        return self._noted is self.last

    @property
    def known_verdict(self) -> Classification | None:
        """The verdict on the attempt that a strategy decides about; None if it was not computed yet."""
        return None if self.failed is None else self.failed.known_verdict

    @property
    def had_time(self) -> bool:
        """False if the deadline of a block ended the only attempt before the service usually answers."""
        last = self.last
        if self.number != 1 or last is None or last.status is not None:
            return True
        return had_time(last, self.options, self.deadline, self.scope.health.latency)

    @property
    def most_attempts(self) -> int | None:
        """The most attempts that the call might make; None where that is not known."""
        if self.options.max_attempts is not None:
            return self.options.max_attempts
        own = self.policy.most_attempts if isinstance(self.token, StandardRetryToken) else None
        return most_attempts(self.strategy) if own is None else None if own == UNLIMITED else own

    def go_by(self, token: object) -> None:
        """Use the policy and the scope of a first token; if it has none, those of the adapter."""
        if isinstance(token, StandardRetryToken):
            if token.issuer is not self.strategy:
                warn_of_wrapped(self.strategy, token.issuer, self.config, self.adapter.clock)
            self.policy, self.scope = token.issuer.policy, token.scope
            self.facts.policy = self.policy
        else:
            self.scope = self.plan.scopes.get(self.scope_name)

    def give_back(self) -> None:
        """Give back, through its token, the cost of a retry that was not sent."""
        give_back = getattr(self.token, "give_back", None)
        if self.is_unsent and give_back is not None:
            give_back()
        self.is_unsent = False

    def forget(self) -> None:
        """Drop all references to results: a traceback, or a body that is read later, may keep this call alive."""
        if self.exchange is not None:
            self.exchange.forget()
        self.response = self.exchange = self.last = self._noted = self.failed = self._clock = self._history = None

    def close(self) -> None:
        """Close a response that was not handed over, after an interruption."""
        this_thread.connecting = False
        if self.exchange is not None:
            self.exchange.close()
        elif self.response is not None:
            release_connection(self.response.raw, reusable=False)
            self.response.close()

    def break_off(self, stopped: BaseException) -> None:
        """Clean up after an interruption, and report to listeners the end of an attempt that they saw begin."""
        self.close()
        self.give_back()
        if self.observed is not None and self.observed.is_under_way:
            self.observed.interrupted(stopped, self.started if self.is_sent else None)
