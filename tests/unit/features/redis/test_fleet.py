from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from requests_smithy_retry.testing import refusing_port

from .servers import RedisServer

pytestmark = [pytest.mark.real_time, pytest.mark.untraced]

ROOT = Path(__file__).resolve().parents[4]
IN_A_QUOTA = 500 // 14
"""Retries that one full quota pays."""


WORKER = """
import json, sys
import requests
from requests_smithy_retry import mount, retry_history

session = mount(requests.Session(), quota=sys.argv[1], max_attempts=3, backoff=0, patience=0)
retries = 0
for _ in range(25):
    try:
        session.get(sys.argv[2])
    except requests.ConnectionError as error:
        history = retry_history(error)
        retries += len(history.attempts) - 1
print(json.dumps([retries, history.sentence]))
"""
TAKES = """
import os, sys
from requests_smithy_retry.features.redis import RedisQuota
bucket = RedisQuota(sys.argv[1])("scope")
bucket.acquire(100)
bucket.release(60)
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Run a program in a process of its own."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


@pytest.mark.once
def test_four_processes_spend_a_shared_quota_once(redis_server: RedisServer) -> None:
    """Against a dead service all of them together make the retries of one quota, whichever process comes first."""
    with refusing_port() as port:
        service = f"http://127.0.0.1:{port}"
        workers = [start(WORKER, redis_server.url("?socket_timeout=60"), service) for _ in range(4)]
        retries, sentences = zip(*(json.loads(worker.communicate()[0]) for worker in workers), strict=True)
    assert sum(retries) == IN_A_QUOTA
    why = f"gave up after attempt 1 of 3: the retry budget of {service} is empty, and patience is 0"
    assert {sentence.split("; ")[0] for sentence in sentences} == {why}


@pytest.mark.parametrize("end", ["", "os._exit(0)"])
def test_what_was_given_back_is_there(redis_server: RedisServer, end: str) -> None:
    """A process may end at any moment after a success, and in any way."""
    process = start(TAKES + end, redis_server.url("?socket_timeout=60"))
    assert ("", "", 0) == (*process.communicate(), process.returncode)
    assert 460 == float(redis_server.command("GET", "requests-smithy-retry:{scope}"))


def test_a_server_that_is_gone_delays_no_exit(own_redis_server: RedisServer) -> None:
    """The process exits in time and without a traceback."""
    code = f"{TAKES}import signal; os.kill(int(sys.argv[2]), signal.SIGKILL); bucket.acquire(1)"
    process = start(code, own_redis_server.url(), own_redis_server.process.pid)
    said = process.communicate(timeout=600)[1]
    assert (0, False) == (process.returncode, "Traceback" in said)
