"""The most that one operation can cost, in closed form."""

from __future__ import annotations

import contextlib
import math
import sys
from dataclasses import replace

import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from requests_smithy_retry import (
    ErrorInBodyClassifier,
    ErrorKind,
    RetryAction,
    RetryConfig,
    TokenBucket,
    classifier,
)
from requests_smithy_retry.classifiers import ModeledAsRetryableClassifier
from requests_smithy_retry.config.report import InVain, WorstCase
from requests_smithy_retry.config.retry_config import OPTIONS
from requests_smithy_retry.features.redis import RedisQuota
from requests_smithy_retry.features.urllib3_retry.translation import Urllib3Rules
from requests_smithy_retry.quotas import ExponentialRetryBackoffStrategy, PayoffTokenBucket
from requests_smithy_retry.testing import FakeClock
from tests.support import Reply, config_of, read_timeout, scripted, send

WAITING = TokenBucket(20, on_empty="wait", refill_rate=0.5)
NO_BACKOFF = {"backoff_base": 0, "max_retry_after": 0}
UNHINTED = Urllib3Rules(heeds_hints=False, backoff_jitter=1.0)
JITTERED = {"rules": Urllib3Rules(backoff_jitter=2.0)}


class Longer(ExponentialRetryBackoffStrategy):
    """A backoff of one's own, which may be longer than the one that it is based on."""


@classifier
def sees_nothing(outcome):
    """Have no opinion."""


def polls(response):
    """Say that a result is not there before the longest wait that is granted."""
    return float(response.headers.get("X-Longest", 0))


IN_BODY = ErrorInBodyClassifier(lambda body: body["wait"], '"wait"')
FROM_9 = ExponentialRetryBackoffStrategy(backoff_scale_value=9, max_backoff=10)
NO_HINT = {"max_retry_after": 0}
LASTING = {"operation_attempt_timeout": 10}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (None, 50.0, 490.0, None)),
        ({"mode": "adaptive"}, (None, None, None, None)),
        ({"operation_timeout": 30}, (None, 30, 30, 30)),
        ({"on_unauthorized": len, "patience": 0}, (4, 3.0, 3.0, None)),
        ({"patience": 0}, (3, 3.0, 3.0, None)),
        ({"max_attempts": 5}, (5, 25.0, 610.0, None)),
        ({"max_attempts": 1}, (1, 0, 120.0, None)),
        ({"max_attempts": 1, "on_unauthorized": len}, (2, 0, 240.0, None)),
        ({"enabled": False}, (1, 0.0, 0.0, None)),
        ({"quota": 500}, (3, 3.0, 360.0, None)),
        ({"quota": 500, "max_attempts": 1, "max_retry_after": 7}, (1, 0, 7, None)),
        ({"quota": 500, "rules": UNHINTED}, (3, 5.0, 5.0, None)),
        ({"quota": WAITING}, (3, None, None, None)),
        ({"patience": 0, "validate": polls}, (None, 3.0, 480.0, None)),
        ({"quota": 500, "classifiers": (IN_BODY,)}, (None, 3.0, 480.0, None)),
        ({"quota": 500, "classifiers": (sees_nothing,)}, (3, 3.0, 360.0, None)),
        ({"patience": 0, "validate": polls, "max_attempts": 3}, (3, 3.0, 360.0, None)),
        ({"retry_spec": "2.1", "validate": polls}, (3, 3.0, 360.0, None)),
        ({"quota": 500, "validate": polls, "operation_attempt_timeout": 10}, (None, 3.0, 480.0, None)),
        ({"quota": 500, "validate": polls, "operation_timeout": 30}, (None, 3.0, 30, 30)),
    ],
)
def test_the_worst_case_of_the_default(options, expected):
    """A service that is down is asked while there is patience; a given number, or time, bounds the attempts."""
    assert WorstCase(*expected) == replace(config_of(**options).worst_case(), in_vain=None)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"quota": 500}, (3, 3.0, 240.0, None)),
        ({"on_unauthorized": len, **LASTING}, (4, 3.0, 240.0, 280.0)),
        ({"patience": 7}, (None, 54.0, 54.0, None)),
        ({"patience": 7, "max_attempts": 3}, (3, 17.0, 17.0, None)),
        ({"patience": 7, "max_attempts": 3, **LASTING}, (3, 17.0, 17.0, 47.0)),
        ({"patience": 7, "operation_timeout": 100}, (None, 54.0, 54.0, 100)),
        ({"patience": 7, "operation_timeout": 30}, (None, 30, 30, 30)),
        ({"patience": 7, "max_attempts": 3, "classifiers": (sees_nothing,)}, (3, 17.0, 254.0, None)),
        ({"patience": 7, "mode": "adaptive"}, (None, None, None, None)),
        ({"quota": "payoff", **LASTING}, (None, 50.0, 370.0, None)),
        ({"quota": "payoff", "max_attempts": 2, **LASTING}, (2, 11.0, 130.0, 150.0)),
        (LASTING, (3, 3.0, 240.0, 270.0)),
        ({"quota": None}, (3, 3.0, 240.0, None)),
        ({"retry_spec": "2.1"}, (3, 3.0, 240.0, None)),
        ({"max_attempts": 1}, (1, 0, 0, None)),
        ({"enabled": False}, (1, 0.0, 0.0, None)),
        ({"max_attempts": 7, **NO_HINT}, (7, 1 + 2 + 4 + 8 + 16 + 20, 51 + 6 * 5, None)),
        ({"operation_timeout": 30}, (3, 3.0, 30, 30)),
        ({**LASTING, **NO_HINT}, (3, 3.0, 13.0, 43.0)),
        ({**LASTING, "operation_timeout": 20}, (3, 3.0, 20, 20)),
        ({"max_backoff": 0, **NO_HINT}, (3, 0, 10.0, None)),
        (NO_BACKOFF, (3, 0, 10.0, None)),
        ({"backoff": 0, **NO_HINT}, (3, 0, 10.0, None)),
        ({"backoff": 30, **NO_HINT}, (3, 60, 60 + 2 * 5, None)),
        ({"backoff": FROM_9, **NO_HINT}, (3, 9 + 10, 19 + 2 * 5, None)),
        *(({"backoff": unknown}, (3, None, None, None)) for unknown in (Longer(), max)),
        ({"backoff": max, "operation_timeout": 30}, (3, 30, 30, 30)),
        ({"backoff_base": 4, **NO_HINT}, (3, 4 + 8, 12 + 2 * 5, None)),
        ({"backoff_base": 9, "max_backoff": 10, **NO_HINT}, (3, 19, 19 + 2 * 5, None)),
        ({"backoff_base": 20, "max_attempts": 2, **NO_HINT}, (2, 20, 25, None)),
        *(({"quota": WAITING, **more}, (3, None, None, None)) for more in ({}, LASTING)),
        ({"quota": lambda _: TokenBucket(5)}, (3, None, None, None)),
        ({"quota": TokenBucket(5)}, (3, 3.0, 240.0, None)),
        ({"quota": WAITING, "operation_timeout": 9}, (3, 9, 9, 9)),
        ({"mode": "adaptive"}, (3, None, None, None)),
        ({"rules": Urllib3Rules()}, (3, 3.0, 240.0, None)),
        ({"rules": UNHINTED}, (3, 5.0, 5.0, None)),
        ({**NO_BACKOFF, **JITTERED}, (3, 2 * 2.0, 2 * 7.0, None)),
        ({**NO_BACKOFF, **JITTERED, "max_backoff": 1.5}, (3, 2 * 1.5, 2 * 6.5, None)),
        ({"max_backoff": 2.5, **JITTERED, **NO_HINT}, (3, 2 * 2.5, 2 * 7.5, None)),
    ],
)
def test_the_worst_case_without_pacing(options, expected):
    """Attempts, backoff, sleep and wall time come from the options by arithmetic; None where nothing bounds them."""
    quota = {} if {"quota", "patience"} & options.keys() else {"quota": 500}
    assert WorstCase(*expected) == replace(config_of(**quota, pacing="off", **options).worst_case(), in_vain=None)


SECONDS = st.sampled_from([0, 0.1, 1, 3.5, 8, 40])
BOUND = st.sampled_from([None, 2.0, 5.0, 30.0])


@classifier
def asks_for_more(outcome, previous):
    """Ask, as an SDK's own classifier may, for the longest wait that is ever granted."""
    if outcome.response is None:
        return None
    seconds = float(outcome.response.headers["X-Longest"])
    return RetryAction.retryable_error_with_explicit_delay(ErrorKind.TRANSIENT, seconds)


def error_that_asks(response):
    """Return an error of the program's own that asks for the same wait."""
    error = Exception("busy")
    error.is_retry_safe, error.retry_after = True, float(response.headers["X-Longest"])
    return error


ERROR_THAT_ASKS = ModeledAsRetryableClassifier(error_that_asks)


MATTERING = {
    "mode": st.sampled_from(["standard", "adaptive"]),
    "max_attempts": st.none() | st.integers(1, 8),
    "retry_spec": st.sampled_from(["2.0", "2.1"]),
    "backoff": st.none() | SECONDS,
    "max_backoff": SECONDS,
    "jitter": st.sampled_from(["full", "none"]),
    "quota": st.sampled_from([500, None, 20]),
    "patience": st.sampled_from([0, 1, 7]),
    "max_retry_after": SECONDS,
    "pacing": st.sampled_from(["announced", "off"]),
    "operation_timeout": BOUND,
    "operation_attempt_timeout": BOUND,
    "enabled": st.sampled_from([True, True, True, False]),
    "classifiers": st.sampled_from([(), (), (), (asks_for_more,), (ERROR_THAT_ASKS,)]),
    "validate": st.sampled_from([None, None, None, polls]),
    "rules": st.none() | st.builds(Urllib3Rules, heeds_hints=st.booleans(), backoff_jitter=SECONDS),
}
"""The options that the bound depends on, each with values that make a difference."""

NO_MATTER = {
    *("retry_status_codes", "timeout", "allowed_methods", "idempotency_key", "on_unauthorized", "raise_on_status"),
    *("scope", "listeners", "telemetry", "trust_env", "aws_config", "resume", "max_idle"),
    *("max_wait", "deadline_header"),
}
"""The options that change whether there is a retry, or nothing about time: the bound has to hold whatever they say."""

POLICIES = st.fixed_dictionaries({}, optional=MATTERING)
WAITS = st.sampled_from(["", "", "Retry-After", "x-amz-retry-after"])
FAILURES = st.lists(
    st.tuples(st.sampled_from([503, 429]), WAITS, st.sampled_from([0.0, 0.0, 1.0, 50.0])), min_size=20, max_size=20
)


def test_each_option_is_thought_of():
    """Every option is listed as one that matters to the bound or as one that does not."""
    assert {*OPTIONS, "rules"} == set(MATTERING) | NO_MATTER


class Server:
    """Plays failures on a virtual clock; no attempt lasts longer than its adapter allows."""

    def __init__(self, config, failures, draw):
        self.clock = FakeClock()
        if isinstance(config.quota, TokenBucket):  # a fresh one, on this clock
            config = config.replace(quota=TokenBucket(20, on_empty="wait", refill_rate=0.5, clock=self.clock))
        self.config, self.failures = config, list(failures)
        self.adapter = scripted(*[self.attempt] * (len(failures) + 1), config=config, clock=self.clock)
        strategy = self.adapter.strategy
        for backoff in (strategy.policy.transient, strategy.policy.throttling):
            getattr(backoff, "inner", backoff).random = lambda: draw

    def attempt(self, request):
        status, header, seconds = self.failures.pop(0) if self.failures else (400, "", 0.0)
        left = math.inf if self.config.operation_timeout is None else self.config.operation_timeout - self.clock.now()
        allowed = min(left, self.config.operation_attempt_timeout or math.inf) if self.config.enabled else math.inf
        self.clock.advance(min(seconds, allowed))
        if seconds > allowed:
            return read_timeout()
        longest = f"{self.config.max_retry_after:f}"
        asked = {"": {}, "Retry-After": {"Retry-After": longest}, "x-amz-retry-after": {"x-amz-retry-after": "99000"}}
        return Reply(status, {**asked[header], "X-Longest": longest})

    def operate(self):
        """Attempts, seconds slept, and seconds in all of one operation."""
        with contextlib.suppress(requests.RequestException):
            send(self.adapter)
        return len(self.adapter.sent), sum(self.clock.sleeps), self.clock.now()


def within(most, actual):
    return most is None or actual <= most * (1 + 1e-9) + 1e-6


NO_WAIT = {"backoff": 0, "max_retry_after": 0, "rules": None, "max_attempts": 8}
UNHEEDED = {**NO_WAIT, "max_retry_after": 40, "rules": Urllib3Rules(heeds_hints=False)}
JITTER = {**NO_WAIT, "backoff": None, "backoff_base": 0, "max_backoff": 40, "rules": Urllib3Rules(backoff_jitter=1.0)}
FOCUSES = {
    "anything": {},
    "a classifier asks": {**UNHEEDED, "classifiers": (asks_for_more,)},
    "an error asks": {**UNHEEDED, "classifiers": (ERROR_THAT_ASKS,)},
    "permits": {**NO_WAIT, "mode": "adaptive"},
    "an empty quota": {**NO_WAIT, "mode": "standard", "quota": WAITING},
    "a service that is down": {**NO_WAIT, "mode": "standard", "patience": 7, "max_attempts": None},
    "jitter alone": JITTER,
    "polls": {"patience": 0, "max_attempts": None, "rules": None, "pacing": "off", "validate": polls},
}
"""Options that make one part of the bound weigh more than all others."""


@pytest.mark.once
@pytest.mark.parametrize("focus", FOCUSES)
@settings(max_examples=30)
@given(options=POLICIES, failures=FAILURES, asks=st.booleans(), draw=st.sampled_from([0.0, 0.5, 1 - 2**-53]))
def test_no_operation_comes_to_more(focus, options, failures, asks, draw):
    """The worst case bounds the operation for any policy, any answers of the server and any jitter."""
    failures = [(status, header if asks else "", seconds) for status, header, seconds in failures]
    if focus == "polls":  # each hint is one of a success
        failures = [(200 if header else status, header, seconds) for status, header, seconds in failures]
    if focus != "anything":
        options.pop("operation_timeout", None)
    config = allowed({**options, **FOCUSES[focus]})
    worst = config.worst_case()
    attempts, slept, lasted = Server(config, failures, draw).operate()
    assert within(worst.attempts, attempts)
    assert within(worst.sleep, slept)
    assert within(worst.wall_time, lasted)
    if not asks and not config.classifiers and config.validate is None:
        assert within(worst.backoff, slept)


def allowed(options):
    """A config without what contradicts: a quota with numbers beside ``patience``, a bound beside a fixed backoff."""
    if options.get("backoff") is not None:
        options = {name: value for name, value in options.items() if name != "max_backoff"}
    quota = {"quota": "payoff"} if "patience" in options else {"quota": options.get("quota", 500)}
    return config_of(trust_env=False, **{**options, **quota})


REACHABLE = {"pacing", "mode", "operation_timeout", "quota", "patience", "classifiers", "validate"}
"""Not drawn here: what ends an operation earlier, or makes it wait for others."""


@pytest.mark.once
@settings(max_examples=30)
@given(options=POLICIES)
def test_the_worst_server_comes_to_just_that(options):
    """The bound is the least one: a server that does its worst reaches it in attempts, sleep and wall time."""
    options = {name: value for name, value in options.items() if name not in REACHABLE}
    config = allowed({**options, "quota": None, "pacing": "off", "enabled": True})
    worst = config.worst_case()
    lasting = config.operation_attempt_timeout or 0.0
    for headers, most in ((["Retry-After", "x-amz-retry-after"], worst.sleep), ([""], worst.backoff)):
        attempts, slept, lasted = worst_of(config, headers, lasting)
        assert worst.attempts == attempts
        assert slept == pytest.approx(most)
        if worst.wall_time is not None and most == worst.sleep:
            assert lasted == pytest.approx(worst.wall_time)


def worst_of(config, headers, lasting):
    """An operation that is throttled each time, with the header that makes the next wait the longest."""
    failures = []
    for _ in range(1, config.max_attempts or 3):
        made = [[*failures, (429, header, lasting)] for header in headers]
        slept = [Server(config, [*script, (400, "", 0.0)], 1 - 2**-53).operate()[1] for script in made]
        failures = made[slept.index(max(slept))]
    return Server(config, [*failures, (429, headers[0], lasting)], 1 - 2**-53).operate()


SHARED = "redis://127.0.0.1:1"
"""Nothing connects to it here."""


class Foreign:
    """A program's own quota, of which nothing is known but that it has these."""

    capacity = available = 5

    def acquire(self, amount, *, deadline=None):
        raise AssertionError

    release = snapshot = acquire


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, InVain(2, 4, 2)),
        ({"operation_timeout": 30}, InVain(2, 4, 2)),
        ({"quota": PayoffTokenBucket()}, InVain(2, 4, 2)),
        ({"mode": "adaptive"}, InVain(2, 4, 2)),
        ({"max_attempts": 2}, InVain(1, 3, 2)),
        ({"max_attempts": 7}, InVain(6, 12, 2)),
        ({"max_attempts": 1001}, InVain(1000, 2000, 1000 / 300)),
        ({"max_attempts": sys.maxsize}, InVain(36, 72, 2)),
        ({"patience": 0, "max_attempts": 2}, InVain(1, 2, 1 / 300)),
        ({"quota": 500}, InVain(100, 0.2, 0)),
        ({"quota": 500, "mode": "adaptive"}, InVain(100, 0.2, 0)),
        ({"retry_spec": "2.0"}, InVain(100, 0.2, 0)),
        ({"quota": TokenBucket(50, success_reward=5, refill_rate=10)}, InVain(10, 1, 2)),
        ({"quota": lambda _: TokenBucket(50)}, None),
        ({"quota": TokenBucket(50, refill_rate=5)}, InVain(10, 0.2, 1)),
        ({"quota": SHARED}, InVain(200, 28 / 5 + 28 / 5 + 2, 2 + 500 / 3600 / 5)),
        ({"quota": SHARED, "patience": 0}, InVain(200, 28 / 5 + 28 / 5, 500 / 3600 / 5)),
        ({"quota": SHARED, "max_attempts": 1}, InVain(0, 0, 0)),
        ({"quota": RedisQuota(SHARED, capacity=7200)}, InVain(1540, 28 / 5 + 28 / 5 + 2, 2.4)),
        ({"quota": RedisQuota(SHARED, capacity=10)}, InVain(4, 28 / 5 + 2 + 2, 2 + 10 / 3600 / 5)),
        ({"max_attempts": 1}, InVain(0, 0, 0)),
        ({"enabled": False}, InVain(0, 0, 0)),
        ({"quota": None}, None),
        ({"quota": Foreign()}, None),
    ],
)
def test_the_bound(options, expected):
    """It comes from the options by arithmetic; None where no quota, or one that nothing is known of, sets none."""
    found = RetryConfig(**options).worst_case().in_vain
    assert (found if expected is None else pytest.approx(expected)) == found
    assert (expected is None) is (found is None)


@pytest.mark.parametrize(
    "options",
    [
        {"operation_attempt_timeout": 10**308},
        {"max_attempts": 2**9999, "operation_attempt_timeout": 1},
        {"backoff": 1e308, "operation_attempt_timeout": 1},
    ],
)
def test_more_than_a_float_holds_is_no_bound(options):
    """Numbers that are allowed never raise, and an operation_timeout bounds them as ever."""
    assert RetryConfig(quota=500, **options).worst_case().wall_time is None
    assert 3 == RetryConfig(quota=500, **options, operation_timeout=3).worst_case().wall_time
