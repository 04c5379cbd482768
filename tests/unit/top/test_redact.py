"""The parts of a URL that may be written anywhere (contract 12)."""

from __future__ import annotations

import pytest

from requests_smithy_retry.urls import safe_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://api.example.com/a?b=c", "https://api.example.com:443/a"),
        ("http://user:pass@host:8080/a#b", "http://host:8080/a"),
        ("http://[::1]:80/", "http://[::1]:80/"),
        ("http://[broken/", "invalid URL"),
        ("", "://"),
    ],
)
def test_a_url_is_written_without_its_secrets(url: str, expected: str) -> None:
    """Scheme, host, port and path are left; a URL that cannot be taken apart is not written at all."""
    assert expected == safe_url(url)
