"""The heart without a feature: what was deleted is named, and a hook that nobody overrides costs nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from requests_smithy_retry import RetryConfig, RetryConfigError, StandardRetryStrategy, mount, retry_options
from requests_smithy_retry.adapter import WithoutMaxRetries
from requests_smithy_retry.config.options import UNSET
from requests_smithy_retry.core.port import HOOKS, Feature, heard_by, hooked
from requests_smithy_retry.features.table import found
from requests_smithy_retry.testing import FaultServer, Reply
from tests.support import scripted, send

FEATURES = ("rate_limits", "resume", "renewal", "addresses", "redis", "telemetry")


@pytest.fixture
def delete(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have a module be as one that is not there."""
    return lambda name: monkeypatch.setitem(sys.modules, f"requests_smithy_retry.{name}", None)


@pytest.mark.parametrize("name", [*(f"features.{name}" for name in FEATURES), "smithy.aws"])
def test_an_adapter_works_without_each(delete: Callable[[str], None], name):
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
def test_an_option_of_one_that_is_gone_is_refused(delete: Callable[[str], None], name, option, value, allowed):
    """The error names the option, and what is allowed without the feature."""
    delete(name)
    with pytest.raises(RetryConfigError, match=f"^{option}=.*{allowed}$"):
        send(scripted(200, **{option: value}))


def test_a_strategy_by_hand_needs_no_feature_of_the_adapter(delete: Callable[[str], None]):
    """It is made without those that take part in sending alone."""
    for name in ("resume", "renewal", "addresses"):
        delete(f"features.{name}")
    assert StandardRetryStrategy().acquire_initial_retry_token().retry_count == 0


def test_what_a_feature_needs_and_lacks_is_not_hidden(monkeypatch):
    """Only the feature's own absence is passed over."""
    monkeypatch.delitem(sys.modules, "requests_smithy_retry.smithy.aws")
    monkeypatch.setitem(sys.modules, "dataclasses", None)
    with pytest.raises(ModuleNotFoundError, match="dataclasses"):
        found("..smithy.aws")


NOBODY: Any = None


def test_a_feature_adds_nothing_of_itself():
    """No classifier, no hint, no gate, no mend; a hook that it does not override is not called, so it costs nothing."""
    feature = Feature()
    said = feature.hint(NOBODY), feature.gate(NOBODY, NOBODY), feature.remedy(NOBODY)
    assert ((), (None, None, None)) == (feature.classifiers(NOBODY), said)
    assert 3.0 == feature.wait(NOBODY, 3.0, 0.0, "")
    assert {()} == {hooked([feature], name) for name in HOOKS}


class Hears(Feature):
    """A feature that takes in responses."""

    def __init__(self, *fields: str) -> None:
        self.hears = frozenset(fields) if fields else None

    def received(self, *of: Any) -> None: ...


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ([], frozenset()),
        ([Feature()], frozenset()),
        ([Hears("etag"), Feature(), Hears("date")], {"etag", "date"}),
        ([Hears("etag"), Hears()], None),
    ],
)
def test_the_fields_that_features_hear_of_are_those_of_all(features, expected):
    """One that takes in each response has the others asked of each, too."""
    assert expected == heard_by(features, "received")


@pytest.mark.parametrize(
    ("hears", "headers", "options", "kept", "is_told"),
    [
        ({"etag"}, {}, {}, {}, False),
        ({"etag"}, {"ETag": "1"}, {}, {}, True),
        ({"e"}, {"ETag": "1"}, {}, {}, False),
        (None, {}, {}, {}, True),
        ({"etag"}, {}, {"max_attempts": 2}, {}, True),
        ({"etag"}, {}, {}, {"part": SimpleNamespace(forget=print)}, True),
    ],
)
def test_features_are_told_of_responses_that_may_concern_them(hears, headers, options, kept, is_told):
    """Of those with a field that one hears of, in a block of options, and where something is kept of the scope."""
    told: list[Any] = []
    with FaultServer([Reply(200, headers)]) as server, requests.Session() as client:
        adapter = mount(client).get_adapter(server.url)
        adapter.plan = replace(adapter.plan, received=(lambda *of: told.append(of),), hears=hears)
        adapter.plan.scopes.get(adapter.scope_of(requests.Request("GET", server.url).prepare())).parts.update(kept)
        with retry_options(**options) if options else nullcontext():
            client.get(server.url)
    assert is_told == bool(told)


def test_a_driver_knows_no_retry_of_urllib3():
    """Where the feature of ``max_retries`` was deleted, the argument is refused, and nothing is shown."""
    driver, config = object.__new__(WithoutMaxRetries), RetryConfig()
    assert (config, None) == driver._with_max_retries(config, UNSET, None, {})
    assert {} == driver._state_to_copy()
    with pytest.raises(RetryConfigError, match="max_attempts is allowed in its place"):
        driver._with_max_retries(config, 3, None, {})
