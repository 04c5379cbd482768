"""``max_attempts`` is a cap on requests sent, wherever it was given; the default has none (contract 2.6, 6.2)."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from urllib3.util.retry import Retry

from requests_smithy_retry import (
    AdaptiveRetryStrategy,
    ErrorKind,
    Outcome,
    RetryAction,
    SimpleRetryStrategy,
    StandardRetryStrategy,
    StopReason,
    classifier,
    retry_history,
    retry_options,
)
from requests_smithy_retry.policy import RetryDirective, RetryErrorType, RetryFailure, retry
from requests_smithy_retry.testing import FakeClock, scripted
from tests.behaviour.test_outages import refused
from tests.support import Reply, ended, send


@classifier(sees_successes=True)
def pending(outcome: Outcome) -> RetryAction | None:
    """Poll while the answer is 202, and ask about a lock again after a second."""
    if outcome.status == 202:
        return RetryAction.transient_error()
    lock = RetryAction.retryable_error_with_explicit_delay(ErrorKind.CLIENT, 1.0)
    return lock if outcome.status == 409 else None


SITUATIONS: dict[str, Any] = {
    "the service is down": 503,
    "connections are refused": refused,
    "it throttles": 429,
    "it throttles with a hint": Reply(429, {"Retry-After": "1"}),
    "the answer is not there yet": 202,
    "the thing is locked": 409,
}


def own(make: Any, most: int | None) -> dict[str, Any]:
    """A strategy in place of options."""
    clock = FakeClock()
    return {"strategy": make(clock=clock, max_attempts=most, classifiers=[pending]), "clock": clock}


A_RETRY = partial(Retry, status_forcelist=[202, 409, 429, 503])
WAYS: dict[str, Callable[[int], dict[str, Any]]] = {
    "code": lambda most: {"max_attempts": most},
    "environment": lambda most: {"env": {"SMITHY_RETRY_MAX_ATTEMPTS": str(most)}},
    "AWS": lambda most: {"env": {"AWS_MAX_ATTEMPTS": str(most)}, "aws_config": True},
    "AWS with the default's quota": lambda most: {**WAYS["AWS"](most), "quota": "payoff"},
    "max_retries": lambda most: {"max_retries": most - 1},
    "a Retry": lambda most: {"max_retries": A_RETRY(most - 1)},
    "a Retry with the default's quota": lambda most: {**WAYS["a Retry"](most), "quota": "payoff"},
    "a simple strategy": lambda most: own(SimpleRetryStrategy, most),
    "a standard strategy": lambda most: own(StandardRetryStrategy, most),
    "an adaptive strategy": lambda most: own(AdaptiveRetryStrategy, most),
    "without patience": lambda most: {"max_attempts": most, "patience": 0},
    "beside much patience": lambda most: {"max_attempts": most, "patience": 600},
    "without a quota": lambda most: {"max_attempts": most, "quota": None},
}


def asked(situation: str, options: dict[str, Any]) -> tuple[int, Any]:
    """Make one call in a situation that lasts; return the requests sent, and its history."""
    options = {**({} if "strategy" in options else {"classifiers": [pending]}), **options}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in options.pop("env", {}).items():
            patch.setenv(name, value)
        adapter = scripted(*[SITUATIONS[situation]] * 200, **options)
    history = retry_history(ended(adapter))
    return len(adapter.sent), history


@pytest.mark.untraced
@pytest.mark.parametrize("most", [1, 2, 3, 6])
@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("way", WAYS)
def test_so_many_requests_are_sent_and_no_more(way: str, situation: str, most: int) -> None:
    """Whatever is the matter, and however long it could be waited for."""
    if way == "without patience" and "hint" in situation and most > 1:
        pytest.skip("without patience no hint is waited for")
    sent, history = asked(situation, WAYS[way](most))
    assert (most, StopReason.MAX_ATTEMPTS, most) == (sent, history.stop_reason, history.max_attempts)


@pytest.mark.parametrize("most", [1, 2, 3, 6])
@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("own", [{}, {"max_attempts": 9}, {"retry_spec": "2.1"}, {"patience": 600}])
def test_a_block_caps_what_is_sent_in_it(situation: str, most: int, own: dict[str, Any]) -> None:
    """The innermost number holds, above or below that of the adapter; its bucket may have no room for more."""
    with retry_options(max_attempts=9), retry_options(max_attempts=most):
        sent, history = asked(situation, own)
    assert min(most, 3) <= sent <= most
    assert most == history.max_attempts


ROOM = {
    "the service is down": 6,
    "connections are refused": 6,
    "it throttles": 4,
    "the answer is not there yet": 3,
    "the thing is locked": 3,
}


@pytest.mark.parametrize(("situation", "sent"), ROOM.items())
def test_without_a_number_a_service_that_is_down_is_asked_as_often_as_patience_has_room_for(
    situation: str, sent: int
) -> None:
    """A lone caller asks it by itself now and then; what the service answers is asked for three times."""
    made, history = asked(situation, {})
    assert (sent, None) == (made, history.max_attempts)


@pytest.mark.parametrize(
    ("status", "patience", "most", "sent", "reason"),
    [
        *[(503, patience, None, 3, StopReason.MAX_ATTEMPTS) for patience in (5.0, 0.0)],
        *[(503, patience, most, most, StopReason.MAX_ATTEMPTS) for patience in (5.0, 0.0) for most in (2, 5)],
        (429, 5.0, None, 5, StopReason.PATIENCE),  # who is throttled may go on while there is patience
    ],
)
def test_while_the_service_works_for_others_there_are_three_attempts(
    status: int, patience: float, most: int, sent: int, reason: StopReason
) -> None:
    """An endpoint that is broken is no outage, with patience or without."""

    def answer(_: Any) -> int:
        adapter.script.insert(0, 200)
        assert 200 == send(adapter, url="https://api.example.com/well").status_code
        return status

    adapter = scripted(*[answer] * 20, patience=patience, max_attempts=most, jitter="none")
    history = retry_history(send(adapter))
    assert (sent, reason) == (len(history.attempts), history.stop_reason)


@pytest.mark.parametrize("options", [{"retry_spec": "2.1"}, {"retry_spec": "2.0"}, {"aws_config": True}])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_published_numbers_say_three(situation: str, options: dict[str, Any]) -> None:
    """Who asks for them has their number of attempts, as a given one, and the config says where it came from."""
    sent, history = asked(situation, options)
    config = scripted(**options).retry_config
    spec = options.get("retry_spec", "2.1")
    assert (3, 3, f"retry_spec {spec}") == (sent, history.max_attempts, config.source("max_attempts"))
    assert f"retry_spec {spec}" in config.explain()
    assert "max_attempts" not in config.explain(all=False)


@pytest.mark.parametrize("retries", [math.inf, A_RETRY(None)])
def test_without_an_end_of_retries_patience_ends_them(retries: Any) -> None:
    """They are made while the outage is young; no number is named, and the adapter shows the None of urllib3."""
    sent, history = asked("the service is down", {"max_retries": retries})
    assert (8, StopReason.PATIENCE, None) == (sent, history.stop_reason, history.max_attempts)
    assert "gave up after attempt 8: " in history.sentence
    assert scripted(max_retries=retries).max_retries.total is None


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_strategy_without_a_quota_and_without_a_number_makes_three(situation: str) -> None:
    """Nobody can wait for a service there."""
    sent, history = asked(situation, own(SimpleRetryStrategy, None))
    assert (3, StopReason.MAX_ATTEMPTS, None) == (sent, history.stop_reason, history.max_attempts)


@pytest.mark.parametrize("kind", RetryErrorType)
@pytest.mark.parametrize(("given", "around"), [(1, None), (2, None), (6, None), (9, 2), (None, 2)])
def test_the_loop_around_any_code_counts_alike(kind: RetryErrorType, given: int | None, around: int | None) -> None:
    """A policy's tries are capped by the strategy's number, or by that of a block."""
    clock, tries = FakeClock(), []

    class Policy:
        def evaluate(self, _: Any) -> Any:
            return RetryDirective.RetryError(kind)

    strategy = StandardRetryStrategy(clock=clock, max_attempts=given)
    with retry_options(max_attempts=around), pytest.raises(RetryFailure) as caught:
        retry(Policy(), lambda: tries.append(1), strategy=strategy, clock=clock)
    assert (around or given, StopReason.MAX_ATTEMPTS) == (len(tries), caught.value.stop_reason)


# New credentials

OLD = {"Authorization": "old"}


@pytest.mark.parametrize(("options", "sent"), [({}, 4), ({"max_attempts": 2}, 2), ({"max_attempts": 3}, 3)])
def test_the_attempt_with_new_credentials_counts_against_a_number(options: dict[str, Any], sent: int) -> None:
    """Without a number it is made beside the three."""
    adapter = scripted(401, *[503] * 9, on_unauthorized=lambda _: {"Authorization": "new"}, patience=0, **options)
    send(adapter, headers=OLD)
    assert sent == len(adapter.sent)


@pytest.mark.parametrize("options", [{"max_attempts": 1}, {"max_retries": 0}])
def test_an_expired_token_is_renewed_whatever_the_number(options: dict[str, Any]) -> None:
    """It is no failure, so one request more is sent, and what becomes of that is the end."""
    for last in (200, 503):
        adapter = scripted(401, last, 200, on_unauthorized=lambda _: {"Authorization": "new"}, **options)
        assert (last, 2) == (send(adapter, headers=OLD).status_code, len(adapter.sent))


def test_an_expired_token_is_renewed_after_the_last_attempt() -> None:
    """Of the adapter, and of a block."""
    for most in (2, None):
        adapter = scripted(503, 401, 200, on_unauthorized=lambda _: {"Authorization": "new"}, max_attempts=most)
        with retry_options(max_attempts=2):
            response = send(adapter, headers=OLD)
        assert (200, "succeeded at attempt 3") == (response.status_code, retry_history(response).sentence)


# What is said of it


@pytest.mark.parametrize("options", [{}, {"max_attempts": 2}, {"max_attempts": 6}, {"retry_spec": "2.1"}])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_nothing_counts_beyond_the_cap(
    situation: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Log, history and events name the cap or none: nobody reads of attempt 5 of 3."""
    caplog.set_level(logging.DEBUG, "requests_smithy_retry")
    told: set[int | None] = set()
    listener = SimpleNamespace(before_attempt=lambda event: told.add(event.operation.max_attempts))
    _, history = asked(situation, {**options, "listeners": [listener]})
    text = "\n".join([history.explain(), history.sentence, *(record.getMessage() for record in caplog.records)])
    assert [] == [found for found in re.findall(r"attempt (\d+) of (\d+)", text) if int(found[0]) > int(found[1])]
    most = options.get("max_attempts", 3 if "retry_spec" in options else None)
    assert most == history.max_attempts == history.to_dict()["max_attempts"]
    assert {most} == told
    assert ("of" in history.sentence.partition(":")[0].split()) is (most is not None)
