"""Copies of the adapter and of sessions (contract 11.1): same configuration, fresh locks, full buckets."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import requests
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter, RetryConfig, RetryListener, StandardRetryStrategy, TokenBucket, mount
from requests_smithy_retry.smithy import AwsErrorCodeClassifier, SdkHeaders, SmithyModel, SmithyModelClassifier
from tests.support import Guide, ScriptedAdapter, prepare, reset_error, scripted, send, session_with

WAYS = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda item: pickle.loads(pickle.dumps(item))}
ways = pytest.mark.parametrize("duplicate", WAYS.values(), ids=WAYS)


def named_scope(request):
    return "everyone"


def spend(adapter: ScriptedAdapter) -> None:
    """Take two retries' worth from the quota."""
    adapter.script = [503, 503, 404]
    send(adapter)


def levels(adapter: RetryAdapter) -> list[float]:
    return [bucket.available for bucket in adapter.strategy.snapshot().buckets.values()]


@ways
def test_a_copy_keeps_the_configuration_and_starts_full(duplicate):
    """Options, pool sizes and strategy type are kept; what was spent is not; each spends its own."""
    adapter = scripted(max_attempts=4, allowed_methods=["GET"], scope=named_scope, pool_maxsize=7)
    spend(adapter)
    other = duplicate(adapter)
    assert adapter.retry_config == other.retry_config
    assert (7, 4, "everyone") == (other._pool_maxsize, other.strategy.max_attempts, other.scope_of(None))
    assert ([472], []) == (levels(adapter), levels(other))
    assert 3 == other.max_retries.total
    other.sent, other.responses = [], []
    for made in (other, adapter):
        spend(made)
    assert ([444], [472]) == (levels(adapter), levels(other))


@ways
def test_a_shared_bucket_is_not_shared_with_copies(duplicate):
    """A bucket that was passed in is copied too: full, and the one that the copy's config names."""
    bucket = TokenBucket(100)
    adapter = scripted(quota=bucket)
    spend(adapter)
    other = duplicate(adapter)
    assert 72 == bucket.available
    copied = other.strategy.bucket()
    assert 100 == copied.available
    assert copied is not bucket
    assert copied is other.retry_config.quota


@pytest.mark.parametrize("name", ["deepcopy", "pickle"])
def test_a_copied_session_retries(name):
    """A session that was mounted is copied whole, with one adapter for both schemes."""
    session = mount(requests.Session(), max_attempts=5)
    other = WAYS[name](session)
    assert other.adapters["http://"] is other.adapters["https://"]
    assert other.adapters["http://"] is not session.adapters["http://"]
    assert 5 == other.adapters["http://"].strategy.max_attempts


@ways
def test_a_copied_strategy_starts_full(duplicate):
    """A strategy by itself is copied likewise."""
    strategy = StandardRetryStrategy(quota=50, max_attempts=9)
    token = strategy.acquire_initial_retry_token(token_scope="a")
    strategy.refresh_retry_token_for_retry(token_to_renew=token, error=reset_error())
    other = duplicate(strategy)
    assert (36, 50, 9) == (strategy.bucket("a").available, other.bucket("a").available, other.max_attempts)


@ways
def test_a_subclass_with_attributes_of_its_own_is_copied(duplicate):
    """Attributes that a subclass lists in ``__attrs__`` are kept, as with ``HTTPAdapter``."""
    adapter = Labelled(label="mine", max_attempts=2)
    other = duplicate(adapter)
    assert ("mine", 2) == (other.label, other.strategy.max_attempts)


class Labelled(RetryAdapter):
    __attrs__ = (*RetryAdapter.__attrs__, "label")

    def __init__(self, *, label, **options):
        self.label = label
        super().__init__(**options)


@ways
def test_the_pools_of_a_copy_are_watched(duplicate):
    """A copy knows as well as its original whether a request was written (contract 14.1)."""
    pools = [item.poolmanager.pool_classes_by_scheme["http"] for item in (RetryAdapter(), duplicate(RetryAdapter()))]
    assert pools[0] is pools[1]


SERVICE = {"type": "service", "version": "1", "operations": [{"target": "a.b#O"}]}
HTTP = {"smithy.api#http": {"method": "GET", "uri": "/{x}/y", "code": 200}}
MODEL = SmithyModel.from_dict(
    {"smithy": "2.0", "shapes": {"a.b#S": SERVICE, "a.b#O": {"type": "operation", "traits": HTTP}}}
)
JITTER = {"backoff_jitter": 1.0} if hasattr(Retry(), "backoff_jitter") else {}


def settings(adapter: RetryAdapter) -> list[tuple[str, ...]]:
    return [(item.name, item.source) for item in adapter.retry_config.settings()]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"quota": None},
        {"mode": "adaptive", "listeners": [SdkHeaders()]},
        {"quota": "payoff"},
        {"quota": TokenBucket(20)},
        {"quota": "redis://127.0.0.1:1/0"},
        {"max_retries": Retry(3, **JITTER)},
        {"classifiers": [AwsErrorCodeClassifier()], "scope": named_scope},
        {"classifiers": [SmithyModelClassifier([MODEL.for_endpoint("https://api.example.com")])]},
        {"defaults": RetryConfig(max_attempts=4)},
    ],
    ids=",".join,
)
def test_every_protocol_pickles_it(options, protocol):
    """With every pickle protocol, the adapter keeps its options and their sources, and so does that of a session."""
    adapter = RetryAdapter(**options)
    session = pickle.loads(pickle.dumps(session_with(adapter), protocol))
    for copied in (pickle.loads(pickle.dumps(adapter, protocol)), session.get_adapter("https://")):
        assert type(adapter.strategy) is type(copied.strategy)
        assert settings(adapter) == settings(copied)
        assert adapter.scope_of(prepare()) == copied.scope_of(prepare())


@ways
def test_a_copy_without_a_quota_has_none(duplicate):
    """The copy has no quota, as the program said."""
    other = duplicate(RetryAdapter(quota=None))
    assert (None, "code") == (other.retry_config.quota, other.retry_config.source("quota"))


class Copied(Guide):
    """Says how it is copied."""

    def __copy__(self) -> Any:
        return Copied(delay=self.delay)


def test_a_foreign_strategy_is_copied_by_its_own_rules():
    """A shallow copy shares a foreign strategy that has no ``__copy__``, a deep one has another."""
    adapter = RetryAdapter(strategy=Guide())
    assert copy.copy(adapter).strategy is adapter.strategy
    assert copy.deepcopy(adapter).strategy is not adapter.strategy
    adapter = RetryAdapter(strategy=Copied(delay=3))
    assert copy.copy(adapter).strategy is not adapter.strategy
    assert 3 == copy.copy(adapter).strategy.delay


@pytest.mark.parametrize("name", ["copy", "deepcopy"])
def test_a_copy_reports_to_the_same_listener(name: str) -> None:
    """It is the program's, as a session's hooks are."""
    adapter = RetryAdapter(listeners=[RetryListener()])
    assert adapter.retry_config.listeners[0] is WAYS[name](adapter).retry_config.listeners[0]
