"""The loop (contract 2): one operation, from its first attempt to what the caller gets. Read this file first.

It asks the strategy, whatever its class, through the three methods of the Smithy papers. A strategy allows a retry by
returning a token, and refuses one by raising ``RetryError``. Only the loop sends, waits and reports.
"""

from __future__ import annotations

from logging import DEBUG
from math import inf

from requests import PreparedRequest, Response

from ..classifiers.actions import NoActionIndicated
from ..classifiers.fold import Classification, reason_wanted
from ..classifiers.outcome import Outcome
from ..config.retry_options import current_options
from ..errors import RetryError, StopReason, seconds_text
from ..interruptions import StoppedByProgram, ask_program
from ..observing.history import PIECES, AttemptRecord, Before, RetryHistory, ScheduledRetry, attach, with_pieces
from ..observing.log import log_attempt, log_back, logger
from ..wire.state import this_thread
from .attempt import AttemptFailed
from .call import AT_ONCE, Call
from .endings import EXHAUSTED, is_raised, not_sent_error, status_error, wait_that_ended, with_broken_body
from .exchange import complete
from .policy import LEAST_TIME, leaves_time
from .port import Rest
from .quota import Payment
from .strategy import StandardRetryToken, delay_of
from .waiting import WaitEnded

WANTED = EXHAUSTED | {StopReason.STRATEGY_REFUSED}
"""The reasons that claim that a retry was wanted; for a 404, for instance, that of the classifiers replaces them."""


def run(call: Call, attempt: Outcome | None = None) -> Response:
    """Send until there is nothing to retry, or the strategy refuses; return or raise the result of the last attempt.

    :param attempt: the first one, if it was made already: a body that broke off while the caller read it.
    """
    outer = this_thread.tried, this_thread.deadline
    this_thread.tried = call.tried
    try:
        return until_it_stops(call, attempt)
    except StoppedByProgram as stopped:
        error = stopped.error
    finally:
        this_thread.tried, this_thread.deadline = outer
        call.forget()
        del attempt  # the traceback of its error, if that is raised again, leads to this frame
    try:
        return raise_alone(call, error)
    finally:
        del error  # its traceback refers to this frame


def until_it_stops(call: Call, attempt: Outcome | None) -> Response:
    """Run the operation, and clean up after an interruption."""
    try:
        response = operate(call, attempt)
        if call.facts.body is not None:
            call.facts.answered(response)
        return response
    except BaseException as stopped:
        call.break_off(stopped)
        raise
    finally:
        del attempt


def operate(call: Call, attempt: Outcome | None) -> Response:
    """Make attempts, and ask the strategy after each that failed."""
    failed: AttemptFailed | None = None
    first_refusal = begin(call)
    try:
        while True:
            if attempt is None:
                error = make_attempt(call)
                if error is None and call.is_done:
                    return succeed(call)
                attempt = call.look_at(error)
            failed = call.shown(attempt)
            if attempt.is_success and isinstance(failed.verdict.action, NoActionIndicated):
                return succeed(call)
            refused = refusal_of(call, failed, first_refusal)
            if refused is None:
                call.retry(retry_of(call, failed))
                attempt = None
                continue
            attempt = call.look_again()  # if the rest of its body broke off, that is judged in its place
            if attempt is None or refused.stop_reason is not StopReason.NOT_RETRYABLE:
                raise refused
    except RetryError as refusal:
        # Without its own traceback, which would keep what the attempt got alive as long as the caller keeps the error.
        return give_up(call, refusal.with_traceback(None))
    except WaitEnded as ended:
        return end_wait(call, ended)
    finally:
        attempt = failed = error = refused = None  # the traceback of an error that is raised leads to this frame


def begin(call: Call) -> RetryError | None:
    """Acquire the first token, and return None; or return the refusal, after which exactly one attempt is made."""
    refusal = None
    try:
        token = call.strategy.acquire_initial_retry_token(token_scope=call.scope_name)
        delay = delay_of(token, call.strategy)
        if delay and not leaves_time(call.clock.now() + delay, call.deadline):
            raise RetryError(
                f"the first wait of {seconds_text(delay)} would not end in time", stop_reason=StopReason.DEADLINE
            )
        call.token = token
        if delay:
            call.before = Before(delay)
    except RetryError as no:
        refusal = no
    call.go_by(call.token)
    return refusal


def make_attempt(call: Call) -> Exception | None:
    """Wait as the token says, send once, and read the body if it is wanted; return the error of the attempt."""
    delay = 0.0 if call.token is None else delay_of(call.token, call.strategy)
    if delay:
        call.clock.what = call.before.delay_source
        call.clock.sleep(delay)
    call.is_sent = False
    try:
        response = call.plan.send(call)
        if not call.stream and response.status_code < 400:
            complete(response, call.request)  # a cut one is this attempt's failure
    except Exception as error:
        if not call.is_sent:
            raise  # a feature, a listener or the program ended the call before anything was sent
        stopped = None if call.observed is None else call.observed.stopped_by()
        if stopped is None:
            return error
    else:
        return None
    try:
        raise StoppedByProgram(stopped)  # the listener's own exception, not as requests wrapped it
    finally:
        del stopped  # its traceback refers to this frame


def refusal_of(call: Call, failed: AttemptFailed, first_refusal: RetryError | None) -> RetryError | None:
    """Return the reason why no attempt follows; None: one does."""
    try:
        ask_strategy(call, failed, first_refusal)
    except RetryError as refusal:
        return refusal.with_traceback(None)
    return None


def ask_strategy(call: Call, failed: AttemptFailed, first_refusal: RetryError | None) -> None:
    """Have the strategy decide about an attempt, and apply the two rules that no strategy can break.

    :raises RetryError: if no attempt follows.
    """
    final = failed.outcome.final
    if final is not None:
        raise RetryError(final[1], stop_reason=final[0])
    if first_refusal is not None:
        raise first_refusal
    is_refused = False
    try:
        call.token = call.strategy.refresh_retry_token_for_retry(token_to_renew=call.token, error=failed)
    except RetryError as refusal:
        if refusal.stop_reason not in WANTED or reason_wanted(failed.verdict.votes) is not None:
            raise
        is_refused = True
    except AttemptFailed as raised:  # the Smithy guide's strategies raise the error that they were given
        if raised is not failed:
            raise
        failed.__traceback__ = None  # its frames refer to it
        is_refused = True
    if is_refused:
        failed.indicated(call.policy)  # raises for the classifiers' reason, if they refuse
        raise RetryError()
    call.is_unsent = True
    failed.check_resend()
    delay = delay_of(call.token, call.strategy)
    failed.check_limits(delay, source_of(call.token))
    call.check_ahead(delay)


def source_of(token: object) -> str:
    """Return the source of a token's delay."""
    return str(getattr(token, "delay_source", "strategy"))


def retry_of(call: Call, failed: AttemptFailed) -> ScheduledRetry:
    """Return the retry for which the strategy has issued a token."""
    token, waited = call.token, call.clock.waited
    # A foreign token may use the names for something else.
    payment, verdict = getattr(token, "payment", None), getattr(token, "classification", None)
    why = str(getattr(token, "line_why", "")) or ("the strategy let it go on" if waited else "")
    return ScheduledRetry(
        Before(delay_of(token, call.strategy), source_of(token), line_wait=waited, line_why=why),
        verdict if isinstance(verdict, Classification) else failed.verdict,
        payment if isinstance(payment, Payment) else None,
    )


def succeed(call: Call) -> Response:
    """Record a success, and return its response."""
    response = call.response
    assert response is not None
    response.request = call.request  # not the copy that was sent
    record_success(call)
    if call.number > 1 or call.before is not AT_ONCE or PIECES in vars(response):
        return succeed_late(call)
    if call.limits is not None and call.stream:
        call.limits.lift(response)
    if call.observed is not None:
        call.observed.succeeded_at_once(response, call.started)
    call.adapter.counters.at_once(call.scope_name)
    response._retry_started = call.started  # type: ignore[attr-defined]
    call.adapter._fill_retries(response)
    if logger.isEnabledFor(DEBUG):
        duration = call.adapter.clock.now() - call.started
        log_attempt(call.request, AttemptRecord(1, 0.0, duration, response.status_code))
    return response


def record_success(call: Call) -> None:
    """Have the strategy record a success, and note the health of its service where the strategy does not."""
    token = call.token
    if isinstance(token, StandardRetryToken):
        token.note_sent(call.started, call.allowed)
    else:
        now = call.adapter.clock.now()
        log_back(call.scope_name, call.scope.health.answered(call.started), now)
    if token is not None:
        ask_program(call.strategy.record_success, token=token)  # the attempt succeeded: nothing is refused


def succeed_late(call: Call) -> Response:
    """Return the response of a success that comes with a history."""
    if call.failed is None:
        call.look_at(None)
    assert call.response is not None
    assert call.exchange is not None
    call.note(None)
    call.exchange.finalize(raises=False)
    history = end_history(call, StopReason.SUCCESS, StopReason.SUCCESS.value, None)
    attach(call.response, history)
    call.adapter._fill_retries(call.response, call.history)
    return call.response


def give_up(call: Call, refusal: RetryError) -> Response:
    """Hand over the result of the last attempt, because no other one follows."""
    try:
        history = end_refused(call, refusal)
    except WaitEnded as ended:
        return end_wait(call, ended)
    finally:
        del refusal  # it may lead to the attempt's error, whose traceback refers to this frame
    return hand_over(call, history)


def end_refused(call: Call, refusal: RetryError) -> RetryHistory:
    """Record the last attempt and the end of the operation, and prepare the attempt's result for the caller.

    :raises WaitEnded: in place of a wait.
    """
    verdict = refusal.classification if isinstance(refusal.classification, Classification) else call.known_verdict
    call.give_back()
    if call.last is not None and not call.is_noted:
        end_attempt(call, refusal, verdict)
    config, exchange = call.config, call.exchange
    if exchange is not None:
        is_carried = is_raised(exchange.response, refusal.stop_reason)
        exchange.finalize(raises=config.raise_on_status and is_carried)
    seconds = None if exchange is None else getattr(wait_that_ended(exchange.error), "seconds", None)
    if refusal.stop_reason is StopReason.RATE_LIMITED and refusal.unmade is not None:
        seconds = refusal.unmade.seconds
    return end_history(call, refusal.stop_reason, str(refusal), verdict, seconds)


def end_attempt(call: Call, refusal: RetryError, verdict: Classification | None) -> None:
    """Record the last attempt, and make the wait of a long poll, before its answer is handed over.

    :raises WaitEnded: in place of that wait, or of one that another bound forbids.
    """
    if refusal.unmade is not None:
        call.clock.check(refusal.unmade.seconds, refusal.unmade.source)
    call.note(None, verdict)
    if refusal.delay:
        left = inf if call.deadline is None else call.deadline - call.clock.now() - 2 * LEAST_TIME
        call.clock.what = "the long poll"
        call.clock.sleep(min(refusal.delay, left))


def hand_over(call: Call, history: RetryHistory) -> Response:
    """Return the last attempt's own response, or raise its own exception, with the record attached."""
    if call.exchange is None or call.exchange.is_lost:
        return raise_alone(call, not_sent_error(call.request, history))
    if call.exchange.error is not None:
        return hand_over_error(call, with_history(call.exchange.error, history), history)
    response = call.exchange.response
    assert response is not None
    attach(response, history)
    call.adapter._fill_retries(response, call.history)
    if call.config.raise_on_status and is_raised(response, history.stop_reason):
        return raise_alone(call, status_error(response, history))
    return response


def hand_over_error(call: Call, error: Exception, history: RetryHistory) -> Response:
    """Raise an error; or return the response whose body raises it, if it sets cookies, which the session needs."""
    assert call.exchange is not None
    response = call.exchange.response
    try:
        if response is None or call.stream or isinstance(error, WaitEnded) or "set-cookie" not in response.headers:
            return raise_alone(call, error)
        attach(response, history)
        return with_broken_body(response, error)
    finally:
        del error, response  # its traceback refers to this frame


def with_history(error: Exception, history: RetryHistory) -> Exception:
    """Return an attempt's error, or what ended a wait for the rest of its body, with the record attached."""
    ended = wait_that_ended(error) or error
    attach(ended, history)
    return ended


def raise_alone(call: Call, error: BaseException) -> Response:
    """Raise an error with its own context, which an exception that is being handled must not replace."""
    call.forget()  # what is handed over is not closed
    context = error.__context__
    try:
        raise error
    finally:
        error.__context__ = context
        del error, context  # its traceback refers to this frame, and their texts have URLs


def end_wait(call: Call, ended: WaitEnded) -> Response:
    """Raise the exception that ends a call in place of a wait, with the record attached."""
    verdict = call.known_verdict
    call.give_back()
    if call.last is not None and not call.is_noted:
        call.note(None, verdict)
    if call.exchange is not None:
        call.exchange.finalize(raises=True)
    attach(ended, end_history(call, ended.stop_reason, str(ended), verdict, ended.seconds))
    ended.request = call.request
    if call.exchange is not None:
        ended.response = None if call.exchange.is_lost else call.exchange.response
        ended.__cause__ = call.exchange.error
    ended.__context__ = None
    try:
        return raise_alone(call, ended)
    finally:
        del ended  # its traceback refers to this frame


def end_history(
    call: Call, reason: StopReason, why: str, verdict: Classification | None, seconds: float | None = None
) -> RetryHistory:
    """Return the record of an operation that is over; log it, count it, and notify listeners.

    :param seconds: the seconds after which a new call is worthwhile; None: taken from the last answer, if it has any.
    """
    last, now = call.last, call.adapter.clock.now()
    if seconds is None and last is not None and reason is not StopReason.SUCCESS:
        asked = call.policy.asked(last, verdict)
        seconds = None if asked is None else max(0.0, asked - (now - last.ended))
    error = None if call.exchange is None else call.exchange.error
    if call.rest is not None:
        reason, why = call.rest.ending(reason, why)
    pieces = () if call.response is None else vars(call.response).get(PIECES, ())
    began = None if last is None else last.started
    most, health, waited = call.most_attempts, call.scope.health, call.clock.waited
    history = call.history.history(reason, why, most, health, began, error, seconds, pieces, waited, call.had_time)
    if call.rest is None:
        call.adapter.counters.ended(call.scope_name, with_pieces(history, pieces))
    else:
        call.rest.count(call.adapter.counters, call.scope_name, history)
    return history


def go_on(call: Call, request: PreparedRequest, rest: Rest, error: Exception, brought: int) -> Response:
    """Continue a body that broke off, as an operation of its own that retries the call that brought it.

    :param brought: the bytes received before over the connection that broke off.
    """
    outer = this_thread.deadline, this_thread.connecting, this_thread.peer
    kept = current_options.set(call.options)
    try:
        again = Call(call.adapter, request, True, call.timeout, call.how, call.options, rest)
        if not call.stream:
            again.limits = call.limits  # a body that the caller reads has time of its own
        if call.observed is not None and not call.observed.is_under_way:
            again.observed = call.observed
        again.scope_name, again.data, again.brought = call.scope_name, call.data, brought
        again.number, again.started, this_thread.peer = 1, rest.brought_by.started, rest.brought_by.peer
        return run(again, again.look_at(error))
    finally:
        del error  # its traceback refers to this frame, where it is raised again
        current_options.reset(kept)
        this_thread.deadline, this_thread.connecting, this_thread.peer = outer
        if call.limits is not None and not call.stream:
            this_thread.deadline = call.limits.bound  # the rest of the body is read now
