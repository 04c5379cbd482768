"""A translated urllib3 ``Retry`` in an outage: its counts, and the default quota (contract 6.2, 10.5)."""

from __future__ import annotations

from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter, StopReason, install, retry_history, uninstall
from requests_smithy_retry.testing import scripted
from tests.support import URL

CODES = {"status_forcelist": [503], "raise_on_status": False}


def sent(adapter: Any) -> int:
    """The number of requests of one operation."""
    before = len(adapter.sent)
    adapter.send(requests.Request("GET", URL).prepare())
    return len(adapter.sent) - before


def test_its_operations_share_the_default_quota() -> None:
    """When retries do not help, there are soon hardly any: one after the other sends about one request."""
    adapter = scripted(*[503] * 100, max_retries=Retry(5, **CODES))
    counts = [sent(adapter) for _ in range(20)]
    assert counts[0] <= 6
    assert [1] * 10 == counts[10:]


def test_patience_bounds_its_wait() -> None:
    """The first operation makes its own retries; one that finds none left waits until the outage is older than that."""
    adapter = scripted(*[503] * 100, max_retries=Retry(4, **CODES), patience=3)
    assert 5 == sent(adapter)
    begun = adapter.clock.now()
    response = adapter.send(requests.Request("GET", URL).prepare())
    history = retry_history(response)
    assert (StopReason.PATIENCE, True) == (history.stop_reason, adapter.clock.now() - begun <= 2 * 3)


def test_the_variable_has_an_effect(monkeypatch) -> None:
    """``SMITHY_RETRY_PATIENCE`` holds for adapters of others that are translated, without a warning."""
    monkeypatch.setenv("SMITHY_RETRY_PATIENCE", "10")
    try:
        install(mounted="all")
        adapter: Any = HTTPAdapter(max_retries=Retry(5, **CODES))
        requests.Session().mount("https://", adapter)
        assert isinstance(adapter, RetryAdapter)
        config = adapter.retry_config
        source = "environment variable SMITHY_RETRY_PATIENCE"
        assert (10, source, "payoff", 6) == (
            config.patience,
            config.source("patience"),
            config.effective_quota,
            config.max_attempts,
        )
    finally:
        uninstall()
