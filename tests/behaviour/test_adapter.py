"""The send loop as a caller sees it (contract 1, 2), on a scripted transport."""

from __future__ import annotations

import copy
import io
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
import requests.exceptions as rex
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3 import HTTPResponse

from requests_smithy_retry import (
    RetryAdapter,
    RetryConfigError,
    RetryConfigWarning,
    RetryError,
    SimpleRetryStrategy,
    StopReason,
    retry_history,
    retry_options,
)
from requests_smithy_retry.testing import FakeClock
from tests.support import (
    URL,
    Reply,
    ScriptedTransport,
    before_each_sleep,
    ended,
    pool_timeout,
    prepare,
    read_timeout,
    reset_error,
    scripted,
    send,
    session_with,
)


@pytest.mark.parametrize("stream", [False, True])
def test_a_first_try_success_is_one_attempt(stream):
    """A success is returned as it is, and cost nothing."""
    adapter = scripted(Reply(200, body=b"text"))
    response = send(adapter, stream=stream)
    assert (b"text", 1, []) == (response.content, len(adapter.sent), adapter.clock.sleeps)
    assert response is adapter.responses[0]
    assert [500] == [bucket.available for bucket in adapter.strategy.snapshot().buckets.values()]
    assert StopReason.SUCCESS is retry_history(response).stop_reason


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [500, 502, 503, 504, 408, 425, 429])
def test_retryable_statuses_are_retried(status, stream):
    """Each default status is retried, and the caller gets the last answer itself."""
    adapter = scripted(status, status, 200)
    response = send(adapter, stream=stream)
    assert (200, 3) == (response.status_code, len(adapter.sent))
    assert response is adapter.responses[-1]


HINT = {"Retry-After": "1", "x-amz-retry-after": "10"}
FINAL = [Reply(status) for status in (400, 401, 404, 409, 413, 422, 501, 505, 304, 302)]
FINAL += [Reply(status, HINT) for status in (404, 301, 200, 405)]


@pytest.mark.parametrize("reply", FINAL, ids=repr)
def test_other_statuses_are_not(reply):
    """Any other status is the answer; ``Retry-After`` makes no outcome retryable by itself (contract 3.4)."""
    assert reply.status == send(scripted(reply)).status_code


@pytest.mark.parametrize(
    ("status", "options"),
    [
        *((status, {}) for status in (408, 425, 429)),
        (Reply(400, {"x-amzn-errortype": "ThrottlingException"}), {}),
        *((503, {"allowed_methods": methods}) for methods in (None, ["post"])),
    ],
)
def test_a_post_is_retried_where_it_was_not_applied_or_may_be_again(status, options):
    """408, 425, 429 and throttling by AWS say that nobody acted on it; ``allowed_methods`` vouches for the rest."""
    assert 200 == send(scripted(status, 200, **options), "POST", data="a").status_code


@pytest.mark.parametrize("step", [500, 503, reset_error(), read_timeout(), Reply(200, cut=True)])
def test_a_post_that_may_have_been_applied_is_sent_once(step):
    """A POST is not sent again after any other failure, and the stop reason says why."""
    history = retry_history(ended(scripted(step), "POST", data="a"))
    assert StopReason.NOT_RESENDABLE is history.stop_reason
    assert "POST is not idempotent" in history.sentence
    assert "resend rule: forbidden (POST is not idempotent" in history.explain()


@pytest.mark.parametrize("make", [read_timeout, reset_error, pool_timeout])
def test_the_last_attempts_own_exception_is_raised(make):
    """After three attempts the caller gets the third exception itself, with no trace of ours."""
    errors = [make() for _ in range(3)]
    error = ended(scripted(*errors))
    assert error is errors[-1]
    assert error.__context__ is None
    assert not hasattr(error, "retry_context")
    history = retry_history(error)
    assert (3, StopReason.MAX_ATTEMPTS) == (len(history.attempts), history.stop_reason)


def test_an_exception_keeps_its_own_cause_within_another():
    """Raised while the caller handles something else, the exception says of its context what it said before."""

    def raise_chained(request):
        try:
            raise OSError("inner")
        except OSError as inner:
            raise rex.ConnectionError(inner, request=request)

    try:
        raise KeyError("mine")
    except KeyError:
        with pytest.raises(rex.ConnectionError) as caught:
            send(scripted(*[raise_chained] * 3))
    assert isinstance(caught.value.__context__, OSError)
    assert not isinstance(caught.value.__context__, RetryError)


FAULTS = [kind("a") for kind in (rex.InvalidURL, rex.MissingSchema, rex.InvalidSchema, rex.InvalidHeader, ValueError)]
FAULTS += [rex.InvalidProxyURL("a"), OSError("Could not find a suitable TLS CA certificate bundle")]


@pytest.mark.parametrize("error", FAULTS, ids=repr)
def test_a_fault_of_the_request_passes_through_at_once(error):
    """An error that the request itself causes is raised at once, without a retry."""
    with pytest.raises(type(error)) as caught:
        send(scripted(error))
    assert caught.value is error
    assert StopReason.REQUEST_FAULT is retry_history(error).stop_reason


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_passes_through(kind):
    """Ctrl-C and exit are not outcomes, in an attempt and in a wait."""

    def interrupt(_):
        raise kind

    within, between = scripted(interrupt), scripted(503)
    before_each_sleep(between.clock, interrupt)
    for adapter in (within, between):
        with pytest.raises(kind):
            send(adapter)


@pytest.mark.parametrize("status", [200, 503])
def test_a_cut_body_is_a_failure_of_its_attempt(status):
    """Without ``stream`` the body is read inside the attempt, so a cut one is retried."""
    adapter = scripted(Reply(status, body=b"ha", cut=True), Reply(200, body=b"whole"))
    assert b"whole" == send(adapter).content


def test_an_unread_body_is_handed_on_unread():
    """With ``stream`` the answer is returned before its body is looked at."""
    adapter = scripted(Reply(200, body=b"ha", cut=True))
    response = send(adapter, stream=True)
    assert response._content is False
    with pytest.raises(rex.ChunkedEncodingError):
        _ = response.content


@pytest.mark.parametrize("stream", [False, True])
def test_a_discarded_answer_is_released_before_the_wait(stream):
    """No response is open during a wait."""
    adapter, closed = scripted(503, 429, 200), []
    before_each_sleep(adapter.clock, lambda _: closed.append([item.raw.closed for item in adapter.responses]))
    send(adapter, stream=stream)
    assert [[True], [True, True]] == closed


def test_enabled_false_is_a_plain_adapter():
    """Switched off, nothing of ours happens: no retry, and the body is not read."""
    adapter = scripted(Reply(503, body=b"x"), enabled=False)
    response = send(adapter)
    assert (503, 1, False) == (response.status_code, len(adapter.sent), response._content)


def test_switched_off_it_bounds_nothing():
    """``timeout``, ``operation_timeout`` and a block's deadline are off, too: the caller's own time-out is in force."""
    adapter = scripted(200, 200, timeout=7, operation_timeout=5, enabled=False)
    with retry_options(deadline=3):
        send(adapter)
        send(adapter, timeout=20)
    assert [None, 20] == [item.options["timeout"] for item in adapter.sent]


def test_the_default_timeout_is_used_where_the_caller_gave_none():
    """``timeout`` of the adapter holds for calls without one."""
    adapter = scripted(200, 200, timeout=7)
    send(adapter)
    send(adapter, timeout=3)
    assert [7, 3] == [item.options["timeout"] for item in adapter.sent]


def test_arguments_reach_every_attempt():
    """stream, timeout, verify, cert and proxies are handed to each attempt as they came, by position too."""
    adapter = scripted(503, 200)
    adapter.send(prepare(), True, (1, 2), False, "cert", {"http": "http://proxy"})
    expected = {"stream": True, "timeout": (1, 2), "verify": False, "cert": "cert", "proxies": {"http": "http://proxy"}}
    assert [expected] * 2 == [item.options for item in adapter.sent]


@pytest.mark.parametrize("status", [503, 429])
@pytest.mark.parametrize("stream", [False, True])
def test_raise_on_status(status, stream):
    """With ``raise_on_status`` exhausted retries raise requests' ``RetryError`` with the response."""
    error = ended(scripted(*[Reply(status, body=b"why")] * 3, raise_on_status=True), stream=stream)
    assert (rex.RetryError, None) == (type(error), error.__context__)
    assert (status, b"why") == (error.response.status_code, error.response.content)
    assert StopReason.MAX_ATTEMPTS is retry_history(error).stop_reason


def test_the_scope_is_the_targets_origin_or_what_a_function_says():
    """Operations are grouped by origin, or by the option ``scope``; a scope that is not a string is refused."""
    adapter = scripted(503, 404, 200, scope=lambda request: request.headers["x-tenant"])
    send(adapter, headers={"x-tenant": "a"})
    assert ["a"] == list(adapter.strategy.snapshot().buckets)
    assert "b" == retry_history(send(adapter, headers={"x-tenant": "b"})).scope
    adapter = scripted(503, scope=lambda request: 7)
    with pytest.raises(RetryConfigError, match="scope=7"):
        send(adapter)
    assert [] == adapter.sent


def test_what_requests_sets_on_a_response_means_what_it_means_there():
    """request, connection, cookies and elapsed are those of the last attempt and the whole operation."""
    adapter = scripted(Reply(503, {"Set-Cookie": "a=1"}), Reply(200, {"Set-Cookie": "b=2"}))
    session = session_with(adapter)
    response = session.get(URL)
    assert response.connection is adapter
    assert response.request.url == URL
    assert response.elapsed.total_seconds() > 0


def test_urllib3s_history_is_filled():
    """``response.raw.retries.history`` has a row for each discarded attempt."""
    response = send(scripted(503, reset_error(), 200))
    rows = response.raw.retries.history
    assert [("GET", "/things", 503), ("GET", "/things", None)] == [(row.method, row.url, row.status) for row in rows]
    assert isinstance(rows[1].error, rex.ConnectionError)


def test_the_callers_request_is_not_changed():
    """Method, URL, headers and body of the prepared request are the same afterwards."""
    request = prepare("PUT", data=b"abc", headers={"X-A": "1"})
    before = dict(vars(request), headers=dict(request.headers))
    scripted(503, 503, 200).send(request)
    assert before == dict(vars(request), headers=dict(request.headers))


def test_a_dead_service_costs_at_most_35_retries():
    """100 calls to a service that is down make 135 requests, and its quota recovers with it."""
    adapter = scripted(*[503] * 135)
    for _ in range(100):
        send(adapter)
    [bucket] = adapter.strategy.snapshot().buckets.values()
    assert (135, [], True) == (len(adapter.sent), adapter.script, bucket.available < 14)
    adapter.script = [200] * 20 + [503, 200] + [200] * 500
    for _ in range(521):
        assert 200 == send(adapter).status_code
    [bucket] = adapter.strategy.snapshot().buckets.values()
    assert ([], 500) == (adapter.script, bucket.available)


def test_a_mixins_send_is_called_for_every_attempt():
    """A cooperative ``send`` behind ours sees each attempt, one in front each operation."""
    seen = []

    def watched(base, place):
        class Watched(base):
            def send(self, request, **options):
                seen.append(place)
                return super().send(request, **options)

        return Watched

    class Both(watched(HTTPAdapter, "front"), RetryAdapter, watched(ScriptedTransport, "behind")):
        pass

    send(Both(clock=FakeClock(), script=[503, 200]))
    assert ["front", "behind", "behind"] == seen


@pytest.mark.parametrize("enabled", [True, False])
def test_an_adapter_that_is_no_http_adapter_is_mixed_in(enabled):
    """Behind ``HTTPAdapter`` it sends each attempt in its place: beside a mock nothing reaches the network."""
    played = ScriptedTransport(script=[503, 200])

    class Mock(BaseAdapter):
        def send(self, request, stream=False, timeout=None, verify=True, cert=None, proxies=None):
            return played.send(request)

    class Both(RetryAdapter, Mock):
        pass

    class More(Both):
        pass

    assert (200 if enabled else 503) == send(More(clock=FakeClock(), enabled=enabled)).status_code
    assert (2 if enabled else 1) == len(played.sent)


def test_a_close_leaves_the_adapter_usable():
    """A closed adapter can send and retry again, as in requests."""
    adapter = scripted(200, 503, 200)
    session = session_with(adapter)
    session.get(URL)
    session.close()
    assert 200 == session.get(URL).status_code


@pytest.mark.untraced
@pytest.mark.parametrize(("spec", "price"), [("2.1", 14), ("2.0", 5)])
def test_128_threads_on_one_adapter(spec, price):
    """The bucket's invariants hold: never out of bounds, every retry paid, and a success gives back its payment."""
    levels = []

    def level():
        return adapter.strategy.bucket("https://api.example.com:443").available

    def answering(status):
        return lambda _: levels.append(level()) or status

    steps = [answering(status) for status in (503, 503, 200)]
    adapter = scripted(*steps * 1024, retry_spec=spec, pool_maxsize=128)
    with ThreadPoolExecutor(128) as pool:
        answers = [pool.submit(lambda: [send(adapter) for _ in range(8)]) for _ in range(128)]
    histories = [retry_history(response) for each in answers for response in each.result()]
    assert 0 <= min(levels) <= max(levels) <= 500
    retries = sum(len(item.attempts) - 1 for item in histories)
    assert len(adapter.sent) == 1024 + retries
    successes = [len(item.attempts) for item in histories if item.stop_reason is StopReason.SUCCESS]
    firsts = successes.count(1)
    spent = price * (retries - (len(successes) - firsts))
    assert 500 - spent <= level() <= min(500, 500 - spent + firsts)


class ByHand(HTTPAdapter):
    """Answers with a response that is made by hand, as caches and adapters for tests do."""

    content: bytes | None = None

    def send(self, request: Any, **_: Any) -> Any:
        response = requests.Response()
        response.status_code, response.request = 200, request
        if self.content is not None:
            response._content, response.raw = self.content, io.BytesIO(b"not to be read again")
        return response


class RetryingByHand(RetryAdapter, ByHand):
    """Ours in front of it."""


@pytest.mark.parametrize("content", [None, b"", b"here"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("options", [{}, {"operation_timeout": 5}], ids=str)
def test_a_response_that_was_made_by_hand_comes_as_it_is(content, options, stream):
    """A response made by hand, with no body or with one that was read already, is returned as it is."""
    adapter = RetryingByHand(clock=FakeClock(), **options)
    adapter.content = content
    response = send(adapter, stream=stream)
    assert (200, content) == (response.status_code, response.content)


def test_a_bug_beside_a_response_that_was_made_by_hand_comes_through():
    """It has no connection that could be let go of."""
    with pytest.raises(ZeroDivisionError):
        send(RetryingByHand(scope=lambda request: 1 / 0))


class Local(RetryAdapter):
    """Makes no pools, as test clients and adapters for files do."""

    def init_poolmanager(self, *_: Any, **__: Any) -> None:
        pass

    def send(self, request: Any, **_: Any) -> Any:
        return self.build_response(request, HTTPResponse(body=b"", status=204, preload_content=False))


def test_an_adapter_may_make_no_pools():
    """An adapter without pools can be made, configured, copied and sent through."""
    adapter = Local(max_attempts=2)
    adapter.max_retries = 4
    for made in (adapter, copy.copy(adapter), pickle.loads(pickle.dumps(adapter))):
        assert (5, 204) == (made.strategy.max_attempts, send(made).status_code)


@pytest.mark.parametrize("value", [0, False, 3])
def test_max_retries_beside_max_attempts_is_an_error(value):
    """``max_retries`` and ``max_attempts`` name the same number, so only one may be given."""
    with pytest.raises(RetryConfigError, match="only one of max_retries and max_attempts"):
        RetryAdapter(max_retries=value, max_attempts=2)


def test_another_strategy_may_be_assigned():
    """Operations that begin afterwards go by the new strategy."""
    adapter = scripted(503)
    adapter.strategy = SimpleRetryStrategy(max_attempts=1, clock=adapter.clock)
    assert 503 == send(adapter).status_code


def test_a_patch_of_gevents_that_comes_too_late_is_named(monkeypatch) -> None:
    """Where threads were patched after the import, greenlets would share what an attempt knows of itself."""
    monkeypatch.setattr(threading, "local", type("local", (), {}))
    with pytest.warns(RetryConfigWarning, match="greenlets share the state of their attempts.* Patch first"):
        RetryAdapter()


@pytest.mark.parametrize("path", ["", "/", "/a?b=1", "//a", "///a//b", "/a#b", "?a=http://b/"])
@pytest.mark.parametrize("proxies", [None, {}, {"http": "http://proxy:3128"}])
def test_the_target_of_a_request_is_that_of_requests(path: str, proxies: dict[str, str] | None) -> None:
    """With a proxy and without, whatever a release of requests makes of two slashes."""
    request = requests.Request("GET", f"http://api.example.com{path}").prepare()
    assert RetryAdapter().request_url(request, proxies) == HTTPAdapter().request_url(request, proxies)
