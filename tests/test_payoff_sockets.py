"""The payoff quota on real sockets: an outage and its end, a retry that pays, threads. Only the clock is fake."""

from __future__ import annotations

import threading

import pytest
import requests
import requests.exceptions as rex

from requests_smithy_retry import PayoffTokenBucket, RetryAdapter, StopReason, mount, retry_history
from requests_smithy_retry.testing import FaultServer, Reply, Stall, refusing_port, try_later
from requests_smithy_retry.testing.clock import FakeClock
from tests.support import session_with

OK, DOWN = Reply(body=b"up again"), Reply(503)
MODES = pytest.mark.parametrize("mode", ["standard", "adaptive"])
NAMES = pytest.mark.parametrize("name", ["payoff", "payoff-settling"])


def client_for(**options) -> tuple[requests.Session, RetryAdapter]:
    """A session on a fake clock that stands still: every answer is instant, and waits are of no seconds."""
    adapter = RetryAdapter(clock=FakeClock(), initial_backoff=0, throttling_backoff=0, pool_maxsize=128, **options)
    return session_with(adapter), adapter


def bucket_of(adapter: RetryAdapter):
    (level,) = adapter.strategy.snapshot().buckets.values()
    return level


@MODES
@NAMES
def test_a_burst_of_503s_is_met_with_two_retries_and_one_success_later_all_is_well(mode, name):
    """Five operations make seven requests; four successes later the bucket is full, and the next 503 is retried."""
    with FaultServer([DOWN] * 7 + [OK] * 4 + [DOWN, OK]) as server:
        client, adapter = client_for(mode=mode, quota=name)
        with client:
            ends = [retry_history(client.get(server.url)) for _ in range(5)]
            assert 7 == len(server.requests)
            assert [3, 1, 1, 1, 1] == [len(end.attempts) for end in ends]
            expected = [StopReason.MAX_ATTEMPTS] + [StopReason.QUOTA_EXCEEDED] * 4
            assert expected == [end.stop_reason for end in ends]
            origin = server.url.rstrip("/")
            assert f"retries are not paying on {origin}: 0.4 of 1.6 tokens, an error costs 0.6" == ends[1].why
            spent = bucket_of(adapter)
            assert (pytest.approx(0.55), pytest.approx(1.75)) == (spent.available, spent.capacity)
            for _ in range(4):
                assert b"up again" == client.get(server.url).content
            full = bucket_of(adapter)
            assert pytest.approx(full.capacity) == full.available
            response = client.get(server.url)
            reward = 0.5 if name == "payoff" else 0.75
            assert (200, 2) == (response.status_code, len(retry_history(response).attempts))
            assert pytest.approx(full.available + 0.05 + reward) == bucket_of(adapter).available


@pytest.mark.real_time
@MODES
def test_in_a_black_hole_one_retry_is_made_and_after_it_everything_goes_on(mode):
    """Four operations, five requests; each refusal says why; the first success comes at the first try."""
    with FaultServer([Stall()] * 5 + [OK] * 2) as server:
        client, adapter = client_for(mode=mode, quota="payoff")
        with client:
            whys = []
            for _ in range(4):
                with pytest.raises(rex.ReadTimeout) as caught:
                    client.get(server.url, timeout=(5, 0.1))
                whys.append(retry_history(caught.value).why)
            assert 5 == len(server.requests)
            origin = server.url.rstrip("/")
            numbers = [("0.55", "1.55"), ("0.6", "1.6"), ("0.65", "1.65"), ("0.7", "1.7")]
            assert [
                f"retries are not paying on {origin}: {left} of {capacity} tokens, a time-out costs 1"
                for left, capacity in numbers
            ] == whys
            before = bucket_of(adapter).available
            response = client.get(server.url, timeout=(5, 5))
            assert (200, 1) == (response.status_code, len(retry_history(response).attempts))
            # On the fake clock it was instant.
            assert pytest.approx(before + 0.05 + 0.4) == bucket_of(adapter).available


def test_a_refused_connection_costs_one():
    """Nothing listens: one retry, and the sentence that names the cause."""
    client, adapter = client_for(quota="payoff")
    with refusing_port() as port, client, pytest.raises(rex.ConnectionError) as caught:
        client.get(f"http://127.0.0.1:{port}/")
    assert retry_history(caught.value).why.endswith("0.55 of 1.55 tokens, a failed connection costs 1")
    assert pytest.approx(0.55) == bucket_of(adapter).available


def test_throttling_costs_little():
    """A third attempt is paid as well, and both are given back."""
    with FaultServer([try_later(429, 1), try_later(429, 1), OK]) as server:
        client, adapter = client_for(quota="payoff")
        with client:
            history = retry_history(client.get(server.url))
    assert [pytest.approx(1.25), pytest.approx(0.95)] == [each.quota_after for each in history.attempts[:2]]
    assert pytest.approx(1.55 + 0.5) == bucket_of(adapter).available


@NAMES
def test_a_fleet_is_given_it_by_the_environment(monkeypatch, name):
    """SMITHY_RETRY_QUOTA changes what a program does that says nothing of quotas."""
    monkeypatch.setenv("SMITHY_RETRY_QUOTA", name)
    with FaultServer([DOWN] * 4) as server, mount(requests.Session(), clock=FakeClock()) as client:
        client.trust_env = False
        client.get(server.url)
        assert "retries are not paying" in retry_history(client.get(server.url)).why
        assert 4 == len(server.requests)


def test_each_host_has_a_bucket_of_its_own_unless_one_is_passed():
    """An outage of one leaves the other's retries alone."""
    for quota, others in (("payoff", 2), (PayoffTokenBucket(clock=FakeClock()), 1)):
        with FaultServer([DOWN] * 4) as down, FaultServer([DOWN, OK]) as other:
            client, _ = client_for(quota=quota)
            with client:
                client.get(down.url)
                client.get(other.url)
            assert others == len(other.requests)


def test_of_128_threads_in_an_outage_each_retry_is_paid():
    """What is left is what there was, and 0.05 for each operation, less 0.6 for each request more than operations."""
    with FaultServer(DOWN) as server:
        client, adapter = client_for(quota="payoff")
        seen = []
        barrier = threading.Barrier(128)

        def work():
            barrier.wait()
            for _ in range(3):
                client.get(server.url)
                now = bucket_of(adapter)
                seen.append(0 <= now.available <= now.capacity + 3)

        threads = [threading.Thread(target=work) for _ in range(128)]
        with client:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        now = bucket_of(adapter)
        assert [True] * (3 * 128) == seen
        assert pytest.approx(3 * 128 / 10) == now.rate
        retries = len(server.requests) - 3 * 128
        assert pytest.approx(1.5 + 0.05 * 3 * 128 - 0.6 * retries) == now.available
        assert now.available < 0.6
