from __future__ import annotations

import threading

import pytest

from requests_smithy_retry.clock import SYSTEM_CLOCK
from requests_smithy_retry.quotas.redis_pool import RedisPool, UnreachableError


class Connection:
    closed = False

    def close(self) -> None:
        self.closed = True


def soon() -> float:
    return SYSTEM_CLOCK.now() + 5


def test_a_connection_is_made_when_it_is_needed_and_used_again() -> None:
    """One after the other needs one."""
    made: list[Connection] = []

    def connect() -> Connection:
        made.append(Connection())
        return made[-1]

    pool = RedisPool(connect, 4, SYSTEM_CLOCK)
    assert pool.take_idle() is None
    for _ in range(3):
        pool.put(pool.take(soon()))
    assert len(made) == 1
    one, two = pool.take(soon()), pool.take(soon())
    assert (one is not two, len(made)) == (True, 2)
    pool.put(one)
    assert pool.take_idle() is one


def test_there_are_no_more_than_so_many() -> None:
    """Whoever comes then waits for one to be put back, or for one to be given up."""
    pool = RedisPool(Connection, 1, SYSTEM_CLOCK)
    one = pool.take(soon())
    with pytest.raises(UnreachableError, match="no connection in time"):
        pool.take(SYSTEM_CLOCK.now() + 0.02)
    threading.Timer(0.02, pool.put, [one]).start()
    assert pool.take(soon()) is one
    threading.Timer(0.02, pool.discard, [one]).start()
    assert pool.take(soon()) is not one
    assert one.closed


def test_who_waits_for_a_connection_that_fails_is_told_why_at_once() -> None:
    """By the exception's name, and not by its words."""

    def refuse() -> Connection:
        raise ConnectionRefusedError("secret")

    pool = RedisPool(refuse, 4, SYSTEM_CLOCK)
    for inline in (False, True):
        with pytest.raises(UnreachableError, match=r"^ConnectionRefusedError$"):
            pool.take(soon(), inline=inline)


def test_a_slow_connection_is_there_for_the_next_one() -> None:
    """Connecting goes on when the one who wanted it has given up; meanwhile nobody begins another."""
    go = threading.Event()
    made: list[Connection] = []

    def connect() -> Connection:
        go.wait(5)
        made.append(Connection())
        return made[-1]

    pool = RedisPool(connect, 4, SYSTEM_CLOCK)
    for _ in range(2):
        with pytest.raises(UnreachableError, match="no connection in time"):
            pool.take(SYSTEM_CLOCK.now() + 0.01)
    go.set()
    assert pool.take(soon()) is made[0]
    assert len(made) == 1


def test_at_exit_it_connects_in_the_same_thread() -> None:
    """There are no new threads then."""
    threads: list[str] = []

    def connect() -> Connection:
        threads.append(threading.current_thread().name)
        return Connection()

    RedisPool(connect, 4, SYSTEM_CLOCK).take(soon(), inline=True)
    assert threads == [threading.current_thread().name]


def test_without_a_thread_the_next_one_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is out of threads is no reason to wait for a connection for ever."""
    pool = RedisPool(Connection, 4, SYSTEM_CLOCK)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            pool.take(soon())
    assert pool.take(soon())


def test_a_forked_child_leaves_the_connections_to_its_parent() -> None:
    """It closes its copies and begins without any, whoever held the lock."""
    pool = RedisPool(Connection, 1, SYSTEM_CLOCK)
    one = pool.take(soon())
    pool.put(one)
    pool._changed.acquire()
    pool.close_inherited()
    assert one.closed
    assert pool.take(soon()) is not one


def test_idle_ones_can_be_closed() -> None:
    """One that is in use stays."""
    pool = RedisPool(Connection, 2, SYSTEM_CLOCK)
    one, two = pool.take(soon()), pool.take(soon())
    pool.put(two)
    pool.close_idle()
    assert (one.closed, two.closed, pool.take_idle()) == (False, True, None)
