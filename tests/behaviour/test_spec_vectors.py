"""The published vectors (tests/spec), each row driven through the real adapter or listed with the reason why not.

Every row has an id. :data:`DEVIATIONS` holds the rows that the contract decides otherwise and those that other parts
own; the last tests hold that every row is either run or listed, never both, and that what is listed is a row.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from requests_smithy_retry import (
    AttemptFailed,
    ErrorKind,
    Outcome,
    RetryError,
    StandardRetryStrategy,
    StopReason,
    TokenBucket,
    retry_history,
    retry_options,
)
from requests_smithy_retry.classifiers import ModeledAsRetryableClassifier, RetryIndicated
from requests_smithy_retry.quotas import ExponentialRetryBackoffStrategy
from requests_smithy_retry.testing import FakeClock
from tests.support import Reply, ScriptedAdapter, pin_random, read_timeout, reset_error, scripted, send

VECTORS = json.loads((Path(__file__).resolve().parents[2] / "tests" / "spec" / "standard-vectors.json").read_text())
SPECS = {"pre-2026": "2.0", "2.1": "2.1"}
SCOPE = "https://api.example.com:443"
STOPS = {
    "success": StopReason.SUCCESS,
    "max_attempts_exceeded": StopReason.MAX_ATTEMPTS,
    "retry_quota_exceeded": StopReason.QUOTA_EXCEEDED,
    "fail_request": StopReason.NOT_RETRYABLE,
}

DEVIATIONS = {
    "case 4": "contract 7.2, 7.3: a floor is neither capped by max_backoff nor shortened; the delay is 30 s",
    "transient 1": "contract 3.4 lists PriorRequestNotComplete, which botocore has in both classes, as throttling",
    "rust 1": "contract 3.4: 408 is transient",
    "bucket 0": "a bucket that waits is another class (contract 6.3); tests/unit/smithy/test_buckets.py runs it",
    "bucket 3": "contract 6.2: the prices are those of the presets, 5 and 10 before 2.1; Kotlin's own bucket differs",
    "bucket 4": "Kotlin refills whole units; contract 6.3 knows a rate per second, so 250 ms at 10/s give 2.5",
    "header 0": "no section of the contract asks for an amz-sdk-request header",
    "header 1": "the same",
    "header 2": "the same",
    **dict.fromkeys((f"environment {row}" for row in range(5)), "contract 10.2: AWS settings have tests of their own"),
}


def rows(kind: str) -> list[Any]:
    """The rows of one kind that are run, with their ids."""
    chosen = [(f"{kind} {number}", row) for number, row in enumerate(TABLES[kind])]
    return [pytest.param(row, id=name) for name, row in chosen if name not in DEVIATIONS]


CLASSIFICATION = VECTORS["classification_vectors"]
TABLES: dict[str, list[Any]] = {
    "case": VECTORS["cases"],
    "backoff": VECTORS["backoff_vectors"],
    "jitter": VECTORS["jitter_vectors"],
    "quota": VECTORS["quota_vectors"],
    "bucket": VECTORS["token_bucket_vectors"][0]["vectors"],
    "throttling": CLASSIFICATION["throttling"],
    "transient": CLASSIFICATION["transient"],
    "rust": CLASSIFICATION["rust_status_only"]["rows"],
    "ts": CLASSIFICATION["ts_e2e"]["rows"],
    "attempts": VECTORS["max_attempts_vectors"]["rows"],
    "header": VECTORS["header_vectors"]["rows"],
    "environment": VECTORS["environment_vectors"]["rows"],
}


class ModelledServerError(Exception):
    """A server's error that names a floor for the delay."""

    is_retry_safe = None
    is_throttling_error = False
    is_timeout_error = False
    fault = "server"

    def __init__(self, retry_after: float) -> None:
        super().__init__("modelled")
        self.retry_after = retry_after


def parse_error(response: Any) -> Exception | None:
    """Parse a response as a model would, here from one header."""
    after = response.headers.get("x-test-floor")
    return None if after is None else ModelledServerError(float(after))


def step_of(row: dict[str, Any]) -> Any:
    """The scripted outcome of a row's response."""
    kind = row.get("error_kind")
    if kind == "transient":
        return reset_error()
    if kind == "timeout":
        return read_timeout()
    if kind == "throttling":
        return Reply(429)
    if kind == "server":
        return Reply(500, {"x-test-floor": str(row["retry_after"])})
    headers = dict(row.get("headers", {}))
    if row.get("error_code"):
        headers["x-amzn-errortype"] = row["error_code"]
    return Reply(row["status"], headers)


def adapter_for(given: dict[str, Any], spec: str, script: list[Any]) -> ScriptedAdapter:
    """The real adapter as a case wants it; the bases are the preset's unless the case has another one."""
    numbers = {"2.1": (0.05, 1.0), "2.0": (1.0, 1.0)}[spec]
    wanted = (given["base_delay"], given.get("throttling_base_delay", given["base_delay"]))
    backoff: dict[str, Any] = {"max_backoff": given["max_backoff"]}
    if wanted != numbers:
        base = min(wanted)
        assert base == max(wanted)
        backoff = {"backoff": ExponentialRetryBackoffStrategy(backoff_scale_value=base, **backoff)}
    adapter = scripted(
        *script,
        jitter="full",
        max_attempts=given["max_attempts"],
        quota=given["initial_retry_tokens"],
        retry_spec=spec,
        classifiers=[ModeledAsRetryableClassifier(parse_error)],
        **backoff,
    )
    pin_random(adapter.strategy, given["exponential_base"])
    return adapter


def available(adapter: ScriptedAdapter) -> float:
    """Return the tokens left for the scope, by the strategy's snapshot."""
    strategy: Any = adapter.strategy
    bucket = strategy.snapshot().buckets.get(SCOPE)
    return adapter.retry_config.quota if bucket is None else bucket.available  # type: ignore[return-value]


@pytest.mark.parametrize("case", rows("case"))
def test_case(case):
    """Each response of the case leads to its delay, its quota and its outcome."""
    expected = [row["expected"] for row in case["responses"]]
    seen_quota: list[float] = []

    def recording(row: dict[str, Any]) -> Any:
        def step(_: Any) -> Any:
            seen_quota.append(available(adapter))
            return step_of(row)

        return step

    script = [recording(row) for row in case["responses"]]
    ends = expected[-1]["outcome"]
    if ends == "retry_request":
        script.append(recording({"status": 404}))
    adapter = adapter_for(case["given"], SPECS[case["spec"]], script)
    with retry_options(long_poll=case["given"].get("long_polling", False)):
        response = send(adapter)
    seen_quota.append(available(adapter))

    assert [] == adapter.script, "every response of the case was asked for"
    stop = StopReason.NOT_RETRYABLE if ends == "retry_request" else STOPS[ends]
    assert stop is retry_history(response).stop_reason
    for number, wanted in enumerate(expected):
        if "retry_quota" in wanted:
            assert wanted["retry_quota"] == seen_quota[number + 1]
    waits = [wanted for wanted in expected if wanted["outcome"] == "retry_request" or "delay" in wanted]
    delays = [pytest.approx(wanted["delay"]) if "delay" in wanted else mock.ANY for wanted in waits]
    assert delays == adapter.clock.sleeps


def test_the_floor_of_preset_2_0_is_not_capped():
    """Case 4 as the contract decides it: a floor of 30 s is slept, although max_backoff is 20 s."""
    case = TABLES["case"][4]
    adapter = adapter_for(case["given"], "2.0", [step_of(case["responses"][0]), 200])
    assert 200 == send(adapter).status_code
    assert [30] == adapter.clock.sleeps


@pytest.mark.parametrize("row", rows("backoff"))
def test_backoff(row):
    """The computed delay of each retry is the published one."""
    backoff = ExponentialRetryBackoffStrategy(
        backoff_scale_value=row["base"], max_backoff=row["max_backoff"], random=lambda: row["random"]
    )
    actual = [backoff.compute_next_backoff_delay(attempt) for attempt in row["attempts"]]
    assert row["delays"] == pytest.approx(actual)


@pytest.mark.parametrize("row", rows("jitter"))
def test_jitter(row):
    """The delays with each kind of jitter are the published ones; the previous delay is handed on as a token does."""
    backoff = ExponentialRetryBackoffStrategy(
        backoff_scale_value=row["backoff_scale_value"],
        max_backoff=row["max_backoff"],
        jitter_type=row["jitter"],
        random=lambda: row["random"],
    )
    actual: list[float] = []
    for retry in range(len(row["retry_attempt_from_0"])):
        previous = actual[-1] if retry > 1 else None
        actual.append(backoff.compute_next_backoff_delay(retry, previous))
    assert row["retry_attempt_from_0"] == pytest.approx(actual)


class Books:
    """Plays the steps of a quota vector on a strategy, as concurrent operations of one scope would."""

    def __init__(self, spec: str, capacity: float) -> None:
        self.strategy = StandardRetryStrategy(retry_spec=spec, quota=capacity, max_attempts=100, clock=FakeClock())
        self.open: list[Any] = []

    def available(self) -> float:
        return self.strategy.bucket(SCOPE).available

    def acquire(self, kind: str) -> Any:
        error: Exception = read_timeout() if kind == "timeout" else reset_error()
        if kind == "throttling":
            error = AttemptFailed(Outcome(response=Reply429()))  # type: ignore[arg-type]
        first = self.strategy.acquire_initial_retry_token(token_scope=SCOPE)
        try:
            token = self.strategy.refresh_retry_token_for_retry(token_to_renew=first, error=error)
        except RetryError as refusal:
            return "refused" if refusal.stop_reason is StopReason.QUOTA_EXCEEDED else refusal
        self.open.append(token)
        return self.available()

    def acquire_raw(self, amount: float) -> float:
        self.strategy.bucket(SCOPE).acquire(amount)
        return self.available()

    def release_raw(self, amount: float) -> float:
        self.strategy.bucket(SCOPE).release(amount)
        return self.available()

    def success_after_retry(self, amount: float | None) -> float:
        wanted = [token for token in self.open if amount in (None, token.acquired)]
        if not wanted:
            self.acquire({5: "transient", 10: "timeout"}[amount])
            wanted = [self.open[-1]]
        self.open.remove(wanted[0])
        self.strategy.record_success(token=wanted[0])
        return self.available()

    def success_no_retry(self, _: None) -> float:
        self.strategy.record_success(token=self.strategy.acquire_initial_retry_token(token_scope=SCOPE))
        return self.available()

    def failed_400_no_retry(self, _: None) -> float:
        token = self.strategy.acquire_initial_retry_token(token_scope=SCOPE)
        with pytest.raises(RetryError):
            self.strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ValueError())
        return self.available()


class Reply429:
    """A response as far as the strategy layer looks at one."""

    status_code = 429
    headers: dict[str, str] = {}


@pytest.mark.parametrize("row", [row for row in rows("quota") if "steps" in row.values[0]])
def test_quota(row):
    """After each step the bucket holds what the vector says, or refuses where it says so."""
    books = Books(SPECS[row["spec"]], row["capacity"])
    actual = [getattr(books, name)(argument) for name, argument, _ in row["steps"]]
    assert [wanted for _, _, wanted in row["steps"]] == actual


@pytest.mark.parametrize("row", [row for row in rows("quota") if "rounds" in row.values[0]])
def test_quota_rounds(row):
    """Nine calls of (fail, fail, success) net -5 each; in the tenth the second retry is refused."""
    adapter = scripted(*[500, 500, 200] * 9, 500, 500, quota=row["capacity"], retry_spec=SPECS[row["spec"]])
    for level in range(45, 0, -5):
        assert 200 == send(adapter).status_code
        assert level == available(adapter)
    last = send(adapter)
    assert (500, 0) == (last.status_code, available(adapter))
    assert StopReason.QUOTA_EXCEEDED is retry_history(last).stop_reason


@pytest.mark.parametrize("row", rows("bucket"))
def test_token_bucket(row):
    """A bucket of 10 that gets 10 tokens a second does each step; what an attempt costs is given by hand."""
    config = VECTORS["token_bucket_vectors"][0]["config"] | row["override"]
    clock = FakeClock()
    bucket = TokenBucket(config["max_capacity"], refill_rate=config["refill_units_per_second"], clock=clock)
    cost = config["initial_try_cost"]
    for step in row["steps"]:
        action, _, wanted = step.partition(" -> ")
        if wanted.startswith("capacity-exceeded"):
            assert bucket.acquire(cost) is False
            continue
        if action == "acquire":
            assert bucket.acquire(cost)
        elif action == "notify_success":
            bucket.release(config["initial_try_success_increment"])
        assert float(wanted.split()[-1]) == bucket.available


def test_a_refill_is_not_rounded_down():
    """Bucket row 4 as the contract decides it: after 250 ms at 10/s, 5 + 2.5 - 5 tokens are left."""
    clock = FakeClock()
    bucket = TokenBucket(10, refill_rate=10, clock=clock)
    bucket.acquire(5)
    clock.advance(0.25)
    bucket.acquire(5)
    assert 2.5 == bucket.available


def kind_of(status: int | None, code: str | None) -> ErrorKind | None:
    """Return the adapter's verdict on one answer, from its own record."""
    first = reset_error() if status is None else step_of({"status": status, "error_code": code})
    adapter = scripted(first, 200)
    response = send(adapter)
    actions = [vote.action for vote in retry_history(response).attempts[0].votes]
    kinds = [action.reason.kind for action in actions if isinstance(action, RetryIndicated)]
    assert len(adapter.sent) == (2 if kinds else 1)
    return kinds[-1] if kinds else None


@pytest.mark.parametrize(
    ("row", "kind"),
    [pytest.param(*row.values, kind, id=row.id) for kind in ("throttling", "transient") for row in rows(kind)],
)
def test_a_status_with_a_code(row, kind):
    """A status with a code is of the row's kind, or is not."""
    status, code, wanted = row
    assert wanted == (kind_of(status, code) is ErrorKind[kind.upper()])


@pytest.mark.parametrize("row", rows("rust"))
def test_status_only(row):
    """A bare status is classified as published."""
    status, wanted = row
    assert ErrorKind[wanted.upper()] is kind_of(status, None)


def test_408_is_transient():
    """Row "rust 1" as the contract decides it."""
    assert ErrorKind.TRANSIENT is kind_of(408, None)


@pytest.mark.parametrize("row", rows("ts"))
def test_attempts_end_to_end(row):
    """The sequence of answers leads to the row's number of attempts."""
    script = [step_of({"status": status, "error_code": code}) for status, code in row["responses"]]
    adapter = scripted(*script)
    send(adapter)
    assert row["attempts"] == len(adapter.sent)


@pytest.mark.parametrize("row", rows("attempts"))
def test_max_attempts(row):
    """After the row's number of attempts another one is made, or not, as the row says."""
    failures = [500] * row["attempt"]
    adapter = scripted(*failures, 200, max_attempts=row["max_attempts"])
    send(adapter)
    assert row["retry"] == (len(adapter.sent) > row["attempt"])


def test_every_row_is_run_or_listed():
    """No row is dropped in silence: the ids of all tables are those that run and those that are listed."""
    everything = {f"{kind} {number}" for kind, table in TABLES.items() for number in range(len(table))}
    run = {row.id for kind in TABLES if kind not in ("header", "environment") for row in rows(kind)}
    assert everything == run | DEVIATIONS.keys()
    assert set() == run & DEVIATIONS.keys()
