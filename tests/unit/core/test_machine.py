"""The machine (contract 2), by tables of answers and steps: no clock, socket or lock takes part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import requests
from requests.structures import CaseInsensitiveDict

from requests_smithy_retry import ErrorKind, Outcome, RetryAction, RetryConfig, StopReason, classifier, only
from requests_smithy_retry.classifiers.outcome import ResendFacts
from requests_smithy_retry.config.retry_options import NOTHING, OperationOptions
from requests_smithy_retry.core.line import Bounds, Go
from requests_smithy_retry.core.machine import Context, Passed, Progress, decide, operation, refusal
from requests_smithy_retry.core.policy import Policy
from requests_smithy_retry.core.quota import NO_QUOTA, Quota
from requests_smithy_retry.core.steps import (
    Again,
    Ask,
    AskProgram,
    Before,
    Join,
    Noted,
    Pause,
    ReadOn,
    Refused,
    Send,
    Stop,
)

SAFE, ONCE = ResendFacts("GET", idempotent=True), ResendFacts("POST")
PLACE: Any = "a place"


class Queue(Quota):
    """A quota that sends each retry to wait in line, and remembers what it was told."""

    counts_attempts = True

    def __init__(self) -> None:
        self.told: list[str] = []

    def pay(self, progress: Any, bounds: Any, failure: Any, now: float) -> Iterator[Any]:
        return (yield Join(PLACE, failure.verdict))

    def polled(self, progress: Any) -> Any:
        self.told.append("polled")
        return progress

    def unsent(self, progress: Any) -> None:
        self.told.append("unsent")


def got(status: int, at: float = 0.0, *, resend: ResendFacts | None = SAFE, after: str = "", **facts: Any) -> Outcome:
    """An attempt that got a response at a moment.

    :param after: the value of its ``Retry-After``.
    """
    response = requests.Response()
    response.status_code, response._content = status, b""
    response.headers = CaseInsensitiveDict({"Retry-After": after} if after else {})
    return Outcome(response=response, resend=resend, started=at, ended=at, **facts)


def failed(**facts: Any) -> Outcome:
    """An attempt that failed with an exception."""
    return Outcome(error=requests.ConnectionError(), resend=SAFE, **facts)


def context(quota: Any = NO_QUOTA, deadline: float | None = None, block: Any = NOTHING, **options: Any) -> Context:
    """What an operation is judged by, without jitter."""
    policy = Policy.of(RetryConfig(jitter="none", **options))
    return Context(policy, quota, lambda *_: "", block, policy.bounds(block, deadline), "the shop")


def short(step: Any) -> str:
    """One step in a few words; an empty text for a question."""
    match step:
        case Send(number, before, headers):
            waits = {name: getattr(before, name) for name in ("permit_wait", "gate_wait", "line_wait")}
            return " ".join(
                [f"send {number}", *(f"{key} {value:g}" for key, value in waits.items() if value), *(headers or ())]
            )
        case Noted(Again() as again):
            return f"again {again.delay:g} {again.source}"
        case Noted(Stop() as stop):
            return stop.reason.name
        case Pause(seconds):
            return f"pause {seconds:g}"
        case Ask(function):
            return "succeeded" if function.__name__ == "<lambda>" else ""
    return type(step).__name__


def played(steps: Any, *answers: Any) -> tuple[str, Stop]:
    """Take the steps to the end: questions are asked, other steps get the answers in turn."""
    left, seen, reply, number = list(answers), [], None, 0
    while True:
        try:
            step = steps.send(reply)
        except StopIteration as ended:
            assert [] == left
            return ", ".join(filter(None, seen)), ended.value
        seen.append(short(step))
        reply = step.function(*step.arguments) if isinstance(step, Ask) else None
        if isinstance(step, Send | Join | ReadOn | AskProgram):
            reply = left.pop(0)
        if isinstance(step, Send):
            number += 1
            reply = replace(reply, attempt=number)


@classifier(sees_successes=True)
def polling(outcome: Outcome) -> RetryAction | None:
    """Poll while the answer is 202, refuse a 203, ask again after a 409, and find an error in the first 200."""
    return {
        203: RetryAction.retry_forbidden("a 203"),
        409: RetryAction.client_error(),
        200: RetryAction.server_error() if outcome.attempt == 1 else None,
        202: RetryAction.transient_error(),
    }.get(outcome.status or 0)


@classifier
def slow(outcome: Outcome) -> RetryAction:
    """Ask for ten seconds."""
    return RetryAction.retryable_error_with_explicit_delay(ErrorKind.TRANSIENT, 10)


WELL = "succeeded, SUCCESS"
FURTHER = "succeeded, again 0.05 backoff, pause 0.05"
RETRY = "send 1, again 0.05 backoff, pause 0.05, send 2"
THIRD = f"{RETRY}, again 0.1 backoff, pause 0.1, send 3"
WAITED = "send 1, Join, again 0 backoff, send 2 line_wait 2"
GO = Go(Progress(0.0), 0.0, 2.0, "another request succeeded")
POLLING: dict[str, Any] = {"classifiers": [polling]}
TABLE: dict[str, tuple[dict[str, Any], list[Any], str]] = {
    "the first try is well": ({}, [got(200)], f"send 1, {WELL}"),
    "a retry": ({}, [got(503), got(200)], f"{RETRY}, {WELL}"),
    "an exception, and a retry": ({}, [failed(), got(200)], f"{RETRY}, {WELL}"),
    "no retry is indicated": ({}, [got(404)], "send 1, NOT_RETRYABLE"),
    "attempts are used up": ({}, [got(503)] * 3, f"{THIRD}, MAX_ATTEMPTS"),
    "a cap": ({"max_attempts": 2}, [got(503)] * 2, f"{RETRY}, MAX_ATTEMPTS"),
    "a block's cap": ({"block": OperationOptions(max_attempts=1)}, [got(503)], "send 1, MAX_ATTEMPTS"),
    "the wait would not end in time": ({"deadline": 0.05}, [got(503)], "send 1, DEADLINE"),
    "the wait would end in time": ({"deadline": 0.06}, [got(503), got(200)], f"{RETRY}, {WELL}"),
    "the time was over before": ({"deadline": 0.0}, [], ""),
    "a hint": ({}, [got(429, after="3"), got(200)], f"send 1, again 3 retry-after, pause 3, send 2, {WELL}"),
    "a hint above the limit": ({"max_retry_after": 2}, [got(429, after="3")], "send 1, HINT_TOO_LONG"),
    "hints above twice the chosen patience": (
        {"patience": 3},
        [got(429, after="3"), got(429, 3.5, after="3")],
        "send 1, again 3 retry-after, pause 3, send 2, HINT_TOO_LONG",
    ),
    "a classifier's wait": (
        {"classifiers": only(slow), "max_attempts": 2},
        [got(503), got(404)],
        "send 1, again 10 classifier, pause 10, send 2, MAX_ATTEMPTS",
    ),
    "a handler's own exception": ({}, [failed(final=(StopReason.NOT_RETRYABLE, ""))], "send 1, NOT_RETRYABLE"),
    "it may have been applied": ({}, [got(503, resend=ONCE)], "send 1, NOT_RESENDABLE"),
    "its body is used up": ({}, [got(503, resend=SAFE._replace(replayable=False))], "send 1, BODY_NOT_REPLAYABLE"),
    "switched off": ({"block": OperationOptions(enabled=False)}, [got(503)], "send 1, DISABLED"),
    "a poll": (POLLING, [got(202), got(200)], f"{RETRY}, {WELL}"),
    "a success that is forbidden": (POLLING, [got(203)], "send 1, FORBIDDEN"),
    "a long response is read on": ({}, [got(404, is_unread=True), None], "send 1, ReadOn, NOT_RETRYABLE"),
    "its rest breaks off": (
        {},
        [got(404, is_unread=True), failed(), got(200)],
        f"send 1, ReadOn, {RETRY.removeprefix('send 1, ')}, {WELL}",
    ),
    "a body that comes further twice": (
        {"max_attempts": 2},
        [failed(has_progressed=True), failed(has_progressed=True), failed()],
        f"send 1, {FURTHER}, send 2, {FURTHER}, send 3, MAX_ATTEMPTS",
    ),
    "it waits for the service, and goes": ({"quota": 1}, [got(503), GO, got(200)], f"{WAITED}, {WELL}"),
    "a last retry that is made late": (
        {"quota": 1},
        [got(503), GO._replace(delay=3.0, waited=0.0), got(200)],
        f"send 1, Join, again 3 patience, pause 3, send 2, {WELL}",
    ),
    "patience is over": ({"quota": 1}, [got(503), Refused(StopReason.PATIENCE, 5.0)], "send 1, Join, PATIENCE"),
    "a long poll waits at a refusal": (
        {"quota": 1, "block": OperationOptions(long_poll=True)},
        [got(503, resend=None), Refused(StopReason.QUOTA_EXCEEDED)],
        "send 1, Join, QUOTA_EXCEEDED, pause 0.05",
    ),
    "an error inside a success asks the quota": (
        {"quota": 1, **POLLING},
        [got(200), GO, got(200)],
        f"{WAITED}, {WELL}",
    ),
    "a poll asks no quota": ({"quota": 1, **POLLING}, [got(202), got(200)], f"{RETRY}, {WELL}"),
    "a refusal of one request asks no quota": ({"quota": 1, **POLLING}, [got(409), got(200)], f"{RETRY}, {WELL}"),
    "what costs nothing is counted": ({"quota": 1, **POLLING}, [got(202)] * 3, f"{THIRD}, MAX_ATTEMPTS"),
}


@pytest.mark.parametrize("row", TABLE)
def test_answers_and_steps(row: str) -> None:
    """The answers lead to the steps; with a quota, each retry that it is asked for waits in line."""
    options, answers, expected = TABLE[row]
    quota = Queue() if options.pop("quota", None) else NO_QUOTA
    assert expected == played(operation(context(quota, **options), 0.0, decide), *answers)[0]


class Barrier:
    """A gate that gives its answers in turn."""

    def __init__(self, *answers: Passed | Refused) -> None:
        self.answers = list(answers)

    def admit(self, waited: float, began: float) -> Any:
        return self.answers.pop(0)
        yield

    def add_to(self, before: Before, passed: Passed) -> Before:
        return before._replace(gate_wait=passed.waited)


def test_gates_are_passed_before_each_attempt() -> None:
    """What one waited is recorded; one that refuses ends it, and the price of the retry comes back."""
    quota, gate = Queue(), Barrier(Passed(1), Passed(3), Refused(StopReason.RATE_LIMITED, 0.0, "not before noon"))
    steps, stop = played(
        operation(context(quota), 0.0, decide, find_gates=lambda: (gate,)),
        got(503),
        GO,
        got(503),
        GO._replace(waited=0.0),
    )
    assert "send 1 gate_wait 1, Join, again 0 backoff, send 2 gate_wait 3 line_wait 2, Join, again 0 backoff" == steps
    assert (Stop(StopReason.RATE_LIMITED, "not before noon"), ["unsent"]) == (stop, quota.told)


def test_a_remedy_comes_before_the_verdict() -> None:
    """Its headers are sent from then on; where it has none, the attempt is judged."""

    def mend(outcome: Outcome, progress: Progress) -> Any:
        headers = yield AskProgram(dict)
        return None if headers is None else Again(progress, headers=headers)

    steps, _ = played(
        operation(context(), 0.0, decide, remedies=(mend,)),
        *(got(401), {"Authorization": "new"}, got(503), None, got(401), None),
    )
    assert steps == (
        "send 1, AskProgram, again 0 backoff, send 2 Authorization, AskProgram, again 0.05 backoff, pause 0.05, "
        "send 3 Authorization, AskProgram, NOT_RETRYABLE"
    )


def test_a_strategy_of_the_programs_decides_itself() -> None:
    """Its judge is asked in place of ours, it may wait before the first attempt, and it may go on behind that."""

    def judge(context: Context, progress: Progress, outcome: Outcome) -> Any:
        yield Pause(1)
        return Stop(StopReason.STRATEGY_REFUSED)

    steps = operation(context(), 0.0, judge, wait=2.0)
    assert "pause 2, send 1, pause 1, STRATEGY_REFUSED" == played(steps, got(503))[0]
    assert (
        f"{RETRY.removeprefix('send 1, ')}, {WELL}" == played(operation(context(), 0.0, decide, got(503)), got(200))[0]
    )


EMPTY = "the retry budget of the shop is empty, and patience is 0"
FAILING = "waited 2 s: the shop has been failing for longer than patience allows (5 s)"


@pytest.mark.parametrize(
    ("refused", "bounds", "expected"),
    [
        (Refused(StopReason.PATIENCE), Bounds(patience=0), EMPTY),
        (Refused(StopReason.DEADLINE), Bounds(patience=0), EMPTY),
        (Refused(StopReason.PATIENCE), Bounds(), FAILING),
        (Refused(StopReason.DEADLINE), Bounds(), "waited 2 s: the shop was failing until the deadline"),
        (Refused(StopReason.LINE_FULL), Bounds(), "too many operations are waiting for the shop already"),
        (Refused(StopReason.MAX_ATTEMPTS), Bounds(), StopReason.MAX_ATTEMPTS.value),
        (Refused(StopReason.QUOTA_EXCEEDED, 0, "{service} is out of tokens"), Bounds(), "the shop is out of tokens"),
    ],
)
def test_a_refusal_says_why(refused: Refused, bounds: Bounds, expected: str) -> None:
    """In one plain sentence."""
    assert expected == refusal(refused, bounds, "the shop", 2.0)[1]
