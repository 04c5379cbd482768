"""The rate limits on loopback: the server's four limits, and the figures."""

from __future__ import annotations

import pytest

from benchmarks import rate_limits
from benchmarks.rate_limit_server import KINDS
from requests_smithy_retry.features.rate_limits.announced import announced_in

pytestmark = pytest.mark.once


@pytest.mark.parametrize("kind", ["fixed window", "sliding window", "token bucket"])
def test_a_limit_lets_so_many_through_in_a_second_and_says_so(kind):
    """A limiter lets through its limit and no more; each answer announces the rest, and when there is more."""
    limiter = KINDS[kind](100)
    limiter.ask(0.0)
    passed = sum(limiter.ask(at / 1000) for at in range(1, 5000))
    assert 480 <= passed <= 551
    headers = dict(line.split(": ", 1) for line in limiter.headers(4.999, ok=False).lower().split("\r\n") if line)
    (limit,) = announced_in(headers, wall=0.0)
    assert (0, True) == (limit.remaining, limit.reset is not None)


def test_figures_are_those_from_the_second_window_on():
    """Refused of all, used of what is allowed, and the least share of a process."""
    seen = [(at / 100, at % 4 != 0, f"/p{at % 2}") for at in range(400)]
    found = rate_limits.figures(seen, [(0.5, False)] * 99 + [(3.0, True)], 2, 3.0)
    assert pytest.approx(2 / 3) == found.pop("least share")
    assert {"requests": 200, "refused": 0.25, "used": 0.75, "p99": 0.5, "handed over": 0.01} == found


@pytest.mark.real_time
def test_a_crowd_that_does_not_wait_is_refused():
    """Two processes of plain requests, for a second and a half."""
    assert rate_limits.measure("plain", "fixed window", (2, 4), 1.5)["refused"] > 0
