"""Whatever a server writes about rate limits (contract 7.4, 13) raises nothing, and holds nobody beyond the bounds."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from requests_smithy_retry import retry_history
from requests_smithy_retry.pacing.announced import DIALECTS
from requests_smithy_retry.testing.clock import FakeClock
from tests.support import Reply, scripted, send

NAMES = sorted(
    {name for row in DIALECTS for name in (row.remaining, row.limit, *row.resets) if name} | {"date", "retry-after"}
)
VALUES = st.one_of(
    st.integers(0, 200).map(str),
    st.sampled_from(["9" * 5000, "-1", "1e309", "nan", "0", "1767225660", "1h", '"a";r=0;t=99', "40/40", "99999999"]),
    st.text(alphabet='0123456789.;=,"rtqw/- :TZGMT+dhms', max_size=30),
)
REPLIES = st.builds(
    Reply, st.sampled_from([200, 200, 200, 403, 413, 429, 503]), st.dictionaries(st.sampled_from(NAMES), VALUES)
)
LONGEST = 7.0
"""The bound of a wait."""


@settings(max_examples=40)
@given(st.lists(REPLIES, min_size=4, max_size=8), st.floats(0, 20))
def test_no_header_raises_or_holds_anybody_longer_than_the_bound(script: list[Reply], pause: float) -> None:
    """Each attempt waits no longer than ``max_retry_after``, its backoff or hint and the gate together."""
    clock = FakeClock()
    adapter = scripted(*script, clock=clock, max_attempts=2, max_retry_after=LONGEST, max_backoff=1, quota=None)
    for _ in range(len(script) // 2):
        for attempt in retry_history(send(adapter)).attempts:
            assert attempt.delay + attempt.gate_wait <= LONGEST + 1e-6
        clock.advance(pause)


@pytest.mark.parametrize("value", ["9" * 5000, "", "x", "٣"])
def test_a_glance_raises_nothing(value: str) -> None:
    """Once a scope announces limits, each header is glanced at: a number of any length, or none."""
    plenty = {"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "99", "X-RateLimit-Reset": "50"}
    adapter = scripted(Reply(200, plenty), Reply(200, {**plenty, "X-RateLimit-Remaining": value}), clock=FakeClock())
    assert [200, 200] == [send(adapter).status_code for _ in range(2)]


def test_the_bounds_hold_over_a_long_time() -> None:
    """The same with hundreds of responses of one server, which contradict each other."""
    dice = random.Random(7)
    clock, script = FakeClock(), []
    for _ in range(300):
        told = {name: str(dice.randrange(200)) for name in dice.sample(NAMES[:-1], 3)}
        script.append(Reply(dice.choice([200, 200, 200, 429]), told))
    adapter = scripted(*script, clock=clock, max_attempts=1, max_retry_after=LONGEST, quota=None)
    for _ in script:
        assert retry_history(send(adapter)).attempts[0].gate_wait <= LONGEST + 1e-6
        clock.advance(dice.random())
