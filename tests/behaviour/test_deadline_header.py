"""``deadline_header`` and ``deadline_of``: a deadline that services hand on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
import requests

from requests_smithy_retry import SdkHeaders, StopReason, deadline_of, mount, retry_history, retry_options
from requests_smithy_retry.testing import FakeClock, FaultServer
from requests_smithy_retry.testing import Reply as FaultReply
from tests.support import ScriptedAdapter, scripted, send

NAME = "X-Request-Deadline"
SLOW = {"backoff": lambda attempt, _: 2 * attempt, "deadline_header": NAME}


def told(adapter: ScriptedAdapter, name: str = NAME) -> list[str | None]:
    return [sent.headers.get(name) for sent in adapter.sent]


@pytest.mark.parametrize("bound", ["option", "block"])
def test_each_attempt_tells_what_is_left(bound: str) -> None:
    """Anew, after each wait, whoever set the deadline; a value that the program sent goes."""
    options = {"operation_timeout": 10.5} if bound == "option" else {}
    adapter = scripted(503, 503, 200, **SLOW, **options)
    with retry_options(deadline=None if options else 10.5, clock=adapter.clock):
        send(adapter, headers={NAME: "99"})
    assert ["10.500", "8.500", "4.500"] == told(adapter)


def test_a_date_is_rounded_down() -> None:
    """The form that other clocks can read."""
    adapter = scripted(200, deadline_header=("Deadline", "date"), operation_timeout=10.9)
    began = adapter.clock.wall()
    send(adapter)
    assert [formatdate(int(began + 10.9), usegmt=True)] == told(adapter, "Deadline")


def test_without_a_deadline_nothing_is_told() -> None:
    """And without the option neither."""
    for options in ({"deadline_header": NAME}, {"operation_timeout": 10}):
        adapter = scripted(200, **options)
        send(adapter)
        assert [None] == told(adapter)


def test_no_attempt_begins_with_next_to_nothing_left() -> None:
    """Not the first one, which is not sent; nor a retry: then the last answer is returned."""
    adapter = scripted(200, deadline_header=NAME)
    with retry_options(deadline=0.005, clock=adapter.clock), pytest.raises(requests.ConnectTimeout) as caught:
        send(adapter)
    assert ([], StopReason.DEADLINE) == (adapter.sent, retry_history(caught.value).stop_reason)
    adapter = scripted(503, 200, operation_timeout=2.005, **SLOW)
    history = retry_history(send(adapter))
    assert (1, StopReason.DEADLINE) == (len(adapter.sent), history.stop_reason)
    assert "0.005 s are left, too few for an attempt" == history.why


def test_a_body_that_is_made_anew_has_the_same_floor() -> None:
    """The first attempt of a request with an iterator goes through the machine."""
    adapter = scripted(200, deadline_header=NAME, operation_timeout=1)
    send(adapter, "PUT", data=iter([b"x"]))
    assert ["1.000"] == told(adapter)
    with retry_options(deadline=0.001, clock=adapter.clock), pytest.raises(requests.ConnectTimeout):
        send(adapter, "PUT", data=iter([b"x"]))


CLOCK = FakeClock()


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({NAME: "1.5"}, 1.5),
        ({NAME: " 20 "}, 20),
        ({NAME: "0"}, 0.001),
        ({NAME: "-3.5"}, 0.001),
        ({NAME: formatdate(int(CLOCK.wall()) + 60, usegmt=True)}, 60),
        ({NAME: formatdate(int(CLOCK.wall()) - 60, usegmt=True)}, 0.001),
        ({NAME: "soon"}, None),
        ({NAME: "1e5"}, None),
        ({NAME: "nan"}, None),
        ({NAME: ""}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_callers_deadline_is_read(headers: dict[str, str] | None, expected: float | None) -> None:
    """In seconds or as a date; what cannot be understood is none, and one that is over is next to nothing."""
    seconds = deadline_of(headers, clock=CLOCK)
    assert pytest.approx(expected, abs=1) == seconds if seconds else expected is None
    with retry_options(deadline=seconds):
        pass


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None: ...


def around(app: Any) -> Any:
    """The line of the page, for any WSGI application."""

    def in_time(environ: Any, start_response: Any) -> Any:
        with retry_options(deadline=deadline_of(environ, "HTTP_X_REQUEST_DEADLINE")):
            return app(environ, start_response)

    return in_time


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    with FaultServer([FaultReply(503), FaultReply(200)]) as server:
        yield server


@pytest.mark.real_time
def test_a_wsgi_application_hands_it_on(upstream: FaultServer) -> None:
    """A Flask application calls another service, whose attempts get less and less, each with its number."""
    flask = pytest.importorskip("flask")
    session = mount(requests.Session(), deadline_header=NAME, listeners=[SdkHeaders()])
    app = flask.Flask("edge")
    app.route("/")(lambda: str(session.get(upstream.url).status_code))
    app.wsgi_app = around(app.wsgi_app)
    with make_server("127.0.0.1", 0, app, handler_class=Quiet) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        answer = requests.get(f"http://127.0.0.1:{server.server_port}/", headers={NAME: "30"}, timeout=60)
    session.close()
    first, second = (float(request.header(NAME) or "nan") for request in upstream.requests)
    assert ("200", True) == (answer.text, 0 < second <= first <= 30)
    assert ["attempt=1", "attempt=2"] == [request.header("amz-sdk-request") for request in upstream.requests]


@pytest.mark.real_time
def test_an_asgi_application_hands_it_on_to_its_threads(upstream: FaultServer) -> None:
    """The block of a coroutine holds in the threads that it starts with its context, as those of FastAPI."""
    session = mount(requests.Session(), deadline_header=NAME)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.to_thread(session.get, upstream.url)

    async def in_time(scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope.get("headers", ())}
        with retry_options(deadline=deadline_of(headers, NAME.lower())):
            await app(scope, receive, send)

    asyncio.run(in_time({"headers": [(b"x-request-deadline", b"30")]}, None, None))
    session.close()
    assert all(0 < float(request.header(NAME) or "nan") <= 30 for request in upstream.requests)


@pytest.mark.real_time
def test_a_celery_task_hands_it_on(upstream: FaultServer) -> None:
    """It came in the task's own headers."""
    celery = pytest.importorskip("celery")
    session = mount(requests.Session(), deadline_header=NAME)

    class InTime(celery.Task):  # type: ignore[misc, name-defined]
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            with retry_options(deadline=deadline_of(self.request.headers)):
                return super().__call__(*args, **kwargs)

    app = celery.Celery("tasks", broker="memory://", task_cls=InTime, task_always_eager=True)

    @app.task
    def call() -> int:
        return session.get(upstream.url).status_code

    assert 200 == call.apply_async(headers={NAME: "30"}).get()
    session.close()
    assert all(0 < float(request.header(NAME) or "nan") <= 30 for request in upstream.requests)
