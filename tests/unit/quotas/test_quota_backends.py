from __future__ import annotations

import copy
import logging
import pickle
import subprocess
import sys

import pytest
import requests

from requests_smithy_retry import (
    RetryAdapter,
    RetryConfig,
    RetryConfigError,
    RetryConfigWarning,
    StandardRetryStrategy,
    TokenBucket,
    retry_history,
)
from requests_smithy_retry.quotas.bucket import is_full
from requests_smithy_retry.quotas.scopes import ScopeTable
from requests_smithy_retry.quotas.url import quota_factory
from tests.support import reset_error, scripted, send

from .servers import RedisServer

SCOPE = "https://api.example.com:443"
DEAD = "redis://:hunter2@127.0.0.1:1/0"
"""Nobody listens at port 1."""


@pytest.fixture
def shared_url(redis_server: RedisServer) -> str:
    return redis_server.url("?budget=60&connect_timeout=60&flush_interval=0")


class TestTheFactory:
    def test_memory_gives_each_scope_a_bucket_of_this_process(self) -> None:
        """Each scope has a bucket in this process's memory, as without a URL."""
        make = quota_factory("memory://", capacity=28, refill_rate=2)
        one, two = make("a"), make("b")
        assert (type(one), one.capacity, one.refill_rate, one is two) == (TokenBucket, 28, 2, False)

    def test_buckets_of_one_factory_share_the_connections(self) -> None:
        """One link to the server, whatever the number of scopes; nothing is connected yet."""
        make = quota_factory(DEAD + "?budget=0.5&flush_interval=3", capacity=28)
        one, two = make("a"), make("b")
        assert (one._link is two._link, one._link.settings.flush_interval, one.failures) == (True, 3, 0)

    @pytest.mark.parametrize(
        ("url", "allowed"),
        [
            ("redis://:sec/ret@host", "percent-encoded"),
            ("redis://:secret@host?budget=0", "budget=0.0: a finite number"),
            ("redis://:secret@host?budget=secret", "budget: a number is allowed"),
            ("redis://:secret@host?secret=1", "redis-py refuses its query"),
            ("memory://?budget=1", "memory:// has no settings"),
        ],
    )
    def test_a_bad_url_is_a_configuration_error_without_secrets(self, url: str, allowed: str) -> None:
        """The error comes when the adapter is made, not when the first retry is due."""
        with pytest.raises(RetryConfigError, match=r"^quota_url=") as error:
            quota_factory(url)
        assert allowed in str(error.value)
        for shown in (str(error.value), repr(error.value), repr(pickle.dumps(error.value))):
            assert "secret" not in shown
        assert error.value.__context__ is None

    def test_only_a_bucket_of_this_process_waits(self) -> None:
        """A shared quota refuses ``on_empty="wait"``, because a waiter would not learn of other processes' returns."""
        assert quota_factory("memory://", on_empty="wait")("a").on_empty == "wait"
        with pytest.raises(RetryConfigError, match="that processes share does not wait"):
            scripted(quota_url=DEAD, on_empty="wait")

    def test_what_cannot_be_used_names_the_variable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A setting in the URL is looked at when the strategy is made, and the error says who set the URL."""
        variable = "SMITHY_RETRY_QUOTA_URL"
        monkeypatch.setenv(variable, "memory://?budget=1")
        with pytest.raises(RetryConfigError, match=rf"^quota_url=.* .from environment variable {variable}.: memory://"):
            RetryAdapter()

    def test_nobody_imports_what_they_do_not_use(self) -> None:
        """Without a quota_url redis-py is not loaded."""
        code = (
            "import sys, requests_smithy_retry as r; r.RetryAdapter()\n"
            "print([name for name in sys.modules if name.split('.')[0] == 'redis'])"
        )
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


class TestTheStrategy:
    def test_each_scope_has_a_bucket_where_the_url_says(self, shared_url: str) -> None:
        """Two strategies, as two processes would, share the bucket of a scope, and no other."""
        one, two = (StandardRetryStrategy(quota_url=shared_url, quota=28) for _ in range(2))
        one.bucket("a").acquire(20)
        two.bucket("a").acquire(5)
        two.bucket("b").acquire(1)
        assert (two.bucket("a").available, two.bucket("b").available) == (3, 27)
        assert one.snapshot().buckets["a"].source == "redis"

    def test_without_a_quota_there_is_none_to_share(self, shared_url: str) -> None:
        """quota=None wins."""
        assert StandardRetryStrategy(quota_url=shared_url, quota=None).bucket("a") is None

    def test_a_bucket_in_the_code_wins_over_the_environment(
        self, shared_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A fleet's variable changes nothing for who brings a bucket along; in one place, both are a mistake."""
        bucket = TokenBucket(5)
        monkeypatch.setenv("SMITHY_RETRY_QUOTA_URL", shared_url)
        with pytest.warns(RetryConfigWarning, match=r"^quota_url=.*it has no effect, because quota=<TokenBucket"):
            assert RetryAdapter(quota=bucket).strategy.bucket("a") is bucket
        with pytest.raises(RetryConfigError, match=r"only one of quota_url and quota=.* is allowed"):
            RetryAdapter(quota=bucket, quota_url=shared_url)

    def test_the_environment_says_where(self, shared_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """SMITHY_RETRY_QUOTA_URL; what is wrong with it is said without showing it."""
        monkeypatch.setenv("SMITHY_RETRY_QUOTA_URL", shared_url)
        assert RetryAdapter().strategy.bucket("a").source == "redis"
        monkeypatch.setenv("SMITHY_RETRY_QUOTA_URL", "redis://:sec/ret@host")
        with pytest.raises(
            RetryConfigError, match=r"^quota_url='redis://\.\.\.' \(from environment variable SMITHY_RETRY_QUOTA_URL\)"
        ):
            RetryAdapter()

    def test_the_config_is_explained_without_the_secret(self) -> None:
        """The place is shown, and where it came from."""
        config = RetryConfig(quota_url=DEAD)
        shown = config.explain() + repr(config) + repr(config.settings())
        assert "redis://127.0.0.1:1/0" in shown
        assert "hunter2" not in shown

    def test_a_copy_shares_with_its_original(self, shared_url: str) -> None:
        """Copied and unpickled strategies go to the same place anew."""
        strategy = StandardRetryStrategy(quota_url=shared_url, quota=28)
        strategy.bucket("a").acquire(20)
        for other in (copy.deepcopy(strategy), pickle.loads(pickle.dumps(strategy))):
            assert not other.bucket("a").acquire(14)
            assert other.bucket("a").available == 8

    def test_a_first_try_success_asks_nobody(self) -> None:
        """While this process knows of no spent token, a success connects to nothing."""
        adapter = scripted(200, 200, quota_url=DEAD, quota=500)
        for _ in range(2):
            send(adapter)
        assert [bool] == [hook.first_try for hook in adapter.strategy.hooks.values()]

    def test_a_process_that_was_refused_helps_to_refill(self, shared_url: str) -> None:
        """Other processes spent the bucket: this one learns it from its first refusal, and then rewards successes."""
        others = StandardRetryStrategy(quota_url=shared_url, quota=14)
        others.bucket(SCOPE).acquire(14)
        adapter = scripted(503, 200, 200, quota_url=shared_url, quota=14)
        refused = retry_history(send(adapter))
        assert refused.why == "the retry quota of https://api.example.com (redis) is empty (0 of 14, needs 14)"
        send(adapter)
        send(adapter)
        adapter.strategy.bucket(SCOPE).flush()
        assert others.bucket(SCOPE).refresh()
        assert others.bucket(SCOPE).available == 2

    def test_once_the_bucket_is_full_successes_ask_nobody_again(self, shared_url: str) -> None:
        """A retry that succeeded gives back what it took, and the books are closed."""
        adapter = scripted(503, 200, quota_url=shared_url, quota=500)
        assert send(adapter).status_code == 200
        assert bool is adapter.strategy.first_try_hook(SCOPE).first_try


@pytest.mark.real_time
class TestWhatCanBeSeen:
    def test_the_history_says_which_bucket_paid(self, shared_url: str, caplog: pytest.LogCaptureFixture) -> None:
        """The history names the source of the tokens; a bucket of this process is "memory"."""
        for url, source in (
            (None, "memory"),
            ("memory://", "memory"),
            (shared_url, "redis"),
            (DEAD, "redis, fallen open"),
        ):
            history = retry_history(send(scripted(503, 200, quota_url=url)))
            assert [attempt.quota_source for attempt in history.attempts] == [source, None]
            assert history.to_dict()["attempts"][0]["quota_source"] == source

    def test_a_refusal_says_which_bucket_refused(self) -> None:
        """The sentence of a private bucket stays as short as it was."""
        for url, where in ((None, ""), (DEAD, " (redis, fallen open)")):
            response = send(scripted(503, quota_url=url, quota=5))
            assert (
                retry_history(response).why
                == f"the retry quota of https://api.example.com{where} is too small (5 of 5, needs 14)"
            )

    def test_the_secret_is_nowhere(self, caplog: pytest.LogCaptureFixture) -> None:
        """The secret is in no config, adapter, strategy, snapshot, history, exception or log."""
        with caplog.at_level(logging.DEBUG):
            adapter = scripted(reset_error(), reset_error(), reset_error(), quota_url=DEAD, quota=500)
            with pytest.raises(requests.ConnectionError) as error:
                send(adapter)
        history = retry_history(error.value)
        strategy = adapter.strategy
        shown = [caplog.text, history.to_dict(), history.explain(), history, error.value, error.value.__dict__]
        shown += [getattr(error.value, "__notes__", None), adapter, adapter.retry_config, strategy, vars(strategy)]
        shown += [strategy.snapshot(), strategy.bucket(SCOPE), vars(strategy.bucket(SCOPE)), pickle.dumps(history)]
        assert "does not answer" in caplog.text
        assert [thing for thing in shown if "hunter2" in repr(thing)] == []

    def test_an_option_beside_a_strategy_is_refused_without_its_secret(self) -> None:
        """The strategy has its own quota."""
        with pytest.raises(RetryConfigError, match=r"^quota_url='redis://\.\.\.'"):
            scripted(strategy=StandardRetryStrategy(), quota_url=DEAD)

    def test_an_error_about_what_cannot_be_pickled_keeps_the_secret(self) -> None:
        """The message may name other values, but never the URL."""
        config = RetryConfig(quota_url=DEAD, scope=lambda _: "all")
        with pytest.raises(Exception, match=r"lambda|local") as error:
            pickle.dumps(config)
        assert "hunter2" not in repr(error.value)


def test_scopes_beyond_the_limit_have_a_bucket_with_a_name() -> None:
    """The table makes each bucket by name, the one for overflow as well, so that processes agree on it."""
    names: list[str] = []

    def make(name: str) -> TokenBucket:
        names.append(name)
        return TokenBucket(10, initial=5)

    table = ScopeTable(make, is_full, limit=2)
    for scope in ("a", None, "c", "d"):
        table.get(scope)
    assert names == ["a", "default", "overflow"]
