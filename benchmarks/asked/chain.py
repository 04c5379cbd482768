"""A chain of three services on loopback, the last of which is down for ten seconds: who still works for whom?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import quantiles

import requests
from urllib3.util.retry import Retry

from requests_smithy_retry import deadline_of, mount, retry_options

from ..command import Line

DEADLINE, GRACE = 1.0, 0.05
RATE = 10
BEFORE, DOWN, AFTER = 2.0, 10.0, 3.0
NAME = "X-Request-Deadline"
Call = Callable[[str], int]


@contextmanager
def server(answer: Callable[[BaseHTTPRequestHandler], int]) -> Iterator[str]:
    """Serve a function of the request; yields the URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(answer(self))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads, request_queue_size = True, 128

        def handle_error(self, *_: object) -> None: ...  # a client hung up

    with Server(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}/"
        made.shutdown()


def ours() -> Call:
    session = mount(requests.Session(), deadline_header=NAME, pool_maxsize=50)
    return lambda url: session.get(url).status_code


def three_tries() -> Call:
    session = requests.Session()
    retry = Retry(total=2, status_forcelist=[503], backoff_factor=0.05, raise_on_status=False)
    session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retry, pool_maxsize=50))
    return lambda url: session.get(url, timeout=DEADLINE).status_code


def passed_on(call: Call, url: str) -> int:
    """Return what a service answers that calls another one."""
    try:
        return call(url)
    except requests.RequestException:
        return 503


def run(make: Callable[[], Call], seconds: float) -> tuple[float, float]:
    """Return the requests at the last service per one at the edge while it is down, and the p99 at the edge."""
    asked, began, took = [0, 0], time.monotonic(), []

    def is_down() -> bool:
        return BEFORE <= time.monotonic() - began < BEFORE + seconds

    def last(_: BaseHTTPRequestHandler) -> int:
        asked[1] += is_down()
        return 503 if is_down() else 200

    def service(url: str) -> Callable[[BaseHTTPRequestHandler], int]:
        call = make()

        def answer(handler: BaseHTTPRequestHandler) -> int:
            with retry_options(deadline=deadline_of(handler.headers)):
                return passed_on(call, url)

        return answer

    def edge(number: int) -> None:
        time.sleep(max(0.0, began + number / RATE - time.monotonic()))
        at = time.monotonic()
        asked[0] += is_down()
        with retry_options(deadline=DEADLINE):
            passed_on(call, url)
        took.append(time.monotonic() - at)

    with ExitStack() as stack:
        url = stack.enter_context(server(last))
        for _ in range(2):
            url = stack.enter_context(server(service(url)))
        call = make()
        with ThreadPoolExecutor(60) as pool:
            list(pool.map(edge, range(int(RATE * (BEFORE + seconds + AFTER)))))
    return asked[1] / asked[0], quantiles(took, n=100)[98]


def measure(quick: bool) -> list[Line]:
    """Compare with three layers of three tries."""
    seconds = DOWN / 5 if quick else DOWN
    ratio, p99 = run(ours, seconds)
    others, theirs = run(three_tries, seconds)
    return [
        Line("requests at the last per one at the edge", "<= 1.2", f"{ratio:.2f}", ratio <= 1.2),
        Line("p99 at the edge, s", f"<= {DEADLINE + GRACE:g}", f"{p99:.3f}", p99 <= DEADLINE + GRACE),
        Line("three layers of three tries: at the last per one", "", f"{others:.2f}"),
        Line("its p99, s", "", f"{theirs:.3f}"),
    ]
