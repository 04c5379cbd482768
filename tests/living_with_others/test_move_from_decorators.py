"""The claims of docs/howto/move-from-decorators.md about tenacity, stamina and backoff, each run beside the adapter."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from requests_smithy_retry import StopReason, mount, retry_history
from requests_smithy_retry.quotas import ExponentialRetryBackoffStrategy
from requests_smithy_retry.testing import FakeClock
from tests.faults import FaultServer, MissingLastChunk, Reply, ResetAfterRequest, Stall
from tests.support import URL, scripted, send

backoff = pytest.importorskip("backoff")
stamina = pytest.importorskip("stamina")
tenacity = pytest.importorskip("tenacity")

pytestmark = pytest.mark.real_time

PAGE = Path(__file__).resolve().parents[2] / "docs/howto/move-from-decorators.md"
ERRORS = requests.RequestException
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
TRIES: dict[str, Decorator] = {
    "tenacity": tenacity.retry(stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_none(), reraise=True),
    "stamina": stamina.retry(on=ERRORS, attempts=3, wait_initial=0, wait_max=0, wait_jitter=0),
    "backoff": backoff.on_exception(backoff.constant, ERRORS, interval=0, max_tries=3, logger=None),
}
by_each = pytest.mark.parametrize("decorator", [pytest.param(item, id=name) for name, item in TRIES.items()])


@pytest.fixture(autouse=True)
def _quiet():
    """Stamina tells the log of each retry."""
    logger = logging.getLogger("stamina")
    before, logger.disabled = logger.disabled, True
    yield
    logger.disabled = before


@pytest.fixture
def session():
    with mount(requests.Session(), backoff=0, patience=0) as made:
        yield made


def checked(call: Callable[..., requests.Response]) -> Callable[..., requests.Response]:
    """The call, followed by the ``raise_for_status`` that a decorator needs."""

    def do(*args: Any, **kwargs: Any) -> requests.Response:
        response = call(*args, **kwargs)
        response.raise_for_status()
        return response

    return do


class TestAtTheEnd:
    @by_each
    def test_the_same_number_of_requests(self, decorator, session):
        """Three tries are three attempts; what comes out is an exception there, the response here."""
        with FaultServer(default=Reply(503)) as server:
            with pytest.raises(requests.HTTPError):
                decorator(checked(requests.get))(server.url)
            assert 3 == len(server.requests)
            assert 503 == session.get(server.url).status_code
            assert 6 == len(server.requests)

    @by_each
    def test_without_raise_for_status(self, decorator, session):
        """A decorator sees no failure in a 503; the adapter does."""
        with FaultServer([Reply(503), Reply(503), Reply(200)]) as server:
            assert 503 == decorator(requests.get)(server.url).status_code
            assert 200 == session.get(server.url).status_code


class TestWhatIsSentAgain:
    @by_each
    @pytest.mark.parametrize("kind", ["file", "generator"])
    def test_a_body(self, decorator, session, kind):
        """A decorator's second try uploads nothing and is told 200; ours sends all of it, or does not send again."""

        def body():
            return io.BytesIO(b"ab") if kind == "file" else (part for part in (b"a", b"b"))

        with FaultServer([Reply(503), Reply(200)] * 2) as server:
            assert 200 == decorator(checked(requests.put))(server.url, data=body()).status_code
            ours = session.put(server.url, data=body())
            bodies = [request.body for request in server.requests]
        assert [b"ab", b""] == bodies[:2]
        if kind == "file":
            assert ([b"ab", b"ab"], 200) == (bodies[2:], ours.status_code)
        else:
            assert ([b"ab"], StopReason.BODY_NOT_REPLAYABLE) == (bodies[2:], retry_history(ours).stop_reason)

    @by_each
    def test_a_post_that_may_have_been_applied(self, decorator, session):
        """A decorator sends it twice."""
        with FaultServer([ResetAfterRequest(), Reply(200), ResetAfterRequest()]) as server:
            assert 200 == decorator(checked(requests.post))(server.url, data=b"pay").status_code
            assert 2 == len(server.requests)
            with pytest.raises(requests.ConnectionError):
                session.post(server.url, data=b"pay")
            assert 3 == len(server.requests)

    @by_each
    def test_a_streamed_body(self, decorator, session):
        """Read inside the function, it is part of a decorator's try; ours has handed the response on by then."""

        def read(get):
            return lambda url: b"".join(get(url, stream=True).iter_content(10))

        with FaultServer([MissingLastChunk(), Reply(200, body=b"well"), MissingLastChunk()]) as server:
            assert b"well" == decorator(read(requests.get))(server.url)
            with pytest.raises(requests.exceptions.ChunkedEncodingError):
                read(session.get)(server.url)


@by_each
def test_a_decorator_around_the_adapter(decorator):
    """The attempts of both multiply, without a warning."""
    get = decorator(checked(mount(requests.Session(), quota=None, backoff=0).get))
    with FaultServer(default=Reply(503)) as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(requests.HTTPError):
            get(server.url)
        assert 9 == len(server.requests)


def test_a_time_limit_does_not_end_a_try_under_way():
    """Tenacity looks between tries; ``operation_timeout`` ends the attempt."""
    limited = tenacity.retry(stop=tenacity.stop_after_delay(0.05), reraise=True)
    session = mount(requests.Session(), operation_timeout=0.05)
    with FaultServer(default=Stall(seconds=0.2)) as server:
        assert 0.2 <= limited(requests.get)(server.url).elapsed.total_seconds()
    with FaultServer(default=Stall()) as server:
        with pytest.raises(requests.Timeout) as caught:
            session.get(server.url)
        assert 60 > retry_history(caught.value).attempts[0].duration


class TestWaits:
    """The waits before retry 1 to 5, without the luck of the draw."""

    def ours(self, **options: Any) -> list[float]:
        adapter = scripted(*[503] * 6, jitter="none", clock=FakeClock(), max_attempts=6, **options)
        send(adapter, "GET", URL)
        return adapter.clock.sleeps

    def tenacitys(self, wait: Any) -> list[float]:
        state = tenacity.RetryCallState(None, None, (), {})
        waits = []
        for state.attempt_number in range(1, 6):
            waits.append(wait(state))
        return waits

    def backoffs(self, waits: Any) -> list[float]:
        next(waits)
        return [next(waits) for _ in range(5)]

    def test_exponential(self):
        """All three give the same sequence for the same numbers; the random kinds draw from 0 to it."""
        expected = [0.5, 1, 2, 3, 3]
        assert expected == self.ours(
            backoff=ExponentialRetryBackoffStrategy(backoff_scale_value=0.5, max_backoff=3, jitter_type="none")
        )
        assert expected == self.tenacitys(tenacity.wait_exponential(multiplier=0.5, max=3))
        assert expected == self.backoffs(backoff.expo(factor=0.5, max_value=3))
        assert issubclass(tenacity.wait_random_exponential, tenacity.wait_exponential)
        assert all(0 <= backoff.full_jitter(3) <= 3 for _ in range(100))

    def test_incrementing(self):
        """A function, as the page has it."""
        found = re.search(r"`wait_incrementing.*`backoff=(lambda .*)`", PAGE.read_text(encoding="utf-8"))
        expected = self.tenacitys(tenacity.wait_incrementing(start=1, increment=2, max=6))
        assert [1, 3, 5, 6, 6] == expected == self.ours(quota=None, backoff=eval(found[1]))  # type: ignore[index]
