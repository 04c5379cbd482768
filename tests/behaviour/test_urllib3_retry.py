"""``max_retries``: a number, or a urllib3 Retry as options of ours (contract 4.2); and the same faults through both.

The one that a live adapter shows: test_own_max_retries.py; whose ``increment`` is called: test_own_increment.py.
"""

from __future__ import annotations

import math
import pickle
import sys
from typing import Any
from unittest import mock

import pytest
import requests
import urllib3.exceptions as uex
from requests.adapters import HTTPAdapter
from urllib3.util.retry import RequestHistory, Retry

from requests_smithy_retry import (
    RetryAdapter,
    RetryConfigError,
    RetryConfigWarning,
    StopReason,
    install,
    retry_history,
    retry_options,
    uninstall,
)
from requests_smithy_retry.testing import FakeClock, ScriptedReply, scripted
from tests.faults import CloseAfterRequest, CutBody, FaultServer, Reply, ResetAfterRequest, try_later
from tests.support import pool_timeout, prepare, read_timeout, reset_error, session_with

URLLIB3_2 = hasattr(Retry(0), "backoff_jitter")
NEW = pytest.mark.skipif(not URLLIB3_2, reason="an option of urllib3 2.x")
UNLIMITED = sys.maxsize


def translated(*args: Any, **options: Any) -> Any:
    return RetryAdapter(max_retries=Retry(*args, **options)).retry_config


@pytest.mark.parametrize(
    ("value", "attempts"),
    [(0, 1), (False, 1), (1, 2), (10, 11), (2.0, 3), (float("inf"), UNLIMITED), (None, 4), (Retry(total=4), 5)],
)
def test_a_number_of_retries_gives_one_attempt_more(value, attempts) -> None:
    """None is urllib3's three retries, not zero."""
    assert attempts == RetryAdapter(max_retries=value).retry_config.max_attempts


@pytest.mark.parametrize(("total", "attempts"), [(0, 1), (False, 1), (5, 6), (None, UNLIMITED)])
def test_none_goes_by_the_default_that_there_is(monkeypatch, total, attempts) -> None:
    """A program that changed ``Retry.DEFAULT`` gets its retries, as with ``HTTPAdapter``."""
    monkeypatch.setattr(Retry, "DEFAULT", Retry(total))
    assert attempts == RetryAdapter(max_retries=None).retry_config.max_attempts


@pytest.mark.parametrize("value", [True, -1, 2.5, float("-inf"), float("nan"), "2", (3,)])
def test_what_is_no_number_of_retries_is_refused(value) -> None:
    """The error names option, value, source and what is allowed."""
    allowed = "a whole number of retries (0 or more), False, None or a urllib3 Retry is allowed"
    with pytest.raises(RetryConfigError) as caught:
        RetryAdapter(max_retries=value)
    assert f"max_retries={value!r} (from code): {allowed}" == str(caught.value)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"total": 5}, {"max_attempts": 6, "retry_status_codes": frozenset(), "raise_on_status": True}),
        ({"total": 0, "status_forcelist": [503]}, {"max_attempts": 1, "raise_on_status": True}),
        ({"total": 0}, {"max_attempts": 1, "raise_on_status": False}),
        ({"total": False}, {"max_attempts": 1, "raise_on_status": False}),
        ({"total": False, "status_forcelist": [503]}, {"max_attempts": 1, "raise_on_status": True}),
        ({"total": -1}, {"max_attempts": 1, "raise_on_status": True}),
        ({"total": None}, {"max_attempts": UNLIMITED}),
        ({"total": math.inf}, {"max_attempts": UNLIMITED}),
        ({"total": 3.0}, {"max_attempts": 4}),
        ({"total": None, "connect": 1, "read": 2, "status": 3, "other": 4}, {"max_attempts": 11}),
        ({"total": 3, "status_forcelist": [429, 503]}, {"retry_status_codes": frozenset({429, 503})}),
        ({"total": 3, "status_forcelist": 500}, {"retry_status_codes": frozenset({500})}),
        ({"total": 3, "status_forcelist": range(598, 601)}, {"retry_status_codes": frozenset({598, 599})}),
        ({"total": 3, "allowed_methods": ["get", "POST"]}, {"allowed_methods": frozenset({"GET", "POST"})}),
        ({"total": 3, "allowed_methods": "GET"}, {"allowed_methods": frozenset({"GET"})}),
        ({"total": 3, "allowed_methods": "GET, POST|put"}, {"allowed_methods": frozenset({"GET", "POST", "PUT"})}),
        ({"total": 3, "allowed_methods": None}, {"allowed_methods": None}),
        ({"total": 3, "raise_on_status": False}, {"raise_on_status": False}),
        ({"total": 3}, {"backoff_base": None, "max_backoff": 20.0, "max_retry_after": 120.0}),
        ({"total": 3, "backoff_factor": -1}, {"backoff_base": None, "max_backoff": 20.0}),  # no wait, as with 0
        ({"total": 3, "backoff_factor": math.inf}, {"backoff_base": 120, "max_backoff": 120}),  # always the longest
        ({"total": 3, "backoff_factor": 0.5}, {"backoff": None, "backoff_base": 0.5, "max_backoff": 120}),
        pytest.param({"total": 3, "backoff_max": 7}, {"max_backoff": 7, "backoff_base": None}, marks=NEW),
        pytest.param({"total": 3, "retry_after_max": 9}, {"max_retry_after": 9}, marks=NEW),
    ],
)
def test_counts_methods_and_statuses_are_the_users(options, expected) -> None:
    """Each option of a Retry becomes an option of ours, and says that it came from max_retries."""
    config = translated(**options)
    assert expected == {name: getattr(config, name) for name in expected}
    assert "max_retries" == config.source("max_attempts")


def no_connection(kind: type[Exception] = uex.ConnectTimeoutError) -> Exception:
    return requests.ConnectTimeout(kind(None, "refused"))


COUNTS = {"total": 99, "connect": 0, "read": 1, "status": 2, "other": 3}


@pytest.mark.parametrize(
    ("counts", "script", "limit"),
    [
        (COUNTS, [no_connection], "0 retries after connect"),
        (COUNTS, [lambda: no_connection(uex.NewConnectionError)], "0 retries after connect"),
        (COUNTS, [reset_error, read_timeout], "1 retries after read"),
        (COUNTS, [503, read_timeout, 503, 503], "2 retries after status"),
        (COUNTS, [pool_timeout] * 4, "3 retries after other"),
        (COUNTS, [503, 503, pool_timeout, read_timeout, pool_timeout, read_timeout], "1 retries after read"),
        ({"total": 99, "read": False}, [503, 503, pool_timeout, read_timeout], "0 retries after read"),
        (
            {"total": 99, "other": -1, "read": math.inf},
            [read_timeout, read_timeout, pool_timeout],
            "0 retries after other",
        ),
        ({"total": 2}, [503, read_timeout, 503], ""),
    ],
)
def test_each_kind_of_failure_has_its_count(counts, script, limit) -> None:
    """The last failure is judged, by how many of its kind there were; the sentence names the kind and its limit."""
    steps = [made() if callable(made) else made for made in script]
    retry = Retry(**counts, status_forcelist=[503], raise_on_status=False)
    adapter = scripted(*steps, max_retries=retry, quota=None)
    try:
        ended: Any = adapter.send(prepare())
    except Exception as error:
        ended = error
    history: Any = retry_history(ended)
    why = f"{limit} failures are allowed by the urllib3 Retry" if limit else "no attempts are left"
    assert (StopReason.MAX_ATTEMPTS, why, len(steps)) == (history.stop_reason, history.why, len(history.attempts))


@pytest.mark.parametrize(
    ("options", "retried"),
    [
        ({"total": 1}, [413, 429, 503]),
        ({"total": None}, []),
        ({"total": 0, "status_forcelist": [500]}, []),
        ({"total": 1, "respect_retry_after_header": False}, []),
    ],
)
def test_statuses_with_a_hint_are_retried_where_urllib3_does(options, retried) -> None:
    """urllib3 retries hinted statuses if the total is set and not 0."""

    def is_retried(status: int) -> bool:
        adapter = scripted(*[ScriptedReply(status, {"Retry-After": "0"})] * 2, max_retries=Retry(**options), quota=None)
        adapter.retry_config = adapter.retry_config.replace(raise_on_status=False)
        try:
            adapter.send(prepare())
        except requests.exceptions.RetryError:
            pass
        return len(adapter.sent) > 1

    assert retried == [status for status in (404, 413, 429, 500, 503) if is_retried(status)]


@pytest.mark.parametrize("header", ["Retry-After", "retry-after-ms", "x-amz-retry-after"])
def test_a_retry_that_respects_no_hint_waits_for_none(header) -> None:
    """The backoff is the delay, whichever header asks for more."""
    retry = Retry(1, status_forcelist=[503], respect_retry_after_header=False)
    adapter = scripted(ScriptedReply(503, {header: "90000"}), 200, max_retries=retry)
    adapter.send(prepare())
    assert sum(adapter.clock.sleeps) < 1


def test_a_retry_that_an_older_urllib3_made_is_translated() -> None:
    """Unpickled under urllib3 2.x it lacks what came with that; in 1.26 each one does."""

    class Slow(Retry):
        DEFAULT_BACKOFF_MAX = 30

    retry = Slow(3, backoff_factor=1)
    for name in ("backoff_jitter", "backoff_max", "retry_after_max"):
        vars(retry).pop(name, None)
    config = RetryAdapter(max_retries=retry).retry_config
    assert (30, 120.0) == (config.max_backoff, config.max_retry_after)


@NEW
def test_backoff_jitter_is_added_within_the_cap() -> None:
    """A delay becomes longer by up to the jitter, and never longer than the longest backoff."""
    retry = Retry(4, backoff_factor=1, backoff_jitter=2, backoff_max=4, status_forcelist=[503], raise_on_status=False)
    adapter = scripted(*[503] * 5, max_retries=retry, jitter="none", quota=None)
    adapter.send(prepare())
    one, two, *rest = adapter.clock.sleeps
    assert (True, True, [4, 4]) == (1 <= one <= 3, 2 <= two <= 4, rest)
    backoff: Any = adapter.retry_config.backoffs[0]
    assert 0.0 == backoff.compute_next_backoff_delay(0) == backoff.compute_next_backoff_delay(-1)


@NEW
def test_a_jitter_below_0_makes_no_delay_shorter_than_0() -> None:
    """As in urllib3."""
    retry = Retry(4, backoff_factor=0.01, backoff_jitter=-9, status_forcelist=[503], raise_on_status=False)
    adapter = scripted(*[503] * 5, max_retries=retry, jitter="none", quota=None)
    assert (503, 5) == (adapter.send(prepare()).status_code, len(adapter.sent))
    assert 0.08 > adapter.clock.now()


@pytest.mark.parametrize("mounted", ["all", "plain", "none"])
@pytest.mark.parametrize("factor", [-1, math.inf, math.nan, "1"])
def test_no_factor_of_a_backoff_raises_in_the_programs_own_code(factor: Any, mounted: Any) -> None:
    """Installed, neither mounting an adapter with such a Retry nor assigning it raises: plain requests takes it."""
    install(mounted=mounted)
    try:
        with requests.Session() as session:
            session.mount("http://", HTTPAdapter(max_retries=Retry(3, backoff_factor=factor)))
            adapter: Any = session.get_adapter("http://a.example/")
            adapter.max_retries = Retry(4, backoff_factor=factor)
            assert 4 == adapter.max_retries.total
    finally:
        uninstall()


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        ({"redirect": 2}, "redirect=2 has no effect, requests follows redirects itself"),
        ({"raise_on_redirect": False}, "raise_on_redirect=False has no effect, requests follows redirects itself"),
        (
            {"redirect": 2, "remove_headers_on_redirect": ["X"]},
            "redirect=2 has no effect, requests follows redirects itself; "  # noqa: ISC004
            "remove_headers_on_redirect has no effect, requests removes headers itself",
        ),
        ({"history": (RequestHistory("GET", "/", None, 500, None),)}, "its history is not taken over"),
    ],
)
def test_what_cannot_be_honoured_is_listed(options, phrase) -> None:
    """One warning lists it, and points at the line that made the adapter."""
    retry = Retry(3, **options)
    with pytest.warns(RetryConfigWarning) as caught:
        RetryAdapter(max_retries=retry)
    assert [(f"max_retries={retry!r}: {phrase}", __file__)] == [(str(item.message), item.filename) for item in caught]


class Patient(Retry):
    RETRY_AFTER_STATUS_CODES = frozenset({503})

    def __init__(self, total=4, **options):
        super().__init__(total, **options)


class Renewing(Retry):
    def new(self, **options):
        return super().new(**options)

    @classmethod
    def from_int(cls, retries, redirect=True, default=None):
        return super().from_int(retries, redirect, default)


class Counting(Retry):
    def increment(self, *args, error=None, **options):
        if error is not None:
            raise error
        return super().increment(*args, **options)


def test_a_subclass_that_decides_nothing_is_translated() -> None:
    """Another constructor, class attributes, and methods that make instances are read, or do not matter."""
    assert [5, 6, 1] == [
        RetryAdapter(max_retries=each).retry_config.max_attempts for each in (Patient(), Renewing(5), Patient(0))
    ]
    assert not RetryAdapter(max_retries=Patient(0)).retry_config.raise_on_status


def test_a_subclass_with_its_own_methods_is_refused() -> None:
    """The error says which methods, why, and what to do instead; an instance's own counts too."""
    counting = Counting(3)
    with pytest.raises(RetryConfigError) as caught:
        RetryAdapter(max_retries=counting)
    assert str(caught.value) == (
        f"max_retries={counting!r} (from code): a urllib3 Retry that overrides no method is allowed, but for an "
        "increment that calls super().increment, raises nothing itself and sets at most counts, and Counting overrides "
        "increment: what they decide cannot be translated. Write a classifier (classifiers=...), a backoff strategy or "
        "a retry strategy instead, and give max_attempts"
    )
    retry: Any = Retry(3)
    retry.get_backoff_time = lambda: 1
    with pytest.raises(RetryConfigError, match="Retry overrides get_backoff_time"):
        RetryAdapter(max_retries=retry)


def test_a_subclass_with_its_own_max_retries_is_refused() -> None:
    """The constructor refuses, because urllib3 would retry each attempt."""
    own: Any = type("Own", (RetryAdapter,), {"max_retries": Retry(3)})
    with pytest.raises(RetryConfigError, match=r"max_retries=Retry\(total=3.*class Own.*urllib3 would retry beneath"):
        own()


NOT_A_COUNT = "a whole number of retries, False or None is allowed"
NO_STATUSES = "a collection of statuses "
NO_SECONDS = "a finite number of seconds is allowed"


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        *[("total", value, NOT_A_COUNT) for value in (True, 1.5)],
        *[("connect", "3", NOT_A_COUNT), ("read", True, NOT_A_COUNT)],
        *[("status", -math.inf, NOT_A_COUNT), ("other", (), NOT_A_COUNT)],
        *[("status_forcelist", value, NO_STATUSES) for value in ("503", b"503")],
        ("status_forcelist", ["503"], NO_STATUSES),
        *[("status_forcelist", value, NO_STATUSES) for value in (5.5, [[503]])],
        ("allowed_methods", 5, "a collection of names is allowed"),
        *[("backoff_factor", value, NO_SECONDS) for value in (math.nan, -math.inf, "1", [1])],
        *[pytest.param("backoff_jitter", value, NO_SECONDS, marks=NEW) for value in (math.nan, math.inf, "1")],
    ],
)
def test_a_setting_that_is_none_is_refused(name, value, allowed) -> None:
    """Only whole numbers, False and None count; a status as text never matches in urllib3; a wait is a number."""
    with pytest.raises(RetryConfigError) as caught:
        translated(**{"total": 3, name: value})
    shown = "retry_status_codes=frozenset({'503'})" if value == ["503"] else f"{name}={value!r}"
    assert str(caught.value).startswith(f"{shown} (from max_retries): {allowed}")


@pytest.mark.skipif(URLLIB3_2, reason="an attribute of urllib3 1.26")
def test_the_old_name_of_the_methods_counts() -> None:
    """urllib3 1.26 goes by method_whitelist where an instance has it."""
    retry: Any = Retry(3)
    retry.method_whitelist = ["POST"]
    assert frozenset({"POST"}) == RetryAdapter(max_retries=retry).retry_config.allowed_methods


def test_assigning_translates_and_takes_the_last_one_back() -> None:
    """Assignment to the live adapter does what the constructor does; nothing of the old Retry stays."""
    adapter: Any = RetryAdapter(timeout=3)
    adapter.max_retries = Retry(5, status_forcelist=[418], connect=1)
    assert (6, 6, 3) == (adapter.retry_config.max_attempts, adapter.strategy.max_attempts, adapter.retry_config.timeout)
    adapter.max_retries = 2
    assert RetryAdapter(timeout=3, max_retries=2).retry_config == adapter.retry_config
    adapter.max_retries = None
    assert (3, 4) == (adapter.max_retries.total, adapter.retry_config.max_attempts)


def outcome_of(adapter: HTTPAdapter, server_url: str, method: str) -> int | str:
    """Return the end of a request: a status or the name of the exception."""
    with session_with(adapter) as session:
        try:
            return session.request(method, server_url, data=b"x" if method == "POST" else None).status_code
        except requests.RequestException as error:
            return type(error).__name__


def compare(script, retry, method="GET", ours=None):
    """Run one script through urllib3's retries and through ours; return (outcome, requests) of each."""
    results = []
    for adapter in (
        HTTPAdapter(max_retries=retry),
        ours or RetryAdapter(max_retries=retry, clock=FakeClock(), quota=500),
    ):
        with FaultServer(script, default=Reply(body=b"end")) as server:
            ended = outcome_of(adapter, server.url, method)
            results.append((ended, len(server.requests)))
    return tuple(results)


LISTED = {"total": 3, "status_forcelist": [503]}
SAME = [
    ([Reply(503)], LISTED, "GET", (200, 2)),
    ([Reply(503)] * 4, LISTED, "GET", ("RetryError", 4)),
    ([Reply(503)] * 4, {**LISTED, "raise_on_status": False}, "GET", (503, 4)),
    ([Reply(503)] * 3, {**LISTED, "status": 1}, "GET", ("RetryError", 2)),
    ([Reply(503)], {"total": 3}, "GET", (503, 1)),
    ([Reply(500)], LISTED, "GET", (500, 1)),
    ([Reply(503)], LISTED, "POST", (503, 1)),
    ([Reply(503)], {**LISTED, "allowed_methods": None}, "POST", (200, 2)),
    ([ResetAfterRequest()], {"total": 3}, "GET", (200, 2)),
    ([CloseAfterRequest()], {"total": 3}, "GET", (200, 2)),
    ([CloseAfterRequest()], {"total": 3}, "POST", ("ConnectionError", 1)),
    ([CloseAfterRequest()] * 3, {"total": 3, "read": 1}, "GET", ("ConnectionError", 2)),
    ([CloseAfterRequest()], {"total": 3, "read": False}, "GET", ("ConnectionError", 1)),
    ([CloseAfterRequest()], {"total": 0}, "GET", ("ConnectionError", 1)),
    ([Reply(503)], {**LISTED, "total": False}, "GET", ("RetryError", 1)),
    ([Reply(503)], {**LISTED, "total": -1}, "GET", ("RetryError", 1)),
    ([try_later(503, 0)], {"total": -1}, "GET", ("RetryError", 1)),
    ([try_later(503, 0)], {"total": 0}, "GET", (503, 1)),
    ([try_later(503, 0)], {"total": None}, "GET", (503, 1)),
    ([Reply(418)], {"total": 1, "status_forcelist": [418]}, "PUT", (200, 2)),
]


@pytest.mark.real_time
@pytest.mark.parametrize(("script", "options", "method", "expected"), SAME)
def test_the_same_faults_end_in_the_same_way(script, options, method, expected) -> None:
    """Outcome and number of requests are those of HTTPAdapter with the same Retry."""
    assert (expected, expected) == compare(script, Retry(**options), method)


CUT = "ChunkedEncodingError" if URLLIB3_2 else 200
BROKEN = [CutBody(Reply(body=b"0123456789"))]

DIFFERENT = [
    # A cut body is a failure of the attempt (contract 2.3); urllib3 1.26 does not even notice.
    (BROKEN, {"total": 3}, "GET", (CUT, 1), (200, 2)),
    # But for a POST that the Retry allows: the server has answered, so it was applied.
    pytest.param(BROKEN, {"total": 3, "allowed_methods": None}, "POST", (CUT, 1), (CUT, 1), marks=NEW),
    # The last response of a hinted status is raised for as well.
    ([try_later(503, 0)] * 2, {"total": 1}, "GET", (503, 2), ("RetryError", 2)),
    # A hint above max_retry_after is not slept (contract 7.3).
    pytest.param(
        *([try_later(503, 5)], {"total": 1, "retry_after_max": 0}, "GET", (200, 2), ("RetryError", 1)), marks=NEW
    ),
]


@pytest.mark.real_time
@pytest.mark.parametrize(("script", "options", "method", "theirs", "ours"), DIFFERENT)
def test_where_the_same_faults_end_differently(script, options, method, theirs, ours) -> None:
    """Each difference is in docs/howto/move-from-urllib3-retry.md, with its reason."""
    assert (theirs, ours) == compare(script, Retry(**options), method)


def assigned_later(max_retries: Any) -> RetryAdapter:
    """An adapter that is switched off, and told afterwards what to do."""
    adapter = RetryAdapter(enabled=False)
    adapter.max_retries = max_retries
    return adapter


OFF = {
    "by the option": lambda max_retries: RetryAdapter(max_retries=max_retries, enabled=False),
    "assigned later": assigned_later,
    "a pickle": lambda max_retries: pickle.loads(pickle.dumps(RetryAdapter(max_retries=max_retries, enabled=False))),
}
LOST = [CloseAfterRequest()] * 2
OF_NUMBERS = [
    *((script, number, "GET") for number in (2, 0, False, None) for script in ([Reply(503)], LOST)),
    (LOST, 2, "POST"),
]


@pytest.mark.real_time
@pytest.mark.parametrize("made", OFF.values(), ids=OFF)
@pytest.mark.parametrize(
    ("script", "max_retries", "method"),
    [*((script, Retry(**options), method) for script, options, method, _ in SAME), *OF_NUMBERS],
)
def test_switched_off_it_ends_as_an_http_adapter_does(script, max_retries, method, made) -> None:
    """urllib3 goes by the same ``max_retries``: outcome and number of requests are those without this library."""
    theirs, ours = compare(script, max_retries, method, made(max_retries))
    assert theirs == ours


def test_switched_off_by_a_variable_urllib3_retries_and_in_a_block_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable leaves the program what it had before; ``retry_options(enabled=False)`` asks for one send."""
    monkeypatch.setenv("SMITHY_RETRY_ENABLED", "false")
    retry = Retry(**LISTED)
    theirs, ours = compare([Reply(503)], retry, ours=RetryAdapter(max_retries=retry))
    assert ((200, 2), (200, 2)) == (theirs, ours)
    for _ in range(2):
        with retry_options(enabled=False):
            _, ours = compare([Reply(503)], retry, ours=RetryAdapter(max_retries=retry))
        assert (503, 1) == ours
        monkeypatch.delenv("SMITHY_RETRY_ENABLED", raising=False)


@pytest.mark.parametrize(("max_retries", "total"), [(Retry(4, read=1), 4), (3, 3), (None, 3), (0, 0)])
def test_switched_off_it_shows_what_urllib3_goes_by(max_retries: Any, total: int) -> None:
    """``adapter.max_retries`` says how many retries urllib3 makes; what a mock patched is in force again after it."""
    adapter = RetryAdapter(max_retries=max_retries, enabled=False)
    assert total == adapter.max_retries.total
    with mock.patch.object(adapter, "max_retries", 7):
        assert 7 == adapter.max_retries.total
    with FaultServer([CloseAfterRequest()] * 20) as server:
        assert "ConnectionError" == outcome_of(adapter, server.url, "GET")
    assert min(total, 1) + 1 <= len(server.requests) <= total + 1


# In an outage (contract 6.2, 10.5).

IN_AN_OUTAGE = {"status_forcelist": [503], "raise_on_status": False}


def sent(adapter: Any) -> int:
    """The number of requests of one operation."""
    before = len(adapter.sent)
    adapter.send(prepare())
    return len(adapter.sent) - before


@pytest.mark.parametrize("patience", [5, 1000])
@pytest.mark.parametrize("total", [0, 1, 2, 5])
def test_its_operations_share_the_default_quota(total, patience) -> None:
    """None sends more than it counts; when retries do not help, there are soon hardly any, however patient it is."""
    adapter = scripted(*[503] * 100, max_retries=Retry(total, **IN_AN_OUTAGE), patience=patience)
    counts = [sent(adapter) for _ in range(20)]
    assert max(counts) <= total + 1
    assert [1] * 10 == counts[10:]


def test_patience_bounds_its_wait() -> None:
    """The first operation makes its own retries; one that finds none left waits until the outage is older than that."""
    adapter = scripted(*[503] * 100, max_retries=Retry(4, **IN_AN_OUTAGE), patience=3)
    assert 5 == sent(adapter)
    begun = adapter.clock.now()
    history = retry_history(adapter.send(prepare()))
    assert (StopReason.PATIENCE, True) == (history.stop_reason, adapter.clock.now() - begun <= 2 * 3)


def test_the_variable_of_patience_has_an_effect(monkeypatch) -> None:
    """``SMITHY_RETRY_PATIENCE`` holds for adapters of others that are translated, without a warning."""
    monkeypatch.setenv("SMITHY_RETRY_PATIENCE", "10")
    try:
        install(mounted="all")
        session = requests.Session()
        session.mount("https://", HTTPAdapter(max_retries=Retry(5, **IN_AN_OUTAGE)))
        adapter: Any = session.get_adapter("https://x")
        config = adapter.retry_config
    finally:
        uninstall()
    source = "environment variable SMITHY_RETRY_PATIENCE"
    assert (10, source) == (config.patience, config.source("patience"))
    assert ("payoff", 6) == (config.effective_quota, config.max_attempts)
