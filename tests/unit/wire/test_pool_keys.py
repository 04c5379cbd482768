"""The key of a pool is found again by its origin, and the pool manager is asked with it each time."""

from __future__ import annotations

from pathlib import Path

import pytest
import urllib3

from requests_smithy_retry.wire.pools import PoolKeys, verify_key

ORIGIN = "http://api.example.com"


def test_a_pool_is_found_by_its_origin() -> None:
    """Only where the manager has it, and under the options that the manager had then."""
    keys, manager = PoolKeys(), urllib3.PoolManager()
    pool = manager.connection_from_url(ORIGIN)
    assert keys.pool(manager, ORIGIN, True) is None
    keys.remember(manager, ORIGIN, True, pool)
    assert keys.pool(manager, ORIGIN, True) is pool
    assert keys.pool(urllib3.PoolManager(), ORIGIN, True) is None
    manager.connection_pool_kw["timeout"] = 3
    assert keys.pool(manager, ORIGIN, True) is None


def test_a_pool_that_its_manager_has_let_go_is_not_remembered() -> None:
    """Another thread may have cleared the manager meanwhile."""
    keys, manager = PoolKeys(), urllib3.PoolManager()
    pool = manager.connection_from_url(ORIGIN)
    manager.clear()
    keys.remember(manager, ORIGIN, True, pool)
    assert keys.pool(manager, ORIGIN, True) is None


def test_passwords_are_not_remembered() -> None:
    """Nor is anything of a manager of another class, which may choose its pools by more."""
    keys, manager = PoolKeys(), urllib3.PoolManager()
    keys.remember(manager, "http://user:hunter2@api.example.com", True, manager.connection_from_url(ORIGIN))
    assert keys.pool(manager, "http://user:hunter2@api.example.com", True) is None

    class Other(urllib3.PoolManager):
        """Another one."""

    other = Other()
    keys.remember(other, ORIGIN, True, other.connection_from_url(ORIGIN))
    assert keys.pool(other, ORIGIN, True) is None


def test_a_crawler_does_not_make_them_grow() -> None:
    """Of many origins all are forgotten at once, and looked up anew."""
    keys, manager = PoolKeys(), urllib3.PoolManager(num_pools=2000)
    pools = {f"http://{number}.example.com": None for number in range(300)}
    for origin in pools:
        keys.remember(manager, origin, True, manager.connection_from_url(origin))
    known = [origin for origin in pools if keys.pool(manager, origin, True) is not None]
    assert list(pools)[-len(known) :] == known
    assert 0 < len(known) <= 256


@pytest.mark.parametrize("verify", [True, False, "bundle.pem", "folder"])
def test_what_certificates_are_checked_by_is_a_part_of_the_key(verify: bool | str, tmp_path: Path) -> None:
    """A folder and a file with the same name are not the same, nor is True the same as False."""
    if isinstance(verify, str):
        verify = str(tmp_path / verify)
        (tmp_path / "folder").mkdir()
    keys, manager = PoolKeys(), urllib3.PoolManager()
    pool = manager.connection_from_url(ORIGIN)
    keys.remember(manager, ORIGIN, verify_key(verify), pool)
    assert keys.pool(manager, ORIGIN, verify_key(verify)) is pool
    others = {verify_key(other) for other in (True, False, str(tmp_path), "other.pem")} - {verify_key(verify)}
    assert all(keys.pool(manager, ORIGIN, other) is None for other in others)


def test_what_is_no_check_is_left_to_requests() -> None:
    """None and numbers are truthy or not, and requests has its own rules for them."""
    assert [verify_key(value) for value in (None, 1, Path("bundle.pem"))] == [None, None, None]
