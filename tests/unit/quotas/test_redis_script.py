from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from requests_smithy_retry import TokenBucket
from requests_smithy_retry.quotas.redis.server import SCRIPT, NonsenseError, Reply, arguments, key_of, reply_of

from .servers import RedisServer


def run(
    server: RedisServer, give: float, take: float, capacity: float = 100, rate: float = 0, ttl: float = 60
) -> Reply:
    return reply_of(server.command("EVAL", SCRIPT, "1", "q:{a}", *arguments(capacity, rate, give, ttl, [take])), 1)


@pytest.mark.real_time
def test_a_missing_bucket_is_a_full_one(redis_server: RedisServer) -> None:
    """A bucket that was never used is full, and reading its level stores nothing on the server."""
    assert run(redis_server, 0, 0) == Reply(100, (True,))
    assert redis_server.command("KEYS", "*") == []


@pytest.mark.real_time
def test_all_or_nothing(redis_server: RedisServer) -> None:
    """A take is granted whole, or refused and takes nothing."""
    assert [run(redis_server, 0, take) for take in (60, 60, 40, 0.5)] == [
        Reply(40, (True,)),
        Reply(40, (False,)),
        Reply(0, (True,)),
        Reply(0, (False,)),
    ]


@pytest.mark.real_time
def test_what_is_given_back_counts_before_what_is_taken(redis_server: RedisServer) -> None:
    """One run gives back first and then takes; tokens above the capacity are dropped, and a full bucket is not kept."""
    run(redis_server, 0, 90)
    assert run(redis_server, 20, 30) == Reply(0, (True,))
    assert run(redis_server, 500, 1) == Reply(99, (True,))
    assert run(redis_server, 500, 0) == Reply(100, (True,))
    assert redis_server.command("EXISTS", "q:{a}") == 0


@pytest.mark.real_time
def test_a_refused_take_keeps_what_was_given(redis_server: RedisServer) -> None:
    """A refusal is no reason to lose the give-back on board."""
    run(redis_server, 0, 100)
    assert run(redis_server, 5, 14) == Reply(5, (False,))


@pytest.mark.real_time
def test_one_run_takes_for_many(redis_server: RedisServer) -> None:
    """Each amount in turn is taken whole or not at all, so a later, smaller one may be granted."""
    values = arguments(100, 0, 5, 60, [60, 60, 0, 30, 10])
    found = reply_of(redis_server.command("EVAL", SCRIPT, "1", "q:{a}", *values), 5)
    assert found == Reply(0, (True, False, True, True, True))


@pytest.mark.real_time
def test_a_bucket_has_a_time_to_live(redis_server: RedisServer) -> None:
    """Each use of a bucket renews its time to live."""
    run(redis_server, 0, 10, ttl=60)
    assert 59_000 < redis_server.command("PTTL", "q:{a}") <= 60_000


@pytest.mark.real_time
def test_it_refills_by_the_servers_clock(redis_server: RedisServer) -> None:
    """Tokens come back at the rate since the last change, up to the capacity."""
    seconds, micros = redis_server.command("TIME")
    past = int(seconds) + int(micros) / 1e6 - 3
    redis_server.command("HSET", "q:{a}", "level", "10", "at", f"{past:.6f}")
    level = run(redis_server, 0, 0, rate=10).level
    assert 40 <= level < 60
    redis_server.command("HSET", "q:{a}", "level", "10", "at", "1")
    assert run(redis_server, 0, 0, rate=10) == Reply(100, (True,))


@pytest.mark.real_time
def test_a_clock_set_back_takes_nothing(redis_server: RedisServer) -> None:
    """A moment in the future counts as now."""
    redis_server.command("HSET", "q:{a}", "level", "10", "at", "99999999999")
    assert run(redis_server, 0, 0, rate=10) == Reply(10, (True,))


@pytest.mark.real_time
@pytest.mark.parametrize("level", ["", "soon", "-5", "1e400", "nan"])
def test_a_foreign_level_stays_in_range(redis_server: RedisServer, level: str) -> None:
    """Whatever another program stored as the level, the level is read as 0 to the capacity."""
    redis_server.command("HSET", "q:{a}", "level", level)
    assert 0 <= run(redis_server, 0, 0).level <= 100


@pytest.mark.once
@pytest.mark.real_time
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60)), max_size=10))
def test_it_does_what_the_bucket_in_memory_does(redis_server: RedisServer, steps: list[tuple[int, int]]) -> None:
    """Give and take, in any order and amount: the same answers and levels as a TokenBucket."""
    redis_server.command("FLUSHALL")
    model = TokenBucket(100)
    for give, take in steps:
        model.release(give)
        assert run(redis_server, give, take) == Reply(granted=(model.acquire(take),), level=model.available)


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ([b"12.5", 1], Reply(12.5, (True,))),
        ([b"0", 0, 1], Reply(0, (False, True))),
        (("7",), Reply(7, ())),
    ],
)
def test_an_answer_becomes_a_value(answer: list, reply: Reply) -> None:
    """The answer is the level, which may be 0, and for each take whether it was granted."""
    found = reply_of(answer, len(answer) - 1)
    assert (found, {type(each) for each in found.granted} <= {bool}) == (reply, True)


@pytest.mark.parametrize(
    "answer",
    [
        *(None, b"OK", 1, [], [b"1"], [b"x", 1], [b"1", 2], [b"1", -1], [b"1", None], [b"1", []], [None, 1]),
        *([b"-1", 1], [b"-0.001", 1], [b"nan", 1], [b"inf", 0], [10**400, 1], [b"1", 1, 1]),
    ],
)
def test_nonsense_is_told_from_an_answer(answer: object) -> None:
    """Anything but a level and as many 0s and 1s as takes is an error, which shows nothing of it."""
    error = reply_of(answer, 1)
    assert isinstance(error, NonsenseError)
    assert str(error) == "not the script's answer"


def test_names_and_numbers_as_the_server_gets_them() -> None:
    """The scope is the cluster's hash tag; numbers lose nothing; a time to live is whole milliseconds, at least one."""
    assert key_of("prefix", "https://host:443") == "prefix:{https://host:443}"
    assert arguments(500, 0.1, 14, 1e-9, [math.pi]) == ("500.0", "0.1", "14.0", "1", repr(math.pi))
    assert arguments(500, 0, 0, 2.0001, (14, 5)) == ("500.0", "0.0", "0.0", "2001", "14.0", "5.0")
