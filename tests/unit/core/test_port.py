"""The heart without any feature: what a hook that is not overridden says, and an adapter that knows no ``Retry``."""

from __future__ import annotations

from typing import Any

import pytest

from requests_smithy_retry import RetryConfig, RetryConfigError
from requests_smithy_retry.config.options import UNSET
from requests_smithy_retry.core.port import HOOKS, Feature, hooked
from requests_smithy_retry.features.adapter_base import WithoutMaxRetries

NOBODY: Any = None


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_that_is_not_overridden_is_not_called(name: str) -> None:
    """It costs nothing."""
    assert () == hooked([Feature()], name)


def test_a_feature_adds_nothing_of_itself() -> None:
    """No classifier, no hint, no gate, no mend."""
    feature = Feature()
    said = feature.hint(NOBODY, NOBODY), feature.gate(NOBODY, NOBODY), feature.remedy(NOBODY)
    assert ((), (None, None, None)) == (feature.classifiers(NOBODY), said)
    assert 3.0 == feature.wait(NOBODY, 3.0, 0.0, "")


def test_a_driver_knows_no_retry_of_urllib3() -> None:
    """Where the feature of ``max_retries`` was deleted, the argument is refused, and nothing is shown."""
    driver, config = object.__new__(WithoutMaxRetries), RetryConfig()
    driver.plan = NOBODY
    assert (config, None) == driver._with_max_retries(config, UNSET, None, {})
    assert (None, {}) == (driver._plan_now(), driver._policy())
    with pytest.raises(RetryConfigError, match="max_attempts is allowed in its place"):
        driver._with_max_retries(config, 3, None, {})
