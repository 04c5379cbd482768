"""Who is told, and what a listener may be (contract 12)."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from requests_smithy_retry import (
    RetryAdapter,
    RetryConfig,
    RetryConfigError,
    RetryListener,
    SdkHeaders,
    TokenBucket,
    retry_history,
)
from requests_smithy_retry.testing import FakeClock, FaultServer
from tests.support import scripted, send, session_with


class Log(RetryListener):
    """Writes down the names of events."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def before_attempt(self, event: Any) -> None:
        self.events.append(event)

    after_attempt = retry_scheduled = throttled = gave_up = succeeded = before_attempt

    @property
    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


class OnlyAfter:
    """A listener of the program's own, with one method and no base."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def after_attempt(self, event: Any) -> None:
        self.seen.append(event.number)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ((200,), ["BeforeAttempt", "AfterAttempt"]),
        ((404,), ["BeforeAttempt", "AfterAttempt"]),
        ((503, 200), ["BeforeAttempt", "AfterAttempt", "RetryScheduled", "BeforeAttempt", "AfterAttempt", "Succeeded"]),
        (
            (429, 503),
            ["BeforeAttempt", "AfterAttempt", "Throttled", "RetryScheduled", "BeforeAttempt", "AfterAttempt", "GaveUp"],
        ),
    ],
)
def test_each_ending_has_its_events(script: tuple[int, ...], expected: list[str]) -> None:
    """Every attempt has a before and an after; a retry, throttling, giving up and a mended operation are told."""
    log = Log()
    send(scripted(*script, listeners=[log], max_attempts=2))
    assert expected == log.names


def test_listeners_are_told_in_their_order() -> None:
    """Two listeners hear the same event objects, the first one first."""
    told: list[tuple[str, Any]] = []

    class Named(RetryListener):
        def __init__(self, name: str) -> None:
            self.name = name

        def before_attempt(self, event: Any) -> None:
            told.append((self.name, event))

    send(scripted(200, listeners=[Named("a"), Named("b")]))
    assert ["a", "b"] == [name for name, _ in told]
    assert told[0][1] is told[1][1]


class Failing(RetryListener):
    """Fails once an attempt has ended."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def after_attempt(self, event: Any) -> None:
        raise self.error


@pytest.mark.parametrize("script", [(200,), (503,)])
@pytest.mark.parametrize("error", [KeyError("first"), KeyboardInterrupt()])
def test_who_heard_of_an_attempt_hears_of_its_end(script: tuple[int, ...], error: BaseException) -> None:
    """A listener behind failing ones gets both events, and the caller gets the first one's exception."""
    log = Log()
    adapter = scripted(*script, listeners=[Failing(error), Failing(KeyError("second")), log])
    with session_with(adapter) as session, pytest.raises(type(error)) as caught:
        session.get("https://example.com")
    assert (["BeforeAttempt", "AfterAttempt"], error) == (log.names, caught.value)
    assert caught.value.__context__ is None


def test_a_class_of_ones_own_will_do() -> None:
    """A listener needs no base class and no method that it has no use for."""
    only = OnlyAfter()
    send(scripted(503, 200, listeners=[only]))
    assert [1, 2] == only.seen


class OnlyLater:
    """Has no ear for a success at the first try."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []

    def retry_scheduled(self, event: Any) -> None:
        self.told.append((type(event).__name__, event.number))

    throttled = gave_up = succeeded = retry_scheduled


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ((200,), []),
        ((503, 200), [("RetryScheduled", 1), ("Succeeded", 2)]),
        ((429, 503), [("Throttled", 1), ("RetryScheduled", 1), ("GaveUp", 2)]),
    ],
)
@pytest.mark.parametrize("options", [{}, {"operation_timeout": 60}])
def test_a_listener_without_an_ear_for_attempts_hears_of_all_else(
    script: tuple[int, ...], expected: list[tuple[str, int]], options: dict[str, Any]
) -> None:
    """A listener without methods for attempts gets no event before a failure, and the others as usual."""
    listener = OnlyLater()
    send(scripted(*script, listeners=[listener], max_attempts=2, **options))
    assert expected == listener.told


def test_what_is_not_overridden_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method of the base class costs nothing."""
    for name in [name for name in vars(RetryListener) if not name.startswith("_")]:
        monkeypatch.setattr(getattr(RetryListener, name), "__code__", (lambda self, event, /: 1 / 0).__code__)
    send(scripted(429, 503, listeners=[RetryListener()], max_attempts=2))
    send(scripted(503, 200, listeners=[RetryListener()]))


@pytest.mark.parametrize("value", [object(), None, RetryListener, "listener", 3])
def test_what_hears_nothing_is_no_listener(value: object) -> None:
    """An object without any of the methods, and a class in place of an object, are refused by name."""
    with pytest.raises(RetryConfigError, match="a collection of listeners is allowed"):
        RetryConfig(listeners=[value])


@pytest.mark.parametrize("value", [OnlyAfter(), "ab", b"ab", None, 3])
def test_listeners_are_a_collection(value: Any) -> None:
    """A listener that is not in a collection is refused by name."""
    with pytest.raises(RetryConfigError, match=r"listeners=.*a collection of listeners is allowed"):
        RetryConfig(listeners=value)


def test_a_listener_that_cannot_be_pickled_is_named() -> None:
    """The error says which option stands in the way (contract 11.1)."""

    class Local(RetryListener):
        pass

    with pytest.raises(pickle.PicklingError, match=r"listeners\[0\]"):
        pickle.dumps(RetryAdapter(listeners=[Local()]))


def test_a_listener_survives_pickling_where_it_can() -> None:
    """An adapter that is unpickled tells its listeners."""
    adapter = pickle.loads(pickle.dumps(RetryAdapter(listeners=[OnlyAfter(), SdkHeaders()])))
    with FaultServer() as server, session_with(adapter) as made:
        made.get(server.url)
        assert server.requests[0].header("amz-sdk-request") is not None
    assert [1] == adapter.retry_config.listeners[0].seen


def test_a_wait_for_tokens_comes_between_an_attempt_and_its_retry() -> None:
    """A listener hears of the attempt at once, and of the price of its retry once that was paid."""
    times: list[tuple[str, float]] = []

    class Timed(Log):
        def before_attempt(self, event: Any) -> None:
            times.append((type(event).__name__, adapter.clock.now()))

        after_attempt = retry_scheduled = before_attempt

    clock = FakeClock()
    bucket = TokenBucket(20, refill_rate=2, on_empty="wait", clock=clock)
    adapter = scripted(503, 503, 200, listeners=[Timed()], clock=clock, quota=bucket, backoff=0)
    history = retry_history(send(adapter))
    retry = ["AfterAttempt", "RetryScheduled", "BeforeAttempt"]
    assert ["BeforeAttempt", *retry, *retry, "AfterAttempt"] == [name for name, _ in times]
    assert [0, 0, 0, 0, 0, 4, 4, 4] == [at for _, at in times]
    assert history is not None
    assert [(20, 6), (14, 0), (None, None)] == [(row.quota_before, row.quota_after) for row in history.attempts]
