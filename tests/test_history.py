"""What happened (contract 12)."""

from __future__ import annotations

import json
import pickle

import pytest
import requests.exceptions as rex

from requests_smithy_retry import RetryAction, RetryHistory, StopReason, classifier, retry_history
from requests_smithy_retry.history import MAX_KEPT
from requests_smithy_retry.testing.clock import FakeClock
from tests.support import URL, Reply, read_timeout, scripted, send, session_with


def test_each_attempt_is_recorded():
    """Number, status or error, delay with its source, votes and quota of each attempt."""
    adapter = scripted(Reply(429, {"Retry-After": "3"}), read_timeout(), 200)
    history = retry_history(send(adapter))
    rows = [
        (item.number, item.status, item.error, item.delay, item.delay_source, item.quota_before, item.quota_after)
        for item in history.attempts
    ]
    assert [
        (1, 429, None, 0.0, "backoff", 500, 495),
        (2, None, "ReadTimeout", 3, "retry-after", 495, 481),
        (3, 200, None, 0.1, "backoff", None, None),
    ] == rows
    assert (StopReason.SUCCESS, 3, "https://api.example.com:443") == (
        history.stop_reason,
        history.max_attempts,
        history.scope,
    )
    assert "succeeded at attempt 3 of 3" == history.sentence == str(history)


def test_times_are_those_of_the_clock():
    """``started`` is the wall clock's, ``duration`` what passed within the attempt."""
    clock = FakeClock(wall=1000)

    def slow(_):
        clock.advance(2)
        return 503 if len(adapter.sent) == 1 else 200

    adapter = scripted(slow, slow, clock=clock)
    first, second = retry_history(send(adapter)).attempts
    assert [(1000, 2), (1002.05, 2)] == [(item.started, item.duration) for item in (first, second)]


def test_a_first_try_success_has_a_history_too():
    """It is made when somebody asks: scope, attempts and clock are the adapter's."""
    adapter = scripted(200, clock=FakeClock(wall=50), scope=lambda request: "mine", max_attempts=4)
    response = session_with(adapter).get(URL)
    adapter.clock.advance(100)
    history = retry_history(response)
    assert ("mine", StopReason.SUCCESS, 4, 1) == (
        history.scope,
        history.stop_reason,
        history.max_attempts,
        len(history.attempts),
    )
    assert (50, 200) == (history.attempts[0].started, history.attempts[0].status)


def test_what_did_not_come_from_an_adapter_has_none():
    """A stranger's response, an exception or anything else: None."""
    for thing in (object(), None, ValueError(), rex.ConnectionError()):
        assert retry_history(thing) is None


def test_the_votes_are_those_of_the_classifiers():
    """Each classifier's word is in the record, in the order of asking."""

    @classifier
    def mine(outcome):
        return RetryAction.retry_forbidden("I say so") if outcome.status == 503 else None

    history = retry_history(send(scripted(503, classifiers=[mine])))
    votes = {vote.classifier: vote.action for vote in history.attempts[0].votes}
    assert RetryAction.transient_error() == votes["HttpStatusCodeClassifier"]
    assert RetryAction.retry_forbidden("I say so") == votes["mine"]
    assert (StopReason.FORBIDDEN, "gave up after attempt 1 of 3: I say so; last answer: 503") == (
        history.stop_reason,
        history.sentence,
    )
    assert "mine: forbidden (I say so)" in history.explain()
    assert "HttpStatusCodeClassifier: transient" in history.explain()
    assert "no opinion" in history.explain()


def test_the_whole_story_in_lines():
    """``explain`` gives a line an attempt, and the sentence."""
    lines = retry_history(send(scripted(503, 503, 503))).explain().splitlines()
    assert 4 == len(lines)
    assert lines[1].startswith("attempt 2: after 0.05 s (backoff) 503 in 0 s [")
    assert "gave up after attempt 3 of 3: no attempts are left; last answer: 503" == lines[-1]


@pytest.mark.parametrize("script", [[200], [503, 200], [503, 503, 503]])
def test_it_is_plain_values_for_json_and_survives_pickling(script):
    """``to_dict`` is JSON, and a pickled history is equal."""
    history = retry_history(send(scripted(*script)))
    data = json.loads(json.dumps(history.to_dict()))
    assert (len(script), history.stop_reason.name, history.sentence) == (
        len(data["attempts"]),
        data["stop_reason"],
        data["sentence"],
    )
    assert history == pickle.loads(pickle.dumps(history))


def test_it_holds_nothing_secret():
    """No userinfo, query, header value or body is in the record."""
    adapter = scripted(Reply(503, {"X-Secret": "s3cret"}, b"s3cret"), read_timeout(), 500)
    url = "https://user:s3cret@api.example.com/a?key=s3cret"
    response = send(adapter, "PUT", url, data="s3cret", headers={"Authorization": "s3cret"})
    history = retry_history(response)
    assert "s3cret" not in json.dumps(history.to_dict()) + history.explain() + repr(history)


def test_a_long_record_keeps_its_ends():
    """Of many attempts the first and the last ones are kept, also in urllib3's rows; memory does not grow."""
    adapter = scripted(*[503] * 300, 200, max_attempts=1000, quota=None, max_backoff=0)
    response = send(adapter)
    numbers = [item.number for item in retry_history(response).attempts]
    half = MAX_KEPT // 2
    assert [*range(1, half + 1), *range(302 - half, 302)] == numbers
    assert MAX_KEPT - 1 == len(response.raw.retries.history)


def test_an_exception_carries_its_history():
    """What was raised has the record of the attempts before it."""
    with pytest.raises(rex.ReadTimeout) as caught:
        send(scripted(503, 503, read_timeout()))
    history = retry_history(caught.value)
    assert isinstance(history, RetryHistory)
    assert ["503", "503", "ReadTimeout"] == [item.ending for item in history.attempts]
