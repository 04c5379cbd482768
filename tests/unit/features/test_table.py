"""The table of features: what a config asks for, in order, and what hangs on no seam costs nothing."""

from __future__ import annotations

from typing import Any

import pytest

from requests_smithy_retry import AdaptiveRetryStrategy, RetryConfig, StandardRetryStrategy
from requests_smithy_retry.clock import SYSTEM_CLOCK
from requests_smithy_retry.core.port import Feature, composed, overrides, send_attempt
from requests_smithy_retry.features.table import features_of, judging_features

NOBODY: Any = None


def names_of(features: tuple[Feature, ...]) -> list[str]:
    return [type(feature).__name__ for feature in features]


@pytest.mark.parametrize(
    ("options", "strategy", "expected"),
    [
        ({}, StandardRetryStrategy(), "AwsErrorCodes ServerVerdicts RateLimits Resume Resigning"),
        ({}, AdaptiveRetryStrategy(), "Permits AwsErrorCodes ServerVerdicts RateLimits Resume Resigning"),
        (
            {"on_unauthorized": dict, "validate": len, "deadline_header": "X-Left"},
            AdaptiveRetryStrategy(),
            "Renewal Permits AwsErrorCodes ServerVerdicts RateLimits Validate DeadlineHeader Resume Resigning",
        ),
    ],
)
def test_a_config_asks_for_features_in_the_order_of_the_table(options, strategy, expected) -> None:
    """The outermost around a send first; a strategy that is driven by hand has those that take part in decisions."""
    config = RetryConfig(**options)
    assert expected.split() == names_of(features_of(config, strategy, SYSTEM_CLOCK))
    sending = {"Renewal", "Permits", "DeadlineHeader", "Resume", "Resigning"}
    deciding = [name for name in expected.split() if name not in sending]
    assert deciding == names_of(judging_features(config))


def test_a_feature_adds_nothing_of_itself() -> None:
    """No classifier, no hint; a seam that it does not override is not called, so it costs nothing."""
    feature = Feature()
    assert ((), None) == (feature.classifiers(NOBODY), feature.hint(NOBODY))
    assert feature.judged(NOBODY, NOBODY, NOBODY) is None  # type: ignore[func-returns-value]
    assert feature.around(lambda call: call, NOBODY) is NOBODY  # type: ignore[arg-type, return-value]
    assert {False} == {overrides(feature, name) for name in ("classifiers", "hint", "around", "judged")}
    assert send_attempt is composed((feature,))
