"""The history (contract 12): the content of a record, why it ended, and the data that it may never hold."""

from __future__ import annotations

import json
import pickle
import socket
from contextlib import nullcontext
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import requests
import requests.exceptions as rex
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry import (
    AttemptRecord,
    RetryAction,
    RetryAdapter,
    RetryHistory,
    StopReason,
    SystemClock,
    TokenBucket,
    classifier,
    retry_history,
    retry_options,
)
from requests_smithy_retry.classifiers import Vote
from requests_smithy_retry.classifiers.transport_faults import cause_in_words
from requests_smithy_retry.events import AfterAttempt, ObservedOperation
from requests_smithy_retry.testing import FakeClock, ScriptedAdapter
from tests.faults import CloseAfterRequest, CutBody, FaultServer, ResetAfterRequest, Stall
from tests.faults import Reply as Sent
from tests.support import Reply, ended, pool_timeout, prepare, read_timeout, reset_error, scripted, send, session_with


@pytest.mark.parametrize("script", [[404], [503, 503, 503], [200]])
def test_what_was_made_from_a_response_has_its_history(script):
    """``raise_for_status`` makes an exception that was not there when the operation ended."""
    response = send(scripted(*script))
    error = rex.HTTPError(response=response)
    assert retry_history(error).to_dict()["attempts"] == retry_history(response).to_dict()["attempts"]
    assert len(script) == len(retry_history(error).attempts)
    assert retry_history(rex.HTTPError()) is None


def test_an_exception_without_a_history_has_that_of_its_cause():
    """A library's own exception leads to the attempts behind it; causes in a circle lead nowhere."""
    history = retry_history(send(scripted(503, 200)))
    response, error, outer = send(scripted(404)), RuntimeError(), RuntimeError()
    outer.__cause__ = error
    error.__cause__ = rex.HTTPError(response=response)
    assert (1, 2) == (len(retry_history(outer).attempts), len(history.attempts))
    error.__cause__ = outer
    assert retry_history(outer) is None


@pytest.mark.parametrize("times", [1, 2])
def test_it_survives_the_pickling_of_what_it_belongs_to(times):
    """A response, or an exception, keeps its record through any number of rounds."""
    response = send(scripted(503, 200))
    with pytest.raises(rex.ReadTimeout) as caught:
        send(scripted(503, 503, read_timeout()))
    assert ["503", "503", "ReadTimeout"] == [attempt.ending for attempt in retry_history(caught.value).attempts]
    for owner in (response, caught.value):
        copy = owner
        for _ in range(times):
            copy = pickle.loads(pickle.dumps(copy))
        assert retry_history(copy) == retry_history(owner)
    assert "_retry_history" not in requests.Response.__attrs__


def test_times_are_those_of_the_clock():
    """``started`` is the wall clock's, ``duration`` what passed within the attempt."""
    clock = FakeClock(wall=1000)

    def slow(_):
        clock.advance(2)
        return 503 if len(adapter.sent) == 1 else 200

    adapter = scripted(slow, slow, clock=clock)
    first, second = retry_history(send(adapter)).attempts
    assert [(1000, 2), (1002.05, 2)] == [(item.started, item.duration) for item in (first, second)]


def test_what_is_kept_while_it_goes_on_is_bounded():
    """An endless operation does not fill the memory: its first fifty attempts are kept, and its last fifty."""
    polls = iter([0.1] * 299 + [True])
    response = send(scripted(*[200] * 300, validate=lambda _: next(polls), max_attempts=400))
    kept = [*range(1, 51), *range(251, 301)]
    assert kept == [attempt.number for attempt in retry_history(response).attempts]
    assert len(kept) - 1 == len(response.raw.retries.history)


def test_a_first_try_success_has_a_history_too():
    """Its history is made when it is asked for: scope, attempts and clock are the adapter's."""
    adapter = scripted(200, clock=FakeClock(now=7, wall=50), scope=lambda request: "mine", max_attempts=4)
    response = send(adapter)
    adapter.clock.advance(100)
    history = retry_history(response)
    assert ("mine", 4) == (history.scope, history.max_attempts)
    assert (StopReason.SUCCESS, "it succeeded") == (history.stop_reason, history.why)
    assert [(50, 200)] == [(attempt.started, attempt.status) for attempt in history.attempts]


@pytest.mark.parametrize(
    ("outcome", "ending", "reason", "sentence"),
    [
        (200, 200, StopReason.SUCCESS, "succeeded at attempt 1"),
        (503, 503, StopReason.DISABLED, "ended at attempt 1 with 503: retries are switched off"),
        (read_timeout, None, StopReason.DISABLED, "ended at attempt 1 with ReadTimeout: retries are switched off"),
    ],
)
@pytest.mark.parametrize("is_block", [False, True])
def test_what_was_sent_while_retries_are_switched_off_has_a_history_of_one_attempt(
    outcome, ending, reason, sentence, is_block
):
    """Programs that print it go on when somebody switches retries off; no function of theirs is asked."""

    def scope(request):
        raise AssertionError

    adapter = scripted(outcome() if callable(outcome) else outcome, scope=scope, enabled=is_block)
    with retry_options(enabled=False) if is_block else nullcontext():
        try:
            found = send(adapter)
        except rex.RequestException as error:
            found = error
    history = retry_history(found)
    assert (ending, reason, False, None) == (
        history.attempts[0].status,
        history.stop_reason,
        history.gave_up,
        history.scope,
    )
    assert sentence == history.sentence
    assert history.explain().startswith("attempt 1: ")


@pytest.mark.parametrize(("elapsed", "duration"), [(0, None), (0.25, 0.25)])
def test_how_long_a_first_try_success_took_is_what_the_session_measured(elapsed, duration):
    """The duration is the session's ``elapsed``; a response without a session has no duration."""
    response = send(scripted(200))
    response.elapsed = timedelta(seconds=elapsed)
    assert duration == retry_history(response).attempts[0].duration


def test_a_first_try_success_that_another_adapter_took_for_its_own_has_a_history():
    """A response of an adapter that wraps ours has its history by the machine's clock and the URL."""
    response = send(scripted(200, clock=SystemClock(), scope=lambda request: "mine", max_attempts=4))
    response.connection = requests.adapters.HTTPAdapter()
    history = retry_history(response)
    assert ("https://api.example.com:443", None) == (history.scope, history.max_attempts)
    assert SystemClock().wall() - 60 < history.attempts[0].started <= SystemClock().wall()


def test_what_a_cache_hands_out_again_does_not_grow():
    """A response that gets a record each time is pickled as one that got it once."""

    class Cache(ScriptedAdapter):
        kept = None

        def build_response(self, *arguments):
            self.kept = self.kept or super().build_response(*arguments)
            return self.kept

    adapter = Cache(script=[404] * 4)
    first, *others = [len(pickle.dumps(send(adapter))) for _ in range(4)]
    assert [first] * 3 == others


@pytest.mark.parametrize("thing", [object(), None, ValueError(), rex.ConnectionError(), Mock(status_code=503)])
def test_what_did_not_come_from_an_adapter_has_none(thing):
    """A stranger's response, an exception or anything else has no record, nor has a mock with every attribute."""
    assert retry_history(thing) is None


def test_the_votes_are_those_of_the_classifiers():
    """Each classifier's vote is in the record, in the order of asking."""

    @classifier
    def mine(outcome):
        return RetryAction.retry_forbidden("I say so") if outcome.status == 503 else None

    history = history_of(503, classifiers=[mine])
    votes = {vote.classifier: vote.action for vote in history.attempts[0].votes}
    assert RetryAction.transient_error() == votes["HttpStatusCodeClassifier"]
    assert RetryAction.retry_forbidden("I say so") == votes["mine"]
    assert StopReason.FORBIDDEN is history.stop_reason
    assert "gave up after attempt 1: I say so; last answer: 503" == history.sentence
    assert "[HttpStatusCodeClassifier: transient, mine: forbidden (I say so)]" in history.explain()


@pytest.mark.parametrize("script", [[200], [503, 200]])
def test_a_success_is_recorded_without_votes_whoever_looked_at_it(script: list[int]) -> None:
    """A classifier that asks for nothing leaves no trace, with or without a retry before."""
    history = history_of(*script, classifiers=[classifier(lambda outcome: None, sees_successes=True)])
    assert history.attempts[-1].votes == ()


def history_of(*script: Any, method: str = "GET", **options: Any) -> RetryHistory:
    """The history of one operation, whether it returned or raised."""
    history = retry_history(ended(scripted(*script, **options), method))
    assert history is not None
    return history


def attempt(number: int = 1, **fields: Any) -> AttemptRecord:
    return AttemptRecord(number, 1_700_000_000.0, 0.25, **{"status": 503, **fields})


BUDGET = "the retry budget of https://api.example.com is empty (3 of 500, needs 14)"
HINT = "retry-after asks for 3600 s, max_retry_after is 120 s: allowed again at Tue, 14 Nov 2023 23:13:20 GMT"


@pytest.mark.parametrize(
    ("script", "options", "expected"),
    [
        ([200], {}, "succeeded at attempt 1"),
        ([503, 200], {}, "succeeded at attempt 2"),
        ([503, 200], {"max_attempts": 4}, "succeeded at attempt 2 of 4"),
        ([404], {}, "ended at attempt 1 with 404: no classifier asked for a retry"),
        ([503, 503, 503], {}, "gave up after attempt 3: no attempts are left; last answer: 503"),
        ([503] * 2, {"max_attempts": 2}, "gave up after attempt 2 of 2: no attempts are left; last answer: 503"),
        ([503] * 2, {"quota": TokenBucket(500, initial=17)}, f"gave up after attempt 2: {BUDGET}; last answer: 503"),
        ([Reply(503, {"Retry-After": "3600"})], {}, f"gave up after attempt 1: {HINT}; last answer: 503"),
        (
            *([reset_error()], {"max_attempts": 1}),
            "gave up after attempt 1 of 1: no attempts are left; last answer: ConnectionError (connection reset)",
        ),
    ],
)
def test_the_sentence_says_why_it_ended(script: list[Any], options: dict[str, Any], expected: str) -> None:
    """One plain sentence: which attempt, which rule with its numbers, and the last answer."""
    history = history_of(*script, **options)
    assert expected == history.sentence == str(history)


STORIES = {
    "one line an attempt": (
        RetryHistory(
            "https://api.example.com:443",
            (
                attempt(1, quota_before=500, quota_after=486),
                attempt(2, delay=7.0, delay_source="Retry-After", permit_wait=0.5, error="ReadTimeout", status=None),
                attempt(3, address="127.0.0.2"),
            ),
            *(StopReason.MAX_ATTEMPTS, "no attempts are left", 3),
        ),
        (
            "attempt 1: 503 in 0.25 s, retry budget 500 -> 486\n"
            "attempt 2: after 7 s (Retry-After) and 0.5 s for a permit ReadTimeout in 0.25 s\n"
            "attempt 3: 503 at 127.0.0.2 in 0.25 s\n"
            "gave up after attempt 3 of 3: no attempts are left; last answer: 503"
        ),
    ),
    "a duration that is not known": (
        RetryHistory(None, (AttemptRecord(1, 0.0, None, 200),), StopReason.SUCCESS, "it succeeded"),
        "attempt 1: 200\nsucceeded at attempt 1",
    ),
    "no first attempt": (
        RetryHistory("x", (), StopReason.RATE_LIMITED, "no permit in time"),
        "nothing was sent: no permit in time",
    ),
}


@pytest.mark.parametrize(("history", "told"), STORIES.values(), ids=STORIES)
def test_explain_tells_the_whole_story(history: RetryHistory, told: str) -> None:
    """One line an attempt, with what is known of waits and quota, and the sentence at the end."""
    assert (told, history.sentence) == (history.explain(), told.splitlines()[-1])


ACTIONS = (
    (RetryAction.transient_error(), "transient"),
    (RetryAction.no_action_indicated(), "no opinion"),
    (RetryAction.retry_forbidden(), "forbidden (a classifier forbade a retry)"),
    (RetryAction.retry_forbidden("I say so"), "forbidden (I say so)"),
)


def test_votes_are_told_one_after_the_other() -> None:
    """Votes have names; one without an opinion is left out; a bare "forbidden" has the words of the stop reason."""
    votes = tuple(Vote(name, action) for name, (action, _) in zip("ABCD", ACTIONS, strict=True))
    history = RetryHistory(None, (attempt(votes=votes),), StopReason.FORBIDDEN, "I say so")
    told = "A: transient, C: forbidden (a classifier forbade a retry), D: forbidden (I say so)"
    assert f"attempt 1: 503 in 0.25 s [{told}]" == history.explain().splitlines()[0]


def test_the_plain_values_are_these() -> None:
    """The dict has each field under its name; a value that is not known is None."""
    votes = tuple(Vote("A", action) for action, _ in ACTIONS)
    first = AttemptRecord(1, 1_700_000_000.0, None)
    second = AttemptRecord(2, 1_700_000_001.0, 0.25, 503, None, 1.0, "retry-after", votes, 500, 486, "redis", 0.5)
    history = RetryHistory("mine", (first, second), StopReason.MAX_ATTEMPTS, "no attempts are left", 2)
    unknown = dict.fromkeys(("duration", "status", "error", "quota_before", "quota_after", "quota_source", "address"))
    nothing_else = {
        "delay": 0.0,
        "delay_source": "backoff",
        "votes": [],
        "permit_wait": 0.0,
        "line_wait": 0.0,
        "line_why": "",
        "gate_wait": 0.0,
        "gate_source": "",
        "received": None,
        "sent": None,
        "cause": None,
    }
    assert history.to_dict() == {
        "scope": "mine",
        "attempts": [
            {"number": 1, "started": 1_700_000_000.0, **unknown, **nothing_else},
            {
                **unknown,
                **nothing_else,
                "number": 2,
                "started": 1_700_000_001.0,
                "duration": 0.25,
                "status": 503,
                "delay": 1.0,
                "delay_source": "retry-after",
                "permit_wait": 0.5,
                "votes": [{"classifier": "A", "verdict": said} for _, said in ACTIONS],
                "quota_before": 500,
                "quota_after": 486,
                "quota_source": "redis",
            },
        ],
        "stop_reason": "MAX_ATTEMPTS",
        "sentence": "gave up after attempt 2 of 2: no attempts are left; last answer: 503",
        "max_attempts": 2,
        "line_wait": 0.0,
        "retry_after": None,
        "waited": 0.0,
    }


CAUSES: dict[str, Any] = {
    "connection reset": ResetAfterRequest(),
    "closed without an answer": CloseAfterRequest(),
    "the body broke off": CutBody(Sent(200, {}, b"0123456789"), at=4),
    "read timed out": Stall("body", reply=Sent(200, {}, b"0123456789")),
}


@pytest.mark.real_time
@pytest.mark.parametrize("cause", CAUSES)
def test_what_happened_to_the_connection_is_told(cause: str, caplog: pytest.LogCaptureFixture) -> None:
    """History, log and sentence tell the errors apart that requests gives one name."""
    made, raises = session_with(RetryAdapter(max_attempts=1)), pytest.raises(requests.RequestException)
    with FaultServer(default=CAUSES[cause]) as server, made, raises as raised:
        assert made.get(f"{server.url}/?token=secret", timeout=1, stream="read" in cause).content
    check_told(raised.value, cause, caplog)


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("host", "cause"), [("127.0.0.1", "connection refused"), ("nowhere.invalid", "name not found")]
)
def test_why_there_was_no_connection_is_told(host: str, cause: str, caplog: pytest.LogCaptureFixture) -> None:
    """A port on which nobody listens, and a name that nobody has."""
    with socket.socket() as bound, session_with(RetryAdapter(max_attempts=1)) as made:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(requests.ConnectionError) as raised:
            made.get(f"http://{host}:{bound.getsockname()[1]}/?token=secret", timeout=5)
    check_told(raised.value, cause, caplog)


def check_told(error: Exception, cause: str, caplog: pytest.LogCaptureFixture) -> None:
    history = retry_history(error)
    told = f"{type(error).__name__} ({cause})"
    assert (cause, told) == (history.attempts[0].cause, history.attempts[0].told)
    assert history.explain().startswith(f"attempt 1: {told}")
    assert history.sentence.endswith(f"last answer: {told}")
    assert history.sentence in caplog.text
    assert "secret" not in history.explain() + caplog.text


def test_a_timeout_of_the_head_says_so_by_its_type() -> None:
    """Nothing is added to it."""
    assert (None, None) == (cause_in_words(requests.ReadTimeout(TimeoutError())), cause_in_words(None))


def test_long_waits_are_told_in_whole_seconds() -> None:
    """Half an hour is not 1.8e+03 s."""
    history = RetryHistory(None, (attempt(2, delay=1800.4),), StopReason.MAX_ATTEMPTS, "")
    assert "attempt 2: after 1800 s (backoff) 503" in history.explain()


@pytest.mark.parametrize(("status", "error"), [(200, None), (None, "KeyboardInterrupt")])
def test_an_attempt_that_ended_now_began_as_long_ago_as_it_took(status: int | None, error: str | None) -> None:
    """The record that a listener is given of an attempt that went without one."""
    operation = ObservedOperation(
        RetryAdapter(clock=FakeClock(wall=1000)), prepare(), None, "https://api.example.com:443"
    )
    response = None if status is None else SimpleNamespace(status_code=status)
    event = AfterAttempt(operation, 2, response, None if error is None else KeyboardInterrupt(), 1.5)
    assert AttemptRecord(2, 998.5, 1.5, status, error) == event.record


def test_it_cannot_be_changed() -> None:
    """A record is a value."""
    with pytest.raises(AttributeError):
        history_of(200).why = "other"  # type: ignore[misc]


@given(st.lists(st.sampled_from([200, 404, 429, 500, 503]), min_size=3, max_size=3))
def test_any_story_can_be_told(script: list[int]) -> None:
    """For any answers, there are a sentence, an explanation and a dict of JSON, and a pickled history is equal."""
    history = history_of(*script)
    assert history.explain().endswith(history.sentence)
    assert str(history.attempts[-1].status) in history.explain().splitlines()[-2]
    data = json.loads(json.dumps(history.to_dict()))
    assert (history.stop_reason.name, history.sentence) == (data["stop_reason"], data["sentence"])
    assert len(history.attempts) == len(data["attempts"]) <= 3
    assert history == pickle.loads(pickle.dumps(history))


@pytest.mark.parametrize("status", [404, 410])
@pytest.mark.parametrize("lost", [reset_error, read_timeout, lambda: 500, lambda: 503, lambda: 504])
def test_a_delete_that_finds_nothing_says_who_may_have_deleted_it(lost, status, caplog):
    """An attempt whose answer was lost; both the sentence and the log say so."""
    history = history_of(lost(), status, method="DELETE")
    assert history.sentence.endswith("attempt 1 may have deleted it")
    assert (1, history) == (history.deleted_by, pickle.loads(pickle.dumps(history)))
    (record,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "attempt 1 may have deleted it" in record.getMessage()


@pytest.mark.parametrize(
    ("script", "method", "attempt"),
    [
        ([404], "DELETE", None),
        ([429, 404], "DELETE", None),
        ([pool_timeout(), 404], "DELETE", None),
        ([503, 404], "GET", None),
        ([503, 403], "DELETE", None),
        ([503, 204], "DELETE", None),
        ([429, 503, 404], "DELETE", 2),
        ([503, 429, 410], "DELETE", 1),
    ],
    ids=repr,
)
def test_nobody_else_may_have_deleted_it(script, method, attempt):
    """Only an attempt on which the server acted, and which ended in nothing else, may have deleted it."""
    history = retry_history(send(scripted(*script), method))
    assert attempt == history.deleted_by
    assert (attempt is not None) == ("may have deleted it" in history.sentence)


def test_the_phrases_stay_as_they_are():
    """Programs that keep histories as JSON have them in their data."""
    assert {
        "SUCCESS": "it succeeded",
        "NOT_RETRYABLE": "no classifier asked for a retry",
        "FORBIDDEN": "a classifier forbade a retry",
        "NOT_RESENDABLE": "the request may have been applied and is not idempotent",
        "BODY_NOT_REPLAYABLE": "the body cannot be replayed",
        "REQUEST_FAULT": "the request itself is at fault",
        "BODY_NOT_CONTINUED": "the body broke off and was not continued",
        "MAX_ATTEMPTS": "no attempts are left",
        "HINT_TOO_LONG": "the server asked for too long a wait",
        "DEADLINE": "the wait would not end before the deadline",
        "QUOTA_EXCEEDED": "the retry budget is empty",
        "PATIENCE": "the service has been down for longer than patience allows",
        "LINE_FULL": "too many operations are waiting for the service already",
        "RATE_LIMITED": "no send permit in time",
        "CANCELLED": "the program cancelled the wait",
        "WAIT_TOO_LONG": "the wait would be longer than max_wait",
        "STRATEGY_REFUSED": "the retry strategy refused",
        "DISABLED": "retries are switched off",
    } == {reason.name: reason.value for reason in StopReason}
