"""Pools whose connections are prepared (contract 14.1)."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import urllib3
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import EmptyPoolError

from requests_smithy_retry import RetryAdapter
from requests_smithy_retry.clock import Deadline
from requests_smithy_retry.features.addresses import AddressMemory
from requests_smithy_retry.testing import FakeClock, FaultServer
from requests_smithy_retry.wire import private
from requests_smithy_retry.wire.pools import (
    PreparingPool,
    WaitingPool,
    begin_without_pools,
    prepare,
    preparing,
    use_our_pools,
)
from requests_smithy_retry.wire.response import reader_of
from requests_smithy_retry.wire.state import this_thread


@pytest.mark.parametrize("pool_class", [HTTPConnectionPool, HTTPSConnectionPool])
def test_a_prepared_class_is_made_once(pool_class: Any) -> None:
    """The prepared class keeps its name, and is made once; preparing it again returns it."""
    made = preparing(pool_class)
    assert made is preparing(pool_class)
    assert made is preparing(made)
    assert issubclass(made, pool_class)
    assert issubclass(made, PreparingPool)
    assert made.__name__ == pool_class.__name__


@pytest.mark.parametrize("block", [False, True])
def test_watching_twice_is_watching_once(block: bool) -> None:
    """A second call changes nothing; only pools that block become waiting pools."""
    manager = urllib3.PoolManager(block=block)
    memory = AddressMemory(FakeClock())
    use_our_pools(manager, memory)
    before: Any = dict(manager.pool_classes_by_scheme), manager._new_pool
    use_our_pools(manager, memory)
    assert before == (manager.pool_classes_by_scheme, manager._new_pool)
    assert [issubclass(pool, WaitingPool) for pool in before[0].values()] == [block, block]


def test_nobody_waits_for_a_connection_after_the_deadline() -> None:
    """After the deadline no connection is given out, not even a free one, because nothing could be sent by it."""
    clock = FakeClock()
    with preparing(HTTPConnectionPool, waits=True)("127.0.0.1", 9, block=True) as pool:
        deadline = Deadline(clock.now(), clock)
        with this_thread.under(deadline), pytest.raises(EmptyPoolError, match="before the deadline"):
            pool._get_conn()
        assert pool._get_conn(0.1) is not None


def test_a_manager_without_the_option_does_not_wait() -> None:
    """A foreign manager need not say whether its pools block."""
    manager = SimpleNamespace(connection_pool_kw={}, pool_classes_by_scheme={"http": HTTPConnectionPool})
    use_our_pools(manager, AddressMemory(FakeClock()))
    assert not issubclass(manager.pool_classes_by_scheme["http"], WaitingPool)


class OwnManager(RetryAdapter):
    """Makes its pool manager in the way of many a recipe, without asking what is above it."""

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **options: Any) -> None:
        self.poolmanager = urllib3.PoolManager(num_pools=connections, maxsize=maxsize, block=block, **options)


class StrangeManager(RetryAdapter):
    """Has something else in its place."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        self.poolmanager = SimpleNamespace(clear=list)


@pytest.mark.parametrize("again", [lambda it: it, copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_manager_made_by_a_subclass_is_watched(again: Any) -> None:
    """The manager of a copy is watched as well."""
    adapter = again(OwnManager())
    assert issubclass(adapter.poolmanager.pool_classes_by_scheme["http"], PreparingPool)


def test_a_manager_of_another_kind_is_left_alone() -> None:
    """A manager without pool classes stays as it is, so the adapter knows nothing of the wire."""
    adapter = StrangeManager()
    assert vars(adapter.poolmanager) == {"clear": list}
    adapter.close()


def test_a_connection_of_another_kind_is_left_alone() -> None:
    """A connection of another kind, whose way to connect is not known, is left unchanged."""

    class Own:
        def connect(self) -> None:
            """Do nothing."""

    own = Own()
    assert prepare(own, PreparingPool.addresses) is own
    assert vars(own) == {}


def test_the_pools_of_urllib3_future_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it has replaced urllib3, nothing below its pools is as it is known here."""
    monkeypatch.setattr(private, "are_known", lambda: False)
    adapter = RetryAdapter()
    assert HTTPConnectionPool is adapter.poolmanager.pool_classes_by_scheme["http"]
    with FaultServer() as server, requests.Session() as made:
        made.mount("http://", adapter)
        with made.get(server.url, stream=True) as response:
            assert reader_of(response.raw) is None


def test_what_a_manager_was_configured_with_stays() -> None:
    """A manager that begins without pools keeps its limit and its settings."""
    adapter = RetryAdapter(pool_connections=3)
    adapter.poolmanager.connection_pool_kw["assert_hostname"] = "example.com"
    before = adapter.poolmanager.connection_from_url("https://example.com")
    begin_without_pools(adapter.poolmanager)
    after = adapter.poolmanager.connection_from_url("https://example.com")
    assert (before is after, type(before)) == (False, type(after))
    assert (3, "example.com") == (adapter.poolmanager.pools._maxsize, after.assert_hostname)
