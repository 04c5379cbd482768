from __future__ import annotations

import uuid

import pytest

from requests_smithy_retry import StandardRetryStrategy
from requests_smithy_retry.quotas.redis import RedisTokenBucket, link_to

from .servers import RedisCluster

pytestmark = pytest.mark.real_time

PATIENT = "?budget=60&connect_timeout=60&flush_interval=600"


def test_a_bucket_at_another_node_is_found(redis_cluster: RedisCluster) -> None:
    """Whichever node the URL names: all handles share the bucket, and nothing falls open."""
    name = uuid.uuid4().hex
    for left, node in zip((86, 72, 58), redis_cluster.nodes, strict=True):
        bucket = RedisTokenBucket(node.url(PATIENT), name, capacity=100)
        assert (bucket.acquire(14), bucket.source, bucket.available) == (True, "redis", left)
    assert redis_cluster.level(f"requests-smithy-retry:{{{name}}}") == 58


def test_buckets_of_all_nodes_over_one_link(redis_cluster: RedisCluster) -> None:
    """Each scope has its slot; the takes and returns of many threads go to the right nodes."""
    names = [uuid.uuid4().hex for _ in range(30)]
    handle = link_to(redis_cluster.nodes[0].url(PATIENT))
    buckets = [RedisTokenBucket(handle, name, capacity=100, refill_rate=0) for name in names]
    for bucket in buckets:
        assert (bucket.acquire(100), bucket.acquire(1), bucket.failures) == (True, False, 0)
        bucket.release(14)
    buckets[0].flush()
    assert {redis_cluster.level(f"requests-smithy-retry:{{{name}}}") for name in names} == {14}


def test_a_strategy_shares_its_scopes(redis_cluster: RedisCluster) -> None:
    """As with a single server, quota_url is all there is to configure."""
    prefix = uuid.uuid4().hex
    one, two = (
        StandardRetryStrategy(quota_url=node.url(f"{PATIENT}&prefix={prefix}"), quota=28)
        for node in redis_cluster.nodes[:2]
    )
    for scope in ("https://a.example.com:443", "https://b.example.com:443", "https://c.example.com:443"):
        found = [strategy.bucket(scope).acquire(14) for strategy in (one, two, one)]
        assert found == [True, True, False]
