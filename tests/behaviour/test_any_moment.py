"""A deadline that passes at any moment: wherever the clock is looked at, nothing is left open."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest
import requests

from tests.faults import WELL, Behaviour, CutBody, CutHead, FaultServer, Reply
from tests.unit.wire.support import nothing_left, session

MOMENTS = 80
"""More than the clock is looked at in an operation of three attempts."""


class Leaping:
    """A clock that leaps past every deadline after ``look`` readings."""

    def __init__(self, look: int) -> None:
        self.looks_left = look

    def now(self) -> float:
        self.looks_left -= 1
        return time.monotonic() + (0 if self.looks_left >= 0 else 1000)

    def wall(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Do not sleep."""


@pytest.fixture(autouse=True)
def _without_a_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()
    gc.collect()


BEHAVIOURS = {
    "well": WELL,
    "cut": CutBody(),
    "cut head": CutHead(),
    "kept connection": Reply(429, body=b"x" * 300, framing="chunked"),
    "closed connection": Reply(503, body=b"x" * 300, framing="close"),
}


def failure_of(behaviour: Behaviour, clock: Leaping, limit: str) -> requests.RequestException | None:
    """The exception, or None for a response."""
    with FaultServer([behaviour] * 2) as server, session(max_attempts=3, clock=clock, **{limit: 30}) as made:
        try:
            made.get(server.url, timeout=60)
        except requests.RequestException as error:
            return error
    return None


@pytest.mark.parametrize("limit", ["operation_timeout", "operation_attempt_timeout"])
@pytest.mark.parametrize("behaviour", BEHAVIOURS.values(), ids=BEHAVIOURS)
def test_a_deadline_leaves_nothing_open_whenever_it_passes(behaviour: Behaviour, limit: str) -> None:
    """The caller keeps the exception, with its traceback; the session is closed, and the collector does not run."""
    for look in range(1, MOMENTS):
        clock = Leaping(look)
        with nothing_left():
            error = failure_of(behaviour, clock, limit)
        if clock.looks_left > 0:
            break
        del error
    else:
        pytest.fail("the clock was looked at more often than that")
