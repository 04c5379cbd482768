"""The table of features: what is left where one was deleted says so, and nothing else fails."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from requests_smithy_retry import RetryConfigError, StandardRetryStrategy
from requests_smithy_retry.features.table import found
from tests.support import scripted, send

FEATURES = ("rate_limits", "resume", "renewal", "addresses", "redis", "telemetry")


@pytest.fixture
def delete(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have a module be as one that is not there."""
    return lambda name: monkeypatch.setitem(sys.modules, f"requests_smithy_retry.{name}", None)


@pytest.mark.parametrize("name", [*(f"features.{name}" for name in FEATURES), "smithy.aws"])
def test_an_adapter_works_without_each(delete: Callable[[str], None], name: str) -> None:
    """It retries, and a body is read."""
    delete(name)
    adapter = scripted(503, 200, quota="payoff")
    assert (200, 2) == (send(adapter).status_code, len(adapter.sent))


@pytest.mark.parametrize(
    ("name", "option", "value", "allowed"),
    [
        ("smithy.adaptive", "mode", "adaptive", "'standard' is allowed: no other is installed"),
        ("smithy.buckets", "quota", 500, "'payoff' or None is allowed: other quotas are not installed"),
        ("features.telemetry", "telemetry", ["log"], "none is installed"),
        ("smithy.aws", "aws_config", True, "False is allowed: the AWS settings were deleted"),
        ("features.redis", "quota", "redis://host/0", "is allowed"),
        ("features.rate_limits", "pacing", object(), "is allowed"),
        ("features.rate_limits", "pacing", "announced", "it was deleted"),
        ("features.resume", "resume", True, "it was deleted"),
        ("features.renewal", "on_unauthorized", dict, "it was deleted"),
        ("features.waits", "max_wait", 5, "it was deleted"),
    ],
)
def test_an_option_of_one_that_is_gone_is_refused(
    delete: Callable[[str], None], name: str, option: str, value: Any, allowed: str
) -> None:
    """The error names the option, and what is allowed without the feature."""
    delete(name)
    with pytest.raises(RetryConfigError, match=f"^{option}=.*{allowed}$"):
        send(scripted(200, **{option: value}))


def test_what_a_feature_needs_and_lacks_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the feature's own absence is passed over."""
    monkeypatch.delitem(sys.modules, "requests_smithy_retry.smithy.aws")
    monkeypatch.setitem(sys.modules, "dataclasses", None)
    with pytest.raises(ModuleNotFoundError, match="dataclasses"):
        found("..smithy.aws")


def test_a_strategy_by_hand_needs_no_feature_of_the_adapter(delete: Callable[[str], None]) -> None:
    """It is made without those that take part in sending alone."""
    for name in ("resume", "renewal", "addresses"):
        delete(f"features.{name}")
    assert StandardRetryStrategy().acquire_initial_retry_token().retry_count == 0
