"""What of a URL may be written anywhere (contract 12): no userinfo, no query, no fragment."""

from __future__ import annotations

from urllib.parse import urlsplit

from .scopes import scope_of


def safe_url(url: str | None) -> str:
    """The URL without userinfo, query and fragment; never raises.

    >>> safe_url("https://user:secret@api.example.com/things?key=secret#top")
    'https://api.example.com:443/things'
    """
    text = str(url)
    try:
        return scope_of(text) + urlsplit(text).path
    except ValueError:
        return scope_of(text)
