from __future__ import annotations

import gc

import pytest

from requests_smithy_retry.clock import SYSTEM_CLOCK
from requests_smithy_retry.quotas.redis import link_to
from requests_smithy_retry.quotas.redis_link import POST_MOST, Account, reason_of
from requests_smithy_retry.quotas.redis_pool import UnreachableError
from requests_smithy_retry.quotas.redis_script import NonsenseError

from .servers import RedisServer

pytestmark = pytest.mark.real_time


def account(number: int = 0) -> Account:
    return Account(f"key:{{{number}}}", 500, 0.0)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (UnreachableError("no connection in time"), "no connection in time"),
        (NonsenseError("not the script's answer"), "not the script's answer"),
        (ValueError("SECRET"), "ValueError"),
        (type("ResponseError", (Exception,), {})("NOPERM secret"), "ResponseError NOPERM"),
        (type("ResponseError", (Exception,), {})("secret"), "ResponseError"),
        (type("AuthenticationError", (Exception,), {})("WRONGPASS"), "AuthenticationError"),
    ],
)
def test_a_reason_holds_no_words_of_others(error: Exception, reason: str) -> None:
    """Our own words, an exception's name, or the code a server's error begins with."""
    assert reason_of(error) == reason


def test_a_child_owes_nothing_of_its_parents(redis_server: RedisServer) -> None:
    """What the parent gathered is dropped in the child, and what the child gathers arrives."""
    handle, one = link_to(redis_server.url("?budget=2&flush_interval=60")), account()
    link = handle.link
    link.exchange(one, 100)
    link.give_back(one, 10)
    link.renew_lock()
    assert one.pending == 0
    link.give_back(one, 20)
    link.flush()
    assert redis_server.command("HGET", one.key, "level") == "420"


def test_many_buckets_give_back_in_turns(redis_server: RedisServer) -> None:
    """One give-back sends those of so many buckets; the flush brings the rest."""
    handle = link_to(redis_server.url("?budget=2&flush_interval=60"))
    link = handle.link
    accounts = [account(number) for number in range(POST_MOST + 10)]
    for each in accounts:
        link.exchange(each, 100)
        link.give_back(each, 10)
    link._post_at = 0.0
    link.give_back(accounts[0], 10)
    SYSTEM_CLOCK.sleep(0.05)
    levels = [redis_server.command("HGET", each.key, "level") for each in accounts]
    assert (levels.count("400"), levels.count("410"), levels.count("420")) == (10, POST_MOST - 1, 1)
    link.flush()
    assert {redis_server.command("HGET", each.key, "level") for each in accounts} == {"410", "420"}


def test_no_give_back_is_sent_while_an_answer_is_on_the_way(redis_server: RedisServer) -> None:
    """It would have to wait for that answer first."""
    handle, one = link_to(redis_server.url("?budget=1&flush_interval=0")), account()
    link = handle.link
    link.exchange(one, 100)
    link.give_back(one, 10)
    link.give_back(one, 10)
    SYSTEM_CLOCK.sleep(0.05)
    assert (redis_server.command("HGET", one.key, "level"), one.pending) == ("410", 10)


def test_without_a_connection_a_give_back_waits_for_the_next_take(redis_server: RedisServer) -> None:
    """A success never connects."""
    handle, one = link_to(redis_server.url("?budget=1&flush_interval=0")), account()
    link = handle.link
    link.give_back(one, 10)
    assert (one.pending, link._pool.take_idle()) == (10, None)


def test_a_flush_without_a_server_is_a_failure_like_any_other(own_redis_server: RedisServer) -> None:
    """It raises nothing, and it tries once."""
    handle, one = link_to(own_redis_server.url("?budget=1")), account()
    link = handle.link
    link.exchange(one, 100)
    link.give_back(one, 10)
    own_redis_server.kill()
    link.flush()
    link.flush()
    assert (link.outage.failures, link.outage.fallen_open) == (1, True)


def test_what_is_owed_is_given_back_when_nobody_holds_the_link(redis_server: RedisServer) -> None:
    """Also where the last holder is part of a cycle of garbage."""

    class Holder:
        def __init__(self) -> None:
            self.myself = self
            self.handle = link_to(redis_server.url("?budget=2&flush_interval=60"))

    holder, one = Holder(), account()
    pool = holder.handle.link._pool
    holder.handle.link.exchange(one, 100)
    holder.handle.link.give_back(one, 10)
    del holder
    gc.collect()
    assert (redis_server.command("HGET", one.key, "level"), pool.take_idle()) == ("410", None)
