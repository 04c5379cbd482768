from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .servers import RedisServer

pytestmark = [pytest.mark.real_time, pytest.mark.untraced]

ROOT = Path(__file__).resolve().parents[4]
WORKER = [sys.executable, "-m", "tests.unit.features.redis.worker"]
IN_A_QUOTA = 500 // 14
"""Retries that one full quota pays."""


@pytest.fixture
def dead_service() -> Iterator[str]:
    """An address at which nobody listens, and nobody will."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"


@pytest.fixture
def quota(redis_server: RedisServer) -> str:
    return redis_server.url("?socket_timeout=60")


def run_fleet(quota: str, service: str, processes: int, operations: int) -> list[dict]:
    workers = [
        subprocess.Popen([*WORKER, quota, service, str(operations)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for _ in range(processes)
    ]
    return [json.loads(worker.communicate()[0]) for worker in workers]


@pytest.mark.once
def test_four_processes_spend_a_shared_quota_once(quota: str, dead_service: str) -> None:
    """Against a dead service all of them together make the retries of one quota, whichever process comes first."""
    found = run_fleet(quota, dead_service, processes=4, operations=25)
    assert sum(worker["retries"] for worker in found) == IN_A_QUOTA
    why = f"the retry budget of {dead_service.rstrip('/')} is empty, and patience is 0"
    assert {worker["why"].split("; ")[0] for worker in found} == {f"gave up after attempt 1 of 3: {why}"}


def run_python(code: str, *arguments: str, returncode: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code, *arguments], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (returncode, "")
    return done.stdout


class TestTheEndOfAProcess:
    def level_after(self, server: RedisServer, code: str) -> float:
        run_python(code, server.url("?socket_timeout=60"))
        return float(server.command("GET", "requests-smithy-retry:{scope}"))

    def test_what_was_given_back_is_there(self, redis_server: RedisServer) -> None:
        """A process may end at any moment after a success, and in any way."""
        assert 460 == self.level_after(redis_server, TAKES)
        assert 420 == self.level_after(redis_server, TAKES + "os._exit(0)")

    def test_a_server_that_is_gone_delays_no_exit(self, own_redis_server: RedisServer) -> None:
        """The process exits in time and without a traceback."""
        code = TAKES + "import signal; os.kill(int(sys.argv[2]), signal.SIGKILL); bucket.acquire(1)"
        done = subprocess.run(
            [sys.executable, "-c", code, own_redis_server.url(), str(own_redis_server.process.pid)],
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert 0 == done.returncode
        assert "Traceback" not in done.stderr


TAKES = """
import os, sys
from requests_smithy_retry.features.redis import RedisQuota
bucket = RedisQuota(sys.argv[1])("scope")
bucket.acquire(100)
bucket.release(60)
"""
