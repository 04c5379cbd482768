"""Scopes (contract 6.4): names, the table, and what eviction must never do."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry import StandardRetryStrategy, testing
from requests_smithy_retry.core.quota import NO_QUOTA
from requests_smithy_retry.core.scope import MOST_SCOPES, Scopes
from requests_smithy_retry.testing import FakeClock
from requests_smithy_retry.urls import display_scope, scope_of
from tests.support import before_each_sleep, reset_error, send


class Asked:
    """A quota of a scope on which somebody waits, or not, as a test says."""

    def __init__(self, *, is_waited_on: bool = False) -> None:
        self.is_waited_on = is_waited_on
        self.forgot: list[float] = []

    def forget(self, now: float) -> None:
        self.forgot.append(now)


def scopes(limit: int, *, is_waited_on: bool = False, clock: Any = None) -> Scopes:
    """A table on a clock."""
    made: Any = lambda name, now: Asked(is_waited_on=is_waited_on)  # noqa: E731
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
    assert ["a", "b"] == names(table)


def test_1024_scopes_are_kept():
    """Contract 11.3; for the next one, the one goes that was unused for longest."""
    table = Scopes(lambda name, now: NO_QUOTA)
    kept = [table.get(str(number)) for number in range(MOST_SCOPES)]
    assert 1024 == len({*map(id, kept)}) == len(names(table))
    table.get("0")
    table.get("one more")
    assert (1024, "0", "2") == (len(names(table)), names(table)[-2], names(table)[0])


def test_a_scope_for_which_somebody_waits_stays():
    """Whether on its quota or on what a feature keeps of it; where all are waited on, the table grows."""
    table = scopes(2)
    waited: Any = table.get("a").quota
    part = table.get("b").part("limit", Asked)
    assert part is table.get("b").part("limit", Asked)
    waited.is_waited_on = part.is_waited_on = True
    table.get("c")
    assert ["a", "b", "c"] == names(table)
    waited.is_waited_on = False
    table.get("d")
    assert ["b", "c", "d"] == names(table)


def test_an_operation_keeps_the_scope_with_which_it_began():
    """What it spends comes back to the same bucket, though its scope was evicted meanwhile."""
    strategy = StandardRetryStrategy(clock=FakeClock(), quota=500)
    first = strategy.acquire_initial_retry_token(token_scope="mine")
    token = strategy.refresh_retry_token_for_retry(token_to_renew=first, error=reset_error())
    bucket = strategy.bucket("mine")
    for number in range(2 * MOST_SCOPES):
        strategy.bucket(f"host {number}")
    strategy.record_success(token=token)
    assert (500, MOST_SCOPES) == (bucket.available, len(list(strategy.scopes)))


def test_every_scope_begins_anew():
    """With all its parts, at the moment of the clock."""
    clock = FakeClock()
    table = scopes(2, clock=clock)
    kept: list[Any] = [table.get("a").quota, table.get("b").part("limit", Asked), table.get("b").quota]
    clock.advance(7)
    table.forget()
    assert [[7.0]] * 3 == [each.forgot for each in kept]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_has_a_free_lock():
    """Though it was held when the child was forked."""
    table = scopes(1)
    with table._lock:
        pid = os.fork()
        if pid == 0:
            os._exit(0 if table.get("b").name == "b" else 1)
    assert 0 == os.waitpid(pid, 0)[1]


def test_a_retry_budget_is_waited_on_while_a_call_waits() -> None:
    """So it is not evicted meanwhile; nobody waits before and after."""
    clock, seen = FakeClock(), set()
    adapter: Any = testing.scripted(*[503] * 50, clock=clock)
    scope = adapter.strategy.scopes.get("https://api.example.com:443")
    before_each_sleep(clock, lambda _: seen.add(scope.is_waited_on))
    assert not scope.is_waited_on
    send(adapter)
    assert ({False, True}, False) == (seen, scope.is_waited_on)
