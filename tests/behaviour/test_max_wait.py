"""``max_wait``: a longer wait, of whatever kind, ends its call with ``RetryLater``, which tells the number."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import requests

from requests_smithy_retry import (
    RetryLater,
    SimpleRetryStrategy,
    StopReason,
    TokenBucket,
    mount,
    retry_history,
    retry_options,
    testing,
)
from requests_smithy_retry.testing import CutBody, FakeClock, FaultServer
from requests_smithy_retry.testing import Reply as ServerReply
from tests import support
from tests.behaviour.test_listeners import Log
from tests.support import Reply, ScriptedAdapter, reset_error, send
from tests.turns import TurnClock

LATER = StopReason.WAIT_TOO_LONG
BUSY = Reply(429, {"Retry-After": "30"})


def ended(adapter: ScriptedAdapter, **kwargs: Any) -> RetryLater:
    """Send, and return what that ends with."""
    with pytest.raises(RetryLater) as caught:
        send(adapter, **kwargs)
    return caught.value


def announced(**options: Any) -> ScriptedAdapter:
    used_up = Reply(200, {"RateLimit-Limit": "60", "RateLimit-Remaining": "0", "RateLimit-Reset": "25"})
    adapter = support.scripted(used_up, 200, **options)
    send(adapter)
    return adapter


def emptied(*, clock: FakeClock | None = None, **options: Any) -> ScriptedAdapter:
    clock = clock or FakeClock()
    bucket = TokenBucket(14, initial=0, refill_rate=1, on_empty="wait", clock=clock)
    return support.scripted(503, 200, quota=bucket, backoff=0, clock=clock, **options)


LONG: dict[str, Any] = {"backoff": 10, "jitter": "none"}
HINTED = partial(support.scripted, BUSY, 200)
BACKED_OFF = partial(support.scripted, reset_error(), 200, **LONG)


KINDS: dict[str, tuple[Callable[..., ScriptedAdapter], float, int]] = {
    "hint": (HINTED, 30.0, 1),
    "backoff": (BACKED_OFF, 10.0, 1),
    "announced limit": (announced, 25.0, 0),
    "service that is down": (partial(testing.scripted, *[503] * 9, backoff=0, patience=60), 0.5, 3),
    "permit": (partial(support.scripted, 429, 200, mode="adaptive", backoff=0), 2.0, 1),
    "tokens": (emptied, 14.0, 1),
    "long poll": (partial(support.scripted, 503, quota=0, **LONG), 10.0, 1),
}
"""Ways to wait in a call, with the seconds, and the attempts before."""
every_kind = pytest.mark.parametrize(("make", "seconds", "attempts"), KINDS.values(), ids=KINDS)


@every_kind
def test_a_longer_wait_ends_the_call(make: Callable[..., ScriptedAdapter], seconds: float, attempts: int) -> None:
    """Of whatever kind it is, at once, with the number in the exception and in its history."""
    adapter = make(max_wait=0.3)
    began = adapter.clock.now()
    with retry_options(long_poll=True):
        error = ended(adapter)
    history = retry_history(error)
    assert (seconds, attempts) == (pytest.approx(error.seconds, abs=0.3), len(history.attempts))
    assert (LATER, error.seconds) == (history.stop_reason, history.retry_after)
    assert 0.35 > adapter.clock.now() - began


SEVEN = Reply(429, {"Retry-After": "7"})


@pytest.mark.parametrize(
    ("reply", "options", "expected"),
    [
        (SEVEN, {"patience": 0}, 7.0),
        (SEVEN, {"patience": 5}, 7.0),
        (SEVEN, {"max_retry_after": 5}, 7.0),
        (SEVEN, {"operation_timeout": 1.5}, 7.0),
        (Reply(503, {"Retry-After": "7"}), {"patience": 2, "max_retry_after": 5}, 7.0),
        (Reply(503), {"operation_timeout": 1.5, "backoff": 4, "jitter": "none"}, 4.0),
        (SEVEN, {"operation_timeout": 1.5, "strategy": SimpleRetryStrategy(clock=FakeClock())}, 7.0),
        (SEVEN, {"patience": 0, "max_wait": 7}, StopReason.HINT_TOO_LONG),
        (SEVEN, {"operation_timeout": 1.5, "max_wait": 7}, StopReason.DEADLINE),
        (SEVEN, {"max_attempts": 1}, StopReason.MAX_ATTEMPTS),
        (SEVEN, {"retry_status_codes": [503]}, StopReason.NOT_RETRYABLE),
        (Reply(503), {"patience": 0, "quota": 0}, StopReason.QUOTA_EXCEEDED),
        (Reply(404), {"operation_timeout": 1.5}, StopReason.NOT_RETRYABLE),
    ],
)
def test_a_longer_wait_that_another_bound_forbids_ends_the_call_so_too(
    reply: Reply, options: dict[str, Any], expected: float | StopReason
) -> None:
    """Whichever bound is met first; a call that is over for no wait's sake ends as it does without the option."""
    adapter = testing.scripted(reply, **{"max_wait": 0.5, **options})
    if isinstance(expected, StopReason):
        assert expected is retry_history(send(adapter)).stop_reason
    else:
        history = retry_history(ended(adapter))
        assert (LATER, expected) == (history.stop_reason, history.retry_after)
    assert 1 == len(adapter.sent)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(429, {"Retry-After": "300"}), 300.0),  # above max_retry_after
        (Reply(503, {"Retry-After": "7"}), 7.0),
        (Reply(404, {"Retry-After": "7"}), 7.0),
        (Reply(429, {"RateLimit-Remaining": "0", "RateLimit-Reset": "25"}), 25.0),
        (Reply(503), None),
        (Reply(200, {"Retry-After": "7"}), None),
        (reset_error(), None),
    ],
)
def test_the_history_of_each_ending_has_the_number(reply: Any, expected: float | None) -> None:
    """What the last answer asks for, whatever the reason is for which no other attempt follows it."""
    history = retry_history(support.ended(support.scripted(reply, max_attempts=1)))
    assert (expected, expected) == (history.retry_after, history.to_dict()["retry_after"])


def test_a_wait_within_it_is_made() -> None:
    """And a call without the option waits as ever."""
    for seconds, options in ((2, {"max_wait": 2}), (30, {})):
        adapter = support.scripted(Reply(429, {"Retry-After": str(seconds)}), Reply(200), **options)
        assert (200, seconds) == (send(adapter).status_code, adapter.clock.now())


def test_the_parts_of_a_wait_count_together() -> None:
    """A backoff of 1.5 s is waited for, then a permit that comes half a second later ends the call."""
    options = {"backoff": 1.5, "jitter": "none", "max_wait": 1.8}
    adapter = support.scripted(Reply(429), Reply(200), mode="adaptive", **options)
    error = ended(adapter)
    assert (1.5, pytest.approx(0.5)) == (adapter.clock.now(), error.seconds)
    assert error.response is not None


def test_a_block_has_its_own() -> None:
    """The block's number holds in it, whichever is the longer."""
    with retry_options(max_wait=60):
        adapter = HINTED(max_wait=2)
        assert (200, 30) == (send(adapter).status_code, adapter.clock.now())
    with retry_options(max_wait=0):
        assert 30 == ended(support.scripted(BUSY)).seconds


def test_the_exception_is_one_of_requests_with_the_last_answer() -> None:
    """It names the wait and the bound, is caused by the last error, and can be pickled."""
    error = ended(HINTED(max_wait=2))
    assert isinstance(error, requests.exceptions.RetryError)
    assert "the wait for retry-after takes 30 s more, and max_wait is 2 s" == str(error)
    assert (429, support.URL) == (error.response.status_code, error.request.url)
    assert 30 == retry_history(error).retry_after
    assert 25 == pickle.loads(pickle.dumps(ended(announced(max_wait=2)))).seconds
    assert isinstance(ended(BACKED_OFF(max_wait=2)).__cause__, requests.ConnectionError)


def test_a_call_that_ends_before_its_first_attempt_has_sent_nothing() -> None:
    """No answer, no request on the wire, and a sentence that says so."""
    adapter = announced(max_wait=2)
    error = ended(adapter)
    assert (1, None) == (len(adapter.sent), error.response)
    assert retry_history(error).sentence.startswith("nothing was sent: the wait for a rate limit takes 25 s more")


def test_the_price_of_the_retry_that_was_not_made_comes_back() -> None:
    """The bucket is as full as before."""
    bucket = TokenBucket(100)
    ended(support.scripted(BUSY, quota=bucket, max_wait=2))
    assert 100 == bucket.available


def test_no_retry_is_told_of_that_is_not_made(caplog: pytest.LogCaptureFixture) -> None:
    """Listeners hear of the attempt and of giving up, and so does the log."""
    heard = Log()
    with caplog.at_level(logging.INFO):
        ended(support.scripted(BUSY, max_wait=2, listeners=[heard]))
    assert ["BeforeAttempt", "AfterAttempt", "Throttled", "GaveUp"] == heard.names
    assert [LATER] == [event.history.stop_reason for event in heard.of("GaveUp")]
    assert ["gave up after attempt 1: the wait for retry-after"] == [
        record.getMessage().partition("things: ")[2][:49] for record in caplog.records
    ]


def test_a_strategy_of_the_program_is_bounded_as_well() -> None:
    """Its first wait, and those between its attempts."""
    error = ended(testing.scripted(503, strategy=support.Guide(delay=30), max_wait=2))
    assert (30, 1) == (error.seconds, len(retry_history(error).attempts))
    error = ended(testing.scripted(strategy=support.Guide(first=5.0), max_wait=2))
    assert (5, 0) == (error.seconds, len(retry_history(error).attempts))


def test_a_streamed_answer_is_closed() -> None:
    """Its short body is in the exception, for nobody reads the rest."""
    error = ended(support.scripted(BUSY, max_wait=2), stream=True)
    assert (429, b"") == (error.response.status_code, error.response.content)


@pytest.mark.real_time
@pytest.mark.parametrize(("stream", "error"), [(False, RetryLater), (True, requests.exceptions.ChunkedEncodingError)])
def test_a_body_that_has_to_wait_for_its_rest_ends_so_too(stream: bool, error: type[Exception]) -> None:
    """One that its caller reads breaks off as ever, on real sockets; both have the number."""
    cut = CutBody(ServerReply(200, {"ETag": '"1"'}, b"x" * 400_000))
    not_yet = ServerReply(429, {"Retry-After": "30"})
    with FaultServer([cut, not_yet]) as server, mount(requests.Session(), max_wait=2) as session:
        with pytest.raises(error) as caught:
            session.get(server.url, stream=stream).content  # noqa: B018
        history = retry_history(caught.value)
        assert (30, [200, 429]) == (history.retry_after, [row.status or 200 for row in history.attempts])


@pytest.mark.real_time
def test_who_is_not_the_next_in_line_of_a_service_that_is_down_leaves_at_once() -> None:
    """Eight threads, a service that answers with 503: all have left before the line would have let one go."""
    made = mount(requests.Session(), max_wait=0.2, patience=60, backoff=0)
    with FaultServer([ServerReply(503)] * 99) as server, made as session, ThreadPoolExecutor(8) as pool:
        errors = [call.exception(60) for call in [pool.submit(session.get, server.url) for _ in range(8)]]
    assert [RetryLater] * 8 == [type(error) for error in errors]
    assert all(0.2 < error.seconds < 2 for error in errors)  # type: ignore[union-attr]


@pytest.mark.parametrize("threads", [2, 8])
def test_who_is_not_the_next_in_line_is_told_when_it_would_have_gone(threads: int) -> None:
    """Not when it would have given up: a task is put back for seconds, however great the patience."""
    clock, seconds = TurnClock(), []
    adapter = testing.scripted(*[200] * 5, *[503] * 99, clock=clock, max_wait=0.3, patience=86_400)

    def call() -> None:
        with pytest.raises(RetryLater) as caught:
            send(adapter)
        seconds.append(caught.value.seconds)

    for _ in range(5):
        send(adapter)
    clock.run([call] * threads)
    assert threads == len(seconds)
    assert max(seconds) <= 1


@pytest.mark.parametrize("threads", [2, 8])
def test_who_is_not_the_first_before_a_limit_waits_as_the_first_does(threads: int) -> None:
    """All of them go when the limit begins anew, which is within ``max_wait``."""
    clock, sent = TurnClock(), []
    used_up = Reply(200, {"RateLimit-Limit": "60", "RateLimit-Remaining": "0", "RateLimit-Reset": "3"})
    adapter = support.scripted(used_up, *[200] * threads, clock=clock, max_wait=3.5, jitter="none")
    send(adapter)
    clock.run([lambda: sent.append(send(adapter).status_code)] * threads)
    assert [200] * threads == sent
