"""``deadline_header`` and ``deadline_of``: a deadline that services hand on."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
import requests

from requests_smithy_retry import StopReason, deadline_of, mount, retry_history, retry_options
from requests_smithy_retry.config.retry_options import current_options
from requests_smithy_retry.smithy import SdkHeaders
from requests_smithy_retry.testing import FakeClock, FaultServer
from requests_smithy_retry.testing import Reply as FaultReply
from tests.project.test_docs import blocks_of
from tests.support import ROOT, ScriptedAdapter, ended, scripted, send

PAGE = ROOT / "docs/howto/bound-the-time.md"
NAME = "X-Request-Deadline"
SLOW = {"backoff": lambda attempt, _: 2 * attempt, "deadline_header": NAME}


def told(adapter: ScriptedAdapter, name: str = NAME) -> list[str | None]:
    return [sent.headers.get(name) for sent in adapter.sent]


@pytest.mark.parametrize("bound", ["option", "block"])
def test_each_attempt_tells_what_is_left(bound: str) -> None:
    """Anew, after each wait, whoever set the deadline and whatever the body is; a value that the program sent goes."""
    options = {"operation_timeout": 10.5} if bound == "option" else {}
    adapter = scripted(503, 503, 200, **SLOW, **options)
    with retry_options(deadline=None if options else 10.5, clock=adapter.clock):
        send(adapter, "PUT", headers={NAME: "99"}, data=io.BytesIO(b"x"))
    assert ["10.500", "8.500", "4.500"] == told(adapter)


def test_a_date_is_rounded_down() -> None:
    """The form that other clocks can read."""
    adapter = scripted(200, deadline_header=("Deadline", "date"), operation_timeout=10.9)
    began = adapter.clock.wall()
    send(adapter)
    assert [formatdate(int(began + 10.9), usegmt=True)] == told(adapter, "Deadline")


@pytest.mark.parametrize("seconds", [1e12, 1e306, 1e308])
@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_deadline_beyond_the_calendar_is_told_as_one_that_can_be_written(form: str, seconds: float) -> None:
    """The call is made, and the server reads some thousands of years."""
    adapter = scripted(200, deadline_header=(NAME, form), operation_timeout=seconds)
    assert 200 == send(adapter).status_code
    assert 1e11 == pytest.approx(deadline_of(adapter.sent[0].headers, clock=adapter.clock), abs=1)


@pytest.mark.parametrize("options", [{"deadline_header": NAME}, {"operation_timeout": 10}])
def test_without_a_deadline_nothing_is_told(options: dict[str, Any]) -> None:
    """And without the option neither."""
    adapter = scripted(200, **options)
    send(adapter)
    assert [None] == told(adapter)


@pytest.mark.parametrize(("method", "data"), [("GET", None), ("PUT", iter([b"x"]))], ids=["plain", "made anew"])
def test_no_first_attempt_begins_with_next_to_nothing_left(method: str, data: Any) -> None:
    """It is not sent, whatever its body is."""
    adapter = scripted(200, deadline_header=NAME)
    with retry_options(deadline=0.005, clock=adapter.clock), pytest.raises(requests.ConnectTimeout) as caught:
        send(adapter, method, data=data)
    assert ([], StopReason.DEADLINE) == (adapter.sent, retry_history(caught.value).stop_reason)


def test_no_retry_begins_with_next_to_nothing_left() -> None:
    """The last answer is returned."""
    history = retry_history(send(scripted(503, operation_timeout=2.005, **SLOW)))
    assert StopReason.DEADLINE is history.stop_reason
    assert "0.005 s are left, too few for an attempt" == history.why


CLOCK = FakeClock()


def date_in(seconds: int) -> str:
    return formatdate(int(CLOCK.wall()) + seconds, usegmt=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[("1.5", 1.5), (" 20 ", 20), (date_in(60), 60)],
        *[(over, 1e-9) for over in ("0", "-3.5", date_in(-60))],
        *[(bad, None) for bad in ("soon", "1e5", "nan", "", {}, None)],
    ],
)
def test_a_callers_deadline_is_read(text: Any, expected: float | None) -> None:
    """In seconds or as a date; what cannot be understood is none, and one that is over is next to nothing."""
    seconds = deadline_of({NAME: text} if isinstance(text, str) else text, clock=CLOCK)
    assert pytest.approx(expected, abs=1) == seconds if seconds else expected is None
    with retry_options(deadline=seconds):
        pass


def test_under_a_callers_deadline_that_is_over_nothing_is_sent() -> None:
    """Not even over a connection that is open, on which a request may take less than a millisecond."""
    with FaultServer() as server, requests.Session() as session:
        mount(session).post(server.url, data=b"1")
        for _ in range(20):
            with retry_options(deadline=deadline_of({NAME: "0"})), pytest.raises(requests.ConnectTimeout):
                session.post(server.url, data=b"1")
        assert 1 == len(server.requests)
    adapter = scripted(200)
    with retry_options(deadline=deadline_of({NAME: "0"}), clock=adapter.clock):
        history = retry_history(ended(adapter))
    assert ((), StopReason.DEADLINE) == (history.attempts, history.stop_reason)


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None: ...


def around(app: Any) -> Any:
    """The recipe of the page, for any WSGI application."""
    (recipe,) = [block for block in blocks_of(PAGE) if "def in_time(app)" in block]
    space: dict[str, Any] = {"mount": mount, "requests": requests, "retry_options": retry_options}
    exec(compile(recipe, PAGE.name, "exec"), space)
    return space["in_time"](app)


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    with FaultServer([FaultReply(503), FaultReply(200)]) as server:
        yield server


def is_handed_on(upstream: FaultServer) -> bool:
    """Tell whether two attempts had less and less of the 30 s."""
    first, second = (float(request.header(NAME) or "nan") for request in upstream.requests)
    return 0 < second <= first <= 30


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
    assert ("200", True) == (answer.text, is_handed_on(upstream))
    assert ["attempt=1", "attempt=2"] == [request.header("amz-sdk-request") for request in upstream.requests]


@pytest.mark.real_time
def test_a_wsgi_application_hands_it_on_while_it_streams(upstream: FaultServer) -> None:
    """A body that is made while it is sent is within the block; it is closed, and the block is over afterwards."""
    session = mount(requests.Session(), deadline_header=NAME)
    closed: list[bool] = []

    class Body:
        def __iter__(self) -> Iterator[bytes]:
            yield str(session.get(upstream.url).status_code).encode()

        def close(self) -> None:
            closed.append(True)

    def app(environ: Any, start_response: Any) -> Body:
        start_response("200 OK", [])
        return Body()

    assert b"200" == b"".join(around(app)({"HTTP_X_REQUEST_DEADLINE": "30"}, lambda *_: None))
    assert ([True], True) == (closed, is_handed_on(upstream))
    session.get(upstream.url)
    assert upstream.requests[-1].header(NAME) is None
    session.close()


def test_a_client_that_leaves_a_streamed_body_ends_the_block() -> None:
    """The server closes the body, as WSGI has it."""
    body = around(lambda environ, start_response: iter([b"a", b"b"]))({"HTTP_X_REQUEST_DEADLINE": "30"}, None)
    assert b"a" == next(body)
    assert current_options.get().deadline is not None
    body.close()
    assert current_options.get().deadline is None


@pytest.mark.real_time
def test_an_asgi_application_hands_it_on_to_its_threads(upstream: FaultServer) -> None:
    """The block of a coroutine holds in the threads that it starts with its context, as those of FastAPI."""
    session = mount(requests.Session(), deadline_header=NAME)

    async def in_time(scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope.get("headers", ())}
        with retry_options(deadline=deadline_of(headers, NAME.lower())):
            await asyncio.to_thread(session.get, upstream.url)

    asyncio.run(in_time({"headers": [(b"x-request-deadline", b"30")]}, None, None))
    session.close()
    assert is_handed_on(upstream)


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
    assert is_handed_on(upstream)
