"""The scope of a URL, and the parts of it that may be shown anywhere (contract 6.4, 12)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from .checks import header_text

ORIGIN = re.compile(r"[^/]*(?://[^/]*)?").match
"""Matches the scheme, host and port of any URL, as they are written there."""
DEFAULT_PORTS = {"http": 80, "https": 443}
KEYS = frozenset(
    {
        *("authorization", "api-key", "apikey", "x-api-key", "x-auth-token", "x-access-token", "private-token"),
        *("x-goog-api-key", "x-vault-token", "x-shopify-access-token", "ocp-apim-subscription-key", "x-functions-key"),
    }
)
"""The headers that carry a request's credentials, in lower case."""
SIGNED_BY = r"(?i)\b(?:credential|username|keyid|oauth_token|oauth_consumer_key)=(?:\"[^\"]*\"|[^\s,]*)"
"""The user in an ``Authorization`` that differs from request to request: AWS, Digest, OAuth 1, HTTP signatures."""


def scope_of(url: str) -> str:
    """Return the ``scheme://host:port`` of a URL, without userinfo; never raise.

    >>> scope_of("https://user:secret@API.example.com/v1?key=1")
    'https://api.example.com:443'
    >>> scope_of("http://[::1]:8080/"), scope_of("http+unix://%2Frun%2Fapp.sock/v1")
    ('http://[::1]:8080', 'http+unix://%2Frun%2Fapp.sock')
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "invalid URL"
    scheme = parts.scheme.lower()
    host = parts.netloc.rpartition("@")[2]
    if port is not None:
        host = host.rpartition(":")[0]
    else:
        host = host.removesuffix(":")
        port = DEFAULT_PORTS.get(scheme)
    # An http+unix host is a quoted path, which is case-sensitive.
    host = host if "%2f" in host.lower() else host.lower()
    return f"{scheme}://{host}" if port is None else f"{scheme}://{host}:{port}"


def user_of(headers: Mapping[str, str | bytes]) -> bytes:
    """Return a hash of a request's user, taken from case-insensitive headers; it reveals no secret."""
    said = []
    fields = getattr(headers, "_store", headers)  # the dict in a CaseInsensitiveDict, whose "in" is faster
    for name in KEYS:
        if name in fields:
            text = header_text(headers[name])
            said += [name, *(re.findall(SIGNED_BY, text) or [text])]
    return hashlib.sha256("\n".join(said).encode("utf-8", "backslashreplace")).digest() if said else b""


def without_secrets(scope: str) -> str:
    """Return a scope without userinfo, query and fragment, which a user's function may have left in (contract 12).

    >>> without_secrets("https://user:secret@api.example.com/v1?key=secret"), without_secrets("who?")
    ('https://api.example.com/v1', 'who?')
    """
    scheme, is_url, rest = scope.partition("://")
    if not is_url:
        return scope
    authority, slash, path = rest.partition("#")[0].partition("?")[0].partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


class ScopeName(str):
    """A scope whose text contains secrets, which its repr does not show."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(without_secrets(str(self)))


def scope_name(scope: str) -> str:
    """Return a scope that is safe in any repr.

    >>> scope_name("https://user:secret@api.example.com/v1?key=secret"), scope_name("who?")
    ('https://api.example.com/v1', 'who?')
    """
    return scope if without_secrets(scope) == scope else ScopeName(scope)


def display_scope(scope: str | None) -> str:
    """Return a scope without its scheme's default port and without secrets; "the service" if there is none.

    >>> display_scope("https://api.example.com:443"), display_scope("http://api.example.com:8080")
    ('https://api.example.com', 'http://api.example.com:8080')
    """
    if scope is None:
        return "the service"
    scope = without_secrets(scope)
    scheme = scope.partition("://")[0]
    return scope.removesuffix(f":{DEFAULT_PORTS[scheme]}") if scheme in DEFAULT_PORTS else scope


def safe_url(url: str | None) -> str:
    """Return the URL without userinfo, query and fragment; never raise.

    >>> safe_url("https://user:secret@api.example.com/things?key=secret#top")
    'https://api.example.com:443/things'
    """
    text = str(url)
    try:
        return scope_of(text) + urlsplit(text).path
    except ValueError:
        return scope_of(text)
