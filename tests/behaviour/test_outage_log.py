"""The log in an outage: one line when a service goes down and one when it is back (contract 12)."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from requests_smithy_retry.testing import FakeClock, scripted
from tests.support import URL, before_each_sleep, send

LOGGER = "requests_smithy_retry"
SERVICE = "https://api.example.com"
DOWN = (
    f"{SERVICE} is down: GET {SERVICE}:443/things/0: gave up after attempt 6: waited 4.85 s: {SERVICE} has been "
    "failing for longer than patience allows (5 s); last answer: 503. Until it is back, operations that give up are "
    "logged at INFO"
)


def until(seconds: float, **options: Any) -> Any:
    """An adapter whose service answers 503 for so long, if it is asked for a thing."""
    clock = FakeClock()

    def answer(request: Any) -> int:
        return 503 if clock.now() < seconds and "/things" in request.url else 200

    return scripted(*[answer] * 400, clock=clock, **options)


def calls(adapter: Any, number: int) -> None:
    for item in range(number):
        send(adapter, url=f"{URL}/{item}")


def lines(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level and record.name == LOGGER]


@pytest.fixture(autouse=True)
def _level(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.INFO, LOGGER):
        yield


def test_an_outage_is_two_warnings(caplog: pytest.LogCaptureFixture) -> None:
    """One when the first operation gives up on the service, one when any operation succeeds; the others are at INFO."""
    adapter = until(60)
    calls(adapter, 5)
    assert [DOWN] == lines(caplog, logging.WARNING)
    (down,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert (SERVICE, "PATIENCE") == (vars(down)["retry_scope"], vars(down)["retry_stop_reason"])
    told = [line for line in lines(caplog, logging.INFO) if "gave up" in line]
    assert [f"GET {SERVICE}:443/things/{item}: gave up after attempt 1: " for item in range(1, 5)] == [
        line[: line.index("gave") + len("gave up after attempt 1: ")] for line in told
    ]
    adapter.clock.advance(60)
    calls(adapter, 3)
    assert [DOWN, f"{SERVICE} is back after 65.0 s, in which 5 operations gave up"] == lines(caplog, logging.WARNING)
    back = vars(caplog.records[-1])
    assert (SERVICE, 65.0, 5) == (back["retry_scope"], back["retry_down_for"], back["retry_gave_up"])


def test_an_upload_finds_the_service_back_as_well(caplog: pytest.LogCaptureFixture) -> None:
    """The first attempt with a body that has to be looked at is made by the machine, and tells of the same end."""
    adapter = until(60)
    calls(adapter, 2)
    adapter.clock.advance(60)
    send(adapter, "PUT", data=io.BytesIO(b"x"))
    assert [DOWN, f"{SERVICE} is back after 65.0 s, in which 2 operations gave up"] == lines(caplog, logging.WARNING)


def test_an_outage_with_pauses_is_one_outage(caplog: pytest.LogCaptureFixture) -> None:
    """A call a minute waits anew each time, but the log tells of the outage from its first failure to its end."""
    adapter = until(600)
    for item in range(10):
        send(adapter, url=f"{URL}/{item}")
        adapter.clock.advance(55)
    assert 600.0 == pytest.approx(adapter.clock.now())
    (bucket,) = adapter.strategy.snapshot().buckets.values()
    assert 600.0 == pytest.approx(bucket.down_for)
    calls(adapter, 1)
    told = lines(caplog, logging.WARNING)
    assert [DOWN, f"{SERVICE} is back after 600.0 s, in which 10 operations gave up"] == told


def test_a_single_operation_that_gave_up_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Where nothing was left out at that level, the end of the outage is at INFO: one path may be broken among many."""
    adapter = until(600)
    for number in range(3):
        send(adapter, url=f"{URL}/{number}")
        send(adapter, url=f"{SERVICE}/other")
    start = f"{SERVICE} is down"
    assert [start] * 3 == [line[: len(start)] for line in lines(caplog, logging.WARNING)]
    assert 3 == len([line for line in lines(caplog, logging.INFO) if "in which 1 operation gave up" in line])


@pytest.mark.parametrize("options", [{"patience": 0}, {"max_attempts": 3}, {"patience": 0, "max_attempts": 2}])
def test_an_outage_is_two_warnings_where_nobody_waits_as_well(
    options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """The first operation that nobody was answered since the beginning of tells of it."""
    adapter = until(60, **options)
    calls(adapter, 4)
    adapter.clock.advance(60)
    calls(adapter, 2)
    down, back = lines(caplog, logging.WARNING)
    assert down.startswith(f"{SERVICE} is down: GET {SERVICE}:443/things/0: gave up after attempt ")
    assert back.startswith(f"{SERVICE} is back after 6")
    assert back.endswith(" s, in which 4 operations gave up")


def test_one_that_gave_up_while_others_were_answered_says_nothing_of_an_outage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its path may be broken, and the service is not down."""
    adapter = until(60, patience=0)
    before_each_sleep(adapter.clock, lambda _: send(adapter, url=f"{SERVICE}/other"))
    calls(adapter, 1)
    assert ["GET"] == [line[:3] for line in lines(caplog, logging.WARNING)]


@pytest.mark.parametrize("options", [{"quota": 500}, {"quota": None}])
def test_without_a_line_nobody_knows_of_an_outage(options: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """Each operation that gives up is a warning."""
    calls(until(600, **options), 3)
    assert 3 == len(lines(caplog, logging.WARNING))
    assert [] == [line for line in lines(caplog, logging.WARNING) if "is down" in line]


def test_the_end_of_an_outage_is_logged_without_a_lock(caplog: pytest.LogCaptureFixture) -> None:
    """A handler may ask for the quota of the scope, or send a request there."""
    adapter, seen = until(60), []

    class Asking(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "is back" in record.getMessage():
                asking = threading.Thread(target=lambda: seen.append(adapter.strategy.snapshot()), daemon=True)
                asking.start()
                asking.join(60)

    calls(adapter, 2)
    adapter.clock.advance(60)
    logger, handler = logging.getLogger(LOGGER), Asking()
    logger.addHandler(handler)
    try:
        calls(adapter, 1)
    finally:
        logger.removeHandler(handler)
    assert 1 == len(seen)
