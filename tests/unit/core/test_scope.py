"""Scopes (contract 6.4, 11.3): names, the table, and what eviction must never do."""

from __future__ import annotations

import os
import random
import signal
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry import StandardRetryStrategy, TokenBucket
from requests_smithy_retry.core.quota import NO_QUOTA
from requests_smithy_retry.core.scope import FORGET_AFTER, MOST_EXAMINED, MOST_SCOPES, OVERFLOW, Scopes
from requests_smithy_retry.smithy.buckets import PricedQuota
from requests_smithy_retry.testing import FakeClock
from requests_smithy_retry.urls import display_scope, scope_of
from tests.support import Reply, scripted, send


class Spare:
    """A quota of a scope that may go or not, as a test says."""

    def __init__(self, *, is_spare: bool = False) -> None:
        self.spare = is_spare
        self.looks = 0
        self.forgot: list[float] = []

    def is_spare(self, now: float) -> bool:
        self.looks += 1
        return self.spare

    def forget(self, now: float) -> None:
        self.forgot.append(now)


def scopes(limit: int, *, is_spare: bool = False, clock: Any = None) -> Scopes:
    """A table on a clock."""
    made: Any = lambda name, now: Spare(is_spare=is_spare)  # noqa: E731
    return Scopes(made, FakeClock() if clock is None else clock, limit)


def names(table: Scopes) -> list[str | None]:
    return [name for name, _ in table]


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


def test_each_scope_has_its_own_and_keeps_it():
    """The second look finds the first one's; nothing is made by looking for what is known."""
    table = scopes(4)
    assert table.get("a") is table.get("a") is not table.get("b")
    assert (["a", "b"], 2) == (names(table), len(table))


def test_1024_scopes_are_kept():
    """Contract 11.3; the next one shares a scope with all that come after it."""
    table = Scopes(lambda name, now: Spare())  # type: ignore[arg-type, return-value]
    kept = [table.get(str(number)) for number in range(MOST_SCOPES)]
    assert 1024 == len({*map(id, kept)}) == len(table)
    assert OVERFLOW == table.get("one more").name
    assert table.get("one more") is table.get("another")


def test_an_adapter_looks_again_for_the_scope_that_newcomers_share():
    """The newcomer may have one of its own by the next request, so the shared one is not kept as the origin's."""
    adapter = scripted(200, 200, 200)
    adapter.plan.scopes._limit = 0
    send(adapter)
    assert {} == adapter.plan.by_origin
    adapter.plan.scopes._limit = 1
    send(adapter)
    assert ["https://api.example.com:443"] == [scope.name for scope in adapter.plan.by_origin.values()]


def test_the_longest_unused_spare_scope_goes_first():
    """Looking is using; who remembers what went asks for a new one. Without a quota all are spare."""
    clock = FakeClock()
    for table in (scopes(3, is_spare=True, clock=clock), Scopes(lambda name, now: NO_QUOTA, clock, 3)):
        for name in "abcad":
            clock.advance(1)
            table.get(name)
        assert ["c", "a", "d"] == names(table)
        gone = table.get("c")
        clock.advance(1)
        for name in "adef":
            table.get(name)
        assert gone.is_retired


def test_a_scope_in_use_is_not_given_up():
    """Neither for being spare nor for its age; each of two uses keeps it, and a block that fails ends its use."""
    clock = FakeClock()
    table = scopes(1, is_spare=True, clock=clock)

    def use() -> None:
        with table.use("a") as scope:
            with table.use("a") as same:
                assert scope is same
            clock.advance(10 * FORGET_AFTER)
            assert OVERFLOW == table.get("b").name
            raise KeyError

    with pytest.raises(KeyError):
        use()
    assert "b" == table.get("b").name


def test_a_use_that_never_began_ends_nothing():
    """An interruption may come before there is a scope."""
    table = Scopes(lambda name, now: signal.raise_signal(signal.SIGINT), FakeClock())  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt), table.use("a"):
        pass
    assert [] == names(table)


def test_a_spent_scope_stays_while_it_is_used():
    """If all are spent, the newcomers share one more, so that new hosts bring no new quota."""
    clock = FakeClock()
    table = scopes(2, clock=clock)
    for name in "ab":
        table.get(name)
    assert table.get("c") is table.get("d")
    assert ["a", "b"] == sorted(map(str, names(table)))
    clock.advance(FORGET_AFTER - 1)
    table.get("b")
    assert OVERFLOW == table.get("c").name
    clock.advance(1)  # now nobody has used "a" for ten minutes
    assert "c" == table.get("c").name
    assert ["b", "c"] == names(table)


def test_touching_many_hosts_never_refills_a_spent_bucket():
    """Two thousand other scopes pass by; the spent one is as it was, and no more than the limit are kept."""
    strategy = StandardRetryStrategy(clock=FakeClock(), quota=500)
    strategy.bucket("spent").acquire(14)
    for number in range(2 * MOST_SCOPES):
        strategy.bucket(f"host {number}")
    assert 486 == strategy.bucket("spent").available
    assert MOST_SCOPES == len(strategy.scopes)


def test_a_newcomer_looks_at_a_few_scopes_however_many_are_kept():
    """Those that were looked at in vain go to the end, so that one of the next newcomers finds the spare one."""
    table = scopes(3 * MOST_EXAMINED)
    kept: list[Any] = [table.get(f"old {number}").quota for number in range(3 * MOST_EXAMINED)]
    kept[-2].spare = True
    found = [table.get(f"new {number}").name != OVERFLOW for number in range(3)]
    assert ([False, False, True], 3 * MOST_EXAMINED - 1) == (found, sum(quota.looks for quota in kept))


def test_all_that_is_kept_of_a_scope_decides_whether_it_is_spare():
    """The parts of features as well; each is made once."""
    table = scopes(1, is_spare=True)
    part = table.get("a").part("limit", Spare)
    assert part is table.get("a").part("limit", Spare)
    assert OVERFLOW == table.get("b").name
    part.spare = True
    assert "b" == table.get("b").name


def test_every_scope_begins_anew():
    """With all its parts, at the moment of the clock."""
    clock = FakeClock()
    table = scopes(2, clock=clock)
    kept: list[Any] = [table.get("a").quota, table.get("b").part("limit", Spare), table.get("b").quota]
    clock.advance(7)
    table.forget()
    assert [[7.0]] * 3 == [each.forgot for each in kept]


def test_threads_that_take_and_look_around_never_get_more_than_there_is():
    """A full bucket must not be given up between finding it and taking from it, and made anew."""
    table = Scopes(lambda name, now: PricedQuota(TokenBucket(5), lambda reason: 1), limit=2)
    together = threading.Barrier(8)
    granted: list[str] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        together.wait(60)
        for _ in range(400):
            name = chance.choice("abcd")
            with table.use(name) as scope:
                quota: Any = scope.quota
                if quota.bucket.acquire(1):
                    granted.append(name)
            table.get(chance.choice("wxyz"))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    # Two kept scopes and the shared overflow: three buckets of five, and nothing ever comes back.
    assert len(granted) <= 15


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_has_a_free_lock_and_no_uses():
    """A scope that the parent's threads used can be given up in the child; a block that was entered ends in peace."""
    table = scopes(1, is_spare=True)
    with table.use("a"):
        with table._lock:
            pid = os.fork()
            if pid == 0:
                os._exit(0 if table.get("b").name == "b" else 1)
        assert 0 == os.waitpid(pid, 0)[1]
        table.renew_lock()
    assert "b" == table.get("b").name


def test_what_was_counted_stays_when_a_scope_goes() -> None:
    """Scopes that were given up, and the one that newcomers shared, are in the sum; forgetting empties it."""
    clock = FakeClock()
    table = scopes(2, clock=clock)
    for name in ("a", "b", "c", "d"):  # the last two share the overflow
        next(table.get(name).tally.at_once)
    clock.advance(FORGET_AFTER)
    next(table.get("e").tally.at_once)  # in the place of "a"; the overflow is gone
    found = {name: each.operations for name, each in table.tallies()}
    assert {"b": 1, "e": 1, None: 3} == found == {name: each.operations for name, each in table.tallies()}
    table.forget()
    assert {"b": 0, "e": 0, None: 0} == {name: each.operations for name, each in table.tallies()}


def test_the_scope_that_newcomers_share_is_counted_while_it_is_there() -> None:
    """It has a row of its own."""
    table = scopes(1)
    for name in ("a", "b", "c"):
        next(table.get(name).tally.at_once)
    assert [("a", 1), (OVERFLOW, 2), (None, 0)] == [(name, each.operations) for name, each in table.tallies()]


def test_no_ordinary_scope_has_the_name_of_the_shared_one() -> None:
    """Where there is room by the time that a request fails, it goes on in a scope of its own."""
    adapter = scripted(200, lambda _: setattr(table, "_limit", 9) or Reply(503), 200)
    table = adapter.plan.scopes
    table._limit = 1
    with table.use(scope_of("https://a.example")):
        send(adapter, url="https://a.example")
        send(adapter, url="https://b.example")
    assert ["https://a.example:443", "https://b.example:443"] == names(table)


def test_the_shared_scope_begins_anew_with_the_others() -> None:
    """A full table's newcomers have a full quota again, too."""
    table = scopes(1)
    shared: Any = [table.get(name).quota for name in ("a", "b")]
    table.forget()
    assert [1, 1] == [len(quota.forgot) for quota in shared]
