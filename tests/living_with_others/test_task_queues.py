"""The recipes of the page on task queues, by real workers with Redis as their broker."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from requests_smithy_retry import retry_options
from requests_smithy_retry.testing import FaultServer, Reply
from tests.project.test_docs import blocks_of
from tests.unit.features.redis.servers import RedisServer

pytestmark = [pytest.mark.real_time, pytest.mark.untraced]
PAGE = Path(__file__).resolve().parents[2] / "docs/howto/task-queues.md"


@pytest.fixture(autouse=True)
def _usual_signals() -> Iterator[None]:
    """Undo what a worker of RQ sets: processes that later tests start, and end by SIGTERM, would inherit it."""
    before = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    for number, handler in before:
        signal.signal(number, handler)


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    server = RedisServer()
    yield server
    server.kill()


@pytest.fixture
def service() -> Iterator[FaultServer]:
    """Is busy for three seconds, and then answers."""
    with FaultServer([Reply(429, {"Retry-After": "3"}), Reply(200)]) as server:
        yield server


def recipe(words: str) -> dict[str, Any]:
    """Run the first block of the page, and the one with some words in it."""
    space: dict[str, Any] = {"__name__": "recipe"}  # for Celery, tasks of one module and name are one: no other test's
    blocks = blocks_of(PAGE)
    for block in dict.fromkeys([blocks[0], *(block for block in blocks if words in block)]):
        exec(compile(block, PAGE.name, "exec"), space)
    return space


def came_in_time(service: FaultServer) -> bool:
    """Wait for the second request; return True if it came after the time that the first one was told."""
    until = time.monotonic() + 30
    while len(service.requests) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    first, second = (request.arrived for request in service.requests)
    return second - first >= 2.9


@pytest.fixture(scope="module")
def celery_recipe() -> Iterator[dict[str, Any]]:
    pytest.importorskip("celery")
    space = recipe("by_celery")
    yield space
    space["session"].close()


@pytest.mark.parametrize(
    ("reply", "expected"), [(Reply(503, {"Retry-After": "7"}), 7), (Reply(503), 30), (Reply(404), None)]
)
def test_a_failure_of_any_kind_puts_a_task_back(
    celery_recipe: dict[str, Any], reply: Reply, expected: float | None
) -> None:
    """For as long as the server asked for, or half a minute; an answer that would be the same fails the task."""
    with FaultServer([reply]) as server, retry_options(max_attempts=1), pytest.raises(requests.HTTPError) as caught:
        celery_recipe["session"].get(server.url).raise_for_status()
    if expected is None:
        with pytest.raises(requests.HTTPError):
            celery_recipe["seconds_of"](caught.value)
    else:
        assert pytest.approx(expected, abs=1) == celery_recipe["seconds_of"](caught.value)


def test_a_task_of_celery_is_put_back(redis: RedisServer, service: FaultServer, celery_recipe: dict[str, Any]) -> None:
    """For as long as the server asked for; the worker is free meanwhile."""
    from celery.contrib.testing.worker import start_worker

    app = celery_recipe["app"]
    app.conf.update(broker_url=redis.url(), worker_hijack_root_logger=False)
    with start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=30):
        celery_recipe["by_celery"].delay(service.url)
        assert came_in_time(service)


def test_a_job_of_rq_is_put_back(redis: RedisServer, service: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into the registry of scheduled jobs, and from there into its queue."""
    rq = pytest.importorskip("rq")
    from redis import Redis
    from rq.scheduler import RQScheduler

    space = recipe("by_rq")
    monkeypatch.setattr("tests.living_with_others.test_task_queues.by_rq", space["by_rq"], raising=False)
    with Redis(port=redis.port) as connection:
        queue = rq.Queue("mine", connection=connection)
        queue.enqueue("tests.living_with_others.test_task_queues.by_rq", service.url)
        worker = rq.SimpleWorker([queue], connection=connection)
        worker.work(burst=True)
        scheduler = RQScheduler([queue], connection=connection)
        scheduler.acquire_locks()
        while len(service.requests) < 2:
            time.sleep(0.1)
            scheduler.enqueue_scheduled_jobs()
            worker.work(burst=True)
        scheduler.release_locks()
    assert came_in_time(service)
    space["session"].close()


def test_a_message_of_dramatiq_is_put_back(redis: RedisServer, service: FaultServer) -> None:
    """By the broker's own middleware."""
    dramatiq = pytest.importorskip("dramatiq")
    from dramatiq.brokers.redis import RedisBroker

    space = recipe("by_dramatiq")
    broker = RedisBroker(port=redis.port)
    actor = dramatiq.actor(space["by_dramatiq"].fn, broker=broker, max_retries=None)
    worker = dramatiq.Worker(broker, worker_threads=1, worker_timeout=100)
    worker.start()
    try:
        actor.send(service.url)
        assert came_in_time(service)
    finally:
        worker.stop()
        broker.close()
        broker.client.connection_pool.disconnect()  # else the collector meets open sockets
        space["session"].close()
