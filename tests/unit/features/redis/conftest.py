from __future__ import annotations

from collections.abc import Iterator

import pytest

from .servers import PROGRAMS, RedisCluster, RedisServer


@pytest.fixture(scope="session", params=PROGRAMS)
def _common_server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    server = RedisServer(program=request.param)
    yield server
    server.kill()


@pytest.fixture
def redis_server(_common_server: RedisServer) -> RedisServer:
    """A server that others use too; empty, and as configured at its start."""
    _common_server.command("FLUSHALL")
    _common_server.command("CONFIG", "SET", "maxmemory", "0")
    return _common_server


@pytest.fixture
def own_redis_server() -> Iterator[RedisServer]:
    """A server to kill."""
    server = RedisServer()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[RedisCluster]:
    """Three nodes."""
    cluster = RedisCluster()
    yield cluster
    cluster.kill()
