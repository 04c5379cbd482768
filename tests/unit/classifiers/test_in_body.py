"""Errors inside a successful response: what is parsed, and what the predicate may say."""

from __future__ import annotations

from typing import Any

import pytest

from requests_smithy_retry import ErrorInBodyClassifier, ErrorKind, Outcome, RetryAction, RetryReason, retry_history
from tests.support import Reply, scripted, send
from tests.unit.classifiers.test_http_status import outcome_of

NOTHING = RetryAction.no_action_indicated()
JSON = {"Content-Type": "application/json; charset=utf-8"}
THROTTLED = b'{"errors": [{"extensions": {"code": "THROTTLED"}}]}'


def is_throttled(body: Any) -> bool:
    """A predicate for GraphQL's way to report throttling."""
    return any(error["extensions"]["code"] == "THROTTLED" for error in body["errors"])


def verdict(outcome: Outcome, found: Any = True, **options: Any) -> RetryAction:
    """Return the classifier's verdict, with a predicate that returns ``found``."""
    item = ErrorInBodyClassifier(lambda _: found, "THROTTLED", **options)
    return item.classify_retry(outcome, NOTHING)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (True, RetryAction.throttling_error()),
        (False, NOTHING),
        (None, NOTHING),
        (2.5, RetryAction.retry_indicated(RetryReason(ErrorKind.THROTTLING, 2.5, "ErrorInBodyClassifier"))),
        (0, RetryAction.retry_indicated(RetryReason(ErrorKind.THROTTLING, 0.0, "ErrorInBodyClassifier"))),
        (RetryAction.retry_forbidden("no"), RetryAction.retry_forbidden("no")),
    ],
)
def test_what_a_predicate_may_say(found: Any, expected: RetryAction) -> None:
    """An error, none, a wait, or any verdict."""
    assert expected == verdict(outcome_of(200, THROTTLED, JSON), found)


@pytest.mark.parametrize("found", ["yes", -1, float("nan"), float("inf"), []])
def test_anything_else_is_a_bug(found: Any) -> None:
    """A predicate that returns anything else raises a TypeError with the classifier's name."""
    with pytest.raises(TypeError, match="mine: True, False, None, seconds or a RetryAction is allowed"):
        verdict(outcome_of(200, THROTTLED, JSON), found, name="mine")


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(error=OSError()),
        *(outcome_of(200, body, JSON) for body in (b'{"data": {}}', b'{"THROTTLED": ' + b" " * 70_000 + b"1}")),
        outcome_of(200, THROTTLED, JSON, stream=True),
    ],
    ids=["error", "no word", "long", "stream"],
)
def test_no_body_is_parsed_that_need_not_be(outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cheap looks come first."""
    monkeypatch.setattr("json.loads", None)
    assert NOTHING == verdict(outcome)


@pytest.mark.parametrize(
    "body",
    [
        *(b'{"THROTTLED"', b'"THROTTLED"', b'["THROTTLED"]', b"\xffTHROTTLED", b"[" * 60_000 + b'"THROTTLED"'),
        *(b'{"errors": ["THROTTLED"]}', b'{"errors": null, "a": "THROTTLED"}'),
        b'{"errors": [{"extensions": {}}], "a": "THROTTLED"}',
        b'{"errors": [], "a": "THROTTLED", "n": ' + b"9" * 5000 + b"}",
    ],
)
def test_a_body_of_another_shape_is_no_error(body: bytes) -> None:
    """No input raises."""
    item = ErrorInBodyClassifier(is_throttled, "THROTTLED")
    assert NOTHING == item.classify_retry(outcome_of(200, body, JSON), NOTHING)


@pytest.mark.parametrize("headers", [JSON, {}, {"Content-Type": "text/plain"}])
@pytest.mark.parametrize(("length", "expected"), [(65_535, RetryAction.throttling_error()), (65_536, NOTHING)])
def test_a_body_shorter_than_64_kib_is_parsed_whatever_its_type(headers: Any, length: int, expected: Any) -> None:
    """Of one that is longer, the classifier sees only the beginning."""
    body = THROTTLED[:-1].ljust(length - 1) + b"}"
    assert expected == ErrorInBodyClassifier(is_throttled, "THROTTLED").classify_retry(
        outcome_of(200, body, headers), NOTHING
    )


def test_a_predicate_sees_whole_numbers_as_they_are() -> None:
    """An identifier of twenty digits is the same as in ``response.json()``."""
    seen: list[Any] = []
    item = ErrorInBodyClassifier(lambda body: seen.append(body["id"]), "id")
    item.classify_retry(outcome_of(200, b'{"id": 12345678901234567890}', JSON), NOTHING)
    assert [12345678901234567890] == seen


@pytest.mark.parametrize("words", [(), ("",), (b"x",), ("a", 3)])
def test_a_word_is_asked_for(words: Any) -> None:
    """Without a word to look for, every body would be parsed, so one is required."""
    with pytest.raises(TypeError, match="one or more texts are allowed"):
        ErrorInBodyClassifier(is_throttled, *words)


def test_a_post_is_sent_again_after_the_wait_that_the_body_asks_for() -> None:
    """The server said how long, inside a 200."""
    item = ErrorInBodyClassifier(lambda body: body["wait"], "wait")
    busy = Reply(200, JSON, body=b'{"wait": 9}')
    response = send(scripted(busy, 200, classifiers=[item]), "POST", data=b"query")
    assert [0.0, 9.0] == [attempt.delay for attempt in retry_history(response).attempts]
