"""``explain``: what the policy makes of one outcome, without sending anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.unit.cli import Done


def run(*arguments: str) -> Done:
    return Done("explain", *arguments)


def answer(*arguments: str) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("arguments", "verdict", "is_retried"),
    [
        (["--status", "503"], "transient", True),
        (["--status", "503", "--method", "post"], "forbidden", False),
        (["--status", "503", "--method", "POST", "--request-header", "Idempotency-Key: 1"], "transient", True),
        (["--status", "429", "--method", "POST"], "throttling", True),
        (["--status", "404"], "no action indicated", False),
        (["--status", "200"], "success", False),
        (["--error", "ReadTimeout"], "transient", True),
        (["--error", "requests.exceptions.ReadTimeout", "--method", "POST"], "forbidden", False),
        (["--error", "ReadTimeout", "--method", "POST", "--unwritten"], "transient", True),
        (["--error", "ConnectTimeout", "--method", "POST"], "transient", True),
        (["--error", "InvalidURL"], "the request itself is at fault; nothing is classified", False),
        (["--error", "ReadTimeoutError"], "transient", True),
        (["--status", "503", "max_attempts=1"], "transient", False),
    ],
)
def test_the_verdict_is_the_adapters_own(arguments: list[str], verdict: str, is_retried: bool) -> None:
    """An adapter lives through the outcome, so the answer is what would happen."""
    said = answer(*arguments)
    assert (verdict, is_retried) == (said["verdict"], said["is_retried"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--status", "503"], [(0, 0.05), (0, 0.1)]),
        (["--status", "429"], [(0, 1), (0, 2)]),
        (["--status", "429", "--header", "Retry-After: 7", "pacing=off"], [(7, 7), (7, 7)]),
        (["--status", "503", "jitter=none", "max_attempts=2"], [(0.05, 0.05)]),
        (["--status", "503", "jitter=none", "max_attempts=2", "patience=0"], [(0.05, 0.05)]),
        (["--status", "503", "max_attempts=2", "quota=500"], [(0, 0.05)]),
        (["--status", "503", "operation_timeout=30"], [(0, 0.05), (0, 0.1)]),
        (["--status", "503", "--header", "Retry-After: 3600"], []),
        (["--status", "503", "quota=none", "max_attempts=2"], [(0, 0.05)]),
        (["--status", "429", "mode=adaptive", "max_attempts=2"], [(0, 1)]),
        (["--status", "429", "backoff=4"], [(4, 4), (4, 4)]),
    ],
)
def test_the_delays_are_a_span(arguments: list[str], expected: list[tuple[float, float]]) -> None:
    """For each retry that the quota pays for, the least and the most seconds are given."""
    assert expected == [(row["least"], row["most"]) for row in answer(*arguments)["delays"]]


@pytest.mark.parametrize(
    ("arguments", "is_spread"),
    [
        (["--header", "Retry-After: 4"], True),
        (["--header", "Retry-After: 4", "jitter=none"], False),
        (["--header", "Retry-After: 4", "pacing=off"], False),
        (["--header", "x-amz-retry-after: 4000"], False),
        ([], False),
    ],
)
def test_a_spread_is_told_beside_the_wait_that_a_server_asks_for(arguments: list[str], is_spread: bool) -> None:
    """The delays are the same each time: the hint itself, and a sentence on what is added to it at random."""
    said, text = answer("--status", "429", *arguments), run("--status", "429", *arguments).stdout
    assert [is_spread] * 2 == [said["is_spread"], "a wait that the server asks for: up to a tenth more" in text]
    if is_spread:
        assert [{"retry": number, "least": 4.0, "most": 4.0} for number in (1, 2)] == said["delays"]


@pytest.mark.parametrize(
    ("arguments", "until", "end"),
    [
        ([], "the outage is 5 s old", "waited 4.85 s: https://example.invalid has been failing"),
        (["patience=2"], "the outage is 2 s old", "waited 1.85 s: https://example.invalid has been failing"),
        (["operation_timeout=30"], "the outage is 5 s old", "has been failing for longer than patience allows (5 s)"),
        (["operation_timeout=4"], "the deadline of 4 s is over", "would not end in time"),
        (["quota=redis://127.0.0.1:1/0"], "the outage is 5 s old", "has been failing for longer than"),
    ],
)
def test_with_the_default_it_says_that_an_outage_is_waited_out(arguments: list[str], until: str, end: str) -> None:
    """The answer says what ends the wait and how long it can be; the end says how long the wait was in vain."""
    said = answer("--status", "503", *arguments)
    assert f"waits until another request succeeds, and asks by itself now and then, until {until}" in said["then"]
    assert end in said["why"]


def test_the_body_is_looked_at(tmp_path: Path) -> None:
    """An AWS error code in it counts."""
    body = tmp_path / "body.json"
    body.write_text('{"__type": "ThrottlingException"}')
    said = answer("--status", "400", "--body", str(body))
    assert {"classifier": "AwsErrorCodeClassifier", "verdict": "throttling"} in said["votes"]
    assert said["is_retried"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "one of --status and --error is needed"),
        (("--status", "503", "--error", "ReadTimeout"), "one of --status and --error is needed"),
        (("--error", "Nonsense"), "have no exception 'Nonsense'"),
        (("--error", "UnicodeDecodeError"), "cannot be made without its cause"),
        (("--status", "503", "--header", "nonsense"), "'Name: value' is allowed"),
        (("--status", "503", "max_attempts=0"), "a whole number of 1 or more or None is allowed"),
        *((("--status", status, "enabled=false"), "retries are switched off") for status in ("503", "200")),
    ],
)
def test_bad_usage_is_named(arguments: tuple[str, ...], expected: str) -> None:
    """Exit status 2, and what is allowed."""
    result = run(*arguments)
    assert (result.exit_code, expected in result.output) == (2, True), result.output


def test_a_person_reads_tables() -> None:
    """Votes, verdict, whether it is sent again, delays, and how it would end."""
    text = run("--status", "503").output
    shown = ("HttpStatusCodeClassifier", "verdict: transient", "sent again: yes", "0.05 s", "then: the budget is")
    assert [] == [words for words in (*shown, "gave up after") if words not in text]


@pytest.mark.parametrize(
    ("arguments", "left_out"),
    [
        (["--error", "InvalidURL"], ["votes", "delays", "then:"]),
        (["--status", "404"], ["delays", "then:"]),
        (["--status", "503", "patience=0"], ["then:"]),
    ],
)
def test_nothing_is_said_of_what_does_not_happen(arguments: list[str], left_out: list[str]) -> None:
    """Without a vote, a retry or a wait for the service, a person does not read of it."""
    said = run(*arguments).output
    shown = [words for words in ("votes", "delays", "then:", "if every attempt ends so:") if words not in said]
    assert left_out == shown


def test_a_shared_quota_is_not_touched() -> None:
    """An explanation spends nobody's tokens, and connects to nothing."""
    with mock.patch("socket.socket", side_effect=AssertionError("it connects")):
        assert answer("--status", "503", "quota=redis://127.0.0.1:1/0")["is_retried"]
