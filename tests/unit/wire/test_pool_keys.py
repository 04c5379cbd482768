"""The key of a pool is found again by its origin, and the pool manager is asked with it each time."""

from __future__ import annotations

import urllib3

from requests_smithy_retry.wire.pool_keys import PoolKeys

ORIGIN = "http://api.example.com"


def test_a_pool_is_found_by_its_origin() -> None:
    """Only where the manager has it, and under the options that the manager had then."""
    keys, manager = PoolKeys(), urllib3.PoolManager()
    pool = manager.connection_from_url(ORIGIN)
    assert keys.pool(manager, ORIGIN) is None
    keys.remember(manager, ORIGIN, pool)
    assert keys.pool(manager, ORIGIN) is pool
    assert keys.pool(urllib3.PoolManager(), ORIGIN) is None
    manager.connection_pool_kw["timeout"] = 3
    assert keys.pool(manager, ORIGIN) is None


def test_a_pool_that_its_manager_has_let_go_is_not_remembered() -> None:
    """Another thread may have cleared the manager meanwhile."""
    keys, manager = PoolKeys(), urllib3.PoolManager()
    pool = manager.connection_from_url(ORIGIN)
    manager.clear()
    keys.remember(manager, ORIGIN, pool)
    assert keys.pool(manager, ORIGIN) is None


def test_passwords_are_not_remembered() -> None:
    """Nor is anything of a manager of another class, which may choose its pools by more."""
    keys, manager = PoolKeys(), urllib3.PoolManager()
    keys.remember(manager, "http://user:hunter2@api.example.com", manager.connection_from_url(ORIGIN))
    assert keys.pool(manager, "http://user:hunter2@api.example.com") is None

    class Other(urllib3.PoolManager):
        """Another one."""

    other = Other()
    keys.remember(other, ORIGIN, other.connection_from_url(ORIGIN))
    assert keys.pool(other, ORIGIN) is None


def test_a_crawler_does_not_make_them_grow() -> None:
    """Of many origins all are forgotten at once, and looked up anew."""
    keys, manager = PoolKeys(), urllib3.PoolManager(num_pools=2000)
    pools = {f"http://{number}.example.com": None for number in range(300)}
    for origin in pools:
        keys.remember(manager, origin, manager.connection_from_url(origin))
    known = [origin for origin in pools if keys.pool(manager, origin) is not None]
    assert list(pools)[-len(known) :] == known
    assert 0 < len(known) <= 256
