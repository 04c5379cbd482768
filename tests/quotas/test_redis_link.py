from __future__ import annotations

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
    link, one = link_to(redis_server.url("?budget=2&flush_interval=60")), account()
    link.exchange(one, 100)
    link.give_back(one, 10)
    link.renew_lock()
    assert one.pending == 0
    link.give_back(one, 20)
    link.flush()
    assert redis_server.command("HGET", one.key, "level") == "420"


def test_many_buckets_give_back_in_turns(redis_server: RedisServer) -> None:
    """One give-back sends those of so many buckets; the flush brings the rest."""
    link = link_to(redis_server.url("?budget=2&flush_interval=60"))
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
    link, one = link_to(redis_server.url("?budget=1&flush_interval=0")), account()
    link.exchange(one, 100)
    link.give_back(one, 10)
    link.give_back(one, 10)
    SYSTEM_CLOCK.sleep(0.05)
    assert (redis_server.command("HGET", one.key, "level"), one.pending) == ("410", 10)


def test_without_a_connection_a_give_back_waits_for_the_next_take(redis_server: RedisServer) -> None:
    """A success never connects."""
    link, one = link_to(redis_server.url("?budget=1&flush_interval=0")), account()
    link.give_back(one, 10)
    assert (one.pending, link._pool.take_idle()) == (10, None)


def test_a_flush_without_a_server_is_a_failure_like_any_other(own_redis_server: RedisServer) -> None:
    """It raises nothing, and it tries once."""
    link, one = link_to(own_redis_server.url("?budget=1")), account()
    link.exchange(one, 100)
    link.give_back(one, 10)
    own_redis_server.kill()
    link.flush()
    link.flush()
    assert (link.outage.failures, link.outage.fallen_open) == (1, True)
