"""An adapter finds the same pools as a plain one, whatever comes before (contract 14.1)."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import pytest
import requests
import urllib3
from hypothesis import given, settings
from hypothesis import strategies as st
from requests.adapters import HTTPAdapter

from requests_smithy_retry import RetryAdapter
from requests_smithy_retry import adapter as adapter_module

pytestmark = pytest.mark.skipif(
    not hasattr(HTTPAdapter, "get_connection_with_tls_context"), reason="requests before 2.32 goes by the URL alone"
)

FOLDER = tempfile.gettempdir()
FILE = os.path.abspath(__file__)
ROUTES: list[dict[str, str] | None] = [None, {}, {"http": "http://proxy:3128"}, {"all": "http://user:pw@other:3128"}]
CHECKS: list[Any] = [True, False, FILE, FOLDER, None]
CERTIFICATES: list[Any] = [None, "client.pem", ("client.pem", "client.key")]


class OwnPool:
    """Has a way of its own to a pool."""

    def get_connection_with_tls_context(self, request: Any, verify: Any, proxies: Any = None, cert: Any = None) -> Any:
        """Check nothing."""
        return super().get_connection_with_tls_context(request, False, proxies=proxies, cert=cert)


class OwnKey:
    """Has a key of its own."""

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:
        """Add the length of the path to it."""
        host, pool = super().build_connection_pool_key_attributes(request, verify, cert)
        return host, {**pool, "assert_hostname": f"h{len(request.path_url)}"}


class OwnManager:
    """Has a pool manager of its own making."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Give its pools one more option."""
        super().init_poolmanager(*args, **options, assert_hostname="api")


class OtherManager:
    """Has a pool manager of another class, which has one pool for all paths of a host that begin alike."""

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **options: Any) -> None:
        """Make it."""
        kind = type("Manager", (urllib3.PoolManager,), {})
        self.poolmanager = kind(num_pools=connections, maxsize=maxsize, block=block, **options)


class OwnTarget:
    """Sends another target."""

    def request_url(self, request: Any, proxies: Any) -> str:
        """Add a mark to it."""
        return super().request_url(request, proxies) + "#own"


KINDS: list[tuple[type, ...]] = [(), (OwnPool,), (OwnKey,), (OwnManager,), (OtherManager,), (OwnTarget,)]

URLS = st.builds(
    "{}://{}host{}.example.com{}{}".format,
    st.sampled_from(["http", "https", "HTTP"]),
    st.sampled_from(["", "", "", "user:pw@"]),
    st.integers(0, 11),
    st.sampled_from(["", ":80", ":8080"]),
    st.sampled_from(["", "/", "/a", "/a/b?q=1", "//a", "/a#part", "?q=http://other/"]),
)
ASK = st.tuples(
    st.just("ask"),
    URLS,
    st.sampled_from([*CHECKS, True, True]),
    st.sampled_from([*CERTIFICATES, None, None]),
    st.sampled_from([*ROUTES, {}, {}]),
)
STEPS = st.lists(
    st.one_of(ASK, ASK, ASK, ASK, st.tuples(st.sampled_from(["close", "clear", "mount", "option"]), st.integers(1, 3))),
    min_size=2,
    max_size=30,
)


def seen(base: type[HTTPAdapter], kind: tuple[type, ...], is_behind: bool, steps: list[Any]) -> list[Any]:
    """Return all that a program sees: which pool it gets, by its first appearance, what is sent, the keys in order."""
    made: Any = type("Adapter", (base, *kind, HTTPAdapter) if is_behind and kind else (*kind, base), {})
    adapter, pools, found = made(), [], []
    for step, *given_ in steps:
        if step == "ask":
            url, verify, cert, proxies = given_
            request = requests.Request("GET", url).prepare()
            pool = adapter.get_connection_with_tls_context(request, verify, proxies=proxies, cert=cert)
            if pool not in pools:
                pools.append(pool)
            target, keys = adapter.request_url(request, proxies), list(adapter.poolmanager.pools.keys())
            found.append((pools.index(pool), target, keys))
        elif step == "close":
            adapter.close()
        elif step == "clear":
            adapter.poolmanager.clear()
        elif step == "mount":
            session = requests.Session()
            session.mount("http://", adapter)
            found.append(session.get_adapter("http://host1.example.com/") is adapter)
        else:
            adapter.poolmanager.connection_pool_kw["timeout"] = given_[0]
    return found


@pytest.mark.once
@given(st.sampled_from(KINDS), st.booleans(), STEPS)
@settings(max_examples=600, deadline=None)
def test_the_same_pools_are_found_as_with_a_plain_adapter(kind: Any, is_behind: bool, steps: list[Any]) -> None:
    """Twelve hosts over ten pools, all forms of ``verify`` and ``cert``, proxies, and subclasses before and behind."""
    assert seen(RetryAdapter, kind, is_behind, steps) == seen(HTTPAdapter, kind, False, steps)


class Earlier(HTTPAdapter):
    """Finds its pools as in requests 2.32.2: without a method that makes their keys."""

    def get_connection_with_tls_context(self, request: Any, verify: Any, proxies: Any = None, cert: Any = None) -> Any:
        """Go by the URL."""
        return self.poolmanager.connection_from_url(request.url)


def test_an_earlier_release_has_no_method_that_makes_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The adapter of requests finds the pool then."""
    monkeypatch.delattr(HTTPAdapter, "build_connection_pool_key_attributes", raising=False)
    monkeypatch.setattr(adapter_module, "BUILD_KEY", None)
    adapter = type("Ours", (RetryAdapter, Earlier), {})()
    request = requests.Request("GET", "https://api.example.com/").prepare()
    found = [adapter.get_connection_with_tls_context(request, verify) for verify in (True, False)]
    assert found == [adapter.poolmanager.connection_from_url(request.url)] * 2
