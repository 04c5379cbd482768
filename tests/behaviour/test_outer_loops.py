"""A loop around a call that sends the same request again (contract 2.11)."""

from __future__ import annotations

import io
import logging
import random
import threading
import warnings
from collections.abc import Callable, Iterator
from itertools import islice, repeat
from typing import Any

import backoff
import pytest
import requests
import tenacity

from requests_smithy_retry import RetryConfigWarning, RetryListener, StopReason, retry_history, retry_options
from requests_smithy_retry.sending import nested_retries
from requests_smithy_retry.testing import FakeClock
from tests.support import URL, reset_error, scripted, send

CALLS = 30
WITH_RETRIES = 5
"""Of so many calls, the first three, the eleventh and the 21st have their retries."""


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    nested_retries._warned.clear()
    yield
    nested_retries._warned.clear()


def adapter_of(*script: Any, clock: FakeClock | None = None, **options: Any) -> Any:
    """An adapter that no quota bounds, at a service that is down after the script."""
    return scripted(*script, *[503] * 400, clock=clock or FakeClock(), **{"quota": None, **options})


def google_waits() -> Iterator[float]:
    """The pauses of google-api-core's retry: jittered, and twice as long each time up to a minute."""
    delay = 1.0
    dice = random.Random(5)
    while True:
        yield min(dice.uniform(0.0, 2 * delay), 60.0)
        delay *= 2


def looped(waits: Callable[[], Iterator[float]]) -> Callable[[Callable[[], Any], FakeClock], None]:
    def loop(call: Callable[[], Any], clock: FakeClock) -> None:
        for wait in islice(waits(), CALLS):
            call()
            clock.sleep(wait)

    return loop


def tenacious(wait: Any) -> Callable[[Callable[[], Any], FakeClock], None]:
    def loop(call: Callable[[], Any], clock: FakeClock) -> None:
        stop, failed = tenacity.stop_after_attempt(CALLS), tenacity.retry_if_result(lambda answer: not answer.ok)
        with pytest.raises(tenacity.RetryError):
            tenacity.Retrying(stop=stop, wait=wait, retry=failed, sleep=clock.sleep)(call)

    return loop


def backed_off() -> Iterator[float]:
    """The pauses of backoff.on_exception, whose generator has to be started."""
    waits = backoff.expo()
    next(waits)
    return waits


LOOPS = {
    "while": looped(lambda: repeat(0.0)),
    "tenacity": tenacious(tenacity.wait_none()),
    "tenacity-exponential": tenacious(tenacity.wait_exponential()),
    "backoff": looped(backed_off),
    "google-api-core": looped(google_waits),
}


@pytest.mark.filterwarnings("ignore:.* a loop around the call")
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_costs_its_own_requests_and_few_of_ours(name: str) -> None:
    """Thirty calls of up to three attempts send 40 requests instead of 90; a few more where pauses are random."""
    adapter = adapter_of()
    LOOPS[name](lambda: send(adapter), adapter.clock)
    expected = CALLS + 2 * WITH_RETRIES
    assert expected <= len(adapter.sent) <= expected + (12 if name == "google-api-core" else 0)


@pytest.mark.filterwarnings("ignore:.* a loop around the call")
@pytest.mark.parametrize("failure", [503, 429, reset_error()], ids=str)
@pytest.mark.parametrize("options", [{"quota": None}, {"mode": "simple"}, {"quota": 500}, {"quota": "payoff"}], ids=str)
def test_every_failure_and_every_quota_counts(failure: Any, options: dict[str, Any]) -> None:
    """The fourth call in a row is one attempt, whatever fails, and whatever bounds the retries."""
    adapter = scripted(*[failure] * 40, clock=FakeClock(), **options)
    numbers = []
    for _ in range(5):
        try:
            outcome: Any = send(adapter)
        except requests.ConnectionError as error:
            outcome = error
        history = retry_history(outcome)
        assert history is not None
        numbers.append(len(history.attempts))
    assert [1, 1] == numbers[3:]
    assert min(numbers[:1]) > 1


def requests_of(adapter: Any, calls: int, **how: Any) -> list[int]:
    """The number of requests that each of some calls in a row makes."""
    numbers = []
    for _ in range(calls):
        before = len(adapter.sent)
        send(adapter, **how)
        numbers.append(len(adapter.sent) - before)
    return numbers


class Ended(RetryListener):
    def __init__(self) -> None:
        self.reasons: list[StopReason] = []

    def gave_up(self, event: Any) -> None:
        self.reasons.append(event.history.stop_reason)


def test_the_reason_is_told_everywhere(caplog: pytest.LogCaptureFixture) -> None:
    """History, event, log and one warning have the numbers; a later loop is not warned about again."""
    caplog.set_level(logging.INFO, "requests_smithy_retry")
    told = Ended()
    adapter = adapter_of(listeners=[told])
    assert [3, 3, 3] == requests_of(adapter, 3)
    with pytest.warns(RetryConfigWarning) as caught:
        assert [1] == requests_of(adapter, 1)
    response = send(adapter)
    expected = (
        "GET https://api.example.com:443/things failed 3 times in a row in one thread, with 9 requests: a loop around "
        "the call retries as well. Of such a loop, only one call in 10 now has retries. Give one of the two a single "
        "attempt, here with max_attempts=1"
    )
    assert [expected] == [str(item.message) for item in caught]
    assert [StopReason.MAX_ATTEMPTS] * 3 + [StopReason.OUTER_LOOP] * 2 == told.reasons
    history = retry_history(response)
    assert history is not None
    assert "gave up after attempt 1 of 3: a loop around the call sends it again (4 calls in a row failed, with 10 " in (
        history.explain()
    )
    assert ("INFO", f"GET {URL.replace('.com', '.com:443')}: {history.sentence}") == (
        caplog.records[-1].levelname,
        caplog.records[-1].getMessage(),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [3, 3, 3, 1] == requests_of(adapter, 4, url=f"{URL}/other")


@pytest.mark.filterwarnings("ignore:.* a loop around the call")
def test_a_wanted_exception_is_raised_for_this_reason_too() -> None:
    """With raise_on_status the caller of a single attempt gets what it gets after three."""
    adapter = adapter_of(raise_on_status=True)
    for _ in range(5):
        with pytest.raises(requests.exceptions.RetryError):
            send(adapter)
    assert 11 == len(adapter.sent)


NO_LOOPS: dict[str, Callable[[Any, int], Any]] = {
    "a poll every five seconds": lambda adapter, _: adapter.clock.advance(5),
    "a poll every 2.1 seconds": lambda adapter, _: adapter.clock.advance(2.1),
    "a success after a retry": lambda adapter, _: adapter.script.insert(1, 200),
    "another method": lambda adapter, number: {"method": ("GET", "HEAD")[number % 2]},
    "another URL each time": lambda adapter, number: {"url": f"{URL}?page={number}"},
    "another body each time": lambda adapter, number: {"method": "PUT", "data": f"item {number}"},
    "a body that cannot be compared": lambda adapter, number: {"method": "PUT", "data": io.BytesIO(b"file")},
}


@pytest.mark.parametrize("kind", NO_LOOPS)
def test_what_is_no_loop_has_all_of_its_retries(kind: str) -> None:
    """Twelve calls in a row: nobody is warned, and each ends as it would alone."""
    adapter = adapter_of()
    for number in range(12):
        how = NO_LOOPS[kind](adapter, number)
        before = len(adapter.sent)
        send(adapter, **(how if isinstance(how, dict) else {}))
        expected = 2 if "success" in kind else 3
        assert expected == len(adapter.sent) - before


def test_a_status_by_which_programs_poll_is_no_failure() -> None:
    """A program that waits for a thing to appear may ask as often as it likes."""
    adapter = scripted(*[404] * 60, quota=None, clock=FakeClock(), retry_status_codes=[404])
    assert [3] * 12 == requests_of(adapter, 12)


@pytest.mark.filterwarnings("ignore:.* a loop around the call")
@pytest.mark.parametrize("answer", [200, 404])
def test_an_answer_ends_a_loop(answer: int) -> None:
    """After a call that was answered at its second attempt, the next ones have their retries again."""
    adapter = adapter_of(*[503] * 17, answer)  # ten calls, and the first attempt of the eleventh, which has retries
    assert [3, 3, 3, *[1] * 7, 2, 3, 3, 3, 1] == requests_of(adapter, 15)


@pytest.mark.filterwarnings("ignore:.* a loop around the call")
def test_a_deadline_is_waited_for_inside_a_loop() -> None:
    """The caller said how long to wait: the calls of a loop with a deadline have their retries."""
    adapter = adapter_of()
    with retry_options(deadline=60, clock=adapter.clock):
        assert [3] * 6 == requests_of(adapter, 6)
    assert [1] == requests_of(adapter, 1)


def test_a_single_attempt_multiplies_nothing() -> None:
    """Where each call is one request anyway, its reason stays, and nobody is warned."""
    adapter = adapter_of(max_attempts=1)
    histories = [retry_history(send(adapter)) for _ in range(6)]
    assert [StopReason.MAX_ATTEMPTS] * 6 == [history.stop_reason for history in histories if history is not None]


@pytest.mark.filterwarnings("ignore:.* a loop around the call")
def test_a_block_of_one_attempt_keeps_its_reason_in_a_loop() -> None:
    """The caller allowed one attempt, so it is not the loop that ends the call."""
    adapter = adapter_of()
    requests_of(adapter, 4)
    with retry_options(max_attempts=1):
        history = retry_history(send(adapter))
    assert history is not None
    assert StopReason.MAX_ATTEMPTS is history.stop_reason


@pytest.mark.filterwarnings("ignore:.* a loop around the call")
def test_a_loop_in_one_session_is_none_in_another() -> None:
    """Calls by another strategy count for themselves: tests with a session each do not disturb one another."""
    for _ in range(3):
        assert [3, 3, 3, 1] == requests_of(adapter_of(), 4)


@pytest.mark.filterwarnings("ignore:.* a loop around the call")
def test_eight_threads_have_a_loop_each() -> None:
    """Each thread's calls count by themselves, and one warning tells of all."""
    adapter, numbers = adapter_of(initial_backoff=0), {}

    def work(number: int) -> None:
        numbers[number] = [len(retry_history(send(adapter)).attempts) for _ in range(12)]  # type: ignore[union-attr]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {number: [3, 3, 3, *[1] * 7, 3, 1] for number in range(8)} == numbers


class Persistent:
    """A strategy that retries as long as it may."""

    max_attempts = 3

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Any:
        return type("Token", (), {"retry_count": 0, "retry_delay": 0.0})()

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Exception) -> Any:
        token = self.acquire_initial_retry_token()
        token.retry_count = token_to_renew.retry_count + 1
        if token.retry_count >= self.max_attempts:
            raise error
        return token

    def record_success(self, *, token: Any) -> None:
        """Do nothing."""


@pytest.mark.filterwarnings("ignore:.* a loop around the call")
def test_a_foreign_strategy_is_not_asked_inside_a_loop() -> None:
    """The adapter applies the rule for it."""
    adapter = scripted(*[503] * 40, strategy=Persistent(), clock=FakeClock())
    assert [3, 3, 3, 1, 1] == requests_of(adapter, 5)
