"""A web service as its users see it while its upstream is down, with seven ways to retry, in two outages.

    python -m benchmarks.web_service [--quick] [--json FILE]

The service is gunicorn with the options of the page: four workers of eight threads, each worker with a session of its
own. Twenty users a second arrive; each has an order to be paid by a POST upstream, with a key for each order. The
upstream answers in 20 ms; of the payments 3 % are applied and then answered with 504, and 3 % are applied and never
answered. For ten seconds it answers 503 at once, or nothing at all. Seconds count from a user's arrival, so the waits
for a worker and for a thread are in them. Three ways are measured at a time, in three minutes.
"""

from __future__ import annotations

import http.client
import importlib.util
import logging
import math
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter
from requests_smithy_retry.testing import Behaviour, RecordedRequest, Reply
from tests.faults import FaultServer, Stall

from . import command

BEFORE, OUTAGE, AFTER = 5.0, 10.0, 10.0
"""Seconds in which all is well, in which it is not, and in which it is again."""
RATE = 20
GUNICORN = ("--preload", "--workers", "4", "--threads", "8")
WAYS: dict[str, Callable[[], HTTPAdapter]] = {
    "no retries": HTTPAdapter,
    "urllib3's `Retry(2)`": lambda: HTTPAdapter(
        max_retries=Retry(2, status_forcelist=[502, 503, 504], allowed_methods=None, raise_on_status=False)
    ),
    "stamina, 3 attempts, `timeout=2`": HTTPAdapter,
    "`mount(session)`": RetryAdapter,
    "`operation_timeout=1.5, patience=0`": lambda: RetryAdapter(operation_timeout=1.5, patience=0),
    "`operation_timeout=1.5, operation_attempt_timeout=0.6, patience=0`": lambda: RetryAdapter(
        operation_timeout=1.5, operation_attempt_timeout=0.6, patience=0
    ),
    "`operation_timeout=1.5, operation_attempt_timeout=0.4, patience=0`": lambda: RetryAdapter(
        operation_timeout=1.5, operation_attempt_timeout=0.4, patience=0
    ),
}
FAULTS = ("503", "silence")


class Upstream:
    """A script for a :class:`FaultServer`: applies an order once, whatever it answers."""

    def __init__(self, fault: str, scale: float) -> None:
        self._fault = fault
        self._scale = scale
        self._lock = threading.Lock()
        self._random = random.Random(7)
        self.began = math.inf
        self.requests = 0
        self._applied: set[str] = set()

    def __call__(self, request: RecordedRequest) -> Behaviour:
        at = (time.monotonic() - self.began) / self._scale
        key = request.header("Idempotency-Key") or ""
        with self._lock:
            self.requests += 1
            is_down = BEFORE <= at < BEFORE + OUTAGE
            if is_down:
                return Reply(503) if self._fault == "503" else Stall()
            is_new = key not in self._applied
            self._applied.add(key)
            drawn = self._random.random() if is_new and not key.startswith('"order--') else 1.0
            if 0.03 <= drawn < 0.06:
                return Stall()
            return Reply(504 if drawn < 0.03 else 200, delay=0.02)


def payer(way: str) -> Callable[[str, int], int]:
    """Return a function that pays an order as one worker does: its status; it may raise."""
    session = command.session_of(WAYS[way]())

    def pay(url: str, order: int) -> int:
        found = session.post(
            url, json={"order": order}, headers={"Idempotency-Key": f'"order-{order}"'}, timeout=(1, 2)
        )
        if way.startswith("stamina"):
            found.raise_for_status()
        return found.status_code

    if way.startswith("stamina"):
        import stamina

        logging.getLogger("stamina").disabled = True  # it logs each retry
        stamina.set_active(True)
        return stamina.retry(on=requests.RequestException, attempts=3, timeout=2)(pay)
    return pay


def application() -> Callable[[dict[str, Any], Callable[..., object]], Iterable[bytes]]:
    """Return the service, which gunicorn makes before it forks: it pays the order of each request's path."""
    logging.getLogger("requests_smithy_retry").disabled = True
    pay, upstream = payer(os.environ["WEB_SERVICE_WAY"]), os.environ["WEB_SERVICE_UPSTREAM"]

    def serve(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        try:
            status = pay(upstream, int(environ["PATH_INFO"].strip("/")))
        except requests.RequestException:
            status = 503
        start_response(f"{status} .", [("Content-Length", "0")])
        return []

    return serve


def measure(way: str, fault: str, scale: float) -> dict[str, Any]:
    """Run the service once, and return what its users saw.

    :param scale: of all times of the outage.
    """
    seen: list[tuple[float, float, bool]] = []
    upstream = Upstream(fault, scale)
    with FaultServer(upstream) as server:
        environment = {**os.environ, "WEB_SERVICE_WAY": way, "WEB_SERVICE_UPSTREAM": server.url}
        program = [sys.executable, "-m", "gunicorn", *GUNICORN, "--bind", "127.0.0.1:0"]
        program.append("benchmarks.web_service:application()")
        with subprocess.Popen(program, env=environment, stderr=subprocess.PIPE, text=True) as gunicorn:
            assert gunicorn.stderr is not None
            listening = (re.search(r"Listening at: http://([\d.:]+)", line) for line in gunicorn.stderr)
            address = next(found[1] for found in listening if found)
            threading.Thread(target=gunicorn.stderr.read, daemon=True).start()

            def user(order: int, came: float) -> None:
                connection = http.client.HTTPConnection(address, timeout=60)
                try:
                    connection.request("POST", f"/{order}")
                    is_ok = connection.getresponse().status == 200
                except OSError:
                    is_ok = False
                finally:
                    connection.close()
                seen.append((came, time.monotonic() - upstream.began - came, is_ok))

            for order in range(-40, 0):
                user(order, 0.0)  # what a first request loads is no part of the comparison
            seen.clear()
            upstream.requests, upstream.began = 0, time.monotonic()
            users = []
            for order in range(round((BEFORE + OUTAGE + AFTER) * scale * RATE)):
                came = order / RATE
                time.sleep(max(0.0, upstream.began + came - time.monotonic()))
                users.append(threading.Thread(target=user, args=(order, came)))
                users[-1].start()
            for each in users:
                each.join()
            gunicorn.send_signal(signal.SIGTERM)
    hit = [ok for at, _, ok in seen if BEFORE * scale <= at < (BEFORE + OUTAGE) * scale]
    rest = [ok for at, _, ok in seen if not BEFORE * scale <= at < (BEFORE + OUTAGE) * scale]
    took = sorted(seconds for _, seconds, _ in seen)
    return {
        "in it": round(100 * sum(hit) / len(hit), 1),
        "else": round(100 * sum(rest) / len(rest), 1),
        "p99": round(took[int(0.99 * len(took))], 2),
        "requests": upstream.requests,
    }


def main() -> int:
    """Measure, print a table, and keep the figures."""
    parser = command.parser(__doc__, "outages of two seconds, once")
    options = parser.parse_args()
    missing = [name for name in ("gunicorn", "stamina") if importlib.util.find_spec(name) is None]
    if missing:
        parser.error(f"{' and '.join(missing)}: python -m pip install -r benchmarks/requirements.txt")
    command.forget_settings()
    cases = [(way, fault, 0.2 if options.quick else 1.0) for fault in FAULTS for way in WAYS]
    with multiprocessing.get_context("spawn").Pool(3, maxtasksperchild=1) as pool:
        found = pool.starmap(measure, cases, chunksize=1)
    result: dict[str, dict[str, Any]] = {way: {} for way in WAYS}
    for (way, fault, _), row in zip(cases, found, strict=True):
        result[way][fault] = row
    command.write(result, options.json)
    names = ("in it", "else", "p99", "requests")
    rows = [
        (way, *(" / ".join(f"{by[fault][name]:g}" for fault in FAULTS) for name in names)) for way, by in result.items()
    ]
    print(f"Outage by {' / by '.join(FAULTS)}; in percent, seconds, and numbers.\n")
    print(command.table(("way", "ok in it", "ok else", "p99", "requests"), rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
