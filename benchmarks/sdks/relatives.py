"""Rows: requests with its own relatives."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from .row import LIMIT, sdk

Steps = Generator[Any, None, None]
LIONS = {"GET /lions": {"name": "Leo"}, "PUT /lions/1": {"id": 1}, "POST /lions": {"id": 2}}


def _use(session: Any, url: str) -> list[Any]:
    told = []
    for method, path in (("GET", "/lions"), ("PUT", "/lions/1"), ("POST", "/lions")):
        response = session.request(method, url + path, timeout=LIMIT)
        response.raise_for_status()
        told.append(response.json())
    return told


@sdk("requests", LIONS, "mount(client)")
def plain_requests(url: str) -> Steps:
    """GET, PUT and POST."""
    import requests

    client = requests.Session()
    yield client
    yield _use(client, url)


@sdk("requests", {"GET /lions": {"name": "Leo"}}, "", name="requests.get")
def requests_get(url: str) -> Steps:
    """The function, without a session."""
    import requests

    yield None
    response = requests.get(f"{url}/lions", timeout=LIMIT)
    response.raise_for_status()
    yield response.json()


@sdk("requests-toolbelt", LIONS, "mount(client)")
def toolbelt(url: str) -> Steps:
    """A session with a base URL."""
    from requests_toolbelt.sessions import BaseUrlSession

    client = BaseUrlSession(url)
    yield client
    yield _use(client, "")


@sdk(
    "requests-unixsocket2",
    LIONS,
    "unix = client.adapters['http+unix://']\n"
    "client.mount('http+unix://', type('Retrying', (type(unix), RetryAdapter), {})())",
    scheme="unix",
    why="It mounts an adapter of its own for `http+unix://`, with no retries.",
)
def unixsocket(url: str) -> Steps:
    """A session for unix sockets."""
    from urllib.parse import quote

    from requests_unixsocket import Session

    client = Session()
    yield client
    yield _use(client, "http+unix://" + quote(url.partition("//")[2], safe=""))


@sdk(
    "requests-cache",
    {"GET /lions": {"name": "Leo"}, "PUT /lions/1": {"id": 1}, "POST /lions": {"id": 2}},
    "mount(client)",
)
def cache(url: str) -> Steps:
    """A session with a cache."""
    from requests_cache import CachedSession

    client = CachedSession(backend="memory")
    yield client
    yield _use(client, url), client.get(f"{url}/lions").json()
