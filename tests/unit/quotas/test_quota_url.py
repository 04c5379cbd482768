from __future__ import annotations

import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from requests_smithy_retry import RetryConfig, RetryConfigError
from requests_smithy_retry.checks import Refused
from requests_smithy_retry.quotas.places import QuotaUrl, quota_url


@pytest.mark.parametrize(
    ("text", "place", "settings"),
    [
        ("redis://localhost", "redis://localhost:6379", {}),
        (
            "redis://app:secret@cache.example.com:6380/2?budget=0.05",
            "redis://cache.example.com:6380/2",
            {"budget": "0.05"},
        ),
        ("rediss://:se%40cret@[::1]/0", "rediss://[::1]:6379/0", {}),
        ("unix:///run/redis.sock?db=1&password=secret", "unix:///run/redis.sock", {"db": "1", "password": "secret"}),
        ("redis://h?budget=1&prefix=", "redis://h:6379", {"budget": "1", "prefix": ""}),
        ("redis://localhost/", "redis://localhost:6379", {}),
        ("memory://", "memory://", {}),
        ("redis+sentinel://app:secret@s1/svc", "redis+sentinel://s1:26379/svc", {}),
        (
            "rediss+sentinel://s1:7,[::1],s3/svc/2?db=1",
            "rediss+sentinel://s1:7,[::1]:26379,s3:26379/svc/2",
            {"db": "1"},
        ),
    ],
)
def test_a_url_is_shown_without_secrets(text: str, place: str, settings: dict[str, str]) -> None:
    """The text of a URL is its scheme, host, port and path."""
    url = QuotaUrl(text)
    assert (url.place, url.settings) == (place, settings)
    assert (str(url), repr(url)) == (place, f"<QuotaUrl {place}>")
    assert (quota_url(text), url.scheme) == (url, place.partition(":")[0])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "secret",
        "http://localhost",
        "redis:localhost",
        "redis://",
        "redis://:secret@",
        "redis://:sec/ret@localhost",
        "redis://:12#secret@localhost",
        "redis://:12?secret@localhost",
        "redis://localhost#secret",
        "redis://localhost?password=sec@ret",
        "unix:///run/sec@ret",
        "unix:/run/secret",
        " redis://:secret@localhost",
        "redis://:secret@localhost:port",
        "redis://localhost/secret",
        "unix://secret",
        "unix://user:secret@host/path",
        "unix://",
        "shm://name",
        "memory://secret",
        "redis://[::1",
        "redis+sentinel://",
        "redis+sentinel://secret",
        "redis+sentinel://secret/",
        "redis+sentinel://a,/svc",
        "redis+sentinel://:secret@/svc",
        "redis+sentinel://a:secret/svc",
        "redis+sentinel://a/svc/0/secret",
        "redis+sentinel://a/s c",
        5,
        b"redis://:secret@localhost",
        ["redis://:secret@localhost"],
        {"url": "redis://:secret@localhost"},
    ],
)
def test_a_bad_url_is_refused_without_being_shown(text: object) -> None:
    """The refusal, and the error made of it, show at most the scheme."""
    with pytest.raises(Refused) as refusal:
        quota_url(text)
    assert str(refusal.value) == (
        "redis://host:6379/0, rediss://host:6379/0, unix:///path/to/socket, "
        "redis+sentinel://host:26379,host:26379/MASTER, memory:// or None is allowed; "
        "special characters in a user name or password are percent-encoded"
    )
    with pytest.raises(RetryConfigError) as error:
        RetryConfig(quota_url=text)
    for shown in (str(error.value), repr(error.value), repr(error.value.value), repr(pickle.dumps(error.value))):
        assert "secret" not in shown
        assert "ret@" not in shown


@example("12#secret")
@example("secret@x")
@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=6))
def test_no_password_is_ever_shown(password: str) -> None:
    """However a password is written into a URL, quoted or not, at most the host that follows it is shown."""
    try:
        shown = repr(RetryConfig(quota_url=f"redis://user:{password}@host:6379/0"))
    except RetryConfigError as error:
        shown = str(error) + repr(error)
        assert "quota_url='redis://...'" in shown
    else:
        assert "quota_url=<QuotaUrl redis://host:6379/0>" in shown


def test_a_url_for_another_option_is_not_shown_either() -> None:
    """A URL that was given as the wrong option is withheld too."""
    with pytest.raises(RetryConfigError, match=r"quota='redis://\.\.\.'"):
        RetryConfig(quota="redis://:secret@localhost")
    with pytest.raises(RetryConfigError, match=r"quota='<bytes>'"):
        RetryConfig(quota=b"redis://:secret@localhost")


def test_another_option_is_shown_though_there_is_a_url_in_it() -> None:
    """A value that contains a URL is shown, unless the option is one where a quota's URL may stand."""
    with pytest.raises(RetryConfigError, match=r"allowed_methods=\['http://example\.com'\]"):
        RetryConfig(allowed_methods=["http://example.com"])


def test_none_and_a_url_that_was_looked_at_are_kept() -> None:
    """None means no sharing; a parsed URL is taken as it is."""
    url = QuotaUrl("redis://name")
    assert quota_url(None) is None
    assert quota_url(url) is url


def test_urls_compare_and_pickle_with_their_secrets() -> None:
    """Two URLs are equal if nothing differs, secrets included, and a pickled one can still connect."""
    url = QuotaUrl("redis://:a@localhost?budget=1")
    assert pickle.loads(pickle.dumps(url)) == url
    assert hash(url) == hash(QuotaUrl("redis://:a@localhost?budget=1"))
    assert url != QuotaUrl("redis://:b@localhost?budget=1")
    assert url != "redis://:a@localhost?budget=1"


def test_settings_can_be_taken_out() -> None:
    """``without`` gives the URL with its secrets, and without the named settings, for the code that connects."""
    url = QuotaUrl("unix:///run/redis.sock?budget=1&db=2&password=a%26b")
    assert url.without({"budget"}) == "unix:///run/redis.sock?db=2&password=a%26b"
    assert url.without({"budget", "db", "password"}) == "unix:///run/redis.sock"
    assert QuotaUrl("redis://h?prefix=a?b&db=&budget=1").without({"budget"}) == "redis://h?prefix=a%3Fb&db="
