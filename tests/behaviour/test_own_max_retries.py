"""``adapter.max_retries`` of a live adapter (contract 2.9): what is assigned counts; urllib3 has another.

The patterns are those that public code uses on an ``HTTPAdapter``.
"""

from __future__ import annotations

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool
from urllib3.util.retry import Retry

from requests_smithy_retry import (
    AdaptiveRetryStrategy,
    RetryAdapter,
    RetryConfigError,
    RetryListener,
    StandardRetryStrategy,
    retry_history,
)
from requests_smithy_retry.testing import FaultServer, Reply, ScriptedAdapter
from tests.kinds import Plain, WithConfig
from tests.support import scripted, send, session_with

duplicates = pytest.mark.parametrize(
    "duplicate",
    [lambda item: item, copy.copy, copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))],
    ids=["itself", "copy", "deepcopy", "pickle"],
)
in_each_form = pytest.mark.parametrize(
    "options", [{}, {"max_retries": 2}, {"max_retries": Retry(2, status_forcelist=[503])}], ids=str
)


def sent(adapter: ScriptedAdapter, status: int = 503, method: str = "GET", **options: Any) -> int:
    """Send against a server that always says the same, and count the requests."""
    before = len(adapter.sent)
    adapter.script = [status] * 50
    try:
        send(adapter, method, **options)
    except requests.exceptions.RetryError:
        pass
    return len(adapter.sent) - before


class Named(Retry):
    """A subclass that overrides nothing."""

    def __init__(self, *args: Any, purpose: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self.purpose = purpose


class Counting(Retry):
    """A subclass that decides by itself."""

    def increment(self, *args: Any, **options: Any) -> Any:
        if self.total == 1:
            raise LookupError
        return super().increment(*args, **options)


class TestReading:
    def test_the_settings_that_were_given_are_what_is_read(self):
        """Also those of a subclass, by the constructor and by assignment; it is the same object each time."""
        adapter = RetryAdapter(max_retries=Named(3, purpose="x", status_forcelist=[418]))
        shown = adapter.max_retries
        assert (3, "x", (418,)) == (shown.total, shown.purpose, shown.status_forcelist)
        assert (shown, Named) == (adapter.max_retries, type(shown.new()))
        adapter.max_retries = Retry(4)
        assert 4 == adapter.max_retries.total

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, {"total": 2, "raise_on_status": False, "respect_retry_after_header": True}),
            ({"max_retries": 5}, {"total": 5}),
            ({"max_retries": None}, {"total": 3}),
            ({"max_retries": 0}, {"total": 0}),
            ({"max_attempts": 4}, {"total": 3}),
            ({"enabled": False}, {"total": 0}),
            ({"max_retries": float("inf")}, {"total": None}),
            ({"retry_status_codes": [418]}, {"status_forcelist": {418}}),
            ({"allowed_methods": ["get"]}, {"allowed_methods": {"GET"}}),
            ({"allowed_methods": None}, {"allowed_methods": None}),
            ({"allowed_methods": []}, {"allowed_methods": frozenset()}),
            ({"backoff": 3}, {"backoff_factor": 3}),
            ({"retry_spec": "2.0"}, {"backoff_factor": 1.0}),
            ({"raise_on_status": True}, {"raise_on_status": True}),
            ({"strategy": StandardRetryStrategy(max_attempts=7, backoff=2)}, {"total": 6, "backoff_factor": 2}),
            ({"strategy": WithConfig(StandardRetryStrategy())}, {"total": 2}),
            ({"strategy": Plain(StandardRetryStrategy())}, {"total": None}),
        ],
    )
    def test_without_one_it_says_the_options_in_force(self, options, expected):
        """``max_retries`` shows the options in force in urllib3's terms, and is the same object each time."""
        adapter = RetryAdapter(**options)
        retry = adapter.max_retries
        assert expected == {name: getattr(retry, name) for name in expected}
        assert isinstance(retry, Retry)
        assert retry is adapter.max_retries


def set_total(retry: Any) -> None:
    retry.total = 5


def set_anew(retry: Any) -> None:
    retry.purpose = "y"


def replace_a_method(retry: Any) -> None:
    retry.increment = lambda *_, **__: None


def delete_total(retry: Any) -> None:
    del retry.total


class TestChangesInPlace:
    @in_each_form
    @pytest.mark.parametrize(
        ("change", "name"),
        [
            (set_total, "total"),
            (set_anew, "purpose"),
            (replace_a_method, "increment"),
            (delete_total, "total"),
        ],
    )
    def test_an_attribute_that_is_set_is_refused_by_name(self, options, change, name):
        """The error says what to do instead, and the policy stays."""
        adapter = scripted(**options)
        with pytest.raises(
            AttributeError, match=rf"{name} cannot be set here.*adapter\.max_retries\.new\({name}="
        ) as no:
            change(adapter.max_retries)
        assert (3, 2) == (sent(adapter), adapter.max_retries.total), no

    @pytest.mark.parametrize("collection", [{418}, [418], {418: None}], ids=["set", "list", "dict"])
    def test_its_collections_have_nothing_that_changes_them(self, collection):
        """What is shown in place of a set, a list or a dict cannot be added to."""
        shown = RetryAdapter(max_retries=Retry(2, status_forcelist=collection)).max_retries.status_forcelist
        assert [418] == list(shown)
        assert [] == [name for name in ("add", "append", "update", "setdefault", "__setitem__") if hasattr(shown, name)]

    def test_what_the_error_advises_does_it(self):
        """``adapter.max_retries = adapter.max_retries.new(total=...)`` counts from the next send on."""
        adapter = scripted()
        assert 3 == sent(adapter)
        for total in (4, 1, 0):
            adapter.max_retries = adapter.max_retries.new(total=total)
            assert (total + 1, total + 1) == (sent(adapter), adapter.strategy.max_attempts)

    def test_the_retry_that_was_given_is_read_once(self):
        """What is changed in it later on reaches neither the adapter that was given it nor another one."""
        retry = Retry(2, status_forcelist=[503])
        first, second = scripted(max_retries=retry), scripted()
        second.max_retries = retry
        retry.total = 9
        retry.status_forcelist.append(418)  # type: ignore[union-attr]
        for adapter in (first, second):
            assert (3, 1, 2) == (sent(adapter), sent(adapter, 418), adapter.max_retries.total)
            assert 2 == adapter.max_retries.new().total

    @pytest.mark.parametrize("given", [{}, {"max_retries": Retry(2, status_forcelist={418})}])
    @pytest.mark.parametrize("status", [202, 418])
    def test_listed_statuses_count_below_400_too(self, given, status):
        """A listed status below 400 is retried, although it would be a success otherwise."""
        adapter = scripted(**given)
        adapter.max_retries = adapter.max_retries.new(status_forcelist=[status])
        assert (3, 1) == (sent(adapter, status), sent(adapter, 500))

    @pytest.mark.parametrize("mode", ["standard", "adaptive"])
    def test_spent_quota_stays_spent(self, mode):
        """A new total, however often it is assigned, does not refill the quota."""
        adapter = scripted(quota=28, max_attempts=2, mode=mode)
        if not isinstance(adapter.strategy, StandardRetryStrategy):
            pytest.skip("max_retries cannot be assigned beside a wrapper that a program gave")
        assert [2, 2, 1] == [sent(adapter), sent(adapter), sent(adapter)]
        for total in (2, 3):
            adapter.max_retries = total
            assert 1 == sent(adapter)

    def test_an_assignment_while_others_send(self):
        """A send meanwhile goes by the old policy or by the new one."""
        adapter = RetryAdapter(backoff=0, quota=None)
        counts, stop = set(), threading.Event()

        def attempts() -> int:
            with session_with(adapter) as session:
                return len(retry_history(session.get(server.url)).attempts)  # type: ignore[union-attr]

        def work(_: int) -> None:
            while not stop.is_set():
                counts.add(attempts())

        with FaultServer(default=Reply(503)) as server, ThreadPoolExecutor(3) as pool:
            working = pool.map(work, range(3))
            try:
                for number in range(20):
                    adapter.max_retries = number % 2 + 1
                    assert number % 2 + 2 == attempts()
            finally:
                stop.set()
            assert [None] * 3 == list(working)
        assert {2, 3} >= counts


class TestAssigning:
    @in_each_form
    def test_it_may_be_put_aside_and_back(self, options):
        """By unittest.mock or by hand: retries are off in between, then all is as it was, spent quota included."""
        adapter = scripted(**options)
        config, strategy, retry = adapter.retry_config, adapter.strategy, adapter.max_retries
        with mock.patch.object(adapter, "max_retries", 0):
            assert 1 == sent(adapter)
        assert (3, config, strategy) == (sent(adapter), adapter.retry_config, adapter.strategy)
        assert retry is adapter.max_retries
        del adapter.max_retries
        assert retry is adapter.max_retries
        adapter.max_retries = 0
        assert 1 == sent(adapter)
        adapter.max_retries = retry
        assert (3, config) == (sent(adapter), adapter.retry_config)

    @duplicates
    @pytest.mark.parametrize(
        "options", [{}, {"max_retries": 4}, {"max_retries": Retry(2, status_forcelist=[503])}, {"allowed_methods": []}]
    )
    @pytest.mark.filterwarnings("ignore:Using an empty collection:FutureWarning")
    def test_a_copy_put_in_its_place_changes_nothing(self, duplicate, options):
        """A copy assigned in its place changes nothing, not even our own rules, which urllib3 cannot express."""
        adapter = scripted(**options)
        before, attempts = adapter.retry_config, sent(adapter)
        adapter.max_retries = duplicate(adapter.max_retries)
        assert (before, attempts) == (adapter.retry_config, sent(adapter))

    @in_each_form
    def test_new_changes_what_it_says(self, options):
        """``.new(...)`` keeps the rest."""
        adapter = scripted(**options)
        adapter.max_retries = adapter.max_retries.new(backoff_factor=0)
        assert 3 == sent(adapter)
        adapter.max_retries = adapter.max_retries.new(total=4)
        assert (5, 4) == (sent(adapter), adapter.max_retries.total)

    def test_one_adapter_takes_anothers(self):
        """An adapter that is given another's ``max_retries`` has its policy."""
        adapter, other = scripted(max_attempts=4, raise_on_status=True), scripted()
        other.max_retries = adapter.max_retries
        assert (4, True) == (sent(other), other.retry_config.raise_on_status)

    def test_a_subclass_with_its_own_methods_is_refused(self):
        """A subclass with its own methods is refused by name, and the earlier value stays."""
        adapter = scripted(max_retries=Retry(1, status_forcelist=[503]))
        before = adapter.max_retries
        with pytest.raises(RetryConfigError, match="Counting overrides increment"):
            adapter.max_retries = Counting(3)
        assert (before, 2) == (adapter.max_retries, sent(adapter))

    @pytest.mark.parametrize("strategy", [StandardRetryStrategy(), AdaptiveRetryStrategy()])
    def test_beside_a_given_strategy_it_is_refused(self, strategy):
        """Beside a given strategy ``max_retries`` is refused, when made and when assigned; the error names both."""
        expected = r"max_retries=2 \(from code\): .*strategy=<\w+ max_attempts=None>: only one of the two is allowed"
        with pytest.raises(RetryConfigError, match=expected):
            RetryAdapter(max_retries=2, strategy=strategy)
        adapter = RetryAdapter(strategy=strategy)
        with pytest.raises(RetryConfigError, match=expected):
            adapter.max_retries = 2
        assert (strategy, 2) == (adapter.strategy, adapter.max_retries.total)

    @pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
    def test_a_copied_adapter_has_its_own(self, duplicate):
        """A copied adapter has what was assigned before the copy, and not what is later."""
        adapter = RetryAdapter(max_retries=Named(2, purpose="x"))
        adapter.max_retries = Named(4, purpose="y")
        other = duplicate(adapter)
        adapter.max_retries = 1
        assert (4, 5, "y") == (other.max_retries.total, other.strategy.max_attempts, other.max_retries.purpose)
        other.max_retries = 6
        again = duplicate(other)
        assert (6, 7, 1) == (again.max_retries.total, again.strategy.max_attempts, adapter.max_retries.total)

    def test_before_the_constructor_it_reads_as_what_was_set(self):
        """A subclass may hand it to the constructor, which otherwise replaces it, as with HTTPAdapter."""

        class Early(RetryAdapter):
            def __init__(self, retry: Any, **options: Any) -> None:
                self.max_retries = retry
                super().__init__(**(options or {"max_retries": self.max_retries}))

        retry = Retry(9)
        assert 9 == Early(retry).max_retries.total
        assert 10 == Early(retry).strategy.max_attempts
        assert (0, 1) == (Early(0).max_retries.total, Early(0).strategy.max_attempts)
        assert 1 == Early(retry, max_attempts=2).max_retries.total
        assert 1 == pickle.loads(pickle.dumps(RetryAdapter(max_retries=1))).max_retries.total

    def test_before_the_constructor_it_is_an_attribute_that_nobody_set(self):
        """Before the constructor, reading ``max_retries`` raises AttributeError, as with HTTPAdapter."""
        with pytest.raises(AttributeError, match="no attribute 'max_retries'"):
            assert RetryAdapter.__new__(RetryAdapter).max_retries

    def test_a_mix_in_behind_us_may_assign_it(self):
        """A mix-in behind us may assign ``max_retries`` in its own constructor."""

        class Behind(HTTPAdapter):
            def __init__(self, *args: Any, **options: Any) -> None:
                super().__init__(*args, **options)
                self.max_retries = Retry(5)

        assert 6 == type("Mixed", (RetryAdapter, Behind), {})().strategy.max_attempts


class Reads(HTTPAdapter):
    """Sends in its own way, with the max_retries that it finds."""

    def send(self, request: Any, *_: Any, **__: Any) -> Any:
        pool = self.poolmanager.connection_from_url(request.url)
        raw = pool.urlopen(request.method, request.url, retries=self.max_retries, preload_content=False, redirect=False)
        return self.build_response(request, raw)


class Unprepared(RetryAdapter):
    """Finds its pools by itself, as adapters for unix sockets do."""

    def get_connection_with_tls_context(self, request: Any, *_: Any, **__: Any) -> Any:
        return HTTPConnectionPool("127.0.0.1", int(request.url.split(":")[2].split("/")[0]))

    def get_connection(self, url: Any, proxies: Any = None) -> Any:
        return HTTPConnectionPool("127.0.0.1", int(url.split(":")[2].split("/")[0]))


class Mixed(RetryAdapter, Reads):
    """Has it beneath."""


@pytest.mark.real_time
class TestWhatUrllib3IsGiven:
    @pytest.mark.parametrize("kind", [RetryAdapter, Unprepared, Mixed])
    def test_urllib3_never_retries_beneath_us(self, monkeypatch, kind):
        """urllib3 gets no retries, with our pools, foreign pools or a foreign ``send``, so a POST is sent once."""
        given = []
        urlopen = HTTPConnectionPool.urlopen

        def spy(pool: Any, *args: Any, **options: Any) -> Any:
            given.append((options["retries"].total, options["retries"].read))
            return urlopen(pool, *args, **options)

        monkeypatch.setattr(HTTPConnectionPool, "urlopen", spy)
        retry = Retry(5, status_forcelist=[503], allowed_methods=None, raise_on_status=False)
        adapter = kind(max_retries=retry, allowed_methods=["GET"], backoff=0, quota=500)
        with FaultServer(default=Reply(503)) as server:
            assert 503 == session_with(adapter).post(server.url).status_code
            assert 1 == len(server.requests)
            adapter.max_retries = 2
            session_with(adapter).get(server.url)
            assert 1 + 3 == len(server.requests)
        assert {(0, False)} == set(given)

    def test_what_an_answer_refers_to_cannot_be_changed(self):
        """``response.raw.retries`` is every adapter's; what its ``new`` makes is an ordinary Retry."""
        with FaultServer(default=Reply(200)) as server:
            inner = session_with(RetryAdapter()).get(server.url).raw.retries
        with pytest.raises(AttributeError, match=r"total cannot be set here"):
            inner.total = 20
        assert not inner.is_retry("GET", 503)
        made = inner.new(total=4)
        made.status_forcelist = [503]
        assert (Retry, False, 4) == (type(made), made.read, made.total)
        assert 1 == RetryAdapter(max_retries=inner).strategy.max_attempts

    @pytest.mark.parametrize(
        "given", [3, Retry(3, status_forcelist=[503]), Retry(None, status=3, status_forcelist=[503])]
    )
    @pytest.mark.parametrize("listeners", [[], [RetryListener()]])
    def test_an_answer_says_what_is_left(self, given, listeners):
        """``total - response.raw.retries.total`` is how often it was retried, as with HTTPAdapter."""
        adapter = RetryAdapter(max_retries=given, backoff=0, listeners=listeners)
        session, total = session_with(adapter), adapter.max_retries.total
        script = [Reply(200), Reply(404), Reply(503), Reply(503), Reply(200)]
        with FaultServer(script) as server:
            left = [session.get(server.url).raw.retries for _ in range(3)]
        assert [(total, 0), (total, 0), (total and 1, 2)] == [(retry.total, len(retry.history)) for retry in left]
        assert left[0] is left[1] is adapter.max_retries
