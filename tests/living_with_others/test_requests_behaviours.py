"""The behaviours of requests itself go on working with the adapter mounted everywhere."""

import ssl

import pytest
import requests
from requests.adapters import HTTPAdapter
from requests.auth import HTTPDigestAuth

from requests_smithy_retry import RetryAdapter, install, retry_history, uninstall
from tests.faults import FaultProxy, FaultServer, Reply
from tests.support import scripted, send

pytestmark = pytest.mark.real_time


@pytest.fixture(autouse=True)
def _everywhere(monkeypatch):
    monkeypatch.setenv("SMITHY_RETRY_BACKOFF", "0")
    install()
    yield
    uninstall()


@pytest.fixture
def session():
    with requests.Session() as made:
        assert isinstance(made.get_adapter("http://x"), RetryAdapter)
        yield made


def paths(server):
    return [request.path for request in server.requests]


def test_redirects_are_followed_and_each_hop_is_retried(session):
    """The history holds the hops, not the attempts, and a 303 turns a POST into a GET."""
    there = Reply(body=b"there")
    first = [Reply(503), Reply(302, headers={"Location": "/b"}), Reply(503), there]
    with FaultServer([*first, Reply(303, headers={"Location": "/b"}), there]) as server:
        response = session.get(f"{server.url}/a")
        assert (b"there", [302]) == (response.content, [hop.status_code for hop in response.history])
        assert ["/a", "/a", "/b", "/b"] == paths(server)
        response = session.post(f"{server.url}/form", data=b"x")
        assert ("GET", [303]) == (response.request.method, [hop.status_code for hop in response.history])


def test_too_many_redirects_is_raised(session):
    """The session's own limit holds."""
    session.max_redirects = 3
    with FaultServer(default=Reply(302, headers={"Location": "/"})) as server:
        with pytest.raises(requests.TooManyRedirects):
            session.get(server.url)
        assert 4 == len(server.requests)


def test_digest_auth_answers_the_challenge(session):
    """The 401 comes through to the auth handler; the second request carries the answer."""
    challenge = Reply(401, headers={"WWW-Authenticate": 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5'})
    with FaultServer([challenge, Reply(503), Reply(200)]) as server:
        response = session.get(server.url, auth=HTTPDigestAuth("user", "secret"))
        assert (200, [401]) == (response.status_code, [hop.status_code for hop in response.history])
        sent = [dict(request.headers).get("Authorization", "") for request in server.requests]
        assert ["", True, True] == [sent[0], *(text.startswith('Digest username="user"') for text in sent[1:])]


def test_cookies_are_kept(session):
    """A cookie that is set is sent back, also after a retry."""
    with FaultServer([Reply(503), Reply(200, headers={"Set-Cookie": "a=1"}), Reply(200)]) as server:
        session.get(server.url)
        session.get(server.url)
        assert ["", "", "a=1"] == [dict(request.headers).get("Cookie", "") for request in server.requests]
        assert {"a": "1"} == session.cookies.get_dict()


def test_a_proxy_is_used(session):
    """Requests go by way of the session's proxy, and so do their retries."""
    with FaultServer([Reply(503), Reply(200)]) as server, FaultProxy() as proxy:
        session.proxies = {"http": proxy.url}
        session.trust_env = False
        assert 200 == session.get(server.url).status_code
        assert (2, 2) == (len(server.requests), len(proxy.requests))


def test_tls_is_verified(session, tmp_path):
    """A trusted certificate passes, with retries; an unknown one is refused at once, and verify=False is obeyed."""
    authority = pytest.importorskip("trustme").CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    with FaultServer([Reply(503), Reply(200)], tls=context) as server:
        assert 200 == session.get(server.url, verify=str(bundle)).status_code
        session.close()  # requests before 2.32 does not look at a connection that it has already
        with pytest.raises(requests.exceptions.SSLError) as caught:
            session.get(server.url)
        assert 1 == len(retry_history(caught.value).attempts)
        assert 2 == len(server.requests)


def refusal(adapter, **arguments):
    """Return what a request with these arguments is refused with, by type and text."""
    with FaultServer(default=Reply(200)) as server, requests.Session() as session:
        session.mount("http://", adapter)
        try:
            session.get(server.url, **arguments)
        except Exception as error:
            return type(error), str(error), len(server.requests)


@pytest.mark.parametrize("options", [{}, {"operation_timeout": 5}, {"max_attempts": 1}], ids=str)
@pytest.mark.parametrize("timeout", [(), (3,), (1, 2, 3), "3", (1, "3"), b"1", [1, 2], True, (1, -1), 0, {}], ids=str)
def test_a_bad_timeout_is_refused_in_the_words_of_requests(timeout, options):
    """Its own ``ValueError`` says what is allowed, and nothing is sent."""
    plain = refusal(HTTPAdapter(), timeout=timeout)
    assert plain == refusal(RetryAdapter(**options), timeout=timeout)
    assert (ValueError, 0) == (plain[0], plain[2])


def test_a_timeout_that_nobody_looks_at_is_nobodys_fault():
    """Where a stand-in for the adapter below takes any time-out, so do we."""
    adapter = scripted(503, 200, operation_timeout=5)
    assert 200 == send(adapter, timeout=(3,)).status_code
    assert 200 == send(scripted(200), timeout=[3]).status_code
