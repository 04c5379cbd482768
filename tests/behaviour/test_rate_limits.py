"""Announced rate limits, by public names alone (contract 7.4): whatever a server writes, and who waits for it."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from urllib3.util import Retry

from requests_smithy_retry import (
    RateLimitDialect,
    RetryAdapter,
    RetryLater,
    StandardRetryStrategy,
    StopReason,
    retry_history,
    retry_options,
)
from requests_smithy_retry.testing import FakeClock
from tests.kinds import subclass
from tests.support import URL, Guide, Reply, before_each_sleep, ended, reset_error, scripted, send

SCOPE = "https://api.example.com:443"

HEADERS = [
    *("RateLimit", "RateLimit-Policy", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Limit"),
    *("X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Reset-After", "X-RateLimit-Limit"),
    *("X-RateLimit-Remaining-Requests", "X-RateLimit-Reset-Requests", "X-Shopify-Shop-Api-Call-Limit"),
    *("x-amzn-RateLimit-Limit", "Retry-After", "retry-after-ms", "Date"),
]
VALUES = st.one_of(
    st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=30),
    st.integers(0, 10**18).map(str),
    st.sampled_from(["0", "1", "5", "100", "0.5", "1m30s", '"a";r=0;t=7', '"a";r=1;t=3, "b";r=0;t=900', "39/40"]),
)
ANSWER = st.tuples(
    st.sampled_from([200, 200, 403, 429, 503]), st.dictionaries(st.sampled_from(HEADERS), VALUES, max_size=5)
)


@given(st.lists(ANSWER, min_size=1, max_size=8))
def test_whatever_a_server_writes_nobody_waits_beyond_the_bound(answers: list[tuple[int, dict[str, str]]]) -> None:
    """Each operation sleeps no longer than its configuration says, and nothing is raised."""
    clock = FakeClock()
    script = [Reply(status, headers) for status, headers in answers]
    adapter = scripted(*script, *[200] * 30, clock=clock, max_retry_after=5)
    most = adapter.retry_config.worst_case().sleep
    for _ in range(len(script) + 2):
        before = sum(clock.sleeps)
        assert send(adapter).status_code in (200, 403, 429, 503)
        assert sum(clock.sleeps) - before <= most + 1e-6


def limit(left: object, reset: object = 7, size: object = 10, status: int = 200, **more: str) -> Reply:
    """An answer of a server that announces one limit."""
    named = {"X-RateLimit-Remaining": left, "X-RateLimit-Reset": reset, "X-RateLimit-Limit": size, **more}
    return Reply(status, {name: str(value) for name, value in named.items()})


def test_who_waited_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """The history, and a record at DEBUG, tell of the wait and of the header behind it."""
    clock = FakeClock()
    adapter = scripted(limit(0), 200, clock=clock)
    send(adapter)
    with caplog.at_level("DEBUG", "requests_smithy_retry"):
        history = retry_history(send(adapter))
    assert "after 7 s for a rate limit (x-ratelimit-reset) " == history.attempts[0].waits
    (record,) = [record for record in caplog.records if hasattr(record, "retry_gate_wait")]
    assert f"GET {SCOPE}/things waited 7.000 s for a rate limit (x-ratelimit-reset)" == record.getMessage()
    assert 7.0 == record.retry_gate_wait  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("url", "status", "options"),
    [
        pytest.param(URL, 200, {"pacing": "off"}, id="it is off"),
        pytest.param(URL, 200, {"max_retries": Retry(1, respect_retry_after_header=False)}, id="a Retry heeds no hint"),
        pytest.param(URL, 200, {"enabled": False}, id="there are no retries at all"),
        pytest.param(URL, 429, {"max_retry_after": 5}, id="the wait would be longer than max_retry_after"),
        pytest.param("https://other.example.com/", 200, {}, id="the limit is that of another origin"),
    ],
)
def test_nobody_waits(url: str, status: int, options: dict[str, Any]) -> None:
    """The request goes at once, whatever the server says to it."""
    adapter = scripted(limit(0), limit(0, status=status), clock=FakeClock(), **options)
    assert [200, status] == [send(adapter).status_code, send(adapter, url=url).status_code]
    assert [] == adapter.clock.sleeps


TOO_LATE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "after the deadline": ({"operation_timeout": 5}, {}),
    "after the deadline of a block": ({}, {"deadline": 5}),
    "at the very deadline": ({"operation_timeout": 7}, {}),
    "after the patience that was given": ({"patience": 5, "quota": "payoff"}, {}),
    "there is no patience at all": ({"patience": 0}, {}),
    "after the patience of a block": ({}, {"patience": 3}),
    "after the deadline, which is sooner than a day": ({"operation_timeout": 5, "max_retry_after": 3}, {}),
}


@pytest.mark.parametrize("name", TOO_LATE)
def test_a_limit_that_opens_too_late_ends_the_call_without_a_send(name: str) -> None:
    """The caller hears at once that it is a rate limit, and when it is worth to call again."""
    options, block = TOO_LATE[name]
    adapter = scripted(limit(0), **options)
    send(adapter)
    with retry_options(**block, clock=adapter.clock), pytest.raises(requests.exceptions.ConnectTimeout) as caught:
        send(adapter)
    history = retry_history(caught.value)
    assert (StopReason.RATE_LIMITED, (), 7.0) == (history.stop_reason, history.attempts, history.retry_after)
    assert (1, []) == (len(adapter.sent), adapter.clock.sleeps)
    assert "the rate limit (x-ratelimit-reset) opens in 7 s" in str(caught.value)


@pytest.mark.parametrize("status", [429, 503])
def test_what_is_not_sent_after_refusals_names_their_status(status: int) -> None:
    """A caller can tell a limit from an outage."""
    adapter = scripted(*[Reply(status, {"Retry-After": "7"})] * 2, patience=0)
    assert [status, status] == [send(adapter).status_code for _ in range(2)]
    error = ended(adapter)
    assert f"the rate limit (retry-after of a {status}) opens in 7 s" in str(error)


@pytest.mark.parametrize("options", [{}, {"operation_timeout": 5}, {"patience": 0}, {"max_retry_after": 2}], ids=str)
def test_max_wait_ends_it_whatever_other_bounds_there_are(options: dict[str, Any]) -> None:
    """Nothing is sent into a limit that is used up."""
    adapter = scripted(limit(0), max_wait=1.5, **options)
    send(adapter)
    with pytest.raises(RetryLater) as caught:
        send(adapter)
    assert (7.0, 1) == (caught.value.seconds, len(adapter.sent))


@pytest.mark.parametrize(
    "options",
    [{"operation_timeout": 7.1}, {"patience": 7.1}, {"max_wait": 7.1}, {"operation_timeout": 8, "patience": 30}],
)
def test_a_call_that_can_wait_does(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    """It is sent when the limit opens, also where the spread that follows would be too late."""
    monkeypatch.setattr("requests_smithy_retry.core.backoff._random.random", lambda: 1.0)
    adapter = scripted(limit(0), 200, clock=FakeClock(), **{"jitter": "full", "quota": "payoff", **options})
    send(adapter)
    assert 200 == send(adapter).status_code
    assert (7.7 if "operation_timeout" in options and len(options) == 2 else 7.0) == sum(adapter.clock.sleeps)


def test_a_retry_that_meets_such_a_limit_leaves_its_answer() -> None:
    """What another call has heard meanwhile counts: the caller gets the answer that there is."""
    clock = FakeClock()
    adapter = scripted(limit(5, 60), 503, limit(0, 60), clock=clock, backoff=1, operation_timeout=30)
    send(adapter)
    before_each_sleep(clock, lambda _: len(adapter.sent) == 2 and send(adapter))
    response = send(adapter)
    history = retry_history(response)
    assert (503, StopReason.RATE_LIMITED, 1) == (response.status_code, history.stop_reason, len(history.attempts))


def test_once_a_refusal_closed_the_gate_nobody_is_sent_into_it() -> None:
    """A second refusal in a row stops the others, who have no time to wait for its end."""
    busy = Reply(429, {"Retry-After": "60"})
    adapter = scripted(busy, busy, 200, operation_timeout=5)
    assert [429, 429] == [send(adapter).status_code for _ in range(2)]
    for _ in range(3):
        assert StopReason.RATE_LIMITED is retry_history(ended(adapter)).stop_reason
    assert 2 == len(adapter.sent)
    adapter.clock.advance(60)
    assert 200 == send(adapter).status_code


def key(name: str) -> dict[str, str]:
    return {"Authorization": name}


@pytest.mark.parametrize("status", [200, 304, 404, 429, 503])
def test_backoff_on_any_answer_holds_back_all_who_come(status: int) -> None:
    """The answer is handed on as it is; whoever asks next waits, whatever the path or the key, and whoever succeeds."""
    adapter = scripted(Reply(status, {"Backoff": "20"}), *[200] * 9, max_attempts=1)
    assert status == send(adapter, headers=key("a")).status_code
    assert (1, []) == (len(adapter.sent), adapter.clock.sleeps)
    history = retry_history(send(adapter, url=f"{URL}/other", headers=key("b")))
    assert ([20.0], "after 20 s for a rate limit (backoff) ") == (adapter.clock.sleeps, history.attempts[0].waits)
    send(adapter, headers=key("c"))
    send(adapter, url="https://other.example.com/")
    assert [20.0] == adapter.clock.sleeps


def test_a_backoff_holds_back_users_whose_limits_are_known() -> None:
    """The longer of the two waits counts, for each of them."""
    pause = Reply(200, {"Backoff": "20"})
    adapter = scripted(limit(0, 7), limit(5, 7), pause, *[200] * 9)
    send(adapter, headers=key("a"))
    send(adapter, headers=key("b"))
    with retry_options(pacing="off"):
        send(adapter, headers=key("c"))
    send(adapter, headers=key("a"))
    send(adapter, headers=key("b"))
    assert [20.0] == adapter.clock.sleeps


def test_a_success_does_not_end_a_backoff() -> None:
    """It is no refusal: what was under way may well succeed."""
    adapter = scripted(Reply(200, {"Backoff": "20"}), 200, 200)
    send(adapter)
    with retry_options(pacing="off"):
        send(adapter)
    assert [] == adapter.clock.sleeps
    send(adapter)
    assert [20.0] == adapter.clock.sleeps


@pytest.mark.parametrize(
    ("value", "waited"),
    [
        ("5", [5.0]),
        ("2, 5", [5.0]),
        ("0.5", [0.5]),
        ("0", []),
        ("soon", []),
        ("-1", []),
        ("", []),
        ("121", []),
        ("9" * 600, []),
    ],
)
def test_what_is_no_pause_holds_nobody_back(value: str, waited: list[float]) -> None:
    """A malformed one, none at all, and one that is longer than ``max_retry_after``."""
    adapter = scripted(Reply(200, {"Backoff": value}), 200)
    send(adapter)
    send(adapter)
    assert waited == adapter.clock.sleeps


@pytest.mark.parametrize(
    ("options", "headers"),
    [({"pacing": "off"}, {}), ({}, {"Age": "3"}), ({"max_retries": Retry(1, respect_retry_after_header=False)}, {})],
)
def test_a_backoff_is_passed_over_where_limits_are(options: dict[str, Any], headers: dict[str, str]) -> None:
    """Where pacing is off, in a cache's answer, and by a ``Retry`` that heeds no hint."""
    adapter = scripted(Reply(200, {"Backoff": "20", **headers}), 200, **options)
    send(adapter)
    send(adapter)
    assert [] == adapter.clock.sleeps


def test_a_backoff_that_ends_too_late_ends_the_call_without_a_send() -> None:
    """As any limit does; ``forget`` ends it."""
    adapter = scripted(Reply(200, {"Backoff": "20"}), 200, operation_timeout=10)
    send(adapter)
    assert StopReason.RATE_LIMITED is retry_history(ended(adapter)).stop_reason
    adapter.forget()
    assert 200 == send(adapter).status_code


def test_a_refused_request_waits_for_the_pause_as_well() -> None:
    """A 503 with it is sent again once the pause is over, and no sooner."""
    adapter = scripted(Reply(503, {"Backoff": "20"}), 200, backoff=1)
    assert (200, 20.0) == (send(adapter).status_code, sum(adapter.clock.sleeps))


def test_a_block_can_switch_it_off() -> None:
    """A block switches it off, and an inner block on again; what the block's answers tell is heard."""
    adapter = scripted(limit(0), limit(0, 5), 200, clock=FakeClock())
    send(adapter)
    with retry_options(pacing="off"):
        send(adapter)
        assert [] == adapter.clock.sleeps
        with retry_options(pacing="announced"):
            send(adapter)
    assert [5.0] == adapter.clock.sleeps


@pytest.mark.parametrize(("longest", "expected"), [(9, [8.5]), (9.2, [8.5, 0.5])])
def test_a_retry_counts_the_seconds_that_it_has_waited_already(longest: float, expected: list[float]) -> None:
    """Its own wait and the limit's together are no longer than ``max_retry_after``."""
    refused = limit(0, 9, status=429, **{"Retry-After": "8.5"})
    adapter = scripted(refused, 200, clock=FakeClock(), max_retry_after=longest)
    assert 200 == send(adapter).status_code
    assert expected == adapter.clock.sleeps


@pytest.mark.parametrize("status", [403, 408, 413, 429, 500, 503])
def test_the_shorter_wait_is_tried_first(status: int) -> None:
    """Where ``Retry-After`` is shorter than the reset, the request goes after it, and after that with the others."""
    refused = limit(0, 30, status=status, **{"Retry-After": "2"})
    later = limit(0, 28, status=status, **{"Retry-After": "2"})
    adapter = scripted(refused, later, 200, clock=FakeClock())
    history = retry_history(send(adapter))
    assert [(0, 0), (2, 0), (2, 26)] == [(attempt.delay, attempt.gate_wait) for attempt in history.attempts]


def test_a_reset_makes_no_wait_shorter_than_the_server_asked_for() -> None:
    """``Retry-After`` takes precedence (IETF draft, 7), for the request that was refused and for all others.

    Discord's shared limit sends a reset of 2 s with 42 s; Jira Cloud's reset has no seconds, so it is over already.
    """
    refused = limit(0, 2, status=429, **{"Retry-After": "42"})
    adapter = scripted(refused, 200, clock=FakeClock())
    assert [0.0, 42.0] == [attempt.delay for attempt in retry_history(send(adapter)).attempts]
    adapter = scripted(refused, refused, 200, clock=FakeClock(), max_attempts=1)
    assert [429, 429, 200] == [send(adapter).status_code for _ in range(3)]
    assert [2.0, 42.0] == adapter.clock.sleeps


def test_a_limit_that_one_path_alone_has_told_of_holds_no_other() -> None:
    """It may be that path's own; once another path has told of the same limit, it holds all."""
    adapter = scripted(limit(0), limit(0), 200, clock=FakeClock())
    for path, waited in (("a?page=1", []), ("b", []), ("c", [7.0])):
        send(adapter, url=f"https://api.example.com/{path}")
        assert waited == adapter.clock.sleeps
    adapter = scripted(limit(0), 200, clock=FakeClock())
    for page in (1, 2):
        send(adapter, url=f"https://api.example.com/a?page={page}")
    assert [7.0] == adapter.clock.sleeps


def test_a_refusal_holds_its_own_request_alone() -> None:
    """The next operation goes at once; after a second refusal in a row the third one waits."""
    refused = Reply(429, {"Retry-After": "7"})
    adapter = scripted(refused, refused, 200, clock=FakeClock(), max_attempts=1)
    assert [429, 429] == [send(adapter).status_code for _ in range(2)]
    assert [] == adapter.clock.sleeps
    assert "for a rate limit (retry-after of a 429)" in retry_history(send(adapter)).attempts[0].waits
    assert [7.0] == adapter.clock.sleeps


@pytest.mark.parametrize(
    ("told", "options"),
    [
        (Reply(429, {"Retry-After": "7"}), {"max_retry_after": 6}),
        (Reply(429, {"x-amz-retry-after": "7000"}), {}),
        (Reply(429), {}),
        (Reply(500, {"Retry-After": "7"}), {}),
        (Reply(404, {"Retry-After": "7"}), {}),
    ],
)
def test_what_is_no_refusal_for_all(told: Reply, options: dict[str, Any]) -> None:
    """A hint that is too long or one for a single request, a refusal without a hint, and another failure."""
    adapter = scripted(told, told, 200, clock=FakeClock(), max_attempts=1, **options)
    assert [told.status, told.status, 200] == [send(adapter).status_code for _ in range(3)]
    assert [] == adapter.clock.sleeps


def test_a_user_adds_a_dialect_in_one_line() -> None:
    """It counts for the limit and for the delay, and beside a built-in row of the same header it alone does."""
    acme = RateLimitDialect("acme-left", reset="acme-next")
    used_up = Reply(429, {"acme-left": "0", "acme-next": "3s"})
    adapter = scripted(used_up, 200, 200, clock=FakeClock(), pacing=acme)
    assert [0.0, 3.0] == [attempt.delay for attempt in retry_history(send(adapter)).attempts]
    assert (acme,) == adapter.retry_config.pacing
    own = RateLimitDialect("X-RateLimit-Remaining", reset="acme-next")
    adapter = scripted(limit(0, **{"acme-next": "3s"}), 200, clock=FakeClock(), pacing=[own])
    for _ in range(2):
        send(adapter)
    assert [3.0] == adapter.clock.sleeps


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({"remaining": 5}, "remaining=5: a header's name is allowed"),
        ({"remaining": ""}, "remaining='': a header's name is allowed"),
        ({"remaining": "calls left"}, "remaining='calls left': a header's name is allowed"),
        ({"remaining": "left", "reset": 5}, "reset=5: a header's name, or a tuple of names, is allowed"),
        ({"remaining": "left", "reset": ""}, "reset='': a header's name, or a tuple of names, is allowed"),
        ({"remaining": "left", "reset": ("next", None)}, r"reset=\('next', None\): a header's name, or a tuple"),
        ({"remaining": "left", "limit": None}, "limit=None: a header's name is allowed, or '' for none"),
    ],
)
def test_a_dialect_without_names_of_headers_is_refused(given: Any, allowed: str) -> None:
    """The error names the argument, the value, and what is allowed."""
    with pytest.raises(ValueError, match=f"^{allowed}"):
        RateLimitDialect(**given)


def made(clock: FakeClock) -> StandardRetryStrategy:
    return StandardRetryStrategy(clock=clock)


@pytest.mark.parametrize("strategy", [lambda clock: Guide(), made, lambda clock: subclass(made(clock))])
def test_pacing_goes_beside_any_strategy(strategy: Any) -> None:
    """The adapter waits for limits, whoever decides about retries: switched off, or by a dialect of the program's."""
    acme = RateLimitDialect("acme-left", reset="acme-next")
    used_up = {"acme-left": "0", "acme-next": "3s"}
    for pacing, status, seconds in (("off", 200, []), (acme, 200, [3]), (acme, 403, [3])):
        clock = FakeClock()
        adapter = scripted(Reply(status, used_up), 200, 200, strategy=strategy(clock), pacing=pacing, clock=clock)
        for _ in range(2):
            send(adapter)
        assert seconds == [int(wait) for wait in clock.sleeps if wait > 1]  # and up to a tenth longer


def test_the_environment_sets_pacing_beside_any_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    """As all options of the adapter."""
    monkeypatch.setenv("SMITHY_RETRY_PACING", "off")
    assert "off" == RetryAdapter(strategy=Guide()).retry_config.pacing


SIGNED = "AWS4-HMAC-SHA256 Credential={}/20260101/eu/x/aws4_request, SignedHeaders=host, Signature={}"
OAUTH = 'OAuth oauth_consumer_key="app", oauth_nonce="{}", oauth_token="{}", oauth_signature="{}"'
SAME_USER: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({}, {"Accept": "text/html"}),
    ({"Authorization": "Bearer a"}, {"AUTHORIZATION": "Bearer a", "Accept": "*/*"}),
    ({"Authorization": "Bearer a"}, {"Authorization": b"Bearer a"}),
    ({"Authorization": SIGNED.format("A", "1")}, {"Authorization": SIGNED.format("A", "2")}),
    ({"Authorization": OAUTH.format(1, "t", 2)}, {"Authorization": OAUTH.format(3, "t", 4)}),
    ({"Authorization": 'Digest username="a", nc=1'}, {"Authorization": 'Digest username="a", nc=2'}),
    ({"Authorization": 'Signature keyId="k",signature="1"'}, {"Authorization": 'Signature keyId="k",signature="2"'}),
]
TWO_USERS: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({}, {"Authorization": "Bearer a"}),
    ({"Authorization": "Bearer a"}, {"Authorization": "Bearer b"}),
    ({"Authorization": "Basic dTpw"}, {"Authorization": "Basic dTpx"}),
    ({"X-Api-Key": "a"}, {"Api-Key": "a"}),
    ({"Authorization": SIGNED.format("A", "1")}, {"Authorization": SIGNED.format("B", "1")}),
    ({"Authorization": OAUTH.format(1, "t", 2)}, {"Authorization": OAUTH.format(1, "u", 2)}),
    ({"Authorization": 'Digest username="a", nc=1'}, {"Authorization": 'Digest username="b", nc=1'}),
    ({"X-Api-Key": "\xe4\ud800"}, {"X-Api-Key": "\xe4"}),
]


@pytest.mark.parametrize(
    ("one", "other", "waits"),
    [*((*pair, [7.0]) for pair in SAME_USER), *((*pair, []) for pair in TWO_USERS)],
    ids=ascii,
)
def test_two_users_do_not_hold_each_other(one: dict[str, str], other: dict[str, Any], waits: list[float]) -> None:
    """Credentials tell users apart, without what is another one for each request of a user."""
    adapter = scripted(limit(0), 200, clock=FakeClock())
    send(adapter, headers=one)
    send(adapter, headers=other)
    assert waits == adapter.clock.sleeps


def test_an_attempt_without_an_answer_tries_nothing_shorter() -> None:
    """Only the wait that followed the refusal is tried."""
    refused = limit(0, 30, status=429, **{"Retry-After": "2"})
    adapter = scripted(refused, reset_error(), 200, clock=FakeClock())
    assert [0, 0, pytest.approx(28, abs=0.2)] == [
        attempt.gate_wait for attempt in retry_history(send(adapter)).attempts
    ]


@pytest.mark.parametrize("bound", [{"max_wait": 3}, {"operation_timeout": 5}, {"patience": 5, "quota": "payoff"}])
def test_no_delay_is_slept_before_a_limit_that_opens_too_late(bound: dict[str, Any]) -> None:
    """That is known with the answer, so the call ends at once, and with the seconds to the reset."""
    limit = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "100"}
    clock = FakeClock()
    history = retry_history(ended(scripted(Reply(503, limit), 200, clock=clock, backoff=2, **bound)))
    assert ([], 1, 0.0) == (clock.sleeps, len(history.attempts), history.waited)
    assert 100 == pytest.approx(history.retry_after)
    is_later = "max_wait" in bound
    assert (StopReason.WAIT_TOO_LONG if is_later else StopReason.RATE_LIMITED) is history.stop_reason
