from __future__ import annotations

from collections.abc import Iterator

import pytest

from requests_smithy_retry import RetryConfig
from requests_smithy_retry.clock import SYSTEM_CLOCK
from requests_smithy_retry.quotas.redis import RedisTokenBucket
from requests_smithy_retry.quotas.redis.server import single_client
from requests_smithy_retry.quotas.settings import RedisSettings

from .servers import SentinelSetup


@pytest.fixture
def sentinels() -> Iterator[SentinelSetup]:
    setup = SentinelSetup()
    yield setup
    setup.kill()


@pytest.mark.real_time
def test_the_master_is_asked_for_and_followed(sentinels: SentinelSetup) -> None:
    """A sentinel that is gone is passed over; after a failover the new master has the bucket."""
    bucket = RedisTokenBucket(sentinels.url("?budget=60&retry_interval=0.1"), capacity=100)
    assert (bucket.acquire(14), bucket.source, bucket.available) == (True, "redis", 86)
    assert sentinels.master.command("HGET", "requests-smithy-retry:{default}", "level") == "86"
    for _ in range(1200):  # the replica has to be in step
        if sentinels.replica.command("EXISTS", "requests-smithy-retry:{default}"):
            break
        SYSTEM_CLOCK.sleep(0.05)
    sentinels.sentinel.command("SENTINEL", "FAILOVER", "svc")
    for _ in range(1200):
        if sentinels.replica.command("ROLE")[0] == "master":
            break
        SYSTEM_CLOCK.sleep(0.05)
    sentinels.master.kill()
    for _ in range(1200):
        if bucket.refresh():
            break
        SYSTEM_CLOCK.sleep(0.05)
    assert (bucket.source, bucket.acquire(14), bucket.available) == ("redis", True, 72)


def test_login_and_options_go_to_the_right_servers() -> None:
    """The URL's login is the master's, the sentinels' own is in the query; TLS is for all of them."""
    url = "rediss+sentinel://app:one@s1:1,s2/svc/2?sentinel_username=watch&sentinel_password=two&client_name=fleet"
    pool = single_client(url, RedisSettings(budget=0.5)).connection_pool  # type: ignore[attr-defined]
    connection = pool.make_connection()
    assert (connection.username, connection.password, connection.db) == ("app", "one", 2)
    assert (connection.client_name, type(connection).__name__) == ("fleet", "SentinelManagedSSLConnection")
    watched = [sentinel.connection_pool.make_connection() for sentinel in pool.sentinel_manager.sentinels]
    assert [(each.host, each.port) for each in watched] == [("s1", 1), ("s2", 26379)]
    assert {(each.username, each.password, type(each).__name__) for each in watched} == {
        ("watch", "two", "SSLConnection")
    }
    assert {each.socket_timeout for each in (*watched, connection)} == {5.0}


def test_a_sentinels_url_shows_no_secret() -> None:
    """The place of a sentinel's URL has the hosts and the service, without the secret."""
    config = RetryConfig(quota_url="redis+sentinel://app:secret@s1,[::1]:7/svc?sentinel_password=secret")
    assert str(config.quota_url) == "redis+sentinel://s1:26379,[::1]:7/svc"
    assert "secret" not in repr(config)
