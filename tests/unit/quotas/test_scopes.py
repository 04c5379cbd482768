"""Scopes (contract 6.4, 11.3): names, the table, and what eviction must never do."""

from __future__ import annotations

import os
import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry import AdaptiveRetryStrategy, RetryError, StandardRetryStrategy, TokenBucket
from requests_smithy_retry.quotas.bucket import is_full
from requests_smithy_retry.quotas.scopes import FORGET_AFTER, MAX_SCOPES, MOST_LOOKS, ScopeTable
from requests_smithy_retry.testing.clock import FakeClock
from requests_smithy_retry.urls import display_scope, scope_of


class Broken(Exception):
    """A passing fault of plain code."""

    is_retry_safe = True
    retry_after = None
    is_throttling_error = False
    is_timeout_error = False


class Throttled(Broken):
    """Plain code's own throttling error."""

    is_throttling_error = True


def buckets(limit: int, capacity: float = 10) -> ScopeTable[TokenBucket]:
    return ScopeTable(lambda _: TokenBucket(capacity), is_full, limit)


def test_a_table_that_forgets_is_as_good_as_new():
    """Every item is retired, that of the newcomers as well, and the next one is a new one."""
    retired = []
    table = ScopeTable(lambda name: [name], lambda _: False, 1, retire=retired.append)
    items = [table.get("a"), table.get("b")]
    assert items == table.forget()
    assert (items, None, 0) == (retired, table.overflow, len(table))
    assert items[0] is not table.get("a")


def test_a_table_without_newcomers_forgets_what_it_has():
    """Nothing is retired but the items that were made."""
    table = buckets(10)
    item = table.get("a")
    assert ([item], 0) == (table.forget(), len(table))


@pytest.mark.parametrize(
    ("url", "scope"),
    [
        ("https://api.example.com/v1?key=1", "https://api.example.com:443"),
        ("http://api.example.com", "http://api.example.com:80"),
        ("HTTPS://User:Secret@API.Example.COM:8443/x", "https://api.example.com:8443"),
        ("https://api.example.com:/x", "https://api.example.com:443"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("http://[FE80::1]/", "http://[fe80::1]:80"),
        ("https://user@[2001:db8::1]:443/x", "https://[2001:db8::1]:443"),
        ("http+unix://%2Frun%2FApp.sock/v1", "http+unix://%2Frun%2FApp.sock"),
        ("http+unix://%2frun%2fApp.sock/v2", "http+unix://%2frun%2fApp.sock"),
        ("ftp://Example.com/x", "ftp://example.com"),
        ("http://example.com:99999/", "invalid URL"),
        ("http://[::1/", "invalid URL"),
        ("", "://"),
    ],
)
def test_the_scope_of_a_url_is_its_target_origin(url, scope):
    """The scope has no userinfo, path or query; a socket's path keeps its case; a bad URL raises nothing."""
    assert scope_of(url) == scope


@pytest.mark.once
@given(st.text())
def test_no_text_makes_it_raise_or_tell_a_password(text):
    """Any text in front of an @ is removed."""
    assert "secret" not in scope_of(f"https://user:secret@{text.replace('secret', '')}")
    scope_of(text)


def test_each_scope_has_its_own_item_and_keeps_it():
    """The second look finds the first one's."""
    table = buckets(4)
    assert table.get("a") is table.get("a") is not table.get("b")
    assert dict(table) == {"a": table.get("a"), "b": table.get("b")}
    assert len(table) == 2


def test_the_longest_unused_full_bucket_goes_first():
    """Looking is using."""
    table = buckets(3)
    for scope in "abc":
        table.get(scope)
    table.get("a")
    table.get("d")
    assert [scope for scope, _ in table] == ["c", "a", "d"]


def test_a_spent_bucket_stays_while_it_is_used():
    """If all buckets are spent, the newcomers share one more, so that new hosts bring no new quota."""
    table = buckets(2)
    for scope in "ab":
        table.get(scope).acquire(1)
    assert table.get("c") is table.get("d")
    table.get("c").acquire(10)
    assert table.get("e").available == 0
    assert [bucket.available for _, bucket in table] == [9, 9]


def test_touching_many_hosts_never_refills_a_spent_bucket():
    """Two thousand other scopes pass by; the spent one is as it was, and no more than the limit are kept."""
    strategy = StandardRetryStrategy(clock=FakeClock(), quota=500)
    token = strategy.acquire_initial_retry_token(token_scope="spent")
    strategy.refresh_retry_token_for_retry(token_to_renew=token, error=Broken())
    for number in range(2 * MAX_SCOPES):
        strategy.bucket(f"host {number}")
    assert strategy.bucket("spent").available == 486
    assert len(strategy._quotas) == MAX_SCOPES


def test_what_nobody_touched_for_ten_minutes_is_as_good_as_new():
    """Of two spent buckets the one that was looked at meanwhile stays; one in use stays however long it takes."""
    clock = FakeClock()
    table = ScopeTable(lambda _: TokenBucket(10), is_full, 2, clock=clock)
    for scope in "ab":
        table.get(scope).acquire(1)
    clock.advance(FORGET_AFTER - 1)
    table.get("b")
    assert table.get("c") is table.overflow
    clock.advance(1)
    assert table.get("c") is not table.overflow
    assert [scope for scope, _ in table] == ["b", "c"]
    with table.use("b") as used:
        table.get("c").acquire(1)
        clock.advance(10 * FORGET_AFTER)
        table.get("d")
        assert [scope for scope, _ in table] == ["b", "d"]
        assert used is table.get("b")


def test_what_is_used_past_the_table_is_not_forgotten():
    """``used_at`` counts as a touch, for the newcomers' item too."""
    clock = FakeClock()
    table = ScopeTable(lambda _: [], lambda _: False, 1, clock=clock, used_at=lambda item: item[-1])
    kept = table.get("a")
    kept.append(FORGET_AFTER)
    overflow = table.get("b")
    overflow.append(FORGET_AFTER + 1)
    clock.advance(2 * FORGET_AFTER - 1)
    assert overflow is table.get("c")
    clock.advance(1)
    assert overflow is not table.get("c")
    assert "a" not in table
    assert overflow is table.overflow


def test_what_newcomers_share_is_not_forgotten_while_one_of_them_uses_it():
    """The newcomers' bucket stays while one of them uses it, however long that takes."""
    clock = FakeClock()
    table = ScopeTable(lambda _: TokenBucket(10), lambda _: False, 1, clock=clock)
    table.get("a")
    with table.use("b") as shared:
        clock.advance(FORGET_AFTER)
        assert "c" not in table
        table.get("c")
        assert shared is table.overflow
    assert table.get("d") is not shared


def test_an_item_in_use_is_not_given_up():
    """An item in use stays, full or not: otherwise a thread would take from a bucket that is no longer there."""
    table = buckets(1)
    with table.use("a") as item, table.use("a") as same:
        assert item is same
        overflow = table.get("b")
        item.acquire(4)
    assert table.get("a") is item
    item.release(4)
    assert table.get("b") is not overflow
    assert [scope for scope, _ in table] == ["b"]


def test_leaving_one_use_of_two_keeps_the_other():
    """Uses are counted."""
    table = buckets(1)
    with table.use("a") as item:
        with table.use("a"):
            pass
        table.get("b")
        assert table.get("a") is item


def test_a_use_ends_also_where_the_block_fails():
    """The item can go then."""
    table = buckets(1)
    with pytest.raises(KeyError), table.use("a"):
        raise KeyError
    table.get("b")
    assert [scope for scope, _ in table] == ["b"]


def test_what_goes_may_be_chosen_by_an_age_of_its_own_and_is_told():
    """``used_at`` decides which item is given up, not the table's order, and ``retire`` is told."""
    gone = []
    ages = {"a": 3.0, "b": 1.0, "c": 2.0}
    made = iter("abcd")
    table = ScopeTable(lambda _: next(made), lambda item: True, 3, used_at=lambda item: ages[item], retire=gone.append)
    for scope in "abcd":
        table.get(scope)
    assert gone == ["b"]
    none = ScopeTable(lambda _: next(iter("x")), lambda item: False, 1, used_at=lambda item: 0.0)
    assert none.get("a") == none.get("b") == "x"
    assert len(none) == 1


def test_a_newcomer_looks_at_a_few_items_however_many_are_kept():
    """Items that were looked at in vain go to the end, so that one of the next newcomers finds the spare one."""
    looks: list[str] = []
    spare: set[str] = set()

    def is_spare(item: str) -> bool:
        looks.append(item)
        return item in spare

    made = iter(range(10**6))
    table = ScopeTable(lambda _: str(next(made)), is_spare, 3 * MOST_LOOKS)
    for number in range(3 * MOST_LOOKS):
        table.get(f"old {number}")
    spare.add(table.get(f"old {3 * MOST_LOOKS - 2}"))
    found = [table.get(f"new {number}") is not table.overflow for number in range(5)]
    assert [False, False, True, False, False] == found
    assert MOST_LOOKS * 5 >= len(looks) >= MOST_LOOKS * 4
    assert "new 2" in table
    assert f"old {3 * MOST_LOOKS - 2}" not in table


def test_what_is_used_all_the_time_stays_though_the_table_does_not_see_it():
    """A use since the last look spares an item; and a newcomer costs two or three looks in the long run."""
    last_use: dict[int, float] = {}
    asked: list[int] = []
    made = iter(range(10**6))

    def used_at(item: int) -> float:
        asked.append(item)
        return last_use[item]

    def newcomer(number: int) -> None:
        item = table.get(f"scope {number}")
        last_use[item] = number
        for busy in range(20):  # the first ones are used all the time, unseen by the table
            last_use[busy] = number + 0.5

    table = ScopeTable(lambda _: next(made), lambda item: True, 200, used_at=used_at)
    for number in range(2200):
        newcomer(number)
    assert 2 * 2000 < len(asked) < 3 * 2000
    assert {f"scope {busy}" for busy in range(20)} <= {scope for scope, _ in table}


def test_threads_that_take_and_look_around_never_get_more_than_there_is():
    """The race of the plain table: a full bucket evicted between finding it and taking from it, and made anew."""
    table = buckets(2, capacity=5)
    together = threading.Barrier(8)
    granted: list[str] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        together.wait(60)
        for _ in range(400):
            scope = chance.choice("abcd")
            with table.use(scope) as bucket:
                if bucket.acquire(1):
                    granted.append(scope)
            table.get(chance.choice("wxyz"))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    # Two kept scopes and the shared overflow: three buckets of five, and nothing ever comes back.
    assert len(granted) <= 15


def test_a_child_has_a_free_lock_and_no_uses():
    """An item that the parent's threads used can be given up in the child."""
    table = buckets(1)
    with table.use("a"), table._lock:
        pid = os.fork()
        if pid == 0:
            table.get("b")
            os._exit(0 if [scope for scope, _ in table] == ["b"] else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_limiter_that_was_throttled_is_kept_and_idle_ones_go():
    """Touching many hosts does not let a throttled client loose; long after, it may be forgotten, mark and all."""
    clock = FakeClock()
    strategy = AdaptiveRetryStrategy(clock=clock, max_attempts=1)
    with pytest.raises(RetryError):
        strategy.refresh_retry_token_for_retry(
            token_to_renew=strategy.acquire_initial_retry_token(token_scope="slow"), error=Throttled()
        )
    slow = strategy.limiter("slow")
    for number in range(MAX_SCOPES + 5):
        strategy.limiter(f"host {number}")
    assert strategy.limiter("slow") is slow
    assert strategy.busy == {slow}
    clock.advance(61)
    for number in range(MAX_SCOPES):
        clock.advance(0.001)
        strategy.limiter(f"other {number}")
    assert slow.retired
    assert strategy.busy == set()


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("https://api.example.com:443", "https://api.example.com"),
        ("http://api.example.com:80", "http://api.example.com"),
        ("http://api.example.com:443", "http://api.example.com:443"),
        ("https://api.example.com:8443", "https://api.example.com:8443"),
        ("https://a://b:443", "https://a://b"),
        ("my own", "my own"),
        ("https://user:secret@api.example.com:443?key=secret#secret", "https://api.example.com"),
        ("https://user:secret@api.example.com/v1/@me?key=secret", "https://api.example.com/v1/@me"),
        ("https://api.example.com#secret?", "https://api.example.com"),
        ("https://api.example.com?next=https://user:secret@other", "https://api.example.com"),
        ("why? #1 @home", "why? #1 @home"),
    ],
)
def test_a_scope_is_shown_without_the_port_that_its_scheme_has_anyway(scope, expected):
    """The display omits the default port and the parts of a URL that must not be shown; any other text is unchanged."""
    assert display_scope(scope) == expected


def test_1024_scopes_are_kept():
    """Contract 11.3; the next one shares an item with all that come after it."""
    table = ScopeTable(lambda _: object(), lambda item: False)
    kept = [table.get(str(number)) for number in range(1024)]
    assert len({*map(id, kept)}) == len(table) == 1024
    assert table.get("one more") is table.get("another") is table.overflow
    assert "0" in table
    assert "one more" not in table


def test_items_are_made_by_the_name_of_their_scope():
    """No scope and the newcomers' have names of their own; what is not spare stays."""
    asked, spare = [], set()
    table = ScopeTable(lambda name: asked.append(name) or name, lambda item: item in spare, 2)
    for scope in (None, "a", "b"):
        table.get(scope)
    spare.add("a")
    table.get("c")
    assert asked == ["default", "a", "overflow", "c"]
    assert [scope for scope, _ in table] == [None, "c"]


def test_a_fork_within_a_use_forgets_who_used_what():
    """The block ends in peace all the same."""
    table = ScopeTable(lambda _: object(), lambda item: True, 1)
    with table.use("a") as item:
        table.renew_lock()
    assert table.get("b") is not item
    assert "a" not in table


@pytest.mark.parametrize("used_at", [None, lambda item: 7.0])
def test_nothing_is_remembered_of_a_scope_that_was_given_up(used_at):
    """The table remembers no scope that was given up; without ``used_at`` it remembers nothing at all."""
    table = ScopeTable(lambda _: object(), lambda item: True, 3, used_at=used_at)
    for number in range(20):
        table.get(str(number))
    assert {*table._seen} <= {scope for scope, _ in table}
    assert used_at is not None or {} == table._seen
