from __future__ import annotations

import dataclasses
import re

import pytest

from requests_smithy_retry.quotas.bucket import check_amount
from requests_smithy_retry.quotas.settings import RedisSettings, SharedQuotaSettings, settings_from

SECONDS = "a finite number of seconds from 0 to 1000000000 is allowed"
IN_A_CALL = "a finite number of seconds above 0 and up to 86400 is allowed"
TTL = "a finite number of seconds above 0 and up to 1000000000 is allowed"


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("budget", 0, IN_A_CALL),
        ("budget", float("nan"), IN_A_CALL),
        ("budget", 86_401, IN_A_CALL),
        ("local_capacity", -1, "a finite number of tokens (0 or more) or None is allowed"),
        ("retry_interval", -1, SECONDS),
        ("log_interval", "1", SECONDS),
        ("connect_timeout", 0, IN_A_CALL),
        ("connect_timeout", 1e300, IN_A_CALL),
        ("flush_interval", -0.5, SECONDS),
        ("flush_interval", 1e10, SECONDS),
        ("ttl", 0, TTL),
        ("ttl", 1e300, TTL),
        ("prefix", "", "a text that is not empty is allowed"),
        ("prefix", 1, "a text that is not empty is allowed"),
    ],
)
def test_a_setting_out_of_range_is_refused(name: str, value: object, allowed: str) -> None:
    """The error names the setting, the value and what is allowed."""
    with pytest.raises(ValueError, match=f"^{re.escape(f'{name}={value!r}: {allowed}')}$"):
        RedisSettings(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("budget", 1e-6),
            ("local_capacity", 0),
            ("local_capacity", None),
            ("retry_interval", 0),
            ("log_interval", 0),
        ),
        *(("budget", 86_400), ("connect_timeout", 86_400), ("flush_interval", 1e9), ("ttl", 1e9)),
        *(("connect_timeout", 1e-6), ("flush_interval", 0), ("ttl", 0.001), ("prefix", "q")),
    ],
)
def test_the_ends_of_a_range_are_in_it(name: str, value: object) -> None:
    """The ends of a range are accepted as they are, without rounding."""
    assert getattr(RedisSettings(**{name: value}), name) == value


def test_a_setting_that_is_not_named_has_a_default() -> None:
    """A call may take 20 ms; an outage is looked at each second, logged each minute; Redis keeps a bucket an hour."""
    assert dataclasses.asdict(SharedQuotaSettings()) == {
        "budget": 0.02,
        "local_capacity": None,
        "retry_interval": 1.0,
        "log_interval": 60.0,
    }
    assert dataclasses.asdict(RedisSettings()) == {
        **dataclasses.asdict(SharedQuotaSettings()),
        "connect_timeout": 1.0,
        "flush_interval": 1.0,
        "ttl": 3600.0,
        "prefix": "requests-smithy-retry",
    }


@pytest.mark.parametrize(
    ("capacity", "local", "size"), [(500, None, 500), (100, None, 100), (9000, None, 500), (500, 0, 0), (10, 20, 20)]
)
def test_the_local_bucket_is_no_larger_than_the_default_quota_unless_told(
    capacity: float, local: float | None, size: float
) -> None:
    """By default, the local bucket holds as many tokens as the shared one, and at most 500."""
    assert SharedQuotaSettings(local_capacity=local).local_bucket_size(capacity) == size


def test_settings_come_from_a_query() -> None:
    """Numbers are read as such; what is not named keeps its default."""
    query = {"budget": "0.5", "prefix": "fleet"}
    assert settings_from(RedisSettings, query) == RedisSettings(budget=0.5, prefix="fleet")


NAMES = "budget, local_capacity, log_interval, retry_interval"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"budget": "secret"}, "budget: a number is allowed"),
        ({"secret": "1"}, f"there is no setting of that name: there are {NAMES}"),
        ({"ttl": "1"}, f"there is no setting of that name: there are {NAMES}"),
        ({"budget": "-1"}, "budget=-1.0: a finite number of seconds above 0 and up to 86400 is allowed"),
    ],
)
def test_a_bad_query_is_refused_without_being_shown(query: dict[str, str], words: str) -> None:
    """No part of a query is echoed that is no number: it may be a password in the wrong place."""
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$") as error:
        settings_from(SharedQuotaSettings, query)
    assert error.value.__context__ is None or error.value.__suppress_context__


@pytest.mark.parametrize("amount", [-1, -1e-300, float("nan"), float("inf"), True])
def test_an_amount_that_is_none_is_refused(amount: float) -> None:
    """Taking it would overfill a bucket, or spoil it for good."""
    with pytest.raises(ValueError, match=rf"^amount={amount!r}: a finite number of tokens, 0 or more, is allowed$"):
        check_amount(amount)
    for fine in (0, 1e-300, 14):
        check_amount(fine)
