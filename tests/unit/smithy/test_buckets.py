"""The token bucket (contract 6.2, 6.3): its rules, its invariants, many threads."""

from __future__ import annotations

import copy
import math
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry import TokenBucket
from requests_smithy_retry.checks import safe_repr
from requests_smithy_retry.testing import FakeClock

FINITE = "a finite number of tokens, 0 or more, is allowed"


@pytest.mark.parametrize("amount", [-1, -0.5, math.nan, -math.inf, math.inf, 10**400, "1", None, True])
@pytest.mark.parametrize("method", ["acquire", "release"])
@pytest.mark.parametrize("on_empty", ["fail", "wait"])
def test_what_is_no_amount_is_neither_taken_nor_given(method, amount, on_empty):
    """An amount that would overfill the bucket, or spoil it for good, is refused; the error says what is allowed."""
    bucket = TokenBucket(10, initial=5, refill_rate=1e-9, on_empty=on_empty)
    with pytest.raises(ValueError, match=f"^amount={re.escape(safe_repr(amount))}: {FINITE}$"):
        getattr(bucket, method)(amount)
    assert bucket.available == pytest.approx(5)


def test_it_refills_with_time():
    """Two tokens a second; looking, taking and giving back all see it."""
    clock = FakeClock()
    bucket = TokenBucket(10, initial=0, refill_rate=2, clock=clock)
    assert not bucket.acquire(1)
    clock.advance(0.5)
    assert bucket.available == 1
    clock.advance(1)
    assert bucket.acquire(3)
    clock.advance(1)
    bucket.release(1)
    assert bucket.available == 3


@pytest.mark.parametrize(
    ("name", "values", "allowed"),
    [
        ("capacity", (-1, math.inf, math.nan, "5"), FINITE),
        ("initial", (-1, 501, True, "5"), "a number from 0 to the capacity 500 is allowed"),
        ("refill_rate", (-1, math.inf), FINITE),
        ("success_reward", (-1,), FINITE),
        ("on_empty", ("sleep",), "'fail' or 'wait' is allowed"),
        ("on_empty", ("wait",), "only 'fail' is allowed without a refill_rate"),
    ],
)
def test_a_number_out_of_range_is_refused_by_name(name, values, allowed):
    """The error names the argument, shows it and says what is allowed."""
    for value in values:
        with pytest.raises(ValueError, match=f"^{name}={re.escape(repr(value))}: {allowed}$"):
            TokenBucket(**{name: value})


class NamedBucket(TokenBucket):
    """A bucket with a constructor of its own."""

    def __init__(self, name: str, on_empty: str) -> None:
        super().__init__(100, initial=3, refill_rate=0.5, on_empty=on_empty)
        self.name = name


COPIES = [copy.copy, copy.deepcopy, *(lambda it, way=way: pickle.loads(pickle.dumps(it, way)) for way in (0, None))]


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("on_empty", ["fail", "wait"])
def test_a_copy_keeps_configuration_and_attributes_and_is_full(copied, on_empty):
    """A copy, of a subclass with a constructor of its own as well, has all tokens and a lock of its own."""
    bucket = NamedBucket("mine", on_empty)
    bucket.note = "set later"
    bucket.acquire(2)
    other = copied(bucket)
    assert (NamedBucket, "mine", "set later") == (type(other), other.name, other.note)
    assert (100, 0.5, on_empty, 100) == (other.capacity, other.refill_rate, other.on_empty, other.available)
    assert other._lock is not bucket._lock


STEPS = st.lists(st.tuples(st.sampled_from(["acquire", "release", "advance"]), st.floats(0, 60)), max_size=60)


@given(STEPS, st.floats(0, 100), st.sampled_from([0.0, 0.5, 7.0]))
def test_it_never_holds_less_than_nothing_nor_more_than_its_capacity(steps, capacity, rate):
    """The level stays between 0 and the capacity for any sequence of events; a refusal takes nothing."""
    clock = FakeClock()
    bucket = TokenBucket(capacity, refill_rate=rate, clock=clock)
    for what, amount in steps:
        before = bucket.available
        if what == "advance":
            clock.advance(amount)
        elif what == "acquire":
            granted = bucket.acquire(amount)
            assert granted == (amount <= before)
            assert bucket.available == (before - amount if granted else before)
        else:
            getattr(bucket, what)(amount)
            assert bucket.available >= before
        assert 0 <= bucket.available <= capacity
