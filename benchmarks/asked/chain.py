"""A chain of three services on loopback, the last of which is down for ten seconds: who still works for whom?"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from statistics import quantiles

import requests
from urllib3.util.retry import Retry

from requests_smithy_retry import deadline_of, mount, retry_options
from requests_smithy_retry.testing import FaultServer, RecordedRequest, Reply

from ..command import Line

DEADLINE, GRACE = 1.0, 0.05
RATE = 10
BEFORE, DOWN, AFTER = 2.0, 10.0, 3.0
NAME = "X-Request-Deadline"
Call = Callable[[str], int]


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

    def last(_: RecordedRequest) -> Reply:
        asked[1] += is_down()
        return Reply(503 if is_down() else 200)

    def service(url: str) -> Callable[[RecordedRequest], Reply]:
        call = make()

        def answer(request: RecordedRequest) -> Reply:
            with retry_options(deadline=deadline_of(dict(request.headers))):
                return Reply(passed_on(call, url))

        return answer

    def edge(number: int) -> None:
        time.sleep(max(0.0, began + number / RATE - time.monotonic()))
        at = time.monotonic()
        asked[0] += is_down()
        with retry_options(deadline=DEADLINE):
            passed_on(call, url)
        took.append(time.monotonic() - at)

    with ExitStack() as stack:
        url = stack.enter_context(FaultServer(last)).url
        for _ in range(2):
            url = stack.enter_context(FaultServer(service(url))).url
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
