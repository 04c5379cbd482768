"""The quota on Redis and Valkey, on a real server: its script, its buckets, and what becomes of failures."""

from __future__ import annotations

import copy
import logging
import pickle
import re
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from requests_smithy_retry import SystemClock, TokenBucket
from requests_smithy_retry.features.redis import SCRIPT, RedisQuota, RedisTokenBucket
from requests_smithy_retry.quotas import RetryQuota, TokenBucketSnapshot

from .servers import RedisServer, becomes

redis = pytest.importorskip("redis")

pytestmark = pytest.mark.real_time

PATIENT = "?socket_timeout=60"
"""For a server that answers, however busy the machine is."""
KEY = "requests-smithy-retry:{scope}"


def bucket_on(url: str, name: str = "scope", **options: Any) -> RedisTokenBucket:
    return RedisQuota(url, **options)(name)


class TestTheScript:
    def run(self, server: RedisServer, give: float, take: float) -> tuple[int, float]:
        """Run it on a bucket of 100."""
        granted, text = server.command("EVAL", SCRIPT, "1", KEY, "100", str(give), str(take), "60000")
        return granted, float(text)

    def test_it_takes_all_or_nothing(self, redis_server):
        """A bucket that was never used is full, and a look stores nothing; an idle one is forgotten after a while."""
        assert ((1, 100), []) == (self.run(redis_server, 0, 0), redis_server.command("KEYS", "*"))
        takes = [self.run(redis_server, 0, take) for take in (60, 60, 40, 0.5)]
        assert [(1, 40), (0, 40), (1, 0), (0, 0)] == takes
        bucket_on(redis_server.url(PATIENT), "idle").acquire(1)
        assert 0 < redis_server.command("PTTL", "requests-smithy-retry:{idle}") <= RedisQuota.ttl * 1000

    @pytest.mark.once
    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60)), max_size=10))
    def test_it_does_what_the_bucket_in_memory_does(self, redis_server, steps):
        """Give and take, in any order and amount: the same answers and levels as a ``TokenBucket``."""
        redis_server.command("FLUSHALL")
        model = TokenBucket(100)
        for give, take in steps:
            model.release(give)
            assert (model.acquire(take), model.available) == self.run(redis_server, give, take)


class TestTheBucket:
    def test_two_processes_share_one_bucket(self, redis_server):
        """Tokens that one takes are missing for the other; each knows the level by its own last answer."""
        one, two = (bucket_on(redis_server.url(PATIENT), capacity=28) for _ in range(2))
        assert [True, True, False, False] == [bucket.acquire(14) for bucket in (one, two, one, two)]
        assert [TokenBucketSnapshot(28, 0, source="redis")] * 2 == [one.snapshot(), two.snapshot()]
        assert isinstance(one, RetryQuota)

    def test_a_snapshot_counts_successes_that_the_server_was_not_told_of(self, redis_server):
        """Without asking it, and never above the capacity."""
        bucket = bucket_on(redis_server.url(PATIENT), capacity=28)
        assert bucket.acquire(14)
        assert [14, 17, 28] == [bucket.snapshot(number).available for number in (0, 3, 50)]
        assert 14 == bucket.available

    def test_copies_are_of_the_same_bucket(self, redis_server):
        """A copied or unpickled bucket or quota shares with its original."""
        bucket = bucket_on(redis_server.url(PATIENT), capacity=30)
        copiers: list[Any] = [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))]
        others = [copied for each in copiers for copied in (each(bucket), each(bucket.quota)("scope"))]
        assert [("scope", 30, True)] * 6 == [(each.name, each.capacity, each.acquire(5)) for each in others]
        assert not bucket.acquire(1)

    def test_many_threads_never_overspend(self, redis_server):
        """32 threads are granted exactly what there is."""
        bucket = bucket_on(redis_server.url(PATIENT), capacity=70)
        with ThreadPoolExecutor(32) as pool:
            granted = sum(pool.map(lambda _: bucket.acquire(1), range(320)))
        assert (70, 0, "redis") == (granted, bucket.available, bucket.source)

    def test_a_client_of_the_programs_own(self, redis_server):
        """However it reads answers, it is used as it is, and left open."""
        for options in ({}, {"decode_responses": True}, {"protocol": 3}):
            with redis.Redis(port=redis_server.port, **options) as client:
                bucket = bucket_on(client, timeout=60)
                redis_server.command("FLUSHALL")
                assert (True, 486.0, "redis") == (bucket.acquire(14), bucket.available, bucket.source)
                del bucket
                assert client.ping()


class TestFailures:
    def test_a_server_that_is_gone(self, own_redis_server, caplog):
        """A bucket of this process stands in, and the log says so once."""
        own_redis_server.kill()
        bucket = bucket_on(own_redis_server.url(), capacity=20)
        assert [True, False, True] == [bucket.acquire(14), bucket.acquire(14), bucket.acquire(1)]
        assert TokenBucketSnapshot(20, 5, source="redis, fallen open") == bucket.snapshot()
        bucket.release(14)
        assert 19 == bucket.available
        assert ["WARNING"] == [record.levelname for record in caplog.records]
        place = f"redis://127.0.0.1:{own_redis_server.port}/0"
        assert re.search(rf"at {place} does not answer \(\w+\): a bucket of this process stands in", caplog.text)

    def test_kill_during_load_and_a_new_server(self, own_redis_server, monkeypatch):
        """The server dies under eight threads: no call raises, and a new server is found by itself."""
        monkeypatch.setattr("requests_smithy_retry.features.redis.PAUSE", 0.02)
        bucket = bucket_on(own_redis_server.url(), capacity=1e9)
        stop = threading.Event()

        def load() -> None:
            while not stop.is_set():
                bucket.acquire(1)
                bucket.release(1)
                SystemClock().sleep(0.001)

        with ThreadPoolExecutor(8) as pool:
            futures = [pool.submit(load) for _ in range(8)]
            try:
                assert becomes(lambda: bucket.source == "redis")
                own_redis_server.kill()
                assert becomes(lambda: bucket.source == "redis, fallen open")
                own_redis_server.start()
                assert becomes(lambda: bucket.source == "redis")
            finally:
                stop.set()
            assert [None] * 8 == [future.result() for future in futures]

    def test_a_password_is_used_and_never_shown(self, own_redis_server, caplog):
        """A right one lets in; a wrong one falls open; neither is in a log or a repr."""
        own_redis_server.command("CONFIG", "SET", "requirepass", "hunter2")
        urls = [f"redis://:{word}@127.0.0.1:{own_redis_server.port}{PATIENT}" for word in ("hunter2", "hunter3")]
        with caplog.at_level(logging.DEBUG, "requests_smithy_retry"):
            good, bad = map(bucket_on, urls)
            assert [(True, "redis"), (True, "redis, fallen open")] == [
                (each.acquire(1), each.source) for each in (good, bad)
            ]
        shown = caplog.text + repr([good, bad, good.quota, bad.quota, bad.snapshot(), vars(bad)])
        assert "AuthenticationError" in caplog.text
        assert "hunter" not in shown


class TestSeveralServers:
    def test_a_cluster(self, redis_cluster):
        """With a client of the cluster, each scope has its node; takes and returns of many go to the right ones."""
        client = redis.cluster.RedisCluster(host="127.0.0.1", port=redis_cluster.nodes[0].port)
        quota = RedisQuota(client, capacity=100, timeout=60)
        buckets = [quota(uuid.uuid4().hex) for _ in range(30)]
        with ThreadPoolExecutor(8) as pool:
            assert [True] * 30 == list(pool.map(lambda bucket: bucket.acquire(100), buckets))
            list(pool.map(lambda bucket: bucket.release(14), buckets))
        assert {(14, "redis")} == {(bucket.available, bucket.source) for bucket in buckets}
        assert {14.0} == {float(client.get(f"requests-smithy-retry:{{{bucket.name}}}")) for bucket in buckets}
        client.close()
