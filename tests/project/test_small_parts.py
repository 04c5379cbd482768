"""Parts of a few lines: errors, clock, interfaces."""

from __future__ import annotations

import inspect
import pickle
import time

import pytest

from requests_smithy_retry import (
    RetryConfigError,
    RetryStrategy,
    SimpleRetryStrategy,
    StandardRetryStrategy,
    SystemClock,
    TokenError,
)
from requests_smithy_retry.features.redis import RedisQuota


def test_a_config_error_names_everything():
    """Option, value, source and what is allowed are in the message and on the error, also after pickling."""
    error = RetryConfigError("max_attempts", 0, "code", "a whole number of 1 or more is allowed")
    assert "max_attempts=0 (from code): a whole number of 1 or more is allowed" == str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert ("max_attempts", 0, "code", str(error)) == (copy.option, copy.value, copy.source, str(copy))
    assert isinstance(error, ValueError)
    assert issubclass(TokenError, ValueError)


@pytest.mark.parametrize(
    ("option", "value", "shown"),
    [
        *(
            ("quota", f"{scheme}://user:hunter2@host/1?a=b://c", f"{scheme}://...")
            for scheme in ("http", "https", "redis", "rediss", "unix")
        ),
        ("mode", "hunter2://x", "..."),
        ("quota", "redis:hunter2", "..."),
        ("quota", "hunter2@host", "..."),
        ("quota", "payof", "payof"),
        ("quota", 5, 5),
        ("quota", RedisQuota("redis://:hunter2@host"), "redis://host:6379"),
        ("mode", "redis", "redis"),
    ],
)
def test_a_config_error_shows_no_password(option, value, shown):
    """A value that looks like a URL is shown with a known scheme at most; an object may define what can be shown."""
    error = RetryConfigError(option, value, "code", "nothing is allowed")
    assert (shown, f"{option}={shown!r} (from code): nothing is allowed") == (error.value, str(error))


def test_the_system_clock_tells_the_machines_time(monkeypatch):
    """Monotonic for intervals, wall for dates; sleep and dates are looked up when asked for: gevent, freezegun."""
    clock = SystemClock()
    assert abs(clock.now() - time.monotonic()) < 5
    assert abs(clock.wall() - time.time()) < 5
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    clock.sleep(3)
    assert [3] == slept
    monkeypatch.setattr(time, "time", lambda: 1.5)
    assert 1.5 == clock.wall()


def test_a_strategy_is_three_methods_with_keywords():
    """The built-in strategies have the protocol's methods, keyword-only as in the design."""
    for kind in (SimpleRetryStrategy, StandardRetryStrategy, RetryStrategy):
        for name, keywords in (
            ("acquire_initial_retry_token", ["token_scope"]),
            ("refresh_retry_token_for_retry", ["token_to_renew", "error"]),
            ("record_success", ["token"]),
        ):
            parameters = list(inspect.signature(getattr(kind, name)).parameters.values())[1:]
            assert keywords == [item.name for item in parameters]
            assert {inspect.Parameter.KEYWORD_ONLY} == {item.kind for item in parameters}
    assert isinstance(StandardRetryStrategy(), RetryStrategy)
    assert not isinstance(object(), RetryStrategy)
