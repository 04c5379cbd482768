"""A wait that a server asks for is bounded by a ``patience`` that somebody chose (contract 7.3)."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from requests_smithy_retry import (
    ErrorInBodyClassifier,
    ErrorKind,
    RetryAction,
    RetryAdapter,
    RetryError,
    RetryReason,
    SimpleRetryStrategy,
    StandardRetryStrategy,
    StopReason,
    classifier,
    retry_history,
    retry_options,
)
from requests_smithy_retry import testing as kit
from requests_smithy_retry.classifiers import ModeledAsRetryableClassifier
from requests_smithy_retry.testing import FakeClock, scripted
from tests.support import Reply, ended, send
from tests.unit.classifiers.test_modeled import Info

TOO_LONG, ATTEMPTS = StopReason.HINT_TOO_LONG, StopReason.MAX_ATTEMPTS


def called(reply: Reply, **options: Any) -> tuple[int, float, StopReason]:
    """Make one call that is always answered so; return the requests sent, the seconds it took, and why it ended."""
    adapter = scripted(*[reply] * 20, **options)
    history = retry_history(send(adapter))
    return len(adapter.sent), pytest.approx(adapter.clock.now(), abs=0.01), history.stop_reason


@pytest.mark.parametrize(
    ("status", "header", "asks", "patience", "expected"),
    [
        (429, "Retry-After", 100, None, (3, 200.0, ATTEMPTS)),  # nobody chose one
        (429, "Retry-After", 100, 10, (1, 0.0, TOO_LONG)),
        (503, "Retry-After", 100, 10, (1, 0.0, TOO_LONG)),
        (429, "Retry-After", 11, 10, (1, 0.0, TOO_LONG)),
        (429, "Retry-After", 10, 10, (3, 20.0, ATTEMPTS)),  # each is no longer than it, and all are over after twice it
        (429, "Retry-After", 10, 100, (3, 20.0, ATTEMPTS)),
        (429, "Retry-After", 100, 100, (3, 200.0, ATTEMPTS)),
        (429, "Retry-After", 1, 0, (1, 0.0, TOO_LONG)),
        (429, "Retry-After", 0, 0, (3, 3.0, ATTEMPTS)),  # it asks for no wait: these are ours
        (429, "retry-after-ms", 4000, 3, (1, 0.0, TOO_LONG)),
        (429, "X-RateLimit-Reset", 100, 10, (1, 0.0, TOO_LONG)),
        (503, "x-amz-retry-after", 4000, 3, (1, 0.0, TOO_LONG)),
        (503, "x-amz-retry-after", 60_000, 5.1, (3, 10.15, ATTEMPTS)),  # it adds five seconds to the backoff, at most
        (503, "x-amz-retry-after", 60_000, 5, (1, 0.0, TOO_LONG)),
    ],
)
@pytest.mark.parametrize("way", ["code", "environment", "block"])
def test_each_wait_is_no_longer_than_it(
    way: str, status: int, header: str, asks: int, patience: Any, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What asks for more is returned at once, with the reason; three attempts are made of what does not."""
    reply = Reply(status, {header: str(asks), **({"X-RateLimit-Remaining": "0"} if "Limit" in header else {})})
    options: dict[str, Any] = {"max_attempts": 3}
    if way == "environment" and patience is not None:
        monkeypatch.setenv("SMITHY_RETRY_PATIENCE", str(patience))
    elif way == "code" and patience is not None:
        options["patience"] = patience
    with retry_options(patience=patience if way == "block" else None):
        assert expected == called(reply, **options)


@pytest.mark.parametrize(("asks", "sent", "over"), [(8, 3, 16.0), (7, 3, 14.0), (6, 4, 18.0), (5, 4, 15.0)])
def test_no_wait_ends_later_than_twice_it_after_the_call_began(asks: int, sent: int, over: float) -> None:
    """The waits of one call have a bound together, too."""
    assert (sent, over, TOO_LONG) == called(Reply(429, {"Retry-After": str(asks)}), patience=10, max_attempts=5)


def test_the_reason_is_told() -> None:
    """Which option it was, and when a request is allowed again."""
    texts = []
    for asks in ("100", "8"):
        adapter = scripted(*[Reply(429, {"Retry-After": asks})] * 9, patience=10, max_attempts=9)
        texts.append(retry_history(send(adapter)).why)
    together = "all waits must be over 20 s after the call began, twice the patience"
    assert [
        "retry-after asks for 100 s, patience is 10 s: allowed again at Tue, 14 Nov 2023 22:15:00 GMT",
        f"retry-after asks for 8 s, {together}: allowed again at Tue, 14 Nov 2023 22:13:44 GMT",
    ] == texts


@pytest.mark.parametrize(("inner", "expected"), [(1, (1, 0.0, TOO_LONG)), (100, (2, 50.0, ATTEMPTS))])
def test_a_blocks_patience_holds_in_place_of_the_adapters(inner: float, expected: tuple[int, float, Any]) -> None:
    """The innermost one is what was chosen."""
    with retry_options(patience=inner):
        assert expected == called(Reply(429, {"Retry-After": "50"}), patience=10, max_attempts=2)


@pytest.mark.parametrize("kind", ErrorKind)
@pytest.mark.parametrize("name", [None, "classifier", "LOCKED", "retry-after"])
def test_a_wait_of_the_programs_own_rule_is_not_the_servers(name: str | None, kind: ErrorKind) -> None:
    """A program that names seconds has chosen that wait itself, whatever its kind, unless they are the server's."""
    rule = classifier(lambda _: RetryAction.retry_indicated(RetryReason(kind, 30.0, name)))
    expected = (1, 0.0, TOO_LONG) if name == "retry-after" else (2, 30.0, ATTEMPTS)
    assert expected == called(Reply(423), patience=5, max_attempts=2, classifiers=[rule])


@pytest.mark.parametrize("patience", [0, 5])
def test_seconds_that_a_predicate_finds_in_a_body_are_the_programs_own(patience: float) -> None:
    """The rule is one that the program wrote."""
    rule = ErrorInBodyClassifier(lambda body: body["wait"], '"wait"')
    reply = Reply(200, body=b'{"wait": 30}')
    assert (2, 30.0, ATTEMPTS) == called(reply, patience=patience, max_attempts=2, classifiers=[rule])


@pytest.mark.parametrize("make", [ModeledAsRetryableClassifier, None])
def test_the_seconds_of_a_modelled_error_and_of_github_are_the_servers(make: Any) -> None:
    """An error with a ``retry_after``, and a body with GitHub's words, say what their service asks for."""
    classifiers = [] if make is None else [make(lambda response: Info(True, 30.0))]
    reply = Reply(403, body=b"You have exceeded a secondary rate limit")
    assert (1, 0.0, TOO_LONG) == called(reply, patience=5, max_attempts=2, classifiers=classifiers)


@pytest.mark.parametrize("way", ["code", "environment"])
@pytest.mark.parametrize(("asks", "expected"), [(50, (3, 100.0, ATTEMPTS)), (70, (1, 0.0, TOO_LONG))])
def test_beside_it_a_given_max_retry_after_alone_bounds_what_a_server_asks_for(
    asks: int, expected: tuple[int, float, Any], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a program has 10 s for an outage and 60 s for a hint."""
    options = {"patience": 10, "max_attempts": 3}
    if way == "environment":
        monkeypatch.setenv("SMITHY_RETRY_MAX_RETRY_AFTER", "60")
    else:
        options["max_retry_after"] = 60
    reply = Reply(429, {"Retry-After": str(asks)})
    assert expected == called(reply, **options)
    with retry_options(patience=2):
        assert expected == called(reply, **options)  # beside that of a block, too


@pytest.mark.parametrize("patience", [None, 3.0])
@pytest.mark.parametrize("make", [SimpleRetryStrategy, StandardRetryStrategy])
def test_a_strategy_that_is_driven_by_hand_goes_by_it(make: Any, patience: float | None) -> None:
    """Its operation begins with its first token."""
    clock, error = FakeClock(), Info(True, 2.0)
    clock.advance(1000.0)
    strategy = make(clock=clock, max_attempts=9, jitter="none")
    with retry_options(patience=patience, clock=clock):
        token = strategy.acquire_initial_retry_token()
        for _ in range(3):
            token = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
            clock.sleep(token.retry_delay)
        assert 1006.0 == clock.now()
        if patience is not None:
            with pytest.raises(RetryError, match="error asks for 2 s, all waits must be over 6 s after the call began"):
                strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)


# At the gate of an announced limit


def used_up(seconds: float) -> dict[str, str]:
    """The headers that say that nothing is left of a limit for so long."""
    return {"X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(seconds)}


@pytest.mark.parametrize(
    ("reset", "options", "waited"),
    [
        (60, {}, [60.0]),
        (60, {"patience": 90}, [60.0]),
        (60, {"patience": 10}, []),
        (8, {"patience": 10}, [8.0]),
        (8, {"patience": 10, "operation_timeout": 5}, []),
        (8, {"patience": 10, "operation_timeout": 60}, [8.0]),
    ],
)
def test_nobody_waits_longer_than_it_for_an_announced_limit(
    reset: int, options: dict[str, Any], waited: list[float]
) -> None:
    """A call whose turn would come later is not sent."""
    adapter = scripted(Reply(200, used_up(reset)), 200, **options)
    send(adapter)
    ended(adapter)
    assert (waited, 1 + bool(waited)) == (adapter.clock.sleeps, len(adapter.sent))


@pytest.mark.parametrize(("patience", "sent", "over"), [(30, 3, 21.0), (10, 2, 14.0), (8, 2, 14.0), (6, 0, 0.0)])
def test_what_is_waited_before_the_first_attempt_counts_as_well(patience: float, sent: int, over: float) -> None:
    """All that one call waits for a server is over when it is twice its patience old."""
    adapter = scripted(
        Reply(200, used_up(7)), *[Reply(429, {"Retry-After": "7"})] * 3, patience=patience, max_attempts=3
    )
    send(adapter)
    attempts = retry_history(ended(adapter)).attempts
    assert (sent, pytest.approx(over, abs=0.5)) == (len(attempts), adapter.clock.now())


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("pacing", ["announced", "off"])
def test_a_refused_request_waits_for_the_reset_in_any_case(pacing: str, status: int) -> None:
    """``pacing="off"`` is for the others; a 403 is known for a rate limit, too."""
    adapter = scripted(Reply(status, used_up(7)), 200, pacing=pacing)
    assert (200, [7.0]) == (send(adapter).status_code, adapter.clock.sleeps)


@pytest.mark.real_time
@pytest.mark.parametrize("options", [{}, {"retry_status_codes": [429]}], ids=str)
def test_the_hint_of_a_response_whose_body_broke_off_counts(options: dict[str, Any]) -> None:
    """It came before the body, whether its status is one of those that are retried or not; that of a 200 is none."""
    cut = [kit.CutBody(kit.Reply(status, {"Retry-After": "2"}, b"x" * 100)) for status in (503, 200, 503)]
    with kit.FaultServer([*cut[:2], kit.Reply(200), cut[2]]) as server, requests.Session() as client:
        clock = FakeClock()
        client.mount("http://", RetryAdapter(clock=clock, jitter="none", **options))
        assert 200 == client.get(server.url).status_code
        assert [2.0, 0.1] == clock.sleeps
        with pytest.raises(requests.exceptions.ChunkedEncodingError) as caught, retry_options(max_attempts=1):
            client.get(server.url)
    history = retry_history(caught.value)
    assert history is not None
    assert 2.0 == history.retry_after
