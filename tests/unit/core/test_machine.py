"""The machine, driven by tables of answers: no clock, socket or lock takes part."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import requests
from requests.structures import CaseInsensitiveDict
from urllib3.util.retry import Retry

from requests_smithy_retry import ErrorKind, RetryAction, RetryConfig, StopReason, classifier, only
from requests_smithy_retry.classifiers.outcome import Outcome, ResendFacts
from requests_smithy_retry.config.retry_options import NOTHING, OperationOptions
from requests_smithy_retry.core.line import Bounds, Go, Progress
from requests_smithy_retry.core.machine import Context, Passed, decide, operation, refusal
from requests_smithy_retry.core.policy import Policy
from requests_smithy_retry.core.quota import NO_QUOTA
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
from requests_smithy_retry.features.urllib3_retry.translation import translate_retry
from tests.support import config_of

SAFE = ResendFacts("GET", idempotent=True)
ONCE = ResendFacts("POST")
PLACE: Any = "a place"


class Queue:
    """A quota that sends each retry to wait in line, and remembers what it was told."""

    counts_attempts = True

    def __init__(self) -> None:
        self.told: list[str] = []
        self.failures: list[Any] = []

    def pay(self, progress: Any, bounds: Any, failure: Any, now: float) -> Iterator[Any]:
        self.failures.append(failure)
        seen = yield Join(PLACE, failure.verdict)
        return seen._replace(progress=progress) if isinstance(seen, Go) else seen

    def polled(self, progress: Any) -> Any:
        self.told.append("polled")
        return progress

    def unsent(self, progress: Any) -> None:
        self.told.append("unsent")


def answer(status: int = 503, at: float = 0.0, *, resend: ResendFacts | None = SAFE, **facts: Any) -> Outcome:
    """An attempt that got a response at a moment."""
    response = requests.Response()
    response.status_code = status
    response.headers = CaseInsensitiveDict(facts.pop("headers", {}))
    response._content = b""
    return Outcome(response=response, resend=resend, started=at, ended=at, **facts)


def failure(error: Exception | None = None, at: float = 0.0, **facts: Any) -> Outcome:
    """An attempt that failed with an exception."""
    error = requests.ConnectionError() if error is None else error
    return Outcome(error=error, resend=facts.pop("resend", SAFE), started=at, ended=at, **facts)


def context(quota: Any = NO_QUOTA, deadline: float | None = None, block: Any = NOTHING, **options: Any) -> Context:
    """What an operation is judged by, without jitter; ``told`` hears of its success."""
    config = options.pop("config", None) or RetryConfig(jitter="none", **options)
    told: list[Any] = []
    policy, verdicts = Policy.of(config), (lambda outcome, verdict: None,)
    bounds = policy.bounds(block, deadline)
    return Context(policy, quota, lambda *facts: told.append(facts), block, bounds, "the shop", verdicts)


def short(step: Any) -> str:
    """One step in a few words."""
    match step:
        case Send(number, before, headers):
            waits = [f"{name} {seconds:g}" for name in WAITS if (seconds := getattr(before, f"{name}_wait"))]
            return " ".join([f"send {number}", *waits, *(headers or {})])
        case Noted(Again() as again):
            return f"again {again.delay:g} {again.source}"
        case Noted(Stop() as stop):
            return f"stop {stop.reason.name}"
        case Pause(seconds):
            return f"pause {seconds:g}"
        case Join() | ReadOn() | AskProgram():
            return type(step).__name__
        case Ask(function):
            return getattr(function, "__name__", "ask")
    raise AssertionError(step)


WAITS = ("permit", "gate", "line")


def played(steps: Any, *answers: Any) -> tuple[str, Stop]:
    """Take the steps to the end: questions are asked, and other steps get the answers in turn."""
    left, seen, reply, number = list(answers), [], None, 0
    while True:
        try:
            step = steps.send(reply)
        except StopIteration as ended:
            assert [] == left
            return ", ".join(seen), ended.value
        reply = None
        if isinstance(step, Ask):
            reply = step.function(*step.arguments)
            if step.function.__name__ == "<lambda>":
                seen.append("succeeded")
            continue
        seen.append(short(step))
        if isinstance(step, Send | Join | ReadOn | AskProgram):
            reply = left.pop(0)
        if isinstance(step, Send):
            number += 1
            reply = replace(reply, attempt=number)


@classifier(sees_successes=True)
def pending(outcome: Outcome) -> RetryAction | None:
    """Poll while the answer is 202, refuse a 203, ask again after a 409, and find an error in the first 200."""
    if outcome.status == 203:
        return RetryAction.retry_forbidden("a 203")
    if outcome.status == 409:
        return RetryAction.client_error()
    if outcome.status == 200:
        return RetryAction.server_error() if outcome.attempt == 1 else None
    return RetryAction.transient_error() if outcome.status == 202 else None


@classifier
def slow(outcome: Outcome) -> RetryAction:
    """Ask for ten seconds."""
    return RetryAction.retryable_error_with_explicit_delay(ErrorKind.TRANSIENT, 10)


WAIT_3: dict[str, Any] = {"headers": {"Retry-After": "3"}}
WELL = "succeeded, stop SUCCESS"
AGAIN = "again 0.05 backoff, pause 0.05"
RETRY = f"send 1, {AGAIN}, send 2"
USED_UP = f"{RETRY}, again 0.1 backoff, pause 0.1, send 3, stop MAX_ATTEMPTS"
READ_ON = answer(404, is_unread=True)
TABLE: dict[str, tuple[dict[str, Any], list[Any], str]] = {
    "the first try is well": ({}, [answer(200)], f"send 1, {WELL}"),
    "a retry": ({}, [answer(503), answer(200)], f"{RETRY}, {WELL}"),
    "an exception, and a retry": ({}, [failure(), answer(200)], f"{RETRY}, {WELL}"),
    "no retry is indicated": ({}, [answer(404)], "send 1, stop NOT_RETRYABLE"),
    "attempts are used up": ({}, [answer(503)] * 3, USED_UP),
    "a block's cap": ({"block": OperationOptions(max_attempts=1)}, [answer(503)], "send 1, stop MAX_ATTEMPTS"),
    "the wait would not end in time": ({"deadline": 0.05}, [answer(503)], "send 1, stop DEADLINE"),
    "the wait would end in time": ({"deadline": 0.06}, [answer(503), answer(200)], f"{RETRY}, {WELL}"),
    "a hint": ({}, [answer(429, **WAIT_3), answer(200)], f"send 1, again 3 retry-after, pause 3, send 2, {WELL}"),
    "a hint above the limit": ({"max_retry_after": 2}, [answer(429, **WAIT_3)], "send 1, stop HINT_TOO_LONG"),
    "a classifier's hint": (
        {"classifiers": only(slow), "max_attempts": 2},
        [answer(503), answer(200)],
        f"send 1, again 10 classifier, pause 10, send 2, {WELL}",
    ),
    "it may have been applied": ({}, [answer(503, resend=ONCE)], "send 1, stop NOT_RESENDABLE"),
    "switched off": ({"block": OperationOptions(enabled=False)}, [answer(503)], "send 1, stop DISABLED"),
    "polling": ({"classifiers": [pending]}, [answer(202), answer(200)], f"{RETRY}, {WELL}"),
    "a success that is forbidden": ({"classifiers": [pending]}, [answer(203)], "send 1, stop FORBIDDEN"),
    "the rest of a response is read": ({}, [READ_ON, None], "send 1, ReadOn, stop NOT_RETRYABLE"),
    "the rest of a response breaks off": (
        {},
        [READ_ON, failure(attempt=1), answer(200)],
        f"send 1, ReadOn, {AGAIN}, send 2, {WELL}",
    ),
    "a body that comes further twice": (
        {"max_attempts": 2},
        [failure(has_progressed=True), failure(has_progressed=True), failure()],
        f"send 1, succeeded, {AGAIN}, send 2, succeeded, {AGAIN}, send 3, stop MAX_ATTEMPTS",
    ),
}


@pytest.mark.parametrize("row", TABLE)
def test_answers_and_steps(row: str) -> None:
    """The answers lead to the steps."""
    options, answers, expected = TABLE[row]
    assert expected == played(operation(context(**options), 0.0, decide), *answers)[0]


def went(delay: float = 0.0, waited: float = 2.0) -> Go:
    """A place's answer: go."""
    return Go(Progress(0.0), delay, waited, "another request succeeded")


PATIENCE_IS_OVER = Refused(StopReason.PATIENCE, 5.0)
TO_THE_QUEUE = "Join, again 0 backoff"
QUEUES: dict[str, tuple[dict[str, Any], list[Any], str, list[str]]] = {
    "it joins the queue and goes": (
        {},
        [answer(503), went(), answer(200)],
        f"send 1, {TO_THE_QUEUE}, send 2 line 2, {WELL}",
        [],
    ),
    "without a cap the quota counts the attempts": (
        {},
        [*[answer(503), went()] * 4, answer(404)],
        f"send 1, {', '.join(f'{TO_THE_QUEUE}, send {n} line 2' for n in range(2, 6))}, stop NOT_RETRYABLE",
        [],
    ),
    "without patience attempts count": (
        {"patience": 0},
        [*[answer(503), went()] * 2, answer(503)],
        f"send 1, {TO_THE_QUEUE}, send 2 line 2, {TO_THE_QUEUE}, send 3 line 2, stop MAX_ATTEMPTS",
        [],
    ),
    "a last retry that is made late": (
        {},
        [answer(503), went(3.0, 0.0), answer(200)],
        f"send 1, Join, again 3 patience, pause 3, send 2, {WELL}",
        [],
    ),
    "patience is over": ({}, [answer(503), PATIENCE_IS_OVER], "send 1, Join, stop PATIENCE", []),
    "a long poll waits at a refusal": (
        {"block": OperationOptions(long_poll=True)},
        [answer(503, resend=None), Refused(StopReason.QUOTA_EXCEEDED)],
        "send 1, Join, stop QUOTA_EXCEEDED, pause 0.05",
        [],
    ),
    "a value that a policy judged asks no quota": (
        {"classifiers": only(slow), "max_attempts": 2},
        [Outcome(), Outcome()],
        "send 1, again 10 classifier, pause 10, send 2, stop MAX_ATTEMPTS",
        ["polled"],
    ),
    "an error inside a success asks the quota": (
        {"classifiers": [pending]},
        [answer(200), went(), answer(200)],
        f"send 1, {TO_THE_QUEUE}, send 2 line 2, {WELL}",
        [],
    ),
    "a poll asks no quota": ({"classifiers": [pending]}, [answer(202), answer(200)], f"{RETRY}, {WELL}", ["polled"]),
    "a refusal of one request asks no quota": (
        {"classifiers": [pending]},
        [answer(409), answer(200)],
        f"{RETRY}, {WELL}",
        [],
    ),
    "attempts that cost nothing are counted": (
        {"classifiers": [pending]},
        [answer(202)] * 3,
        USED_UP,
        ["polled"] * 2,
    ),
}


@pytest.mark.parametrize("row", QUEUES)
def test_a_quota_that_has_a_queue(row: str) -> None:
    """The answers lead to the steps, and the quota is told."""
    options, answers, expected, told = QUEUES[row]
    quota = Queue()
    assert expected == played(operation(context(quota, **options), 0.0, decide), *answers)[0]
    assert told == quota.told


def test_the_quota_is_told_what_failed() -> None:
    """Delay, hint, throttling, a name that was not found, and a body that broke off below a good head."""
    quota = Queue()
    unknown = requests.ConnectionError(socket.gaierror())
    cut = failure(resend=SAFE._replace(is_cut=True))
    steps = operation(context(quota), 0.0, decide)
    played(steps, answer(429, **WAIT_3), went(), failure(unknown), went(), cut, Refused(StopReason.PATIENCE))
    seen = [(each.delay, each.hint, each.throttled, each.unresolved, each.is_cut) for each in quota.failures]
    assert [(3.0, 3.0, True, False, False), (0.1, 0.0, False, True, False), (0.2, 0.0, False, False, True)] == seen


def test_an_operation_that_is_broken_off_loses_its_tokens() -> None:
    """Whoever drives the steps closes them, and nothing comes back."""
    quota = Queue()
    steps = operation(context(quota), 0.0, decide)
    next(steps)
    steps.close()
    assert [] == quota.told


def test_a_first_attempt_that_was_made_already() -> None:
    """The machine goes on behind it."""
    steps, stop = played(operation(context(), 0.0, decide, answer(503)), answer(200))
    assert f"{AGAIN}, send 2, {WELL}" == steps
    assert StopReason.SUCCESS is stop.reason


def test_a_strategy_of_the_programs_decides_itself() -> None:
    """Its judge is asked in place of ours, and it may wait before the first attempt."""

    def judge(context: Context, progress: Progress, outcome: Outcome) -> Any:
        yield Pause(1)
        return Stop(StopReason.STRATEGY_REFUSED)

    steps, stop = played(operation(context(), 0.0, judge, wait=2.0), answer(503))
    assert "pause 2, send 1, pause 1, stop STRATEGY_REFUSED" == steps
    assert StopReason.STRATEGY_REFUSED is stop.reason


class Barrier:
    """A gate that gives its answers in turn."""

    def __init__(self, name: str, *answers: Passed | Refused) -> None:
        self.name = name
        self.answers = list(answers)
        self.waited: list[float] = []

    def admit(self, waited: float, began: float) -> Any:
        self.waited.append(waited)
        return self.answers.pop(0)
        yield

    def add_to(self, before: Before, passed: Passed) -> Before:
        return before._replace(**{f"{self.name}_wait": passed.waited})


def test_gates_are_passed_before_each_attempt() -> None:
    """Each is told of the wait before it, and its own is recorded."""
    permit, limit = Barrier("permit", Passed(1), Passed(2)), Barrier("gate", Passed(), Passed(3))
    steps, _ = played(
        operation(context(), 0.0, decide, gates=lambda: (permit, limit)), answer(429, **WAIT_3), answer(200)
    )
    assert f"send 1 permit 1, again 3 retry-after, pause 3, send 2 permit 2 gate 3, {WELL}" == steps
    assert [0, 3] == limit.waited


def test_a_gate_may_refuse() -> None:
    """Nothing is sent, and the price of the retry comes back."""
    quota, gate = Queue(), Barrier("gate", Refused(StopReason.RATE_LIMITED, 0.0, "not before noon"))
    steps, stop = played(operation(context(quota), 0.0, decide, gates=lambda: (gate,)))
    assert ("", Stop(StopReason.RATE_LIMITED, "not before noon")) == (steps, stop)
    assert ["unsent"] == quota.told


def test_a_remedy_comes_before_the_verdict() -> None:
    """Its headers are sent from then on; where it has none, the attempt is judged."""
    asked: list[int] = []

    def mend(outcome: Outcome, progress: Progress) -> Any:
        asked.append(outcome.attempt)
        headers = yield AskProgram(dict)
        return None if headers is None else Again(progress, headers=headers)

    steps, _ = played(
        operation(context(), 0.0, decide, remedies=(mend,)),
        *(answer(401), {"Authorization": "new"}, answer(503), None, answer(401), None),
    )
    renewed = "send 1, AskProgram, again 0 backoff, send 2 Authorization, AskProgram"
    retried = f"{AGAIN}, send 3 Authorization, AskProgram, stop NOT_RETRYABLE"
    assert f"{renewed}, {retried}" == steps
    assert [1, 2, 3] == asked


def test_the_counts_of_a_retry_of_urllib3() -> None:
    """They end it with a phrase of their own; a 404 that it lists is polled."""
    config = config_of(jitter="none", **translate_retry(Retry(3, status=1, status_forcelist=[404, 503])))
    quota = Queue()
    steps, stop = played(operation(context(quota, config=config), 0.0, decide), answer(404), answer(503))
    assert f"{RETRY}, stop MAX_ATTEMPTS" == steps
    assert (["polled"], StopReason.MAX_ATTEMPTS) == (quota.told, stop.reason)
    assert "status" in stop.why


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
