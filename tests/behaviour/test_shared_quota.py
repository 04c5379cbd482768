"""A quota that processes share on Redis, as an option: what is taken, shown and refused, and what it does."""

from __future__ import annotations

import copy
import logging
import pickle
import sys
from typing import Any

import pytest
import requests
from hypothesis import example, given
from hypothesis import strategies as st

from requests_smithy_retry import (
    RetryAdapter,
    RetryConfig,
    RetryConfigError,
    RetryConfigWarning,
    StandardRetryStrategy,
    StopReason,
    TokenBucket,
    mount,
    retry_history,
)
from requests_smithy_retry.features.redis import RedisQuota
from tests.support import reset_error, scripted, send
from tests.unit.features.redis.servers import Dictionary

redis = pytest.importorskip("redis")

SCOPE = "https://api.example.com:443"
DEAD = "redis://:hunter2@127.0.0.1:1/0?client_name=hunter2"
"""Nobody listens at port 1."""
ALLOWED = (
    "a finite number of tokens (0 or more), 'payoff', a redis://, rediss:// or unix:// URL (special characters "
    "percent-encoded), a client of redis-py, a bucket, a function that makes one for a scope, or None for no quota "
    "is allowed"
)


def shown(config: RetryConfig) -> str:
    """The quota in the table of a configuration."""
    return next(setting.text for setting in config.settings() if setting.name == "quota")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("redis://localhost", "redis://localhost:6379"),
        ("redis://app:secret@cache.example.com:6380/2?db=3", "redis://cache.example.com:6380/2"),
        ("redis://localhost/", "redis://localhost:6379"),
        ("rediss://:se%40cret@[::1]/0", "rediss://[::1]:6379/0"),
        ("unix:///run/redis.sock?db=1&password=secret", "unix:///run/redis.sock"),
    ],
)
def test_a_url_is_shown_without_secrets(url: str, place: str) -> None:
    """Scheme, host, port and path are."""
    config = RetryConfig(quota=url)
    assert place == shown(config)
    assert "secret" not in config.explain() + repr(config) + repr(config.quota) + repr(config.settings())


@pytest.mark.parametrize(
    "value",
    [
        "secret:x",
        "http://localhost?secret",
        "memory://secret",
        "redis+sentinel://secret/svc",
        "redis:secret@localhost",
        "redis://",
        "redis://:secret@",
        "redis://:sec/ret@localhost",
        "redis://:12#secret@localhost",
        "redis://:12?secret@localhost",
        "redis://localhost#secret",
        "redis://localhost?password=sec@ret",
        "redis://localhost?password=secret&socket_timeout=soon",
        "redis://localhost?password=secret&socket_timeout=0",
        "unix:///run/sec@ret",
        "unix:/run/secret",
        " redis://:secret@localhost",
        "redis://:secret@localhost:port",
        "redis://localhost/secret",
        "unix://secret",
        "unix://user:secret@host/path",
        "redis://[::1:secret",
        b"redis://:secret@localhost",
        ["redis://:secret@localhost"],
        {"url": "redis://:secret@localhost"},
    ],
)
def test_a_bad_url_is_refused_without_being_shown(value: Any) -> None:
    """The error shows the scheme at most, wherever a secret may be."""
    with pytest.raises(RetryConfigError) as error:
        RetryConfig(quota=value)
    assert ALLOWED == error.value.allowed
    for text in (str(error.value), repr(error.value), repr(error.value.value), repr(pickle.dumps(error.value))):
        assert "secret" not in text
        assert "ret@" not in text


@example("12#secret")
@example("secret@x")
@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=6))
def test_no_password_is_ever_shown(password: str) -> None:
    """However a password is written into a URL, quoted or not, at most the host that follows it is shown."""
    try:
        text = repr(RetryConfig(quota=f"redis://user:{password}@host:6379/0"))
    except RetryConfigError as error:
        text = str(error) + repr(error)
        assert "quota='redis://...'" in text
    else:
        assert "quota=<RedisQuota redis://host:6379/0>" in text


def test_another_option_is_shown_though_there_is_a_url_in_it() -> None:
    """A value that contains a URL is shown, unless the option is the one where a server's URL may stand."""
    with pytest.raises(RetryConfigError, match=r"allowed_methods=\['http://example\.com'\]"):
        RetryConfig(allowed_methods=["http://example.com"])


def test_a_client_of_the_program_is_taken_as_it_is() -> None:
    """It is named by its class: its URL may hold a secret."""
    client = redis.Redis(password="hunter2")
    config = RetryConfig(quota=client)
    assert ("the program's Redis", True) == (shown(config), config == RetryConfig(quota=client))
    assert "hunter2" not in repr(config)
    assert isinstance(RetryConfig(quota=RedisQuota(client, capacity=7)).quota, RedisQuota)
    for other in (redis.asyncio.Redis(), redis.Redis, object()):
        with pytest.raises(RetryConfigError, match="a client of redis-py"):
            RetryConfig(quota=other)


@pytest.mark.parametrize(
    ("server", "options", "words"),
    [
        (DEAD, {"capacity": -1}, "capacity=-1: a finite number"),
        (DEAD, {"timeout": 0}, "timeout=0: a finite number of seconds above 0"),
        (DEAD, {"timeout": float("inf")}, "timeout=inf: a finite number of seconds above 0"),
        (redis.asyncio.Redis(), {}, r"but not of redis\.asyncio"),  # no thread can wait for its calls
    ],
)
def test_what_no_quota_can_be_made_of_is_refused(server: Any, options: dict[str, float], words: str) -> None:
    """The capacity is that of a bucket; the time-out bounds each call."""
    with pytest.raises(ValueError, match=words):
        RedisQuota(server, **options)


def test_a_socket_timeout_in_the_url_bounds_each_call() -> None:
    """Unless a time-out is given."""
    url = "redis://host?socket_timeout=0.5"
    assert (0.5, 2, 0.1) == (RedisQuota(url).timeout, RedisQuota(url, timeout=2).timeout, RedisQuota(DEAD).timeout)


def test_configurations_compare_and_pickle_with_their_secrets() -> None:
    """Two are equal if nothing differs, secrets included, and a pickled one can still connect."""
    config = RetryConfig(quota="redis://:a@localhost")
    assert config == pickle.loads(pickle.dumps(config)) == RetryConfig(quota="redis://:a@localhost")
    assert hash(config.quota) == hash(RetryConfig(quota="redis://:a@localhost").quota)
    assert config != RetryConfig(quota="redis://:b@localhost")
    assert config.quota != "redis://:a@localhost"


def test_the_environment_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    """By ``SMITHY_RETRY_QUOTA``; what is wrong with it is said without showing it, and the program's own quota wins."""
    monkeypatch.setenv("SMITHY_RETRY_QUOTA", DEAD)
    config = RetryAdapter().retry_config
    variable = "environment variable SMITHY_RETRY_QUOTA"
    assert ("redis://127.0.0.1:1/0", variable) == (shown(config), config.source("quota"))
    bucket = TokenBucket(5)
    with pytest.warns(RetryConfigWarning, match=r"^quota='redis:.*no effect, because quota=<TokenBucket"):
        assert bucket is RetryAdapter(quota=bucket).strategy.bucket("a")
    monkeypatch.setenv("SMITHY_RETRY_QUOTA", "redis://:sec/ret@host")
    with pytest.raises(RetryConfigError, match=rf"^quota='redis://\.\.\.' \(from {variable}\)"):
        RetryAdapter()


@pytest.mark.parametrize("query", ["secret=1", "max_connections=secret"])
def test_a_query_that_redis_py_refuses_is_told_when_the_adapter_is_made(query: str) -> None:
    """Without the words of redis-py, which quote it."""
    with pytest.raises(RetryConfigError, match=r"^quota='redis://host:6379' \(from code\): redis-py refuses") as error:
        RetryAdapter(quota=f"redis://host?{query}")
    assert "secret" not in str(error.value)
    assert error.value.__context__ is None


def test_without_redis_py_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is named, when the adapter is made."""
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(RetryConfigError, match="pip install redis") as error:
        mount(requests.Session(), quota=DEAD)
    assert error.value.__context__ is None


@pytest.fixture
def client() -> Dictionary:
    return Dictionary()


def patient(client: Dictionary, **options: float) -> RedisQuota:
    """A quota whose time-out no busy machine exceeds."""
    return RedisQuota(client, timeout=60, **options)


def test_all_adapters_spend_the_bucket_of_a_scope(client: Dictionary) -> None:
    """A retry takes 14 of the 500 tokens, which its success gives back."""
    first, second = (scripted(503, 200, quota=patient(client)) for _ in range(2))
    assert 200 == send(first).status_code == send(second).status_code
    assert [(0.0, 14.0), (14.0, 0.0)] * 2 == [step for run in client.runs for step in run]
    assert {f"requests-smithy-retry:{{{SCOPE}}}": 500.0} == client.levels
    record = retry_history(send(scripted(503, 200, quota=patient(client)))).attempts[0]
    assert ("redis", 500, 486) == (record.quota_source, record.quota_before, record.quota_after)


def test_an_operation_waits_for_the_service_while_the_bucket_is_empty(client: Dictionary) -> None:
    """As with the default: another operation's success, or its own question, ends the wait."""
    adapter = scripted(503, 200, quota=patient(client, capacity=5), patience=5)
    assert max(attempt.line_wait for attempt in retry_history(send(adapter)).attempts) > 0
    adapter = scripted(*[503] * 20, quota=patient(client, capacity=5), patience=5)
    assert StopReason.PATIENCE is retry_history(send(adapter)).stop_reason


def test_a_first_try_success_asks_nobody(client: Dictionary) -> None:
    """Only a retry does; then it brings the successes before it, where the bucket is known to be short of tokens."""
    client.levels[f"requests-smithy-retry:{{{SCOPE}}}"] = 100.0
    adapter = scripted(200, 503, 200, 200, 200, 503, 200, quota=patient(client))
    runs = [(send(adapter), len(client.runs))[1] for _ in range(5)]
    assert [0, 2, 2, 2, 5] == runs
    assert [(0.0, 14.0), (14.0, 0.0), (2.0, 0.0), (0.0, 14.0), (14.0, 0.0)] == [
        step for run in client.runs for step in run
    ]


@pytest.mark.real_time
def test_without_a_server_operations_go_on(caplog: pytest.LogCaptureFixture) -> None:
    """A bucket of the process pays; the history names it, and no secret is in anything that is shown."""
    with caplog.at_level(logging.DEBUG):
        adapter = scripted(reset_error(), reset_error(), reset_error(), *[reset_error()] * 40, quota=DEAD, patience=0)
        with pytest.raises(requests.ConnectionError) as error:
            send(adapter)
    history, strategy = retry_history(error.value), adapter.strategy
    assert "redis, fallen open" == history.attempts[0].quota_source == history.to_dict()["attempts"][0]["quota_source"]
    told: list[Any] = [caplog.text, history.to_dict(), history.explain(), history, error.value, error.value.__dict__]
    told += [getattr(error.value, "__notes__", None), adapter, adapter.retry_config, strategy, vars(strategy)]
    told += [strategy.snapshot(), strategy.bucket(SCOPE), vars(strategy.bucket(SCOPE)), pickle.dumps(history)]
    assert "does not answer" in caplog.text
    assert [] == [thing for thing in told if "hunter2" in repr(thing)]


def test_a_copy_shares_with_its_original(client: Dictionary) -> None:
    """A copied strategy goes to the same server; so does one that was pickled, if the server was named by a URL."""
    strategy = StandardRetryStrategy(quota=patient(client, capacity=28))
    strategy.bucket("a").acquire(20)
    for other in (copy.copy(strategy), copy.deepcopy(strategy)):
        assert not other.bucket("a").acquire(14)
    named = StandardRetryStrategy(quota=DEAD)
    assert named.config.quota == pickle.loads(pickle.dumps(named)).config.quota
