"""Prometheus with the real client and a registry of its own."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("prometheus_client")

from prometheus_client import CollectorRegistry

from requests_smithy_retry import retry_history, testing
from requests_smithy_retry.prometheus import PrometheusListener
from requests_smithy_retry.testing import FakeClock
from tests.support import before_each_sleep, read_timeout, scripted, send

SCOPE = "https://api.example.com"


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def value(registry: CollectorRegistry, name: str, **labels: str) -> Any:
    return registry.get_sample_value(f"requests_smithy_retry_{name}", labels)


def test_metrics_count_what_happened(registry: CollectorRegistry) -> None:
    """Attempts by outcome, retries, throttling, give-ups by reason, times, and what the quota holds."""
    adapter = scripted(429, read_timeout(), 503, 200, listeners=[PrometheusListener(registry=registry)])
    send(adapter)
    send(adapter)
    common = {"method": "GET", "scope": SCOPE}
    for outcome in ("429", "ReadTimeout", "503", "200"):
        assert value(registry, "attempts_total", **common, outcome=outcome) == 1
    assert value(registry, "retries_total", **common) == 2
    assert value(registry, "throttled_total", **common) == 1
    assert value(registry, "give_ups_total", **common, reason="max_attempts") == 1
    assert value(registry, "retry_delay_seconds_sum", **common) == 1.1
    assert value(registry, "attempt_duration_seconds_count", **common) == 4
    assert value(registry, "quota_tokens", scope=SCOPE) == 500 - 5 - 14 + 1


def test_counters_are_zero_before_the_first_failure(registry: CollectorRegistry) -> None:
    """A success is enough: a counter that appears with its first failure would keep that one from a rate."""
    send(scripted(200, listeners=[PrometheusListener(registry=registry)]))
    common = {"method": "GET", "scope": SCOPE}
    for name in ("retries_total", "throttled_total", "recovered_total"):
        assert 0 == value(registry, name, **common)
    reasons = "patience|deadline|line_full|quota_exceeded|max_attempts|hint_too_long|rate_limited|not_resendable"
    for reason in reasons.split("|"):
        assert 0 == value(registry, "give_ups_total", **common, reason=reason)


def test_the_gauge_is_read_when_it_is_scraped(registry: CollectorRegistry) -> None:
    """The gauge shows the tokens of a bucket as they are now, not as they were at the last event."""
    adapter = scripted(503, 200, listeners=[PrometheusListener(registry=registry)], max_attempts=2)
    adapter.script = [503, 503]
    send(adapter)
    assert value(registry, "quota_tokens", scope=SCOPE) == 486
    adapter.strategy.bucket(f"{SCOPE}:443").release(10)  # type: ignore[attr-defined]
    assert value(registry, "quota_tokens", scope=SCOPE) == 496


def test_waits_for_a_service_are_counted(registry: CollectorRegistry) -> None:
    """Waits are counted by their end, successful or not; giving up has its reason, and a gauge shows the waiters."""
    clock, seen = FakeClock(), []

    def answer(_: Any) -> int:
        return 503 if clock.now() < 3 or 10 <= clock.now() < 60 else 200

    before_each_sleep(clock, lambda _: seen.append(value(registry, "waiting", scope=SCOPE)))
    adapter = testing.scripted(*[answer] * 20, clock=clock, listeners=[PrometheusListener(registry=registry)])
    send(adapter)
    assert {0, 1} == set(seen)
    assert 0 == value(registry, "waiting", scope=SCOPE)
    common = {"method": "GET", "scope": SCOPE}
    assert 4.75 == pytest.approx(value(registry, "line_wait_seconds_sum", **common))
    clock.advance(10 - clock.now())
    history = retry_history(send(adapter))
    assert 1 == value(registry, "give_ups_total", **common, reason="patience")
    assert history.line_wait > 0
    waited = 4.75 + sum(item.line_wait for item in history.attempts) + history.line_wait
    assert waited == pytest.approx(value(registry, "line_wait_seconds_sum", **common))


def test_label_values_are_bounded(registry: CollectorRegistry) -> None:
    """Made-up methods, many hosts and odd statuses do not make the metrics grow."""
    adapter = scripted(*[200] * 3, 799, listeners=[PrometheusListener(registry=registry, max_scopes=2)])
    for name in ("a", "b", "c"):
        send(adapter, "MADEUP", url=f"https://{name}.example.com/")
    send(adapter, url="https://a.example.com/")
    assert value(registry, "attempts_total", method="_OTHER", scope="_OTHER", outcome="200") == 1
    assert value(registry, "attempts_total", method="GET", scope="https://a.example.com", outcome="_OTHER") == 1
