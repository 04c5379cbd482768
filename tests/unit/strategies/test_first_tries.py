"""Whom to tell of first-try successes, remembered by the origin of the URL (contract 6.2, 9)."""

from __future__ import annotations

from typing import Any

import pytest

from requests_smithy_retry import SimpleRetryStrategy, StandardRetryStrategy, TokenBucket
from requests_smithy_retry.quotas.line import Failure, Go, Terms
from requests_smithy_retry.quotas.scope_quota import PricedQuota
from requests_smithy_retry.quotas.scopes import MAX_SCOPES
from requests_smithy_retry.strategies.first_tries import ORIGIN, remember
from tests.support import Reply, scripted, send, testing

KINDS: list[dict[str, Any]] = [{}, {"mode": "adaptive"}, {"retry_spec": "2.1"}]


class Hook:
    """Told of nothing here."""

    retired = False

    def first_try(self, attempt: tuple[float, Any]) -> None:
        raise AssertionError(attempt)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://a.example.com/x/y", "https://a.example.com"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("http://a", "http://a"),
        ("mailto:a@b", "mailto:a@b"),
        ("", ""),
    ],
)
def test_a_url_begins_with_its_origin(url: str, origin: str) -> None:
    """The origin is matched as it is written in the URL; every text has one, which may be empty."""
    match = ORIGIN(url)
    assert match is not None
    assert origin == match[0]


@pytest.mark.parametrize("options", KINDS)
def test_an_origin_is_looked_up_once(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The scope of an origin is asked for once, whatever the path of the URL."""
    adapter = testing.scripted(*[200] * 4, **options)
    asked: list[str] = []
    usual = adapter.scope_of
    monkeypatch.setattr(adapter, "scope_of", lambda request: asked.append(str(request.url)) or usual(request))
    for url in ("https://a/x", "https://a/y/z", "https://a:8443/", "http://a/x"):
        send(adapter, url=url)
    assert ["https://a/x", "https://a:8443/", "http://a/x"] == asked
    assert ["https://a", "https://a:8443", "http://a"] == list(adapter.strategy.hooks)


class TakenFromMeanwhile(TokenBucket):
    """A bucket from which another thread takes for a retry right after this one has seen that it is full again."""

    was_filled = False

    def release(self, amount: float) -> None:
        super().release(amount)
        self.was_filled = True

    @property
    def available(self) -> float:
        seen = super().available
        if self.was_filled:
            self.was_filled = False
            self.acquire(14)
        return seen


def test_what_another_thread_takes_meanwhile_is_given_back_by_later_first_tries() -> None:
    """A bucket that was seen to be full is not taken for full from then on."""
    quota = PricedQuota(TakenFromMeanwhile(500))
    paid = quota.failed(quota.begin(), Terms(), Failure(price=14))
    assert isinstance(paid, Go)
    quota.succeeded(paid.standing, Terms())
    assert 500 - 14 == quota.plain.available
    quota.first_try((0.0, None))
    assert 500 - 14 + 1 == quota.plain.available


@pytest.mark.parametrize("options", KINDS)
def test_with_a_scope_function_nothing_is_remembered(options: dict[str, Any]) -> None:
    """The function may say something else for each request."""
    asked: list[Any] = []
    adapter = testing.scripted(*[200] * 3, scope=lambda request: asked.append(request) or "all", **options)
    for _ in range(3):
        send(adapter)
    assert (3, {}) == (len(asked), adapter.strategy.hooks)
    assert ["all"] == list(adapter.strategy.snapshot().buckets)


def test_so_many_origins_are_remembered() -> None:
    """When one origin too many comes, the memory begins anew."""
    hooks: dict[str, Any] = {}
    for number in range(MAX_SCOPES + 1):
        remember(hooks, f"https://h{number}/", Hook())
    assert [f"https://h{MAX_SCOPES}"] == list(hooks)


def test_what_was_given_up_meanwhile_is_not_remembered() -> None:
    """A retired hook is not remembered, because it would bypass its scope's next quota."""
    hook, hooks = Hook(), {}
    hook.retired = True
    remember(hooks, "https://a/", hook)
    assert {} == hooks


def test_the_quota_of_newcomers_is_not_remembered() -> None:
    """A scope that shares it may have one of its own later."""
    of = StandardRetryStrategy(mode="standard")
    of._quotas._limit = 1  # type: ignore[attr-defined]
    with of._quotas.use("a"):
        of.first_try_hook("b", "https://b/")
        assert {} == of.hooks


@pytest.mark.parametrize("strategy", [SimpleRetryStrategy, StandardRetryStrategy])
def test_without_a_quota_nothing_is_told(strategy: type[SimpleRetryStrategy]) -> None:
    """A first-try success is one all the same."""
    adapter = testing.scripted(200, 200, strategy=strategy(quota=None))
    assert [200, 200] == [send(adapter).status_code for _ in range(2)]


def test_a_first_try_success_is_told_to_a_bucket_with_room_alone() -> None:
    """A published bucket that is full has nothing to gain."""
    adapter = scripted(200, 503, 200, 200, 200, Reply(200))
    send(adapter)
    (quota,) = adapter.strategy.hooks.values()
    assert bool is quota.first_try
    bucket = adapter.strategy.bucket("https://api.example.com:443")
    bucket.acquire(2)
    send(adapter)
    assert 498 == bucket.available
    quota.first_try = quota._give_reward
    send(adapter)
    send(adapter)
    assert (500, bool) == (bucket.available, quota.first_try)
