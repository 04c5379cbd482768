"""A closed lid: the clock of the kernel stands still for hours, and the NAT on the path forgets every connection."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from statistics import quantiles
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter

from requests_smithy_retry import RetryAdapter, SystemClock
from tests.faults import FaultProxy, FaultServer, Forget
from tests.faults.oracle import tls_contexts

from ..command import Line

MINUTE, TEN_HOURS = 60.0, 36_000.0
AT_MOST = 0.3
"""Seconds that the first request may take more than one over a fresh connection, at the 99th percentile."""
PATIENCE = 0.3
"""The time-out of a client that loses the request, which else would wait for ever."""
Slept = list[float]


def gaps(number: int, seed: int) -> list[float]:
    """Seconds from a minute to ten hours, as often short as long."""
    draw = random.Random(seed)
    return [math.exp(draw.uniform(math.log(MINUTE), math.log(TEN_HOURS))) for _ in range(number)]


class Fresh(HTTPAdapter):
    """Uses no connection twice."""

    def send(self, request: Any, *args: Any, **how: Any) -> Any:
        self.close()
        return super().send(request, *args, **how)


def first_posts(
    make: Callable[[Slept], HTTPAdapter], number: int, timeout: float
) -> tuple[int, list[float], list[float]]:
    """Return how many first POSTs after a gap were lost, the seconds of the others, and those over fresh connections.

    They take turns, so that a busy machine is as busy for both.
    """
    slept: Slept = [0.0]
    nat, took, fresh, lost = Forget(), [], [], 0
    with (
        FaultServer(tls=tls_contexts()[0]) as server,
        FaultProxy(nat) as proxy,
        requests.Session() as session,
        requests.Session() as anew,
    ):
        how: dict[str, Any] = {"proxies": {"https": proxy.url}, "verify": False, "timeout": timeout, "data": b"x"}
        session.trust_env = False
        session.mount("https://", make(slept))
        anew.trust_env = False
        anew.mount("https://", Fresh())
        session.post(server.url, **how)
        for gap in gaps(number, 1):
            nat.forget()
            slept[0] += gap
            began = time.perf_counter()
            try:
                session.post(server.url, **how)
                took.append(time.perf_counter() - began)
            except requests.exceptions.RequestException:
                lost += 1
                session.close()
                session.post(server.url, **how)
            began = time.perf_counter()
            anew.post(server.url, **{**how, "timeout": 60})
            fresh.append(time.perf_counter() - began)
    return lost, took, fresh


class Boot:
    """The machine's clock with the seconds that it slept, or without them."""

    def __init__(self, slept: Slept, now: Callable[[], float]) -> None:
        self._slept, self._now = slept, now
        self.wall, self.sleep, self.wait = time.time, SystemClock().sleep, SystemClock().wait

    def now(self) -> float:
        return self._now() + self._slept[0]


def p99(seconds: list[float]) -> float:
    return quantiles(seconds, n=100)[98] if len(seconds) > 1 else 0.0


def measure(quick: bool) -> list[Line]:
    """Compare with a clock that stands still, and with fresh connections."""
    urllib3.disable_warnings()
    number = 100 if quick else 1000
    lost, took, fresh = first_posts(lambda slept: RetryAdapter(clock=Boot(slept, SystemClock.now)), number, 30)
    few = 30
    stands, *_ = first_posts(lambda _: RetryAdapter(clock=Boot([0.0], time.monotonic)), few, PATIENCE)
    plain, *_ = first_posts(lambda _: HTTPAdapter(), few, PATIENCE)
    more = p99(took) - p99(fresh)
    return [
        Line(f"first POSTs lost, of {number}", "0", str(lost), lost == 0),
        Line(
            "p99 of the first request over a fresh one, ms",
            f"<= {AT_MOST * 1000:g}",
            f"{more * 1000:.1f}",
            more <= AT_MOST,
        ),
        Line(f"lost by a clock that stands still, of {few}", "", str(stands)),
        Line(f"lost by plain requests, of {few}", "", str(plain)),
    ]
