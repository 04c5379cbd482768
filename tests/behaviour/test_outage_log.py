"""The log in an outage: one line when the first operation gives up, one when the service is back (contract 12)."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryError, StandardRetryStrategy, mount, retry_history, retry_options, testing
from requests_smithy_retry.features.telemetry import MetricsListener
from requests_smithy_retry.testing import CutBody, FakeClock, FaultServer
from requests_smithy_retry.testing import Reply as FullReply
from requests_smithy_retry.testing import ScriptedReply as Reply
from tests.kinds import Wrapper
from tests.support import URL, Guide, ended, read_timeout, scripted, send
from tests.turns import TurnClock

LOGGER = "requests_smithy_retry"
SERVICE = "https://api.example.com"
DOWN = (
    f"GET {SERVICE}:443/things/0: gave up after attempt 6: waited 4.85 s: {SERVICE} has been failing for longer than "
    f"patience allows (5 s); last answer: 503. Until {SERVICE} answers well again, operations that give up are logged "
    "at INFO"
)
BACK = f"{SERVICE} answers well again after"


def until(seconds: float, **options: Any) -> Any:
    """An adapter whose service answers 503 for so long, if it is asked for a thing."""
    clock = FakeClock()

    def answer(request: Any) -> int:
        return 503 if clock.now() < seconds and "/things" in request.url else 200

    return testing.scripted(*[answer] * 400, clock=clock, **options)


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
    assert [DOWN, f"{BACK} 65.0 s, in which 5 operations gave up"] == lines(caplog, logging.WARNING)
    back = vars(caplog.records[-1])
    assert (SERVICE, 65.0, 5) == (back["retry_scope"], back["retry_down_for"], back["retry_gave_up"])


def test_an_upload_finds_the_service_back_as_well(caplog: pytest.LogCaptureFixture) -> None:
    """The first attempt with a body that has to be looked at is made by the machine, and tells of the same end."""
    adapter = until(60)
    calls(adapter, 2)
    adapter.clock.advance(60)
    send(adapter, "PUT", data=io.BytesIO(b"x"))
    assert [DOWN, f"{BACK} 65.0 s, in which 2 operations gave up"] == lines(caplog, logging.WARNING)


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
    assert [DOWN, f"{BACK} 600.0 s, in which 10 operations gave up"] == told


def test_a_single_operation_that_gave_up_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Where nothing was left out at that level, the end of the outage is at INFO: one path may be broken among many."""
    adapter = until(600)
    for number in range(3):
        send(adapter, url=f"{URL}/{number}")
        send(adapter, url=f"{SERVICE}/other")
    start = f"GET {SERVICE}:443/things/"
    assert [start] * 3 == [line[: len(start)] for line in lines(caplog, logging.WARNING)]
    assert 3 == len([line for line in lines(caplog, logging.INFO) if "in which 1 operation gave up" in line])


def test_a_call_under_way_when_the_service_came_back_begins_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    """It gives up after the end was logged, of which no other line would tell that it is over."""
    clock = TurnClock()
    adapter = testing.scripted(clock=clock, patience=0, max_attempts=1)

    def hang(request: Any) -> Any:
        clock.sleep(1.0)
        return read_timeout()

    def others() -> None:
        adapter.script[:] = [503, 503]
        calls(adapter, 2)
        clock.sleep(0.5)
        adapter.script[:] = [200]
        calls(adapter, 1)

    adapter.script[:] = [hang]
    clock.run([lambda: ended(adapter, url=f"{URL}/slow"), others])
    down, back = lines(caplog, logging.WARNING)
    assert ("Until" in down, back) == (True, f"{BACK} 0.5 s, in which 2 operations gave up")
    assert f"GET {SERVICE}:443/things/slow: gave up after attempt 1" in lines(caplog, logging.INFO)[-1]
    assert [None] == [bucket.down_for for bucket in adapter.strategy.snapshot().buckets.values()]


@pytest.mark.parametrize("options", [{"patience": 0}, {"max_attempts": 3}, {"patience": 0, "max_attempts": 2}])
def test_an_outage_is_two_warnings_where_nobody_waits_as_well(
    options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """The first operation that gives up tells of it."""
    adapter = until(60, **options)
    calls(adapter, 4)
    adapter.clock.advance(60)
    calls(adapter, 2)
    down, back = lines(caplog, logging.WARNING)
    assert down.startswith(f"GET {SERVICE}:443/things/0: gave up after attempt ")
    assert back.startswith(f"{BACK} 6")
    assert back.endswith(" s, in which 4 operations gave up")


def wrapped(clock: Any) -> Any:
    return Wrapper(StandardRetryStrategy(patience=0, backoff=0, clock=clock))


def plugged_in(clock: Any) -> Any:
    """A strategy with tokens of its own, by the guide."""
    return Guide(*[RetryError("no") for _ in range(9)])


HINTED = Reply(503, {"Retry-After": "30"})
LIMITED = Reply(429, {"Retry-After": "30"})
CASES: dict[str, tuple[str, dict[str, Any], tuple[Any, ...]]] = {
    "503": ("GET", {"patience": 0}, (503,)),
    "503 with a hint": ("GET", {"patience": 0}, (HINTED,)),
    "429, and calls that are not sent": ("GET", {"patience": 0}, (LIMITED,)),
    "500 after a success": ("GET", {"patience": 0}, (200, 500)),
    "a cut body": ("GET", {"patience": 0}, (Reply(200, cut=True),)),
    "a rejected answer": ("GET", {"patience": 0, "validate": lambda response: response.text == "good"}, (200,)),
    "a time-out": ("GET", {"patience": 0}, (read_timeout(),)),
    "a POST without a key": ("POST", {"patience": 0}, (503,)),
    "one attempt": ("GET", {"max_attempts": 1}, (503,)),
    "a quota of AWS's kind": ("GET", {"quota": 500}, (503,)),
    "no quota": ("GET", {"quota": None}, (503,)),
    "a translated Retry": ("GET", {"max_retries": Retry(1, status_forcelist=[503])}, (503,)),
    "adaptive mode": ("GET", {"mode": "adaptive", "patience": 0}, (503,)),
    "a wrapper": ("GET", {"strategy": wrapped}, (503,)),
    "a strategy of the program's own": ("GET", {"strategy": plugged_in}, (503,)),
}


@pytest.mark.parametrize("name", CASES)
def test_of_operations_that_give_up_one_after_another_the_first_is_a_warning(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever they met, and whatever strategy refuses their retries; so is the answer that ends it."""
    method, options, answers = CASES[name]
    clock, good = FakeClock(), Reply(200, body=b"good")
    if "strategy" in options:
        options = {"strategy": options["strategy"](clock)}
    adapter = scripted(*answers, *answers[-1:] * 60, clock=clock, **options)
    for _ in answers[1:]:
        send(adapter, method)
    for _ in range(8):
        ended(adapter, method)
    (first,) = lines(caplog, logging.WARNING)
    assert first.endswith(f"Until {SERVICE} answers well again, operations that give up are logged at INFO")
    ends = [record for record in caplog.records if "retry_stop_reason" in vars(record)]
    assert [logging.WARNING] + [logging.INFO] * 7 == [record.levelno for record in ends]
    clock.advance(60)
    adapter.script[:] = [good]
    send(adapter, method)
    assert lines(caplog, logging.WARNING)[1].startswith(BACK)
    assert lines(caplog, logging.WARNING)[1].endswith(" s, in which 8 operations gave up")


@pytest.mark.parametrize("headers", [{}, {"ETag": '"1"'}], ids=["not continued", "asked for the rest in vain"])
@pytest.mark.parametrize("options", [{"patience": 0, "backoff": 0}, {"strategy": wrapped}, {"strategy": plugged_in}])
def test_of_streams_that_an_outage_breaks_off_one_is_a_warning(
    options: dict[str, Any], headers: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """Each had its head from a service that answered then, which says nothing of it now."""
    if "strategy" in options:
        clock = FakeClock()
        options = {"strategy": options["strategy"](clock), "clock": clock}
    cut = CutBody(FullReply(200, headers, b"x" * 9000), at=5000)
    with FaultServer([cut] * 4, default=FullReply(503)) as server, requests.Session() as session:
        mount(session, **options)
        streams = [session.get(server.url, stream=True, timeout=60) for _ in range(4)]
        for stream in streams:
            with pytest.raises(requests.RequestException):
                stream.content  # noqa: B018  # reads it
        session.post(server.url, timeout=60)
        server.script([FullReply(200)])
        session.get(server.url, timeout=60)
    ends = [record.levelno for record in caplog.records if "retry_stop_reason" in vars(record)]
    assert [logging.WARNING] + [logging.INFO] * 4 == ends
    first, back = lines(caplog, logging.WARNING)
    assert first.endswith("answers well again, operations that give up are logged at INFO")
    assert back.endswith("s, in which 5 operations gave up")


def test_an_answer_that_refuses_a_request_ends_it_as_well(caplog: pytest.LogCaptureFixture) -> None:
    """The service works."""
    adapter = scripted(503, 503, 404, 503, max_attempts=1)
    for _ in range(4):
        send(adapter)
    first, back, second = lines(caplog, logging.WARNING)
    assert (first, BACK) == (second, back[: len(BACK)])


def test_a_wait_that_a_task_queue_makes_is_not_counted(caplog: pytest.LogCaptureFixture) -> None:
    """It is at INFO, and the next operation that gives up is the first one at WARNING."""
    adapter = scripted(*[Reply(503, {"Retry-After": "30"})] * 9, max_wait=1)
    ended(adapter)
    assert [] == lines(caplog, logging.WARNING)
    send(adapter, "POST")
    assert 1 == len(lines(caplog, logging.WARNING))


def test_a_wait_that_the_program_cancels_is_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    """A worker that stops while it waits for a first request with its key is no trouble of the service."""
    stop = threading.Event()
    adapter = scripted(409)
    stop.set()
    with retry_options(cancel=stop):
        error = ended(adapter, "POST", headers={"Idempotency-Key": "1"})
    assert "cancelled before or during the wait for the first request" in str(error)
    assert [] == lines(caplog, logging.WARNING)


class Counts(MetricsListener):
    """Keeps the reasons of operations that gave up."""

    def __init__(self) -> None:
        super().__init__(9)
        self.reasons: list[str] = []

    def add_for(self, common: Any, metric: str, amount: float, **own: str) -> None:
        if metric == "give_ups":
            self.reasons.append(own["reason"])


def test_a_deadline_that_is_over_before_is_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing was sent, so nothing is known of the service; metrics have a word of its own for it."""
    counts = Counts()
    adapter = scripted(200, listeners=[counts])
    with retry_options(deadline=1e-9, clock=adapter.clock):
        ended(adapter)
    assert [] == lines(caplog, logging.WARNING)
    assert [line.partition(": ")[2] for line in lines(caplog, logging.INFO)] == [
        "nothing was sent: the deadline had passed before the request was sent"
    ]
    assert ["late"] == counts.reasons


@pytest.mark.parametrize(
    ("answered_in", "script", "allowed", "reason"),
    [
        (0.2, [read_timeout], 0.1, "late"),
        (None, [read_timeout], 0.9, "late"),
        (0.2, [read_timeout], 0.3, "deadline"),
        (None, [read_timeout], 1.0, "deadline"),
        (0.2, [lambda: 503], 0.1, "deadline"),
        (0.2, [lambda: 503, read_timeout], 0.1, "deadline"),
    ],
)
def test_a_deadline_that_leaves_no_time_for_an_answer_is_no_outage(
    answered_in: float | None, script: list[Any], allowed: float, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A caller with less time than the service last took, or than a second, says nothing of it, unless it answered."""
    clock, counts = FakeClock(), Counts()

    def takes(seconds: float, answer: Any) -> Any:
        clock.advance(seconds)
        return answer

    adapter = scripted(clock=clock, listeners=[counts], backoff=0)
    if answered_in is not None:
        adapter.script.append(lambda request: takes(answered_in, 200))
        send(adapter)
    for answer in script:
        adapter.script.append(lambda request, answer=answer: takes(allowed / len(script), answer()))
    with retry_options(deadline=allowed):
        try:
            error = send(adapter)
        except requests.RequestException as raised:
            error = raised
    assert [reason] == counts.reasons
    is_late = reason == "late"
    assert (1, is_late) == (len(lines(caplog, logging.INFO if is_late else logging.WARNING)), not has_time(error))


def has_time(ended: Any) -> bool:
    history = retry_history(ended)
    assert history is not None
    return history.had_time


def test_five_minutes_later_the_next_one_is_a_warning_again(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody knows how the service was meanwhile."""
    adapter = scripted(503, 503, max_attempts=1)
    send(adapter)
    adapter.clock.advance(301)
    send(adapter)
    assert 2 == len(lines(caplog, logging.WARNING))


def test_of_threads_that_give_up_together_one_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """The others are at INFO."""
    adapter = scripted(*[503] * 64, max_attempts=1)
    threads = [threading.Thread(target=send, args=(adapter,)) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (1, 63) == (len(lines(caplog, logging.WARNING)), len(lines(caplog, logging.INFO)))


def test_the_end_of_an_outage_is_logged_without_a_lock(caplog: pytest.LogCaptureFixture) -> None:
    """A handler may ask for the quota of the scope, or send a request there."""
    adapter, seen = until(60), []

    class Asking(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "well again after" in record.getMessage():
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
