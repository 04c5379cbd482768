"""The summary of a session's retries (contract 12): what it counts, and how it is printed."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from requests_smithy_retry import (
    RetrySummary,
    StandardRetryStrategy,
    mount,
    retry_history,
    retry_options,
    retry_summary,
)
from requests_smithy_retry.observing.summary import PROCESS
from requests_smithy_retry.testing import FakeClock, ScriptedReply, forget_everything, scripted
from tests.support import Guide, before_each_sleep, ended

URL = "https://api.example.com/things"


def session_of(*steps: Any, **options: Any) -> requests.Session:
    session = requests.Session()
    session.mount("https://", scripted(*steps, **options))
    return session


def counted(summary: RetrySummary) -> tuple[int, ...]:
    return summary.operations, summary.retried, summary.retries, summary.saved, summary.lost


@pytest.mark.parametrize(
    ("method", "steps", "options", "expected"),
    [
        ("GET", [200], {}, (1, 0, 0, 0, 0)),
        ("GET", [404], {}, (1, 0, 0, 0, 0)),
        ("GET", [503, 200], {}, (1, 1, 1, 1, 0)),
        ("GET", [503, 404], {}, (1, 1, 1, 0, 0)),
        ("GET", [503, 503, 503], {"patience": 0}, (1, 1, 2, 0, 1)),
        ("GET", [503], {"max_attempts": 1}, (1, 0, 0, 0, 1)),
        ("GET", [503], {"enabled": False}, (0, 0, 0, 0, 0)),
        ("GET", [200], {"strategy": Guide()}, (1, 0, 0, 0, 0)),
        ("POST", [503], {}, (1, 0, 0, 0, 1)),
    ],
)
def test_each_end_counts_as_what_it_was(method, steps, options, expected) -> None:
    """Saved is a success after a retry; lost is what gave up, or a rule refused; a 404 is neither."""
    session = session_of(*steps, **options)
    session.request(method, URL)
    assert expected == counted(retry_summary(session))


def test_all_waits_are_added_up() -> None:
    """The wait that a server asked for, and the one for a service that is down, in vain."""
    session = session_of(ScriptedReply(503, {"Retry-After": "3"}), 200)
    session.get(URL)
    assert 3 == retry_summary(session).waited
    session = session_of(*[503] * 9)
    clock = session.get_adapter(URL).clock
    session.get(URL)
    assert round(retry_summary(session).waited, 3) == round(sum(clock.sleeps), 3) == 5


def test_it_is_one_line_and_a_table_by_host() -> None:
    """The hosts that lost most come first."""
    session = session_of(200, 200, 503, 200, 503, backoff=1)
    for host in ("a", "b", "b"):
        session.get(f"https://{host}.example.com/")
    session.post("https://c.example.com/")
    summary = retry_summary(session)
    assert "4 operations: 1 retried (1 retries), 1 saved, 1 lost, 1.0 s waited" == str(summary)
    assert [
        "host                   operations  retried  retries  saved  lost  unsent  waited",
        "https://c.example.com           1        0        0      0     1       0       0",
        "https://b.example.com           2        1        1      1     0       0       1",
        "https://a.example.com           1        0        0      0     0       0       0",
    ] == summary.table().splitlines()


def test_looking_changes_nothing() -> None:
    """Two looks in a row say the same; forgetting everything includes what was counted."""
    session = session_of(200, 503, 200)
    session.get(URL)
    session.get(URL)
    assert retry_summary(session) == retry_summary(session) != RetrySummary()
    forget_everything()
    nothing = "0 operations: 0 retried (0 retries), 0 saved, 0 lost, 0.0 s waited"
    assert (nothing, RetrySummary()) == (str(retry_summary(session)), retry_summary(session))
    assert RetrySummary() == retry_summary(mount(requests.Session()))


def test_adapters_that_share_a_strategy_are_counted_once() -> None:
    """Each adapter of a session counts, each strategy once."""
    strategy, session = StandardRetryStrategy(clock=FakeClock()), session_of(200)
    session.mount("https://b.example.com", scripted(200, 200, strategy=strategy))
    session.mount("https://c.example.com", scripted(200, strategy=strategy))
    for host in ("a", "b", "b", "c"):
        session.get(f"https://{host}.example.com/")
    summary = retry_summary(session)
    assert (4, {f"https://{host}.example.com": count for host, count in (("a", 1), ("b", 2), ("c", 1))}) == (
        summary.operations,
        {host: of.operations for host, of in summary.hosts.items()},
    )


def test_without_a_session_it_adds_up_the_process() -> None:
    """All adapters count, by host, also those of sessions that are closed and gone."""
    forget_everything()
    session = session_of(200, 503, 200)
    session.get("https://a.example.com/")
    session.get("https://b.example.com/")
    session.close()
    del session
    gc.collect()
    other = session_of(503, max_attempts=1)
    other.get("https://a.example.com/")
    assert (3, 1, 1, 1, 1) == counted(retry_summary())
    hosts = {host: counted(of) for host, of in retry_summary().hosts.items()}
    assert {"https://a.example.com": (2, 0, 0, 0, 1), "https://b.example.com": (1, 1, 1, 1, 0)} == hosts
    forget_everything()
    assert RetrySummary() == retry_summary()


def test_an_adapter_that_forgets_has_been_counted() -> None:
    """What it sent before stays in the sum of the process."""
    forget_everything()
    session = session_of(200)
    session.get(URL)
    session.get_adapter(URL).forget()
    assert (0, 1) == (retry_summary(session).operations, retry_summary().operations)


def test_threads_lose_no_count() -> None:
    """Eight threads make ten operations each, of which every second is retried."""
    session = session_of(*[200, 503, 200] * 40)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(session.get, [URL] * 80))
    assert 80 == retry_summary(session).operations
    assert 80 <= retry_summary().operations


def test_a_session_without_retries_is_an_error() -> None:
    """The error says what to do."""
    with pytest.raises(ValueError, match="the session has no RetryAdapter: mount one first"):
        retry_summary(requests.Session())


def test_counting_has_a_fresh_lock_after_a_fork() -> None:
    """A thread that counted just then does not hold up the child."""
    PROCESS.renew_lock()
    session = session_of(200)
    session.get(URL)
    assert 1 == retry_summary(session).operations


@pytest.mark.parametrize(
    ("block", "options", "seconds"),
    [
        ({"long_poll": True}, {"quota": 0}, 7.0),
        ({"cancel": "after 3 s"}, {}, 3.0),
        ({}, {"quota": "payoff", "patience": 20}, None),
    ],
)
def test_the_waits_after_the_last_attempt_are_in_it(
    block: dict[str, Any], options: dict[str, Any], seconds: float | None
) -> None:
    """Whatever a call waited for in vain is in its history, too: a long poll, a delay that was cancelled, a service."""
    clock, stop = FakeClock(), threading.Event()
    before_each_sleep(clock, lambda _: clock.now() > 2.99 and stop.set())
    session = session_of(*[503] * 20, clock=clock, backoff=7, **options)
    with retry_options(**{name: stop if name == "cancel" else value for name, value in block.items()}):
        history = retry_history(ended(session.get_adapter(URL)))
    slept = sum(clock.sleeps)
    made = sum(each.delay + each.line_wait for each in history.attempts)
    assert slept == pytest.approx(made + history.waited) == pytest.approx(retry_summary(session).waited)
    assert history.waited > 0
    assert seconds is None or seconds == pytest.approx(history.waited, abs=0.06)
