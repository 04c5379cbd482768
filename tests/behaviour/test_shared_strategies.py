"""A strategy that several adapters share: under options of their own, or as the one of the process (contract 6.4)."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import requests

from requests_smithy_retry import (
    RetryConfig,
    RetryConfigError,
    RetryConfigWarning,
    StandardRetryStrategy,
    classifier,
    mount,
    retry_history,
)
from requests_smithy_retry.testing import FakeClock, scripted
from tests.support import Guide, send


@pytest.mark.parametrize(
    ("defaults", "options", "expected"),
    [
        (None, {}, (5.0, 20.0)),
        ({"patience": 9}, {}, (9, 20.0)),
        ({"patience": 9}, {"patience": 2}, (2, 20.0)),
        (None, {"max_backoff": 3}, (5.0, 3)),
    ],
)
def test_a_shared_strategy_goes_by_the_options_of_each_adapter(
    defaults: dict[str, Any] | None, options: dict[str, Any], expected: tuple[float, float]
) -> None:
    """Of the adapter alone, and over a library's defaults; the strategy itself stays as it is."""
    strategy = StandardRetryStrategy()
    given = None if defaults is None else RetryConfig(**defaults)
    session = mount(requests.Session(), strategy=strategy, defaults=given, **options)
    config = session.get_adapter("https://a.example").strategy.config  # type: ignore[attr-defined]
    assert expected == (config.patience, config.max_backoff)
    assert RetryConfig() == strategy.config


def test_adapters_with_options_of_their_own_spend_the_same_budget() -> None:
    """The second one finds it empty."""
    strategy = StandardRetryStrategy(clock=FakeClock(), patience=0)
    first = scripted(503, 503, 503, strategy=strategy, backoff=1)
    second = scripted(503, strategy=strategy, backoff=2)
    assert [3, 1] == [len(retry_history(send(adapter)).attempts) for adapter in (first, second)]


def test_the_strategys_own_settings_count_above_a_librarys_defaults() -> None:
    """What the strategy was given stays."""
    strategy = StandardRetryStrategy(patience=1, clock=FakeClock())
    adapter: Any = scripted(strategy=strategy, defaults=RetryConfig(patience=9, max_backoff=3))
    assert (1, 3) == (adapter.strategy.config.patience, adapter.strategy.config.max_backoff)


def test_options_of_a_librarys_defaults_are_told_as_such() -> None:
    """Neither a budget of one's own for a built-in strategy, nor options of ours for any other, have an effect."""
    for strategy, defaults in (
        (StandardRetryStrategy(), RetryConfig(quota=5)),
        (Guide(), RetryConfig(patience=9)),
    ):
        with pytest.raises(RetryConfigError, match=r"\(from the library's defaults\): it belongs to the strategy"):
            mount(requests.Session(), strategy=strategy, defaults=defaults)


def test_a_session_for_each_call_keeps_one_budget() -> None:
    """In an outage, 20 calls of 20 sessions send 22 requests, and not 60."""
    clock, sent = FakeClock(), 0
    for _ in range(20):
        adapter = scripted(503, 503, 503, strategy="shared", patience=0, clock=clock)
        send(adapter)
        sent += len(adapter.sent)
    assert 22 == sent


def test_the_shared_one_goes_by_the_options_of_each_adapter() -> None:
    """Beside it, any option is allowed but those of a budget of one's own."""
    quiet = classifier(lambda outcome: None, name="mine")
    adapter: Any = scripted(503, strategy="shared", max_attempts=1, classifiers=[quiet], clock=FakeClock())
    assert "mine" in [vote.classifier for vote in retry_history(send(adapter)).attempts[0].votes]
    for budget, said in (
        ({"quota": 5}, r"quota=5 \(from code\)"),
        ({"quota": None}, r"quota=None \(from code\)"),
        ({"retry_spec": "2.0"}, r"quota=500 \(from retry_spec 2.0\)"),
        ({"aws_config": True}, r"quota=500 \(from aws_config\)"),
    ):
        with pytest.raises(RetryConfigError, match=f"{said}: beside strategy='shared' only 'payoff' is allowed"):
            mount(requests.Session(), strategy="shared", **budget)
    with_aws: Any = scripted(503, strategy="shared", aws_config=True, quota="payoff", clock=FakeClock())
    assert 3 == with_aws.strategy.max_attempts
    with pytest.raises(RetryConfigError, match="'shared', or an object"):
        mount(requests.Session(), strategy="standard")  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "value"), [("QUOTA", "100"), ("RETRY_SPEC", "2.0"), ("AWS_CONFIG", "true")])
def test_a_variable_about_budgets_does_not_count_beside_the_shared_one(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code wins, and a warning says so: an SDK works in every environment. Other variables count."""
    monkeypatch.setenv(f"SMITHY_RETRY_{name}", value)
    monkeypatch.setenv("SMITHY_RETRY_PATIENCE", "7")
    with pytest.warns(RetryConfigWarning, match="belongs to the strategy"):
        config = mount(requests.Session(), strategy="shared").get_adapter("https://a.example").retry_config  # type: ignore[attr-defined]
    assert (7, "payoff") == (config.patience, config.effective_quota)


def test_modes_have_budgets_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    """The adaptive one has its limiters, too."""
    with caplog.at_level(logging.CRITICAL):
        clock = FakeClock()
        standard: Any = scripted(strategy="shared", clock=clock)
        adaptive: Any = scripted(strategy="shared", mode="adaptive", clock=clock)
    assert (False, True) == (hasattr(standard.strategy, "send_permit"), hasattr(adaptive.strategy, "send_permit"))
    assert standard.strategy.scopes is not adaptive.strategy.scopes
