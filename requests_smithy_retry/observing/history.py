"""The history of an operation (contract 12): its attempts, and why it ended.

It is attached to the response or the exception that the caller gets. For a first-try success it is made on demand.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..checks import most_attempts
from ..classifiers.actions import NoActionIndicated, RetryForbidden, RetryIndicated
from ..classifiers.fold import Classification, Vote, reason_wanted
from ..clock import SYSTEM_CLOCK
from ..errors import ENDED_BY_PROGRAM, QUIET_ENDINGS, StopReason, seconds_text
from ..interruptions import MAX_CAUSES
from ..urls import display_scope, scope_of, without_secrets

if TYPE_CHECKING:
    from ..core.quota import Payment
else:  # pragma: no branch - for typing.get_type_hints; the strategies import this module
    Payment = Any

ATTRIBUTE = "_retry_history"
STARTED = "_retry_started"
SENT_ONCE = "_retry_sent_once"
"""The attribute, besides the moment of its start, of a response to a request sent with retries switched off."""
PIECES = "_retry_pieces"
RENEWED = {"on_unauthorized": "with new credentials ", "resign": "signed anew "}
"""How an attempt that answers a refusal is described."""
PART = "_retry_part"
"""The attribute with a phrase for what a successful response lacks."""
MAX_KEPT = 100
"""The most attempts that are kept, the first and the last ones."""


class Before(NamedTuple):
    """The waits before an attempt, as its :class:`AttemptRecord` has them."""

    delay: float = 0.0
    delay_source: str = "backoff"
    permit_wait: float = 0.0
    gate_wait: float = 0.0
    gate_source: str = ""
    line_wait: float = 0.0
    line_why: str = ""


class ScheduledRetry(NamedTuple):
    """A retry that follows.

    :param before: the waits before it.
    :param verdict: the verdict that led to it.
    :param payment: the payment for it, from a bucket; None: it cost nothing.
    """

    before: Before
    verdict: Classification | None = None
    payment: Payment | None = None


class AttemptRecord(NamedTuple):
    """The record of one attempt.

    :param number: the attempt's number, from 1.
    :param started: the start, in seconds since the epoch.
    :param duration: the duration in seconds; None if it was not measured.
    :param status: the response's status, or None.
    :param error: the exception's type, or None.
    :param delay: the wait before the attempt, in seconds.
    :param delay_source: ``"backoff"``, the name of the hint, or ``"patience"`` for a late last retry.
    :param votes: the verdict of each classifier; empty for a success.
    :param quota_before: the tokens in the bucket before it paid for the following retry.
    :param quota_after: the tokens left afterwards.
    :param quota_source: the bucket that paid: ``"memory"``, ``"redis"``, ``"redis, fallen open"`` and the like.
    :param permit_wait: the wait for a send permit (adaptive mode) after the delay, in seconds.
    :param line_wait: the wait for the service to be back, in seconds.
    :param line_why: the event that ended that wait, as a phrase.
    :param address: the IP address that the request went to: the proxy's, if there is one. If no connection was made,
        all that were tried. None if it is not known, as for a first-try success.
    :param gate_wait: the wait for a rate limit that the server had announced, after the delay, in seconds.
    :param gate_source: the header that announced it; for a ``Retry-After``, the status, too.
    :param received: the encoded bytes received of the body; None if they were not counted.
    :param sent: the bytes of the uploaded file that went out in a failed attempt, the last block of it perhaps in part;
        None for other bodies.
    :param cause: what happened to the connection, such as ``"connection refused"``; None if it is unknown, or if the
        exception's type says it.
    """

    number: int
    started: float
    duration: float | None
    status: int | None = None
    error: str | None = None
    delay: float = 0.0
    delay_source: str = "backoff"
    votes: tuple[Vote, ...] = ()
    quota_before: float | None = None
    quota_after: float | None = None
    quota_source: str | None = None
    permit_wait: float = 0.0
    line_wait: float = 0.0
    line_why: str = ""
    address: str | None = None
    gate_wait: float = 0.0
    gate_source: str = ""
    received: int | None = None
    sent: int | None = None
    cause: str | None = None

    @property
    def waits(self) -> str:
        """The waits before it as a phrase with a trailing space; empty if there was none."""
        waits = [f"{seconds_text(self.delay)} ({self.delay_source})"] if self.delay else []
        waits += [f"{seconds_text(self.permit_wait)} for a permit"] if self.permit_wait else []
        waits += [f"{seconds_text(self.gate_wait)} for a rate limit ({self.gate_source})"] if self.gate_wait else []
        renewed = RENEWED.get(self.delay_source, "")
        return renewed + (f"after {' and '.join(waits)} " if waits else "")

    @property
    def ending(self) -> str:
        """The outcome in a word: the status, or the exception's type."""
        return str(self.status) if self.error is None else self.error

    @property
    def told(self) -> str:
        """The outcome for people, with what happened to the connection, or the classifier that rejected a success."""
        cause = self.cause
        if cause is None and self.status is not None and self.status < 400:
            by = [vote.classifier for vote in self.votes if isinstance(vote.action, RetryIndicated)]
            cause = f"{by[-1]} wants a retry" if by else None
        return self.ending if cause is None else f"{self.ending} ({cause})"


class RetryHistory(NamedTuple):
    """The attempts of one operation, and why it ended. It can be pickled and holds no request, header or body.

    :param scope: the scope whose quota was spent, without userinfo, query and fragment.
    :param attempts: the attempts in order.
    :param stop_reason: the rule that ended the operation.
    :param why: the rule's explanation.
    :param max_attempts: the most attempts allowed; None if the strategy does not say.
    :param deleted_by: the attempt, from 1, that may have deleted what the last one did not find.
    :param line_wait: seconds that the operation waited in vain for the service after the last attempt.
    :param retry_after: seconds after which a new call makes sense: what the server asked for, or the wait that was not
        made; None: unknown, or the operation succeeded.
    :param waited: seconds of all waits after the last attempt: ``line_wait``, the wait of a long poll, one that was
        cancelled.
    :param had_time: False: the deadline of a block ended the only attempt before the service usually answers.
    """

    scope: str | None
    attempts: tuple[AttemptRecord, ...]
    stop_reason: StopReason
    why: str
    max_attempts: int | None = None
    deleted_by: int | None = None
    line_wait: float = 0.0
    retry_after: float | None = None
    waited: float = 0.0
    had_time: bool = True

    @property
    def is_late(self) -> bool:
        """True if the deadline had passed before anything was sent, or left no time for an answer."""
        return self.stop_reason is StopReason.DEADLINE and not (self.attempts and self.had_time)

    @property
    def is_ended_by_program(self) -> bool:
        """True if a bound, an event or a deadline of the program ended it, which says nothing about the service."""
        return self.stop_reason in ENDED_BY_PROGRAM or self.is_late

    @property
    def gave_up(self) -> bool:
        """True if a retry was wanted, and was not possible or did not help; or if not even one attempt was made."""
        if self.stop_reason in QUIET_ENDINGS:
            return False
        if self.stop_reason is StopReason.FORBIDDEN:
            votes = self.attempts[-1].votes if self.attempts else ()
            return len(self.attempts) > 1 or reason_wanted(votes) is not None
        return True

    @property
    def sentence(self) -> str:
        """The end of the operation, in one sentence."""
        if not self.attempts:
            return f"nothing was sent: {self.why}"
        count = self.attempts[-1].number
        # The answer to a 401, and the rest of a body, come on top of that number.
        of = "" if self.max_attempts is None or count > self.max_attempts else f" of {self.max_attempts}"
        if self.stop_reason is StopReason.SUCCESS:
            told = "" if self.why == StopReason.SUCCESS.value else f": {self.why}"
            return f"succeeded at attempt {count}{of}{told}"
        ending = self.attempts[-1].told
        if not self.gave_up:
            deleted = "" if self.deleted_by is None else f"; attempt {self.deleted_by} may have deleted it"
            return f"ended at attempt {count}{of} with {ending}: {self.why}{deleted}"
        return f"gave up after attempt {count}{of}: {self.why}; last answer: {ending}"

    def explain(self) -> str:
        """Return one line per attempt, and the end. Classifiers without an opinion are left out."""
        lines = []
        for item in self.attempts:
            if item.line_why:
                lines.append(wait_text(self.scope, item.line_wait, item.line_why))
            took = "" if item.duration is None else f" in {seconds_text(item.duration)}"
            opinions = [vote for vote in item.votes if not isinstance(vote.action, NoActionIndicated)]
            votes = ", ".join(f"{vote.classifier}: {verdict_text(vote)}" for vote in opinions)
            paid = "" if item.quota_before is None else f", retry budget {item.quota_before:g} -> {item.quota_after:g}"
            at = "" if item.address is None else f" at {item.address}"
            came = "" if item.received is None else f", {item.received} bytes received"
            why = f" [{votes}]" if votes else ""
            lines.append(f"attempt {item.number}: {item.waits}{item.told}{at}{took}{came}{why}{paid}")
        return "\n".join([*lines, self.sentence])

    def to_dict(self) -> dict[str, Any]:
        """Return the history as plain values, for JSON."""
        attempts = []
        for item in self.attempts:
            row = item._asdict()
            row["votes"] = [{"classifier": vote.classifier, "verdict": verdict_text(vote)} for vote in item.votes]
            attempts.append(row)
        return {
            "scope": self.scope,
            "attempts": attempts,
            "stop_reason": self.stop_reason.name,
            "sentence": self.sentence,
            "max_attempts": self.max_attempts,
            "line_wait": self.line_wait,
            "retry_after": self.retry_after,
            "waited": self.waited,
        }

    def __str__(self) -> str:
        return self.sentence


def wait_text(scope: str | None, seconds: float, why: str) -> str:
    """Describe a wait for the service in words."""
    service = display_scope(scope)
    return f"waited {seconds_text(seconds)} for {service}: asked again when {why}"


def verdict_text(vote: Vote) -> str:
    if isinstance(vote.action, RetryIndicated):
        return vote.action.reason.kind.value
    if isinstance(vote.action, RetryForbidden):
        return f"forbidden ({vote.action.why or vote.action.stop_reason.value})"
    return "no opinion"


def attach(target: Any, history: RetryHistory) -> None:
    """Attach the history to the response or the exception; to the latter also as a note (Python 3.11).

    A response is pickled by its list ``__attrs__``, so the history is added to the list of this response.
    """
    history = with_part(with_pieces(history, pieces_of(target)), target)
    setattr(target, ATTRIBUTE, history)
    pickled = getattr(target, "__attrs__", None)
    if isinstance(pickled, list) and ATTRIBUTE not in pickled:
        target.__attrs__ = [*pickled, ATTRIBUTE, "__attrs__"]
    if hasattr(target, "add_note"):
        target.add_note(history.sentence)


def with_pieces(history: RetryHistory, pieces: Iterable[RetryHistory]) -> RetryHistory:
    """Return the history of a body with its continuations."""
    for piece in pieces:
        history = joined(history, piece)
    return history


def with_part(history: RetryHistory, target: Any) -> RetryHistory:
    """Return the history of a response, with what a successful one lacks."""
    part = vars(target).get(PART)
    return history if part is None or history.stop_reason is not StopReason.SUCCESS else history._replace(why=part)


def pieces_of(target: Any) -> tuple[RetryHistory, ...]:
    """Return, once, the histories of the continuations of a body that no other history includes."""
    return () if target is None else tuple(vars(target).pop(PIECES, ()))


def add_piece(response: Any, piece: RetryHistory | None) -> RetryHistory | None:
    """Add the history of one continuation of a body to that of its response, which may be gone; return the whole.

    A response that is still being read has no history yet: :func:`attach` adds what came before.
    """
    before = retry_history(response)
    if piece is None or (before is None and response is None):
        return piece
    if before is None:
        vars(response).setdefault(PIECES, []).append(piece)
        return piece
    whole = joined(before, piece)
    attach(response, whole)
    return whole


def joined(before: RetryHistory, piece: RetryHistory) -> RetryHistory:
    """Return the history of a continued body, whose last attempt so far is the one that broke off.

    :param piece: that of the continuation, which begins with the attempt that broke off.
    """
    last, first, *others = before.attempts[-1], *piece.attempts
    waits: dict[str, Any] = {name: getattr(last, name) for name in Before._fields}
    attempts = [*before.attempts[:-1], first._replace(**waits), *others]
    while len(attempts) > MAX_KEPT:
        del attempts[MAX_KEPT // 2]
    return piece._replace(attempts=tuple(attempts))


def given_up(error: Exception) -> tuple[StopReason, str] | None:
    """Return why an operation gave up, if its body broke off with this error and could not be continued.

    The error's own history is of an earlier send: programs raise the same object again, as mocks do.
    """
    for cause in error.args:
        history = getattr(cause, ATTRIBUTE, None)
        if history is not None and history.stop_reason not in (StopReason.SUCCESS, StopReason.NOT_RETRYABLE):
            return history.stop_reason, history.why
    return None


def retry_history(response_or_exception: Any) -> RetryHistory | None:
    """Return the history of the operation that ended with this response or exception.

    :param response_or_exception: the result of a send. After redirects that is the last operation; each response in
        ``response.history`` has a history of its own. An exception made from a response, as by ``raise_for_status()``,
        has the response's; one without a history has that of its cause (``raise ... from error``).
    :returns: None if it did not come from a :class:`RetryAdapter`, and for a pickled response whose first attempt was
        a success, or the only one because retries are switched off. Other histories survive pickling.
    """
    target = response_or_exception
    for _ in range(MAX_CAUSES):  # causes may form a cycle
        found = _own_history(target)
        if found is not None or not isinstance(target, BaseException):
            return found
        target = target.__cause__
    return None


def _own_history(response_or_exception: Any) -> RetryHistory | None:
    history = getattr(response_or_exception, ATTRIBUTE, None)
    if isinstance(history, RetryHistory):
        return history
    started = getattr(response_or_exception, STARTED, None)
    if isinstance(started, (int, float)):
        return _of_first_try(response_or_exception, started)
    if isinstance(response_or_exception, BaseException):
        # A body that broke off while its caller read it: requests wraps urllib3's exception.
        inner = [arg for arg in response_or_exception.args if isinstance(arg, BaseException)]
        return retry_history(inner[0] if inner else getattr(response_or_exception, "response", None))
    return None


def _of_first_try(response: Any, started: float) -> RetryHistory:
    """Make the history of a response for which only the start was recorded: a first-try success, or one that was sent
    once because retries are switched off.
    """
    elapsed = response.elapsed.total_seconds() or None
    adapter = response.connection
    clock = getattr(adapter, "clock", SYSTEM_CLOCK)
    began = clock.wall() - (clock.now() - started)
    record = AttemptRecord(1, began, elapsed, status=response.status_code)
    if SENT_ONCE in vars(response):
        return sent_once(record)
    scope = adapter.scope_of(response.request) if hasattr(adapter, "scope_of") else scope_of(response.request.url)
    most = most_attempts(getattr(adapter, "strategy", None))
    history = RetryHistory(without_secrets(scope), (record,), StopReason.SUCCESS, StopReason.SUCCESS.value, most)
    return with_part(with_pieces(history, vars(response).get(PIECES, ())), response)


def sent_once(record: AttemptRecord) -> RetryHistory:
    """Return the history of an operation that was sent with retries switched off. No retry budget was asked."""
    is_success = record.status is not None and record.status < 400
    reason = StopReason.SUCCESS if is_success else StopReason.DISABLED
    return RetryHistory(None, (record,), reason, reason.value)
