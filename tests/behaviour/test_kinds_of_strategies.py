"""The built-in strategy, a subclass that only calls ``super()``, and a wrapper that hands on: one library (contract 1).

What a program can see of each scenario is compared: requests, waits, history, events, log, summary and exceptions.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import requests

from requests_smithy_retry import (
    ErrorKind,
    RetryAction,
    RetryListener,
    StandardRetryStrategy,
    TokenBucket,
    classifier,
    only,
    retry_history,
    retry_options,
)
from requests_smithy_retry.observing.summary import summary_of
from requests_smithy_retry.testing import FakeClock, scripted
from tests.kinds import METHODS, WithConfig, subclass
from tests.support import Reply, ended, read_timeout, reset_error

KINDS: dict[str, Callable[[Any], Any]] = {"class": lambda made: made, "subclass": subclass, "wrapper": WithConfig}


class Told(RetryListener):
    """Notes the name, the number and what else is told of each event."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def before_attempt(self, event: Any) -> None:
        self.events.append(("before", event.number))

    def after_attempt(self, event: Any) -> None:
        self.events.append(("after", event.number, event.status, type(event.error).__name__, event.record.votes))

    def wait_began(self, event: Any) -> None:
        self.events.append(("wait", event.number, event.what, event.seconds))

    def retry_scheduled(self, event: Any) -> None:
        waits = event.delay, event.delay_source, event.line_wait, event.line_why
        self.events.append(("retry", event.number, *waits, event.record.quota_before, event.record.quota_after))

    def throttled(self, event: Any) -> None:
        self.events.append(("throttled", event.number))

    def gave_up(self, event: Any) -> None:
        self.events.append(("gave up", event.number, event.history.sentence))

    def succeeded(self, event: Any) -> None:
        self.events.append(("succeeded", event.number, event.history.sentence))


def long_answer(status: int) -> Reply:
    return Reply(status, body=b"x" * 200_000)


THROTTLED = Reply(429, {"Retry-After": "3"})
ASKS_AGAIN = classifier(sees_successes=True)(
    lambda outcome: (
        RetryAction.retryable_error_with_explicit_delay(ErrorKind.TRANSIENT, 2.0) if outcome.status == 202 else None
    )
)
FORBIDS = classifier(lambda outcome: RetryAction.retry_forbidden("never"))
RETRIES_404 = classifier(
    lambda outcome: RetryAction.retryable_error(ErrorKind.SERVER) if outcome.status == 404 else None
)
BROKEN = classifier(lambda outcome: 1 / 0)
SCENARIOS: dict[str, dict[str, Any]] = {
    "at once": {"script": [200]},
    "a retry": {"script": [503, 200]},
    "two retries": {"script": [503, reset_error, 200]},
    "throttled": {"script": [429, 200]},
    "a hint": {"script": [THROTTLED, 200]},
    "too long a hint": {"script": [Reply(429, {"Retry-After": "3000"})]},
    "a 404": {"script": [404]},
    "forbidden": {"script": [503], "classifiers": [FORBIDS]},
    "a classifier's bug": {"script": [503], "classifiers": [BROKEN]},
    "a poll": {"script": [202, 202, 200], "classifiers": [ASKS_AGAIN]},
    "validate": {"script": [200, 200], "validate": iter([False, True]).__next__, "is_one_shot": True},
    "a POST": {"script": [503], "method": "POST"},
    "a POST that was not written": {"script": [429, 200], "method": "POST"},
    "one attempt": {"script": [503], "max_attempts": 1},
    "five attempts": {"script": [503] * 5, "max_attempts": 5},
    "no patience": {"script": [503] * 3, "patience": 0},
    "patience": {"script": [503] * 40, "patience": 30},
    "a deadline": {"script": [503] * 40, "adapter": {"operation_timeout": 1.5}},
    "a time-out": {"script": [read_timeout] * 40, "adapter": {"operation_timeout": 4}},
    "max_wait": {"script": [503] * 40, "adapter": {"max_wait": 0.4}},
    "max_wait and a hint": {"script": [THROTTLED], "adapter": {"max_wait": 1}},
    "a block": {"script": [503] * 2, "block": {"max_attempts": 2}},
    "a block's patience": {"script": [503] * 40, "block": {"patience": 1}},
    "a block's classifiers": {"script": [503], "block": {"classifiers": [FORBIDS]}},
    "switched off": {"script": [503], "block": {"enabled": False}},
    "a published bucket": {"script": [503] * 3, "retry_spec": "2.1"},
    "an empty bucket": {"script": [503], "quota": 5},
    "a bucket that waits": {"script": [503, 503, 200], "bucket": {"refill_rate": 2, "on_empty": "wait"}},
    "a long poll": {"script": [503], "quota": 5, "block": {"long_poll": True}},
    "an unread answer": {"script": [503, 404], "stream": True},
    "a long answer": {"script": [long_answer(503), long_answer(404)]},
    "classifiers of the adapter": {"script": [404, 200], "adapter": {"classifiers": [RETRIES_404]}},
    "only classifiers of the adapter": {"script": [503], "adapter": {"classifiers": only(RETRIES_404)}},
    "validate of the adapter": {
        "script": [200, 204],
        "adapter": {"validate": lambda response: response.status_code == 204},
    },
    "raise_on_status": {"script": [503] * 3, "retry_spec": "2.1", "adapter": {"raise_on_status": True}},
    "no quota": {"script": [503] * 3, "quota": None},
    "old numbers": {"script": [503, 429, 503], "retry_spec": "2.0"},
    "cancelled": {"script": [503] * 40, "cancel": True},
    "a body that is sent once": {"script": [503], "method": "PUT", "data": lambda: iter([b"a"])},
}


def seen(
    kind: str, caplog: pytest.LogCaptureFixture, scenario: dict[str, Any], *, is_inside: bool = False
) -> list[Any]:
    """Return all that a program can see of a scenario.

    :param is_inside: the strategy is given the adapter's options, too.
    """
    given = dict(scenario)
    script = [step() if callable(step) else step for step in given.pop("script")]
    block, options, method = given.pop("block", {}), given.pop("adapter", {}), given.pop("method", "GET")
    stream, data, clock, told = given.pop("stream", False), given.pop("data", lambda: None)(), FakeClock(), Told()
    if given.pop("is_one_shot", False):
        answers = iter([False, True])
        given["validate"] = lambda response: next(answers)
    if "bucket" in given:
        given["quota"] = TokenBucket(20, clock=clock, **given.pop("bucket"))
    if given.pop("cancel", False):
        block["cancel"] = event = threading.Event()
        usual = clock.sleep
        clock.sleep = lambda seconds: (usual(seconds), clock.now() > 1 and event.set())[0]  # type: ignore[method-assign]
    if is_inside:
        given, options = {**given, **options}, {}
    strategy = KINDS[kind](StandardRetryStrategy(clock=clock, jitter="none", **given))
    adapter = scripted(*script, strategy=strategy, clock=clock, listeners=[told], **options)
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "requests_smithy_retry"), retry_options(**block):
        try:
            result: Any = ended(adapter, method, data=data, stream=stream)
        except ZeroDivisionError as error:
            result = error
    history = retry_history(result)
    return [
        result.status_code if isinstance(result, requests.Response) else f"{type(result).__name__}: {result}",
        None if history is None else (history._asdict(), history.gave_up),
        len(adapter.sent),
        clock.now(),
        told.events,
        [(record.levelname, record.getMessage()) for record in caplog.records],
        str(summary_of([adapter])),
        strategy.inner.snapshot() if isinstance(strategy, WithConfig) else strategy.snapshot(),
    ]


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("kind", ["subclass", "wrapper"])
def test_who_only_hands_on_loses_nothing(kind: str, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Requests, waits, history, events, log records, summary, and what is left of the quota are the same."""
    assert seen("class", caplog, SCENARIOS[name]) == seen(kind, caplog, SCENARIOS[name])


@pytest.mark.parametrize("name", [name for name, scenario in SCENARIOS.items() if "adapter" in scenario])
@pytest.mark.parametrize("kind", KINDS)
def test_options_of_the_adapter_may_be_given_to_the_strategy(
    kind: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """They hold as they do beside it."""
    beside = seen("class", caplog, SCENARIOS[name])
    assert beside == seen(kind, caplog, SCENARIOS[name], is_inside=True)


def spied(calls: list[str], name: str, real: Any, **given: Any) -> Any:
    calls.append(name)
    return real(**given)


@pytest.mark.parametrize("kind", KINDS)
def test_each_operation_calls_the_three_methods_once_where_the_papers_say_so(kind: str) -> None:
    """A spy that is put on them after mounting sees them, in an operation that succeeds at once as well."""
    strategy, calls = KINDS[kind](StandardRetryStrategy(clock=FakeClock())), []
    adapter = scripted(
        200, 503, 200, 404, strategy=strategy, clock=strategy.clock if kind != "wrapper" else strategy.inner.clock
    )
    for name in METHODS:
        setattr(strategy, name, partial(spied, calls, name, getattr(strategy, name)))
    for expected in ([0, 2], [0, 1, 2], [0, 1]):
        calls.clear()
        ended(adapter)
        assert [METHODS[number] for number in expected] == calls
