"""The claims of docs/howto/compose.md about other libraries' adapters and sessions, with the libraries themselves."""

from __future__ import annotations

import base64
import gzip
import struct
import time
from email.utils import formatdate
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter

from requests_smithy_retry import (
    RetryAdapter,
    RetryConfig,
    RetryListener,
    install,
    mount,
    retry_history,
    retry_options,
    uninstall,
)
from requests_smithy_retry.testing import FakeClock
from tests.faults import CutBody, FaultServer, Reply
from tests.support import session_with

pytestmark = pytest.mark.real_time


def seen(server: FaultServer, header: str) -> list[str | None]:
    """A header of each request."""
    return [{name.lower(): value for name, value in request.headers}.get(header.lower()) for request in server.requests]


@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")  # it does not close its temporary files
class TestCacheControl:
    @pytest.fixture
    def kinds(self) -> Any:
        cachecontrol = pytest.importorskip("cachecontrol")

        class InFront(cachecontrol.CacheControlAdapter, RetryAdapter):
            pass

        class Behind(RetryAdapter, cachecontrol.CacheControlAdapter):
            pass

        return cachecontrol, InFront, Behind

    def fresh(self, body: bytes = b"well", **more: str) -> Reply:
        headers = {"Cache-Control": "max-age=60", "Date": formatdate(usegmt=True), **more}
        return Reply(200, headers, body)

    @pytest.mark.parametrize("stream", [False, True])
    def test_a_hit_is_no_attempt(self, kinds, stream):
        """The response of the retry is cached; a hit sends nothing and has no history."""
        _, in_front, _ = kinds
        with FaultServer([Reply(503), self.fresh()]) as server:
            session = session_with(in_front(clock=FakeClock()))
            first = session.get(server.url, stream=stream)
            assert (b"well", False, 2) == (first.content, first.from_cache, len(retry_history(first).attempts))
            hit = session.get(server.url, stream=stream)
            assert (b"well", True, None) == (hit.content, hit.from_cache, retry_history(hit))
            assert 2 == len(server.requests)

    def test_a_revalidation_is_an_operation(self, kinds):
        """The 503 in the way of a 304 is retried with the same condition."""
        _, in_front, _ = kinds
        with FaultServer([Reply(200, {"ETag": '"a"'}, b"well"), Reply(503), Reply(304, {"ETag": '"a"'})]) as server:
            session = session_with(in_front(clock=FakeClock()))
            session.get(server.url)
            again = session.get(server.url)
            assert (b"well", True, 2) == (again.content, again.from_cache, len(retry_history(again).attempts))
            assert [None, '"a"', '"a"'] == seen(server, "If-None-Match")

    def test_a_gzip_body_that_was_cut(self, kinds):
        """The cache keeps it; in front it is replaced by the retry's, behind it is every retry's answer."""
        _, in_front, behind = kinds
        coded = gzip.compress(b"x" * 1000)
        script = [self.fresh(part, **{"Content-Encoding": "gzip"}) for part in (coded[:-9], coded)]
        with FaultServer(script) as server:
            session = session_with(in_front(clock=FakeClock()))
            assert [b"x" * 1000] * 2 == [session.get(server.url).content for _ in range(2)]
            assert 2 == len(server.requests)
            server.script(script)
            session = session_with(behind(clock=FakeClock()))
            with pytest.raises(requests.exceptions.ContentDecodingError):
                session.get(server.url)
            assert 3 == len(server.requests)

    def test_who_takes_whose_place(self, kinds):
        """``CacheControl`` and ``mount`` each replace what was mounted, unless told which class to take."""
        cachecontrol, in_front, _ = kinds
        session = cachecontrol.CacheControl(mount(requests.Session()))
        assert not isinstance(session.get_adapter("https://a"), RetryAdapter)
        assert type(mount(session).get_adapter("https://a")) is RetryAdapter
        session = cachecontrol.CacheControl(requests.Session(), adapter_class=in_front)
        assert type(session.get_adapter("https://a")) is in_front


class TestRequestsCache:
    @pytest.fixture
    def session(self) -> Any:
        requests_cache = pytest.importorskip("requests_cache")
        with requests_cache.CachedSession(backend="memory", stale_if_error=True) as made:
            yield mount(made, backoff=0, patience=0)

    def test_a_hit_is_no_operation(self, session):
        """The response of the retry is stored; a hit sends nothing and has no history."""
        with FaultServer([CutBody(), Reply(200, body=b"well")]) as server:
            first, hit = session.get(server.url), session.get(server.url)
            assert (b"well", False, 2) == (first.content, first.from_cache, len(retry_history(first).attempts))
            assert (b"well", True, None) == (hit.content, hit.from_cache, retry_history(hit))
            assert 2 == len(server.requests)

    def test_what_is_stale_steps_in_after_the_last_attempt(self, session):
        """Three attempts are made before the old answer is given."""
        with FaultServer([Reply(200, body=b"old")] + [Reply(503)] * 3) as server:
            session.settings.expire_after = 0.001
            session.get(server.url)
            time.sleep(0.01)  # its expiry goes by the wall clock
            stale = session.get(server.url)
            assert (b"old", True, 4) == (stale.content, stale.from_cache, len(server.requests))

    @pytest.mark.parametrize("ours_first", [True, False])
    def test_both_can_be_installed(self, ours_first):
        """Both can be installed in either order, and nothing of either is left once they are uninstalled."""
        requests_cache = pytest.importorskip("requests_cache")
        plain = requests.Session, requests.Session.__init__
        steps = [lambda: install(backoff=0), lambda: requests_cache.install_cache(backend="memory")]
        undo = [requests_cache.uninstall_cache, uninstall]
        with FaultServer([Reply(503)]) as server:
            for step in steps if ours_first else reversed(steps):
                step()
            try:
                first, hit = requests.get(server.url), requests.get(server.url)
            finally:
                for step in undo if ours_first else reversed(undo):
                    step()
        assert (2, True, 2) == (len(retry_history(first).attempts), hit.from_cache, len(server.requests))
        assert plain == (requests.Session, requests.Session.__init__)


class TestRequestsRatelimiter:
    @pytest.fixture
    def kinds(self) -> Any:
        library = pytest.importorskip("requests_ratelimiter")

        class Behind(RetryAdapter, library.LimiterAdapter):
            pass

        class InFront(library.LimiterAdapter, RetryAdapter):
            pass

        return library, Behind, InFront

    def test_each_attempt_takes_a_permit(self, kinds):
        """Behind the retries it counts attempts: of three, the third waits. In front it counts operations."""
        _, behind, in_front = kinds
        config = RetryConfig(max_attempts=3, backoff=0, patience=0)
        with FaultServer(default=Reply(503)) as server:
            assert 0.3 < self.elapsed(behind(per_second=2, config=config), server)
            assert 60 > self.elapsed(in_front(per_hour=1, config=config), server)
            assert 6 == len(server.requests)

    def elapsed(self, adapter: RetryAdapter, server: FaultServer) -> float:
        with session_with(adapter) as session:
            return session.get(server.url).elapsed.total_seconds()

    def test_the_limiter_in_front_passes_options_on(self, kinds):
        """The limiter looks for option names in our signature, and drops those that are None, unlike a config's."""
        _, behind, in_front = kinds
        for kind in (behind, in_front):
            assert 7 == kind(per_second=1, max_attempts=7).retry_config.max_attempts
            assert None is kind(per_second=1, config=RetryConfig(quota=None)).retry_config.quota
        assert "payoff" == in_front(per_second=1, quota=None).retry_config.quota


class TestToolbelt:
    @pytest.mark.parametrize("first", [True, False])
    @pytest.mark.parametrize(
        "name", ["socket_options.TCPKeepAliveAdapter", "ssl.SSLAdapter", "host_header_ssl.HostHeaderSSLAdapter"]
    )
    def test_its_other_adapters_mix_in(self, name, first):
        """The toolbelt's adapters can be mixed in on either side, with our options."""
        module, _, attribute = name.partition(".")
        theirs = getattr(pytest.importorskip(f"requests_toolbelt.adapters.{module}"), attribute)
        kind = type("Mixed", (RetryAdapter, theirs) if first else (theirs, RetryAdapter), {})
        with FaultServer([Reply(503)] * 3) as server:
            session = session_with(kind(max_attempts=4, clock=FakeClock()))
            assert (200, 4) == (session.get(server.url).status_code, len(server.requests))


class Narrow(HTTPAdapter):
    """Takes none of HTTPAdapter's arguments, and has pools of its own, as docker's adapters do."""

    def __init__(self, address, timeout=60, pool_connections=25):
        self.address = address
        super().__init__(pool_connections=pool_connections)


class NarrowRetryAdapter(RetryAdapter, Narrow):
    pass


class TestAdaptersWithArgumentsOfTheirOwn:
    def test_only_what_differs_from_the_default_is_passed_on(self):
        """A class behind that does not know HTTPAdapter's arguments can be made, and its own defaults hold."""
        adapter = NarrowRetryAdapter(address="here", max_attempts=5)
        assert ("here", 25, 5) == (adapter.address, adapter._pool_connections, adapter.retry_config.max_attempts)
        assert 7 == NarrowRetryAdapter(address="here", pool_connections=7)._pool_connections

    def test_an_argument_that_it_does_not_know_is_still_refused(self):
        """An unknown argument raises ``TypeError`` instead of being dropped in silence."""
        with pytest.raises(TypeError, match="pool_maxsize"):
            NarrowRetryAdapter(address="here", pool_maxsize=7)

    def test_the_defaults_are_those_of_the_library(self):
        """The pools are as large as those of a plain HTTPAdapter."""
        plain, own = (
            {name: vars(item)[name] for name in vars(item) if "pool_" in name}
            for item in (HTTPAdapter(), RetryAdapter())
        )
        assert plain == {name: own[name] for name in plain}


class TestOAuthlib:
    def test_a_nonce_is_sent_twice(self):
        """The session signs once; a listener signs each attempt with the same object."""
        library = pytest.importorskip("requests_oauthlib")
        auth = library.OAuth1("key", "secret", "token", "secret")

        class SignEachAttempt(RetryListener):
            def before_attempt(self, event):
                auth(event.request)

        with FaultServer([Reply(503), Reply(200)] * 2) as server:
            plain = mount(library.OAuth1Session("key", "secret", "token", "secret"), backoff=0)
            plain.get(server.url)
            mount(requests.Session(), backoff=0, listeners=[SignEachAttempt()]).get(server.url)
            first, second, third, fourth = seen(server, "Authorization")
        assert first == second
        assert len({second, third, fourth}) == 3

    def test_a_token_request_is_sent_again_if_you_say_so(self, monkeypatch):
        """A token request is a POST, so it is sent again only if it is declared idempotent."""
        library = pytest.importorskip("requests_oauthlib")
        errors = pytest.importorskip("oauthlib.oauth2.rfc6749.errors")
        monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
        token = Reply(200, {"Content-Type": "application/json"}, b'{"access_token": "a", "token_type": "Bearer"}')
        with FaultServer([Reply(503), Reply(503), token]) as server:
            session = mount(library.OAuth2Session("client"), backoff=0)
            with pytest.raises(errors.MissingTokenError):
                session.fetch_token(f"{server.url}/token", code="c")
            with retry_options(idempotent=True):
                assert "a" == session.fetch_token(f"{server.url}/token", code="c")["access_token"]


class TestRequestsNtlm:
    TARGET, FACTS = b"D\0", struct.pack("<HH2sHH", 2, 2, b"D\0", 0, 0)
    CHALLENGE = base64.b64encode(
        struct.pack("<8sIHHI", b"NTLMSSP", 2, 2, 2, 56)
        + struct.pack("<I8s8x", 0xE2898215, b"12345678")
        + struct.pack("<HHI8s", len(FACTS), len(FACTS), 58, b"\x0a\0\x63\x45\0\0\0\x0f")
        + TARGET
        + FACTS
    ).decode()

    @pytest.mark.parametrize("options", [{}, {"operation_timeout": 9}], ids=repr)
    def test_the_three_steps_take_one_connection(self, options: dict[str, Any]) -> None:
        """The hook looks at the socket of the first 401, and authenticates that very connection."""
        library = pytest.importorskip("requests_ntlm")
        challenge = Reply(401, {"WWW-Authenticate": f"NTLM {self.CHALLENGE}"}, b"go on")
        script = [Reply(503), Reply(401, {"WWW-Authenticate": "NTLM"}, b"who?"), challenge, Reply(body=b"in")]
        adapter = RetryAdapter(backoff=0, pool_block=True, pool_maxsize=1, **options)
        with FaultServer(script) as server, session_with(adapter) as session:
            response = session.get(server.url, auth=library.HttpNtlmAuth("D\\user", "password"), timeout=60)
            assert (response.status_code, response.content) == (200, b"in")
            assert [request.connection_id for request in server.requests] == [0, 1, 1, 1]
