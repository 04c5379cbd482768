"""The machine (contract 2): one operation as a generator of steps, which is told what came of each.

It imports no clock, no socket and no HTTP library, and never waits: outcomes and answers tell the time. The quota's
steps are among its own, and take the quota's lock for an instant. ::

    [wait in the gates] -> Send -> judge --+-> Again -> Noted -> Pause --> [wait in the gates] -> ...
                                           +-> Stop --> Noted -> Pause --> the end
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from math import inf
from typing import Any, NamedTuple, Protocol

from ..classifiers.actions import ErrorKind, NoActionIndicated, RetryForbidden, RetryReason
from ..classifiers.fold import Classification, classify_operation
from ..classifiers.outcome import Outcome
from ..config.retry_options import OperationOptions
from ..errors import TOO_LATE, StopReason, is_unresolved
from ..urls import display_scope
from .line import Bounds, Failure, Go, Progress
from .policy import Delay, Policy, TooLong, leaves_time
from .quota import Quota
from .server_hints import Hint, until_text
from .steps import (
    Again,
    Ask,
    Before,
    Noted,
    Pause,
    ReadOn,
    Refused,
    Send,
    Step,
    Steps,
    Stop,
)

NOT_FOUND = 404


SUCCEEDED = Stop(StopReason.SUCCESS, StopReason.SUCCESS.value)


class Passed(NamedTuple):
    """A gate let an attempt through, after some seconds, for the reason that the gate gives."""

    waited: float = 0.0
    source: str = ""


class Gate(Protocol):
    """Holds attempts of a scope back, before they are sent (a port of features)."""

    def admit(self, waited: float, began: float) -> Steps:
        """Wait until the next attempt may be sent; the result is :class:`Passed`, or :class:`Refused`.

        :param waited: seconds that it has waited already, by a server's wish.
        :param began: the moment at which its operation began.
        """

    def add_to(self, before: Before, passed: Passed) -> Before:
        """Return the record of the waits with that at this gate."""


class FirstGate(Gate, Protocol):
    """A gate that is looked for before the first attempt, too."""

    def is_open(self, now: float) -> bool:
        """Let the first attempt through if it need not wait; the machine is not needed then."""


Remedy = Callable[[Outcome, Progress], Generator[Step, Any, Again | None]]
"""Mends a failed attempt in a way of its own, before it is judged; None: it is none of its business."""
Deciding = Generator[Step, Any, "Again | Stop"]
"""The steps of a decision."""


class Context(NamedTuple):
    """What an operation is judged by, the same for all of its attempts.

    :param succeeded: records a success, as the quota does.
    :param options: of the ``retry_options`` blocks around it, and of its models.
    :param bounds: its limits.
    :param scope: of the service; None for operations without one.
    :param verdict_listeners: are told of each verdict (a port of features).
    """

    policy: Policy
    quota: Quota
    succeeded: Callable[..., object]
    options: OperationOptions
    bounds: Bounds
    scope: str | None = None
    verdict_listeners: tuple[Callable[[Outcome, Classification], object], ...] = ()

    def forbids(self, wait: float, now: float) -> bool:
        """Return True if a wait would end too late for the retry after it."""
        return not leaves_time(now + wait, self.bounds.deadline)


def operation(
    context: Context,
    began: float,
    decider: Callable[[Context, Progress, Outcome], Deciding],
    first: Outcome | None = None,
    find_gates: Callable[[], Iterable[Gate]] = tuple,
    remedies: tuple[Remedy, ...] = (),
    wait: float = 0.0,
) -> Steps:
    """The steps of one operation; its result is a :class:`Stop`.

    :param began: the moment at which it began.
    :param decider: :func:`decide`, or what stands in its place for a strategy of the program's.
    :param first: its first attempt, if that was made already.
    :param find_gates: returns the gates to be passed before the next attempt.
    :param wait: seconds before the first attempt.
    """
    progress, before, number, headers = Progress(began), Before(wait), 0, None
    decision: Again | Stop
    if first is None and not leaves_time(began, context.bounds.deadline, is_first=True):
        return Stop(StopReason.DEADLINE, TOO_LATE)
    if wait:
        yield Pause(wait)
    while True:
        if first is None:
            admitted = yield from _pass_gates(context, find_gates(), progress, before)
            if isinstance(admitted, Stop):
                return admitted
            outcome = yield Send(number + 1, admitted, headers)
            if isinstance(outcome, Stop):
                return outcome
        else:
            outcome, first = first, None
        number += 1
        outcome, decision = yield from _mended_or_decided(context, decider, remedies, progress, outcome)
        if isinstance(decision, Again):
            progress = decision.progress
        elif decision.reason is StopReason.SUCCESS:
            took = outcome.ended - outcome.started, outcome.allowed
            yield Ask(context.succeeded, (progress, context.bounds, outcome.ended, *took))
        yield Noted(decision)
        if decision.delay:
            yield Pause(decision.delay)
        if isinstance(decision, Stop):
            return decision
        before = Before(decision.delay, decision.source, line_wait=decision.line_wait, line_why=decision.line_why)
        headers = decision.headers or headers


def _pass_gates(
    context: Context, gates: Iterable[Gate], progress: Progress, before: Before
) -> Generator[Step, Any, Before | Stop]:
    """Wait in the gates, one after another; the result is the record of the waits, or the refusal of one of them."""
    for gate in gates:
        passed = yield from gate.admit(before.delay, progress.began)
        if isinstance(passed, Refused):
            yield Ask(context.quota.unsent, (progress,))
            return Stop(passed.reason, passed.why)
        before = gate.add_to(before, passed)
    return before


def _mended_or_decided(
    context: Context,
    decider: Callable[[Context, Progress, Outcome], Deciding],
    remedies: tuple[Remedy, ...],
    progress: Progress,
    outcome: Outcome,
) -> Generator[Step, Any, tuple[Outcome, Again | Stop]]:
    """Ask the remedies in turn, and then decide.

    The body of a final response is read to its end: where it breaks off, that is judged in its place.
    """
    for remedy in remedies:
        mended = yield from remedy(outcome, progress)
        if mended is not None:
            return outcome, mended
    decision = yield from decider(context, progress, outcome)
    if isinstance(decision, Again) or not outcome.is_unread:
        return outcome, decision
    cut = yield ReadOn()
    if cut is None:
        return outcome, decision
    if decision.reason is StopReason.NOT_RETRYABLE:
        decision = yield from decider(context, progress, cut)
    return cut, decision


def decide(context: Context, progress: Progress, outcome: Outcome) -> Deciding:
    """Decide what follows an attempt, in this order: is a retry indicated, may the request be sent again, are attempts
    left, is the server's hint bearable, is there time, is there quota. The first "no" counts.
    """
    policy, options = context.policy, context.options
    if options.enabled is False:
        return Stop(StopReason.DISABLED, StopReason.DISABLED.value)
    if outcome.final is not None:
        return Stop(*outcome.final)
    if outcome.is_success and not (policy.sees_successes or options.sees_successes):
        return SUCCEEDED
    verdict = yield Ask(classify_operation, (policy.classifiers, outcome, options.classifiers))
    for tell in context.verdict_listeners:
        tell(outcome, verdict)
    action = verdict.action
    if isinstance(action, RetryForbidden):
        return Stop(action.stop_reason, action.why or action.stop_reason.value, verdict)
    if isinstance(action, NoActionIndicated):
        if outcome.is_success:
            return SUCCEEDED._replace(verdict=verdict)
        return Stop(StopReason.NOT_RETRYABLE, StopReason.NOT_RETRYABLE.value, verdict)
    return (yield from _decide_retry(context, progress, outcome, verdict, action.reason))


def _decide_retry(
    context: Context, progress: Progress, outcome: Outcome, verdict: Classification, reason: RetryReason
) -> Deciding:
    """Decide about a retry that is indicated."""
    policy, options, bounds, retry = context.policy, context.options, context.bounds, progress.retries + 1
    if outcome.has_progressed:
        # It brought a body further, so the service is up: what it spent comes back, and it counts as a first attempt.
        yield Ask(context.succeeded, (progress, bounds, outcome.ended))
        progress, retry = Progress(progress.began, free=outcome.attempt - 1), 1
    asks_again = _asks_again(context, reason, outcome)
    is_free = _is_free(context, reason, outcome, asks_again=asks_again)
    failures, exceeded = progress.failures, None
    if policy.counts is not None:
        failures, exceeded = policy.counts(failures, outcome)
    if _is_last(context, max(retry, outcome.attempt - progress.free), retry, is_free=is_free):
        exceeded = StopReason.MAX_ATTEMPTS.value
    if exceeded is not None:
        return Stop(StopReason.MAX_ATTEMPTS, exceeded, verdict)
    delay = yield Ask(policy.delay, (reason, outcome, options, retry, progress.backoff))
    if isinstance(delay, TooLong):
        return _too_long(delay.hint, delay.why, outcome, verdict)
    if delay.asked is not None and outcome.ended + delay.seconds > progress.began + delay.longest:
        why = f"all waits must be over {delay.longest:g} s after the call began, twice the patience"
        return _too_long(delay.asked, why, outcome, verdict)
    if context.forbids(delay.seconds, outcome.ended):
        why = f"the next wait of {delay.seconds:.3g} s would not end in time"
        return Stop(StopReason.DEADLINE, why, verdict, unmade=Hint(delay.seconds, delay.source))
    if outcome.has_progressed:
        return Again(progress, delay.seconds, delay.source, verdict)
    progress = context.quota.polled(progress) if asks_again else progress
    progress = progress._replace(retries=retry, backoff=delay.backoff, failures=failures)
    again = Again(progress, delay.seconds, delay.source, verdict)
    return again if is_free else (yield from _pay(context, again, outcome, reason, delay))


def _too_long(hint: Hint, why: str, outcome: Outcome, verdict: Classification) -> Stop:
    until = until_text(hint, outcome.wall)
    why = f"{hint.source} asks for {hint.seconds:.15g} s, {why}: allowed again at {until}"
    return Stop(StopReason.HINT_TOO_LONG, why, verdict, unmade=hint)


def _pay(context: Context, again: Again, outcome: Outcome, reason: RetryReason, delay: Delay) -> Deciding:
    """Have the quota decide about a retry that nothing else forbids."""
    bounds, progress = context.bounds, again.progress
    throttled, asked_for = reason.kind is ErrorKind.THROTTLING, 0.0 if delay.asked is None else delay.seconds
    unresolved = outcome.error is not None and is_unresolved(outcome.error)
    is_cut = outcome.resend is not None and outcome.resend.is_cut
    failure = Failure(
        delay=again.delay,
        hint=asked_for,
        throttled=throttled,
        unresolved=unresolved,
        is_cut=is_cut,
        reason=reason,
        verdict=again.verdict,
        uncounted=asked_for if throttled and delay.longest == inf else 0.0,
    )
    seen = yield from context.quota.pay(progress, bounds, failure, outcome.ended)
    if isinstance(seen, Go):
        source = "patience" if seen.delay > again.delay else again.source
        return Again(seen.progress, seen.delay, source, again.verdict, seen.payment, seen.waited, seen.why)
    is_long_poll = context.options.long_poll if outcome.resend is None else outcome.resend.long_poll
    waits = bool(is_long_poll) and seen.reason is not StopReason.MAX_ATTEMPTS
    waited = progress.waited + seen.waited
    return Stop(*refusal(seen, bounds, context.scope, waited), again.verdict, again.delay if waits else 0.0)


def _is_last(context: Context, sent: int, retry: int, *, is_free: bool) -> bool:
    """Return True if no attempt may follow.

    :param sent: requests, against a cap.
    :param retry: the number of the retry that would follow, which counts where there is no cap.
    """
    bounds = context.bounds
    if bounds.max_attempts is not None:
        return sent >= bounds.max_attempts
    return (is_free or not context.quota.counts_attempts or bounds.patience <= 0) and retry > bounds.retries


def _asks_again(context: Context, reason: RetryReason, outcome: Outcome) -> bool:
    """Return True if the attempt did not fail, but polls for a result that is not there yet (contract 6.2).

    That is the case if it succeeded, and its response shows neither throttling nor a server's fault; after a 404 that
    a translated ``Retry`` lists, by which programs wait for a thing to appear; and where a policy judged a value.
    """
    if outcome.error is not None or reason.kind is ErrorKind.THROTTLING:
        return False
    if outcome.response is None:
        return True
    if reason.kind is ErrorKind.SERVER:
        return False
    return outcome.is_success or (context.policy.counts is not None and outcome.status == NOT_FOUND)


def _is_free(context: Context, reason: RetryReason, outcome: Outcome, *, asks_again: bool) -> bool:
    """Return True if a retry costs nothing: the service is well, and has no result yet or refused this one request."""
    if outcome.error is not None:
        return False
    has_answer = outcome.response is not None
    if not context.quota.counts_attempts:
        return has_answer and asks_again
    return asks_again or (has_answer and reason.kind is ErrorKind.CLIENT)


def refusal(refused: Refused, bounds: Bounds, scope: str | None, seconds: float) -> tuple[StopReason, str]:
    """Return the stop reason of a quota's refusal, and a plain sentence that says why.

    :param seconds: of waiting for the service in all.
    """
    service = "the service" if scope is None else display_scope(scope)
    waited = f"waited {seconds:.3g} s: " if seconds else ""
    if refused.why:
        return refused.reason, refused.why.format(service=service)
    if refused.reason in (StopReason.PATIENCE, StopReason.DEADLINE) and bounds.patience <= 0:
        return StopReason.QUOTA_EXCEEDED, f"the retry budget of {service} is empty, and patience is 0"
    if refused.reason is StopReason.PATIENCE:
        why = f"{waited}{service} has been failing for longer than patience allows ({bounds.patience:g} s)"
        return StopReason.PATIENCE, why
    if refused.reason is StopReason.DEADLINE:
        return StopReason.DEADLINE, f"{waited}{service} was failing until the deadline"
    if refused.reason is StopReason.LINE_FULL:
        return StopReason.LINE_FULL, f"too many operations are waiting for {service} already"
    return refused.reason, refused.reason.value
