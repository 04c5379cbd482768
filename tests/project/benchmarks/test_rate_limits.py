"""The rate limits on loopback: the server's four limits, the figures, and a short run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

import rate_limits
from rate_limit_server import KINDS, SERVICE, OneRefusal

from requests_smithy_retry.pacing.announced import announced_in

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"

# waiting for a child process sleeps between looks
pytestmark = [pytest.mark.once, pytest.mark.real_time]


@pytest.mark.parametrize("kind", ["fixed window", "sliding window", "token bucket"])
def test_a_limit_lets_so_many_through_in_a_second_and_says_so(kind):
    """A limiter lets through its limit and no more; each answer announces the rest, and when there is more."""
    limiter = KINDS[kind](100)
    limiter.ask(0.0)
    passed = sum(limiter.ask(at / 1000) for at in range(1, 5000))
    assert 480 <= passed <= 551
    headers = dict(line.split(": ", 1) for line in limiter.headers(4.999, ok=False).lower().split("\r\n") if line)
    (limit,) = announced_in(headers, wall=0.0)
    assert limit.remaining == 0
    assert limit.reset is not None
    limiter.end()


def test_so_many_at_a_time():
    """As many as make the same number in a second, and another one after each answer."""
    limiter = KINDS["at a time"](1000)
    assert [True] * round(1000 * SERVICE) + [False] == [limiter.ask(0.0) for _ in range(round(1000 * SERVICE) + 1)]
    limiter.end()
    assert limiter.ask(0.0)
    assert "Remaining: 0" in limiter.headers(0.0, ok=True)


def test_one_request_is_refused():
    """A window after the first; nothing is announced before, nor afterwards."""
    limiter = OneRefusal(100)
    assert [True, True, False, True] == [limiter.ask(at) for at in (5.0, 5.9, 6.0, 6.1)]
    assert ("", False) == (limiter.headers(0.0, ok=True), "" == limiter.headers(0.0, ok=False))
    limiter.end()


def test_figures_are_those_from_the_second_window_on():
    """Refused of all, used of what is allowed, and the least share of a process."""
    seen = [(at / 100, at % 4 != 0, f"/p{at % 2}") for at in range(400)]
    found = rate_limits.figures(seen, [(0.5, False)] * 99 + [(3.0, True)], 2, 3.0)
    assert {"requests": 200, "refused": 0.25, "used": 0.75, "p99": 0.5, "handed over": 0.01} == {
        key: value for key, value in found.items() if key != "least share"
    }
    assert pytest.approx(2 / 3) == found["least share"]


def test_the_quick_form_runs(tmp_path):
    """Plain requests are refused; a single client of ours is not."""
    file = tmp_path / "figures.json"
    command = [sys.executable, str(BENCHMARKS / "rate_limits.py"), "--quick", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 1), done.stderr
    cells = json.loads(file.read_text())["cells"]
    assert {"8 x 16", "1 x 1"} == set(cells)
    assert cells["8 x 16"]["plain"]["fixed window"]["refused"] > 0
