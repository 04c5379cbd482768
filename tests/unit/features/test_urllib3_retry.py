"""A urllib3 Retry as options of ours (contract 4.2), and the same faults through both."""

import _thread
import gc
import math
import sys
import threading
import warnings
import weakref

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.util.retry import RequestHistory, Retry

from requests_smithy_retry import RetryAdapter, RetryConfigError, RetryConfigWarning, StopReason, retry_history
from requests_smithy_retry.features.urllib3_retry.rules import FailureKind, JitteredBackoff, Urllib3Rules
from requests_smithy_retry.features.urllib3_retry.translation import UNLIMITED, translate_retry
from requests_smithy_retry.testing.clock import FakeClock
from tests.faults import CloseAfterRequest, CutBody, FaultServer, Reply, ResetAfterRequest, refusing_port, try_later

URLLIB3_2 = int(urllib3.__version__.split(".")[0]) >= 2
NEW = pytest.mark.skipif(not URLLIB3_2, reason="an option of urllib3 2.x")


def translated(*args, **options):
    return RetryAdapter(max_retries=Retry(*args, **options)).retry_config


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"total": 5}, {"max_attempts": 6, "retry_status_codes": frozenset(), "raise_on_status": True}),
        ({"total": 0, "status_forcelist": [503]}, {"max_attempts": 1, "raise_on_status": True}),
        ({"total": 0}, {"max_attempts": 1, "raise_on_status": False, "rules": None}),
        ({"total": False}, {"max_attempts": 1, "raise_on_status": False}),
        ({"total": False, "status_forcelist": [503]}, {"max_attempts": 1, "raise_on_status": True}),
        ({"total": -1}, {"max_attempts": 1, "raise_on_status": True}),
        ({"total": None}, {"max_attempts": UNLIMITED}),
        ({"total": math.inf}, {"max_attempts": UNLIMITED}),
        ({"total": 3.0}, {"max_attempts": 4}),
        ({"total": None, "connect": 1, "read": 2, "status": 3, "other": 4}, {"max_attempts": 11}),
        ({"total": 3, "status_forcelist": [429, 503]}, {"retry_status_codes": frozenset({429, 503})}),
        ({"total": 3, "allowed_methods": ["get", "POST"]}, {"allowed_methods": frozenset({"GET", "POST"})}),
        ({"total": 3, "status_forcelist": 500}, {"retry_status_codes": frozenset({500})}),
        ({"total": 3, "status_forcelist": range(598, 601)}, {"retry_status_codes": frozenset({598, 599})}),
        ({"total": 3, "allowed_methods": "GET"}, {"allowed_methods": frozenset({"GET"})}),
        ({"total": 3, "allowed_methods": "GET, POST|put"}, {"allowed_methods": frozenset({"GET", "POST", "PUT"})}),
        ({"total": 3, "allowed_methods": None}, {"allowed_methods": None, "strict_methods": True}),
        ({"total": 3, "raise_on_status": False}, {"raise_on_status": False}),
        ({"total": 3}, {"initial_backoff": None, "max_backoff": 20.0, "max_retry_after": 120.0}),
        (
            {"total": 3, "backoff_factor": 0.5},
            {"initial_backoff": 0.5, "throttling_backoff": 0.5, "max_backoff": 120},
        ),
        pytest.param({"total": 3, "backoff_max": 7}, {"max_backoff": 7, "initial_backoff": None}, marks=NEW),
        pytest.param({"total": 3, "retry_after_max": 9}, {"max_retry_after": 9}, marks=NEW),
    ],
)
def test_counts_methods_and_statuses_are_the_users(options, expected):
    """Each option of a Retry becomes an option of ours, and says that it came from max_retries."""
    config = translated(**options)
    assert expected == {name: getattr(config, name) for name in expected}
    assert "max_retries" == config.source("max_attempts")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Urllib3Rules(hinted_status_codes=frozenset({413, 429, 503}))),
        ({"respect_retry_after_header": False}, Urllib3Rules(respect_retry_after=False)),
        (
            {"connect": 1, "read": False, "other": -1},
            Urllib3Rules(
                limits=((FailureKind.CONNECT, 1), (FailureKind.READ, 0), (FailureKind.OTHER, 0)),
                hinted_status_codes=frozenset({413, 429, 503}),
            ),
        ),
        (
            {"connect": 2.0, "read": math.inf},
            Urllib3Rules(limits=((FailureKind.CONNECT, 2),), hinted_status_codes=frozenset({413, 429, 503})),
        ),
    ],
)
def test_the_rest_becomes_rules(options, expected):
    """A part of a ``Retry`` that no other option can express is kept as a value in the config."""
    assert expected == translated(3, **options).rules


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"total": 1}, {413, 429, 503}),
        ({"total": -1}, {413, 429, 503}),
        ({"total": None}, set()),
        ({"total": 0, "status_forcelist": [500]}, set()),
        ({"total": 1, "respect_retry_after_header": False}, set()),
    ],
)
def test_statuses_with_a_hint_are_retried_where_urllib3_does(options, expected):
    """urllib3 retries hinted statuses if the total is set and not 0."""
    assert expected == translated(**options).rules.hinted_status_codes


def test_a_retry_that_an_older_urllib3_made_is_translated():
    """Unpickled under urllib3 2.x it lacks what came with that; in 1.26 each one does."""

    class Slow(Retry):
        DEFAULT_BACKOFF_MAX = 30

    retry = Slow(3, backoff_factor=1)
    for name in ("backoff_jitter", "backoff_max", "retry_after_max"):
        vars(retry).pop(name, None)
    config = RetryAdapter(max_retries=retry).retry_config
    assert (0.0, 30, 120.0) == (config.rules.backoff_jitter, config.max_backoff, config.max_retry_after)


@NEW
def test_backoff_jitter_is_added_within_the_cap():
    """A delay becomes longer by up to the jitter, and never longer than the longest backoff."""
    adapter = RetryAdapter(max_retries=Retry(3, backoff_factor=1, backoff_jitter=2, backoff_max=4), jitter="none")
    backoff = adapter.retry_config.backoff(1)
    assert isinstance(backoff, JitteredBackoff)
    backoff.inner.random = lambda: 0.5
    assert [0.0, 2.0, 3.0, 4] == [backoff.compute_next_backoff_delay(retry) for retry in range(4)]


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        ({"redirect": 2}, "redirect=2 has no effect, requests follows redirects itself"),
        ({"raise_on_redirect": False}, "raise_on_redirect=False has no effect, requests follows redirects itself"),
        (
            {"remove_headers_on_redirect": ["X"]},
            "remove_headers_on_redirect has no effect, requests removes headers itself",
        ),
        ({"history": (RequestHistory("GET", "/", None, 500, None),)}, "its history is not taken over"),
    ],
)
def test_what_cannot_be_honoured_is_listed(options, phrase):
    """One warning lists it, and points at the line that made the adapter."""
    retry = Retry(3, **options)
    with pytest.warns(RetryConfigWarning) as caught:
        RetryAdapter(max_retries=retry)
    assert [(f"max_retries={retry!r}: {phrase}", __file__)] == [(str(item.message), item.filename) for item in caught]


def test_code_without_a_name_is_warned_too():
    """Code without a module name, such as that of ``exec`` in a namespace of its own, gets the warning, too."""
    with pytest.warns(RetryConfigWarning, match="redirect=2") as caught:
        exec("make(max_retries=retry)", {"make": RetryAdapter, "retry": Retry(3, redirect=2)})
    assert ["<string>"] == [warning.filename for warning in caught]


def test_a_thread_that_begins_in_the_package_is_warned_too():
    """No caller's code is on its stack."""
    with pytest.warns(RetryConfigWarning, match="redirect=2"):
        adapter_in_a_bare_thread()


def adapter_in_a_bare_thread():
    """Make one in a thread that runs nothing else, and wait until it has ended."""
    ended = threading.Event()
    retry = Retry(3, redirect=2)
    weakref.finalize(retry, ended.set)
    _thread.start_new_thread(RetryAdapter, (), {"max_retries": retry})
    del retry
    for _ in range(1000):
        if ended.wait(0.01):
            return
        gc.collect()
    raise AssertionError("the thread's adapter is still there, and its Retry with it")  # pragma: no cover


def test_one_warning_lists_everything():
    """Two things that cannot be honoured make one warning."""
    with pytest.warns(RetryConfigWarning, match="redirect=2 .*; remove_headers") as caught:
        translated(3, redirect=2, remove_headers_on_redirect=["X"])
    assert 1 == len(caught)


@pytest.mark.parametrize("redirect", [0, False, None])
def test_no_redirects_is_nothing_to_warn_about(redirect):
    """Switching urllib3's redirects off is what requests does itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        translated(3, redirect=redirect)


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


def test_a_subclass_with_other_defaults_is_translated():
    """A constructor or a class attribute of its own decides nothing that cannot be read from the instance."""
    config = RetryAdapter(max_retries=Patient()).retry_config
    assert (5, frozenset({503})) == (config.max_attempts, config.rules.hinted_status_codes)


def test_a_subclass_that_makes_instances_in_its_own_way_is_translated():
    """Methods that make instances do not decide about retries, so the subclass is translated."""
    assert 6 == RetryAdapter(max_retries=Renewing(5)).retry_config.max_attempts


def test_a_subclass_without_retries_is_as_good_as_the_default():
    """A subclass without retries does not raise for a status, so it equals ``Retry(0, read=False)``."""
    assert translate_retry(Patient(0)) == translate_retry(Retry(0, read=False)) == {"max_attempts": 1}


def test_a_subclass_with_its_own_methods_is_refused():
    """The error says which methods, why, and what to do instead; an instance's own counts too."""
    counting = Counting(3)
    with pytest.raises(RetryConfigError) as caught:
        RetryAdapter(max_retries=counting)
    assert str(caught.value) == (
        f"max_retries={counting!r} (from code): a urllib3 Retry that overrides no method is allowed, but for an "
        "increment that calls super().increment and raises nothing itself, and Counting overrides increment: what they "
        "decide cannot be translated. Write a classifier (classifiers=...), a backoff strategy or a retry strategy "
        "instead, and give max_attempts"
    )
    retry = Retry(3)
    retry.get_backoff_time = lambda: 1
    with pytest.raises(RetryConfigError, match="Retry overrides get_backoff_time"):
        RetryAdapter(max_retries=retry)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("total", True),
        ("total", 1.5),
        ("connect", "3"),
        ("read", True),
        ("status", 2.5),
        ("status", -math.inf),
        ("other", ()),
    ],
)
def test_a_count_that_is_none_is_refused(name, value):
    """Only whole numbers, False and None count; the error names count, value, source and what is allowed."""
    with pytest.raises(RetryConfigError) as caught:
        translated(**{"total": 3, name: value})
    assert str(caught.value) == (
        f"{name}={value!r} (from max_retries): a whole number of retries, False or None is allowed"
    )


@pytest.mark.skipif(URLLIB3_2, reason="an attribute of urllib3 1.26")
def test_the_old_name_of_the_methods_counts():
    """urllib3 1.26 goes by method_whitelist where an instance has it."""
    retry = Retry(3)
    retry.method_whitelist = ["POST"]
    assert frozenset({"POST"}) == RetryAdapter(max_retries=retry).retry_config.allowed_methods


def test_options_in_code_beat_the_retry():
    """Options given beside max_retries override it, but max_attempts is refused there."""
    config = RetryAdapter(max_retries=Retry(3, status_forcelist=[503]), raise_on_status=False).retry_config
    assert (False, "code", 4) == (config.raise_on_status, config.source("raise_on_status"), config.max_attempts)


def test_assigning_translates_and_takes_the_last_one_back():
    """Assignment to the live adapter does what the constructor does; nothing of the old Retry stays."""
    adapter = RetryAdapter(timeout=3)
    adapter.max_retries = Retry(5, status_forcelist=[418], connect=1)
    assert (6, 6, 3) == (adapter.retry_config.max_attempts, adapter.strategy.max_attempts, adapter.retry_config.timeout)
    adapter.max_retries = 2
    assert RetryAdapter(timeout=3, max_retries=2).retry_config == adapter.retry_config
    adapter.max_retries = None
    assert 4 == adapter.retry_config.max_attempts
    with pytest.raises(RetryConfigError, match="Counting overrides"):
        adapter.max_retries = Counting(1)
    assert (3, 4) == (adapter.max_retries.total, adapter.retry_config.max_attempts)


@pytest.mark.parametrize("statuses", ["503", b"503", ["503"]])
def test_statuses_as_text_are_refused(statuses):
    """A status as text never matches in urllib3; the error names the option."""
    with pytest.raises(RetryConfigError, match=r"^(status_forcelist|retry_status_codes)="):
        translated(3, status_forcelist=statuses)


def outcome_of(adapter, server_url, method):
    """Return the end of a request: a status or the name of the exception."""
    with requests.Session() as session:
        session.mount("http://", adapter)
        try:
            return session.request(method, server_url, data=b"x" if method == "POST" else None).status_code
        except requests.RequestException as error:
            return type(error).__name__


def compare(script, retry, method="GET"):
    """Run one script through urllib3's retries and through ours; return (outcome, requests) of each."""
    results = []
    for make in (
        lambda: HTTPAdapter(max_retries=retry),
        lambda: RetryAdapter(max_retries=retry, clock=FakeClock(), quota=500),
    ):
        with FaultServer(script, default=Reply(body=b"end")) as server:
            ended = outcome_of(make(), server.url, method)
            results.append((ended, len(server.requests)))
    return tuple(results)


SAME = [
    ([Reply(503)], {"total": 3, "status_forcelist": [503]}, "GET", (200, 2)),
    ([Reply(503)] * 3, {"total": 2, "status_forcelist": [503]}, "GET", ("RetryError", 3)),
    ([Reply(503)] * 3, {"total": 2, "status_forcelist": [503], "raise_on_status": False}, "GET", (503, 3)),
    ([Reply(503)] * 3, {"total": 5, "status": 1, "status_forcelist": [503]}, "GET", ("RetryError", 2)),
    ([Reply(503)], {"total": 3}, "GET", (503, 1)),
    ([Reply(500)], {"total": 3, "status_forcelist": [503]}, "GET", (500, 1)),
    ([Reply(503)], {"total": 3, "status_forcelist": [503]}, "POST", (503, 1)),
    ([Reply(503)], {"total": 3, "status_forcelist": [503], "allowed_methods": None}, "POST", (200, 2)),
    ([ResetAfterRequest()], {"total": 3}, "GET", (200, 2)),
    ([CloseAfterRequest()], {"total": 3}, "GET", (200, 2)),
    ([CloseAfterRequest()], {"total": 3}, "POST", ("ConnectionError", 1)),
    ([CloseAfterRequest()] * 3, {"total": 3, "read": 1}, "GET", ("ConnectionError", 2)),
    ([CloseAfterRequest()], {"total": 3, "read": False}, "GET", ("ConnectionError", 1)),
    ([CloseAfterRequest()], {"total": 0}, "GET", ("ConnectionError", 1)),
    ([Reply(503)], {"total": False, "status_forcelist": [503]}, "GET", ("RetryError", 1)),
    ([Reply(503)], {"total": -1, "status_forcelist": [503]}, "GET", ("RetryError", 1)),
    ([try_later(503, 0)], {"total": -1}, "GET", ("RetryError", 1)),
    ([try_later(503, 0)], {"total": 0}, "GET", (503, 1)),
    ([try_later(503, 0)], {"total": None}, "GET", (503, 1)),
    ([Reply(418)], {"total": 1, "status_forcelist": [418]}, "PUT", (200, 2)),
]


@pytest.mark.real_time
@pytest.mark.parametrize(("script", "options", "method", "expected"), SAME)
def test_the_same_faults_end_in_the_same_way(script, options, method, expected):
    """Outcome and number of requests are those of HTTPAdapter with the same Retry."""
    assert (expected, expected) == compare(script, Retry(**options), method)


CUT = "ChunkedEncodingError" if URLLIB3_2 else 200

DIFFERENT = [
    # a cut body is a failure of the attempt (contract 2.3); urllib3 1.26 does not even notice
    ([CutBody(Reply(body=b"0123456789"))], {"total": 3}, "GET", (CUT, 1), (200, 2)),
    # but for a POST that the Retry allows: the server has answered, so it was applied
    pytest.param(
        [CutBody(Reply(body=b"0123456789"))],
        {"total": 3, "allowed_methods": None},
        "POST",
        (CUT, 1),
        (CUT, 1),
        marks=NEW,
    ),
    # the last response of a hinted status is raised for as well
    ([try_later(503, 0)] * 2, {"total": 1}, "GET", (503, 2), ("RetryError", 2)),
    # a hint above max_retry_after is not slept (contract 7.3)
    pytest.param(
        [try_later(503, 5)], {"total": 1, "retry_after_max": 0}, "GET", (200, 2), ("RetryError", 1), marks=NEW
    ),
]


@pytest.mark.real_time
@pytest.mark.parametrize(("script", "options", "method", "theirs", "ours"), DIFFERENT)
def test_where_the_same_faults_end_differently(script, options, method, theirs, ours):
    """Each difference is in docs/howto/move-from-urllib3-retry.md, with its reason."""
    assert (theirs, ours) == compare(script, Retry(**options), method)


@pytest.mark.real_time
def test_an_unsent_post_is_retried_as_urllib3_does():
    """If no connection is made, the method does not matter, and ``connect`` counts."""
    with refusing_port() as port:
        adapter = RetryAdapter(max_retries=Retry(5, connect=1), clock=FakeClock())
        request = requests.Request("POST", f"http://127.0.0.1:{port}/", data=b"x").prepare()
        with pytest.raises(requests.ConnectionError) as caught:
            adapter.send(request)
    history = retry_history(caught.value)
    assert (2, StopReason.MAX_ATTEMPTS) == (len(history.attempts), history.stop_reason)
    assert "1 retries after connect failures are allowed by the urllib3 Retry" in history.sentence


@pytest.mark.real_time
@pytest.mark.parametrize(("respect", "slept"), [(True, [7.0]), (False, [0.0])])
def test_hints_are_heeded_unless_the_retry_says_no(respect, slept):
    """respect_retry_after_header=False leaves the computed backoff alone."""
    retry = Retry(1, status_forcelist=[503], respect_retry_after_header=respect)
    clock = FakeClock()
    with FaultServer([try_later(503, 7)]) as server:
        assert 200 == outcome_of(RetryAdapter(max_retries=retry, clock=clock, initial_backoff=0), server.url, "GET")
    assert [delay for delay in slept if delay] == clock.sleeps


def test_unlimited_means_the_largest_number():
    """A Retry without any limit leaves the end to the quota."""
    assert sys.maxsize == UNLIMITED
