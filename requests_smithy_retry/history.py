"""What happened (contract 12): the attempts of an operation, and why it ended.

A record is attached to the response or the exception that the caller gets. For a first-try success it is made only
when somebody asks.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .actions import RetryForbidden, RetryIndicated
from .classification import Vote
from .clock import SYSTEM_CLOCK, Clock
from .scopes import scope_of, without_secrets
from .stop_reason import StopReason

ATTRIBUTE = "_retry_history"
STARTED = "_retry_started"
MAX_KEPT = 100
"""So many attempts are kept; of more, the first and the last ones."""


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt.

    :param number: from 1.
    :param started: seconds since the epoch.
    :param duration: seconds; None where only the session knows it and nobody measured.
    :param status: of the response, or None.
    :param error: the exception's type, or None.
    :param delay: seconds waited before it.
    :param delay_source: ``"backoff"`` or the name of the hint.
    :param votes: what each classifier said of its outcome; empty for a success.
    :param quota_before: what the bucket held before the retry that followed was paid.
    :param quota_after: what it held after.
    :param quota_source: which bucket paid: ``"memory"``, ``"redis"``, ``"redis, fallen open"`` and the like.
    :param permit_wait: seconds waited for a permit to send it (adaptive mode), after the delay.
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

    @property
    def ending(self) -> str:
        """What it ended with, in a word."""
        return str(self.status) if self.error is None else self.error


@dataclass(frozen=True, slots=True)
class RetryHistory:
    """The attempts of one operation, and why it ended. It can be pickled and holds no request, header or body.

    :param scope: whose quota it spent; userinfo, query and fragment of a URL are left out.
    :param attempts: in order.
    :param stop_reason: the rule that ended it.
    :param why: that rule's own words.
    :param max_attempts: how many there could have been; None where the strategy does not say.
    """

    scope: str | None
    attempts: tuple[AttemptRecord, ...]
    stop_reason: StopReason
    why: str
    max_attempts: int | None = None

    def __post_init__(self) -> None:
        if self.scope is not None:
            object.__setattr__(self, "scope", without_secrets(self.scope))

    @property
    def sentence(self) -> str:
        """Why it ended, in one sentence."""
        if not self.attempts:
            return f"nothing was sent: {self.why}"
        count = self.attempts[-1].number
        of = "" if self.max_attempts is None else f" of {self.max_attempts}"
        if self.stop_reason is StopReason.SUCCESS:
            return f"succeeded at attempt {count}{of}"
        ending = self.attempts[-1].ending
        if self.stop_reason is StopReason.NOT_RETRYABLE:
            return f"ended at attempt {count}{of} with {ending}: {self.why}"
        return f"gave up after attempt {count}{of}: {self.why}; last answer: {ending}"

    def explain(self) -> str:
        """The whole story, one line an attempt."""
        lines = []
        for item in self.attempts:
            wait = f"after {item.delay:.3g} s ({item.delay_source}) " if item.delay else ""
            wait += f"and {item.permit_wait:.3g} s for a permit " if item.permit_wait else ""
            took = "" if item.duration is None else f" in {item.duration:.3g} s"
            votes = ", ".join(f"{vote.classifier}: {said(vote)}" for vote in item.votes)
            paid = "" if item.quota_before is None else f", quota {item.quota_before:g} -> {item.quota_after:g}"
            lines.append(f"attempt {item.number}: {wait}{item.ending}{took}{f' [{votes}]' if votes else ''}{paid}")
        return "\n".join([*lines, self.sentence])

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values, for JSON."""
        attempts = []
        for item in self.attempts:
            row = asdict(item)
            row["votes"] = [{"classifier": vote.classifier, "verdict": said(vote)} for vote in item.votes]
            attempts.append(row)
        return {
            "scope": self.scope,
            "attempts": attempts,
            "stop_reason": self.stop_reason.name,
            "sentence": self.sentence,
            "max_attempts": self.max_attempts,
        }

    def __str__(self) -> str:
        return self.sentence


def said(vote: Vote) -> str:
    """What a classifier said, in words."""
    if isinstance(vote.action, RetryIndicated):
        return vote.action.reason.kind.value
    if isinstance(vote.action, RetryForbidden):
        return f"forbidden ({vote.action.why or vote.action.stop_reason.value})"
    return "no opinion"


def attach(target: Any, history: RetryHistory) -> None:
    """Give the response or the exception its record; an exception carries it as a note as well (Python 3.11).

    A response is pickled by the list of its attributes, so the record is put on the list of this one.
    """
    setattr(target, ATTRIBUTE, history)
    pickled = getattr(target, "__attrs__", None)
    if isinstance(pickled, list) and ATTRIBUTE not in pickled:
        target.__attrs__ = [*pickled, ATTRIBUTE, "__attrs__"]
    if hasattr(target, "add_note"):
        target.add_note(history.sentence)


def retry_history(response_or_exception: Any) -> RetryHistory | None:
    """What happened in the operation that ended with this response or exception.

    :param response_or_exception: what a send returned or raised. After redirects that is the last operation; each
        response in ``response.history`` has a record of its own. An exception that requests made from a response, as
        ``raise_for_status()`` does, has the response's.
    :returns: None for something that did not come from a :class:`RetryAdapter`, and for a first-try success that was
        pickled since. Other records survive the pickling of what they belong to.
    """
    history = getattr(response_or_exception, ATTRIBUTE, None)
    if isinstance(history, RetryHistory):
        return history
    started = getattr(response_or_exception, STARTED, None)
    if isinstance(started, (int, float)):
        return _of_first_try(response_or_exception, started)
    if isinstance(response_or_exception, BaseException):
        return retry_history(getattr(response_or_exception, "response", None))
    return None


def _of_first_try(response: Any, started: float) -> RetryHistory:
    """The record of a first-try success, of which only the moment of its start was kept."""
    elapsed = response.elapsed.total_seconds() or None
    adapter = response.connection
    clock = getattr(adapter, "clock", SYSTEM_CLOCK)
    record = AttemptRecord(1, clock.wall() - (clock.now() - started), elapsed, status=response.status_code)
    scope = adapter.scope_of(response.request) if hasattr(adapter, "scope_of") else scope_of(response.request.url)
    most = getattr(getattr(adapter, "strategy", None), "max_attempts", None)
    return RetryHistory(scope, (record,), StopReason.SUCCESS, StopReason.SUCCESS.value, most)


def ended_now(clock: Clock, number: int, duration: float, status: int | None, error: str | None) -> AttemptRecord:
    """The record of an attempt that ended just now, of which nothing else is known."""
    return AttemptRecord(number, clock.wall() - duration, duration, status, error)
