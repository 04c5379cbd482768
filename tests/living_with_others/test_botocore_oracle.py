"""With ``retry_spec`` a call goes as with botocore's own retry code, and so does the limiter; what differs has a name.

Run it where botocore is: ``tox -e tomorrow``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from requests_smithy_retry import retry_options
from requests_smithy_retry.quotas import ClientRateLimiter
from requests_smithy_retry.testing import FakeClock
from tests.support import Reply, pin_random, read_timeout, reset_error, scripted, send

pytest.importorskip("botocore")
from botocore import exceptions, parsers
from botocore.awsrequest import HeadersDict
from botocore.retries import adaptive, bucket, quota, standard, throttling

SCOPE = "https://api.example.com:443"
CODES = [
    *standard.TransientRetryableChecker._TRANSIENT_ERROR_CODES,
    *standard.ThrottledRetryableChecker._THROTTLED_ERROR_CODES,
    *("AccessDenied", "ValidationException", "InternalError", ""),
]
STATUSES = (200, 400, 403, 404, 409, 413, 429, 429, 500, 501, 502, 503, 503, 504)
HINTS = (None, None, "0", "250", "1500", "4000", "90000", "-1", "soon", "1.5", "")
FAULTS = {
    "reset": (reset_error, exceptions.ConnectionClosedError),
    "timeout": (read_timeout, exceptions.ReadTimeoutError),
}
AMZ = "x-amz-retry-after"
XML = "<ErrorResponse><Error><Code>{}</Code></Error><RequestId>1</RequestId></ErrorResponse>"


@dataclass(frozen=True)
class Answer:
    """What one attempt gets.

    :param code: of the error, in one of the places of the AWS protocols; "" for none.
    """

    status: int = 503
    code: str = ""
    place: str = "json"
    headers: tuple[tuple[str, str], ...] = ()
    fault: str = ""
    body: bytes = b""

    def reply(self) -> Reply:
        """Return it for our adapter."""
        headers, body = dict(self.headers), self.body
        if self.code and self.place == "rest-json":
            headers["x-amzn-ErrorType"], body = f"{self.code}:http://internal.example.com/coral/", b"{}"
        elif self.code and self.place == "json":
            body = json.dumps({"__type": f"com.example#{self.code}", "message": "no"}).encode()
        elif self.code:
            body = XML.format(self.code).encode()
        return Reply(self.status, headers, body)

    def step(self) -> Any:
        """Return the step of a script."""
        return FAULTS[self.fault][0]() if self.fault else self.reply()


class Theirs:
    """botocore's standard mode, as its endpoint drives it."""

    def __init__(self, most: int, capacity: int, draw: float) -> None:
        self.slept: list[float] = []
        events = standard.RetryEventAdapter()
        detector = standard.ThrottlingErrorDetector(events)
        self.quota = quota.RetryQuota(capacity)
        self.checker = standard.RetryQuotaChecker(self.quota, detector)
        backoff = standard.ExponentialBackoff(random=lambda: draw, service_name="sqs", throttling_detector=detector)
        policy = standard.RetryPolicy(standard.StandardRetryConditions(most), backoff)
        self.handler = standard.RetryHandler(policy, events, self.checker, "sqs", self.slept.append)

    def call(self, answers: list[Answer], *, polls: bool) -> list[Any]:
        """Return the number of attempts, the waits and the tokens left."""
        self.slept.clear()
        service = SimpleNamespace(service_name="sqs")
        name = "ReceiveMessage" if polls else "SendMessage"
        model = SimpleNamespace(name=name, error_shapes=[], service_model=service)
        context: dict[str, Any] = {}
        for number, answer in enumerate(answers, 1):
            caught, response, http = None, None, None
            if answer.fault:
                caught = FAULTS[answer.fault][1](endpoint_url=SCOPE, error="gone")
            else:
                reply = answer.reply()
                http = SimpleNamespace(status_code=reply.status, headers=HeadersDict(reply.headers))
                given = {"status_code": reply.status, "headers": http.headers, "body": reply.body}
                parsed = parsers.create_parser(answer.place).parse(given, None) if reply.status > 300 else {}
                response = http, parsed
            delay = self.handler.needs_retry(
                response=response,
                attempts=number,
                operation=model,
                caught_exception=caught,
                request_dict={"context": context},
            )
            if delay is None or delay is False:
                break
            self.slept.append(delay)
        self.checker.release_retry_quota(context, http)
        return [number, [pytest.approx(wait) for wait in self.slept if wait], self.quota.available_capacity]


class Ours:
    """The same of an adapter."""

    def __init__(self, most: int, capacity: int, draw: float) -> None:
        options: dict[str, Any] = {"retry_spec": "2.1", "max_attempts": most, "quota": capacity, "jitter": "full"}
        self.adapter = scripted(**options)
        pin_random(self.adapter.strategy, draw)

    def call(self, answers: list[Answer], *, polls: bool, method: str = "GET") -> list[Any]:
        """Return the same as botocore's."""
        adapter = self.adapter
        adapter.script[:] = [answer.step() for answer in answers]
        adapter.sent.clear()
        slept = len(adapter.clock.sleeps)
        try:
            with retry_options(long_poll=polls):
                send(adapter, method)
        except OSError:
            pass
        left = adapter.strategy.snapshot().buckets[SCOPE].available  # type: ignore[union-attr]
        return [len(adapter.sent), [wait for wait in adapter.clock.sleeps[slept:] if wait], left]


def answer(rng: Random) -> Answer:
    """Return one of those that both know."""
    if rng.random() < 0.15:
        return Answer(fault=rng.choice(list(FAULTS)))
    status, hint = rng.choice(STATUSES), rng.choice(HINTS)
    code = rng.choice(CODES) if status >= 400 and rng.random() < 0.6 else ""
    headers = () if hint is None else ((AMZ, hint),)
    return Answer(status, code, rng.choice(["json", "rest-json", "query"]) if code else "json", headers)


@pytest.mark.parametrize("seed", range(0, 1000, 50))
def test_calls_go_as_with_botocore(seed):
    """Attempts, waits and tokens of each call of 1,000 sequences of calls with one quota."""
    for number in range(seed, seed + 50):
        rng = Random(number)
        numbers = rng.randint(1, 5), rng.choice([500, 30, 14, 5, 0]), rng.random()
        theirs, ours = Theirs(*numbers), Ours(*numbers)
        for _ in range(8):
            answers = [answer(rng) for _ in range(6)]
            polls = rng.random() < 0.2
            assert (number, answers, theirs.call(answers, polls=polls)) == (
                number,
                answers,
                ours.call(answers, polls=polls),
            )


RATE_LIMITED = "a 403 or 413 that says when it is over is a rate limit (contract 3.4, 7.4)"
HINT = "Retry-After and its like are heeded (contract 7.2)"
WORD = "a server's own word counts (contract 3.4)"
DIGITS = "a hint is made of digits, and of several the longest counts (contract 7.2)"
GUARDED = "a POST is not sent twice where the server may have acted on it (contract 4.2)"
DIFFERENT: dict[str, tuple[str, str, Answer]] = {
    **{
        f"status {status}": ("GET", "it is retried (contract 3.4)", Answer(status))
        for status in (408, 421, 425, 520, 521, 522, 523, 524, 529)
    },
    "POST, 503": ("POST", GUARDED, Answer(503)),
    "POST, reset": ("POST", GUARDED, Answer(fault="reset")),
    "403, Retry-After": ("GET", RATE_LIMITED, Answer(403, headers=(("Retry-After", "3"),))),
    "403, words": ("GET", RATE_LIMITED, Answer(403, body=b'{"message": "API rate limit exceeded"}')),
    "413, Retry-After": ("GET", RATE_LIMITED, Answer(413, headers=(("Retry-After", "3"),))),
    "Retry-After": ("GET", HINT, Answer(503, headers=(("Retry-After", "3"),))),
    "retry-after-ms": ("GET", HINT, Answer(503, headers=(("retry-after-ms", "3000"),))),
    "no": ("GET", WORD, Answer(503, headers=(("x-should-retry", "false"),))),
    "yes": ("GET", WORD, Answer(400, headers=(("x-should-retry", "true"),))),
    "a sign": ("GET", DIGITS, Answer(503, headers=((AMZ, "+3000"),))),
    "two hints": ("GET", DIGITS, Answer(503, headers=((AMZ, "3000, 2000"),))),
    "redirect": ("GET", "a status below 400 is a success (contract 2.6)", Answer(301, "SlowDown")),
    "head": (
        "GET",
        "a code in the head counts without a body, too",
        Answer(503, headers=(("x-amzn-ErrorType", "SlowDown"),)),
    ),
}
"""What is not as in botocore: the method, the reason, and the first answer, after which comes a 200."""


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_has_a_name(name):
    """A row that no longer differs goes; a difference without a row is a defect, of the tests above or of ours."""
    method, _, first = DIFFERENT[name]
    theirs, ours = Theirs(3, 500, 0.5), Ours(3, 500, 0.5)
    answers = [first, Answer(200)]
    assert theirs.call(answers, polls=False) != ours.call(answers, polls=False, method=method)


class Clock:
    """botocore's clock of the limiter."""

    def __init__(self, clock: FakeClock) -> None:
        self.current_time = clock.now


@pytest.mark.parametrize("seed", range(0, 2000, 100))
def test_the_limiter_is_botocores(seed):
    """Rates, permits and waits after each step of 2,000 sequences, whenever the limiter is made."""
    for number in range(seed, seed + 100):
        rng = Random(number)
        fake = FakeClock(now=rng.uniform(0, 3))
        clock: Any = Clock(fake)
        ours = ClientRateLimiter(clock=fake)
        curve = throttling.CubicCalculator(starting_max_rate=0, start_time=fake.now())
        tokens, clocker = bucket.TokenBucket(max_rate=1, clock=clock), adaptive.RateClocker(clock)
        detector = SimpleNamespace(is_throttling_error=lambda throttled: throttled)
        theirs = adaptive.ClientRateLimiter(curve, clocker, tokens, detector, clock)
        mean = rng.choice([0.01, 0.1, 0.5, 2])
        for _ in range(60):
            fake.advance(rng.expovariate(1 / mean))
            tokens._refill()
            if rng.random() < 0.5:
                throttled = rng.random() < 0.3
                theirs.on_receiving_response(throttled=throttled)
                ours.record_response(throttled)
            else:
                wait = ours.try_acquire()
                asked = tokens._sleep_amount(1) if theirs._enabled else 0.0
                assert (number, pytest.approx(max(asked, 0.0))) == (number, 0.0 if wait is None else wait.seconds)
                if wait is None:
                    theirs.on_sending_request(None)
            view, params = ours.snapshot(), curve.get_params_snapshot()
            expected = [clocker.measured_rate, tokens.max_rate, tokens.available_capacity, tokens.max_capacity]
            expected += [params.w_max, params.last_fail]
            seen = [view.measured_rate, view.fill_rate, view.capacity, view.max_capacity]
            seen += [view.last_max_rate, view.last_throttle]
            assert (number, theirs._enabled, pytest.approx(expected, abs=1e-9)) == (number, view.enabled, seen)
