"""One operation, from its first attempt to its end: what goes wrong in between."""

from __future__ import annotations

import traceback
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from requests_smithy_retry import (
    AttemptFailed,
    Outcome,
    RetryAction,
    RetryAdapter,
    RetryError,
    RetryListener,
    StandardRetryStrategy,
    StopReason,
    classifier,
    retry_history,
    retry_options,
)
from requests_smithy_retry.observing.summary import summary_of
from requests_smithy_retry.testing import CutBody, FakeClock, FaultServer, Reply, skipped_waits
from tests.support import Guide, ScriptedAdapter, prepare, reset_error, scripted, send, session_with
from tests.unit.wire.support import nothing_left

LONG = b"x" * 300_000


class Behind(HTTPAdapter):
    """An adapter that sends through another one."""

    inner: HTTPAdapter

    def send(self, request: PreparedRequest, *args: Any, **how: Any) -> Response:
        return self.inner.send(request, *args, **how)


class InFront(RetryAdapter, Behind):
    """Ours in front of it, as on the page."""


@pytest.mark.parametrize("bound", ["operation_timeout", "operation_attempt_timeout"])
def test_the_operation_of_an_adapter_behind_ends_within_the_attempt_that_it_is(bound: str) -> None:
    """Its retries and waits are parts of the attempt in front, which has a second; alone it would wait for five."""
    with FaultServer(default=Reply(503)) as server, skipped_waits() as clock, closing(RetryAdapter()) as inner:
        adapter = InFront(max_attempts=1, **{bound: 1})
        adapter.inner = inner
        assert 503 == send(adapter, url=server.url).status_code
        assert (True, True) == (sum(clock.sleeps) < 1, len(server.requests) > 1)


def late(wait: float = 0.0) -> Guide:
    """A strategy whose first attempt is to wait, and which retries nothing."""
    return Guide(*[RetryError("no", stop_reason=StopReason.NOT_RETRYABLE)] * 2, first=wait)


@pytest.mark.parametrize(("wait", "time"), [(10, 5), (0.5, 0.4), (0.5, 0.5)])
def test_a_first_wait_past_the_deadline_is_not_made(wait: float, time: float) -> None:
    """The attempt is made at once, and it is the only one."""
    clock = FakeClock()
    response = send(scripted(503, clock=clock, strategy=late(wait), operation_timeout=time))
    assert (response.status_code, clock.sleeps) == (503, [])
    assert retry_history(response).stop_reason is StopReason.DEADLINE


@pytest.mark.parametrize("data", [None, "body"])
@pytest.mark.parametrize("kind", [StandardRetryStrategy, Guide])
def test_where_the_deadline_had_passed_nothing_is_sent_and_everybody_is_told(kind: type, data: Any) -> None:
    """No attempt is made or told of; the call is logged, told and counted as any that gives up."""
    told: list[str] = []

    class Told(RetryListener):
        def before_attempt(self, event: Any) -> None:
            told.append("attempt")

        def gave_up(self, event: Any) -> None:
            told.append("gave up")

    clock = FakeClock()
    strategy: Any = Guide() if kind is Guide else kind(clock=clock)
    adapter = scripted(clock=clock, strategy=strategy, listeners=[Told()])
    with retry_options(deadline=1, clock=clock):
        clock.advance(2)
        with pytest.raises(requests.exceptions.ConnectTimeout, match="not sent: the deadline had passed") as caught:
            send(adapter, data=data)
    history = retry_history(caught.value)
    assert ([], (), StopReason.DEADLINE, ["gave up"]) == (adapter.sent, history.attempts, history.stop_reason, told)
    assert (1, 0, 1) == (summary_of([adapter]).operations, summary_of([adapter]).lost, summary_of([adapter]).unsent)
    assert "nothing was sent: the deadline had passed before the request was sent" == history.sentence


@pytest.mark.parametrize("kind", [StandardRetryStrategy, Guide])
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_not_sent_for_want_of_a_permit_tells_its_story(stream: bool, kind: type) -> None:
    """The exception is safe to retry, and has the reason, the request and the history with the most attempts."""

    class Stingy(kind):  # type: ignore[misc]
        max_attempts = 4

        def send_permit(self, *, token: Any, deadline: float | None, waited: float) -> None:
            raise RetryError("no permit in time", stop_reason=StopReason.RATE_LIMITED)

    request, given = prepare(), {} if kind is Guide else {"clock": FakeClock()}
    adapter = scripted(503, strategy=Stingy(**given))
    with pytest.raises(requests.exceptions.ConnectTimeout) as caught:
        adapter.send(request, stream=stream)
    assert ("not sent: no permit in time", request) == (str(caught.value), caught.value.request)
    history = retry_history(caught.value)
    assert ((), 4) == (history.attempts, history.max_attempts)


class Stinting(StandardRetryStrategy):
    """A strategy that refuses every permit for a second attempt."""

    def send_permit(self, *, token: Any, deadline: float | None, waited: float) -> None:
        if token.retry_count:
            raise RetryError("no permit", stop_reason=StopReason.RATE_LIMITED)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [200, 503])
def test_a_last_answer_that_was_let_go_for_a_permit_is_handed_on_where_it_is_short(status: int, stream: bool) -> None:
    """A short answer was read before the wait, and is handed over; in place of a long one an exception is raised."""
    verdict = classifier(lambda outcome: RetryAction.transient_error(), sees_successes=True)
    for body, is_kept in ((b"why", status == 503 or not stream), (LONG, status == 200 and not stream)):
        strategy = Stinting(clock=FakeClock(), classifiers=[verdict], max_attempts=4)
        with FaultServer(Reply(status, body=body)) as server, session_with(RetryAdapter(strategy=strategy)) as made:
            request = made.prepare_request(requests.Request("GET", server.url))
            try:
                ended: Any = made.send(request, stream=stream)
            except requests.exceptions.ConnectTimeout as error:
                ended = error
            history = retry_history(ended)
            assert (history.stop_reason, len(history.attempts)) == (StopReason.RATE_LIMITED, 1)
            assert is_kept == isinstance(ended, requests.Response)
            assert ended.request is request
            if is_kept:
                assert (ended.status_code, ended.content) == (status, body)
            else:
                assert str(ended) == "not sent: no permit"


@pytest.mark.parametrize("reason", [StopReason.RATE_LIMITED, StopReason.DEADLINE, StopReason.STRATEGY_REFUSED])
def test_nothing_lost_is_handed_on_whatever_the_reason_and_what_came_after_it_is(reason: StopReason) -> None:
    """A long answer was let go before the first wait; the second one is the last, for all that it is refused alike."""

    class Choosy(StandardRetryStrategy):
        def send_permit(self, *, token: Any, deadline: float | None, waited: float) -> None:
            if token.retry_count == permits:
                raise RetryError("no", stop_reason=reason)

        def refresh_retry_token_for_retry(self, **options: Any) -> Any:
            if options["token_to_renew"].retry_count == 1:
                raise RetryError("no", stop_reason=reason)
            return super().refresh_retry_token_for_retry(**options)

    for permits in (1, 9):
        adapter = RetryAdapter(strategy=Choosy(clock=FakeClock()))
        with FaultServer([Reply(503, body=LONG), Reply(503, body=LONG)]) as server, session_with(adapter) as made:
            if permits == 1:
                with pytest.raises(requests.exceptions.ConnectTimeout, match=r"^not sent: no\b") as caught:
                    made.get(server.url)
                assert retry_history(caught.value).stop_reason is reason
            else:
                response = made.get(server.url)
                assert (retry_history(response).stop_reason, response.content) == (reason, LONG)


@pytest.mark.parametrize(
    ("status", "raises", "expected"), [(503, True, None), (503, False, LONG), (404, True, LONG), (200, True, LONG)]
)
def test_a_long_answer_is_closed_only_where_an_exception_carries_it(
    status: int, raises: bool, expected: bytes | None
) -> None:
    """With ``stream=True``, an answer that only an exception carries is closed, so the next send finds a connection."""
    with (
        FaultServer(Reply(status, body=LONG)) as server,
        at_once(max_attempts=1, raise_on_status=raises, pool_block=True, pool_maxsize=1) as made,
    ):
        for _ in range(2):
            if expected is None:
                with pytest.raises(requests.exceptions.RetryError):
                    made.get(server.url, stream=True, timeout=60)
            else:
                with made.get(server.url, stream=True, timeout=60) as response:
                    assert response._content is False  # type: ignore[attr-defined]
                    assert response.content == expected


@pytest.mark.parametrize("step", [200, 503, reset_error()], ids=["success", "failure", "exception"])
def test_a_classifiers_bug_comes_through(step: Any) -> None:
    """The exception propagates, and the response, if there is one, is closed."""

    @classifier(sees_successes=True)
    def broken(outcome: Outcome) -> None:
        raise ZeroDivisionError

    adapter = scripted(step, classifiers=[broken])
    with pytest.raises(ZeroDivisionError):
        send(adapter)
    assert all(response.raw.closed for response in adapter.responses)


def at_once(**options: Any) -> Any:
    """A session that really sends, and whose waits take no time."""
    if "strategy" not in options:
        options["quota"] = 500
    return session_with(RetryAdapter(clock=FakeClock(), **options))


def test_a_long_body_is_classified_by_its_beginning_and_handed_on_whole() -> None:
    """A long body is read whole only when its response is known to be the last one."""
    seen = []

    @classifier
    def looks(outcome: Outcome) -> None:
        assert outcome.response is not None
        seen.append((outcome.body_prefix, outcome.response._content is False))  # type: ignore[attr-defined]

    script = [Reply(503, body=LONG), Reply(404, body=LONG)]
    with FaultServer(script) as server, at_once(classifiers=[looks]) as made:
        response = made.get(server.url)
        assert (response.status_code, response.content) == (404, LONG)
        assert seen == [(LONG[:65_536], True)] * 2
        history = retry_history(response)
    assert [bool(item.votes) for item in history.attempts] == [True, True]
    assert history.stop_reason is StopReason.NOT_RETRYABLE


@pytest.mark.parametrize(
    ("method", "options", "endings", "stop"),
    [
        pytest.param("GET", {}, ["ChunkedEncodingError", "200"], StopReason.SUCCESS, id="retried, unlike its 400"),
        pytest.param("POST", {}, ["ChunkedEncodingError"], StopReason.NOT_RESENDABLE, id="a server had read a POST"),
        # A foreign token cannot be put back, so the strategy is asked about the exception with that same token.
        pytest.param("GET", {"strategy": late()}, ["ChunkedEncodingError"], StopReason.NOT_RETRYABLE, id="foreign"),
    ],
)
def test_a_late_cut_is_a_failure_of_the_attempt(method: str, options: Any, endings: Any, stop: StopReason) -> None:
    """A body breaks off where only reading it to its end shows it."""
    script = [CutBody(Reply(400, body=LONG), at=200_000), Reply(200)]
    with nothing_left(), FaultServer(script) as server, at_once(**options) as made:
        try:
            history = retry_history(made.request(method, server.url, timeout=60))
        except requests.exceptions.ChunkedEncodingError as error:
            history = retry_history(error)
    assert (endings, stop) == ([item.ending for item in history.attempts], history.stop_reason)
    assert len(endings) == len(server.requests)


class Again(Guide):
    """Retries after a second, whatever the deadline, and keeps what it was asked about."""

    def __init__(self, **token: Any) -> None:
        super().__init__(delay=1.0)
        self.token = token
        self.contexts: list[Any] = []

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Any) -> Any:
        self.contexts.append(error)
        token = super().refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)
        vars(token).update(self.token)
        return token


@pytest.mark.parametrize(
    ("step", "stream"), [(503, False), (503, True), (reset_error(), False)], ids=["response", "unread", "exception"]
)
def test_what_a_strategy_is_told(step: Any, stream: bool) -> None:
    """All that the attempt ended with, and until when a wait may last."""
    strategy = Again()
    adapter = scripted(step, step, strategy=strategy, operation_timeout=1.5)
    request = prepare()
    try:
        response = adapter.send(request, stream=stream)
    except requests.RequestException as error:
        response = error
    first, second = (context.outcome for context in strategy.contexts)
    assert [first.attempt, second.attempt] == [1, 2]
    assert [first.stream, second.stream] == [stream, stream]
    assert first.request is second.request is request
    assert (second.error or second.response) is response
    assert (second.error is None) != (second.response is None)
    assert strategy.contexts[1].deadline == 1.5


def test_whatever_goes_wrong_in_reading_a_body_is_retried_as_a_cut_one() -> None:
    """Another library's response may raise anything."""

    class Odd:
        def read(self, size: int) -> bytes:
            raise ValueError("odd")

        def close(self) -> None:
            """Do nothing, since nothing is open."""

    class OddAtFirst(ScriptedAdapter):
        def build_response(self, *arguments: Any) -> requests.Response:
            response = super().build_response(*arguments)
            if not self.responses:
                response.raw = Odd()  # type: ignore[assignment]
            return response

    adapter: Any = OddAtFirst(script=[200, 200], clock=FakeClock())
    history = retry_history(send(adapter))
    assert [item.error for item in history.attempts] == ["ChunkedEncodingError", None]


def test_a_strategy_that_does_not_look_at_the_deadline_is_stopped_by_it() -> None:
    """The deadline stops the operation; the record has the votes."""

    class Blind(StandardRetryStrategy):
        def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Any) -> Any:
            error = AttemptFailed(error.outcome, clock=error.clock)
            return super().refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)

    blind = Blind(backoff=1, jitter="none", clock=FakeClock())
    for strategy, source in (blind, "backoff"), (Again(), "strategy"):
        history = retry_history(send(scripted(503, strategy=strategy, operation_timeout=0.5)))
        why = f"the next wait of 1 s ({source}) would not end in time"
        assert (history.stop_reason, history.why) == (StopReason.DEADLINE, why)
        assert history.attempts[0].votes


@pytest.mark.parametrize(("token", "source"), [({}, "strategy"), ({"delay_source": "the moon"}, "the moon")])
def test_the_record_says_what_made_a_wait_so_long(token: dict[str, Any], source: str) -> None:
    """The record has the foreign token's ``delay_source``, or else "strategy"."""
    history = retry_history(send(scripted(503, 200, strategy=Again(**token))))
    assert [(item.delay, item.delay_source) for item in history.attempts] == [(0.0, "backoff"), (1.0, source)]


def test_a_retried_error_keeps_nothing_alive_and_the_last_one_keeps_its_traceback() -> None:
    """Errors that are only on record have no frames; the caller's own shows where it came from."""
    with pytest.raises(requests.ConnectionError) as caught:
        send(scripted(reset_error(), reset_error(), max_attempts=2))
    assert "scripted.py" in {Path(frame.filename).name for frame in traceback.extract_tb(caught.value.__traceback__)}
    discarded = reset_error()
    response = send(scripted(discarded, 200))
    assert [row.error for row in response.raw.retries.history] == [discarded]
    assert discarded.__traceback__ is None


def test_many_origins_are_found_by_their_urls() -> None:
    """The memory of which scope an origin has begins anew where it is full."""
    adapter = scripted(*[200] * 1025, 503, 200)
    for number in range(1025):
        send(adapter, url=f"https://{number}.example.com/")
    assert 2 == len(retry_history(send(adapter, url="https://0.example.com/")).attempts)
