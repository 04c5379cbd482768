from __future__ import annotations

import pytest

from requests_smithy_retry.quotas.settings import RedisSettings, SharedQuotaSettings, settings_from


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("budget", 0),
        ("budget", float("nan")),
        ("local_capacity", -1),
        ("retry_interval", -1),
        ("log_interval", "1"),
        ("connect_timeout", 0),
        ("flush_interval", -0.5),
        ("ttl", 0),
        ("max_connections", 0),
        ("max_connections", 1.5),
        ("prefix", ""),
        ("prefix", 1),
    ],
)
def test_a_setting_out_of_range_is_refused(name: str, value: object) -> None:
    """The error names the setting and what is allowed."""
    with pytest.raises(ValueError, match=rf"^{name}=.*allowed$"):
        RedisSettings(**{name: value})


@pytest.mark.parametrize(
    ("capacity", "local", "size"), [(500, None, 500), (100, None, 100), (9000, None, 500), (500, 0, 0), (10, 20, 20)]
)
def test_the_local_bucket_is_no_larger_than_the_default_quota_unless_told(
    capacity: float, local: float | None, size: float
) -> None:
    """Without a word, the local bucket holds what the shared one does, and at most 500."""
    assert SharedQuotaSettings(local_capacity=local).local_bucket_size(capacity) == size


def test_settings_come_from_a_query() -> None:
    """Numbers are read as such; what is not named keeps its default."""
    query = {"budget": "0.5", "max_connections": "2", "prefix": "fleet"}
    assert settings_from(RedisSettings, query) == RedisSettings(budget=0.5, max_connections=2, prefix="fleet")


@pytest.mark.parametrize("query", [{"budget": "secret"}, {"max_connections": "1.5"}, {"secret": "1"}, {"ttl": "1"}])
def test_a_bad_query_is_refused_without_being_shown(query: dict[str, str]) -> None:
    """No part of a query is echoed: it may be a password in the wrong place."""
    with pytest.raises(ValueError, match=r"allowed|no setting") as error:
        settings_from(SharedQuotaSettings, query)
    assert "secret" not in str(error.value)
    assert error.value.__context__ is None
