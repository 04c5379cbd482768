"""Servers that check signatures as their standards say, and the auth objects of others, signed anew by `resign`.

Each server refuses the first attempt for now, and closes the connection of the second, before it checks the third as
strictly as the others (docs/howto/signed-requests.md).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import json
import re
import secrets
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any
from urllib.parse import parse_qs, quote

import pytest
import requests
from requests.auth import AuthBase, HTTPDigestAuth

from requests_smithy_retry import RetryConfigError, mount, resign, retry_history
from requests_smithy_retry.testing import CloseAfterRequest, FaultServer, RecordedRequest, Reply
from requests_smithy_retry.testing.fault_server import Behaviour

pytestmark = pytest.mark.real_time

WHY = "the server refused the repeated signature"


class Service:
    """Checks each request, and answers those that pass by a script.

    :param check: returns why a request is refused; None: it is not.
    """

    def __init__(self, check: Callable[[RecordedRequest], Reply | None], *script: Behaviour) -> None:
        self.check = check
        self.script = list(script)

    def __call__(self, request: RecordedRequest) -> Behaviour:
        refusal = self.check(request)
        if refusal is not None:
            return refusal
        return self.script.pop(0) if self.script else Reply(200)


FAILING = (Reply(503), CloseAfterRequest())


def session_with(auth: Any, **options: Any) -> requests.Session:
    session = mount(requests.Session(), backoff=0, **options)
    session.trust_env = False
    session.auth = auth
    return session


def statuses(response: requests.Response) -> list[Any]:
    history = retry_history(response)
    assert history is not None
    return [attempt.status for attempt in history.attempts]


# OAuth 1 (RFC 5849, 3.3: a nonce is used once), by oauthlib's own server.


def oauth1_checker() -> Callable[[RecordedRequest], Reply | None]:
    oauth1 = pytest.importorskip("oauthlib.oauth1")
    nonces: set[str] = set()

    class Validator(oauth1.RequestValidator):
        enforce_ssl = False
        dummy_client = "dummy"

        def check_client_key(self, client_key: str) -> bool:
            return True

        def validate_client_key(self, client_key: str, request: Any) -> bool:
            return True

        def get_client_secret(self, client_key: str, request: Any) -> str:
            return "secret"

        def validate_timestamp_and_nonce(self, client_key: str, timestamp: str, nonce: str, *_: Any, **__: Any) -> bool:
            is_new = nonce not in nonces
            nonces.add(nonce)
            return is_new

    endpoint = oauth1.SignatureOnlyEndpoint(Validator())

    def check(request: RecordedRequest) -> Reply | None:
        url = f"http://{request.header('Host')}{request.target}"
        is_valid, _ = endpoint.validate_request(url, request.method, request.body.decode(), dict(request.headers))
        return None if is_valid else Reply(401, body=b"nonce_used")

    return check


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("AUTH_HEADER", {"params": {"a": "b"}}),
        ("AUTH_HEADER", {"method": "PUT", "json": {"a": 1}}),
        ("QUERY", {"params": {"a": "b"}}),
        ("BODY", {"method": "PUT", "data": {"a": "b c"}}),
    ],
)
def test_oauth_1(kind: str, given: dict[str, Any]) -> None:
    """A nonce for each attempt, wherever the signature stands."""
    library, oauth1 = pytest.importorskip("requests_oauthlib"), pytest.importorskip("oauthlib.oauth1")
    auth = library.OAuth1("key" * 10, "secret", signature_type=getattr(oauth1, f"SIGNATURE_TYPE_{kind}"))
    given = {"method": "GET", **given}
    with FaultServer(Service(oauth1_checker(), *FAILING)) as server:
        response = session_with(resign(auth)).request(url=f"{server.url}/x", **given)
    assert [503, None, 200] == statuses(response)


@pytest.mark.parametrize("status", [307, 302])
def test_oauth_1_after_a_redirect(status: int) -> None:
    """The request to the new URL, which has another signature, is signed for it; with the auth alone it is refused."""
    library = pytest.importorskip("requests_oauthlib")
    auth = library.OAuth1("key" * 10, "secret")
    for given, last in ((auth, [401]), (resign(auth), [503, 200])):
        moved = Reply(status, headers={"Location": "/y?z=1"})
        with FaultServer(Service(oauth1_checker(), moved, Reply(503))) as server:
            assert last == statuses(session_with(given).get(f"{server.url}/x"))


def test_an_oauth_1_session() -> None:
    """The session of the library has an auth already."""
    library = pytest.importorskip("requests_oauthlib")
    session = mount(library.OAuth1Session("key" * 10, "secret"), backoff=0)
    session.auth = resign(session.auth)
    with FaultServer(Service(oauth1_checker(), *FAILING)) as server:
        assert [503, None, 200] == statuses(session.get(server.url))


def test_oauth_1_without_it() -> None:
    """The history says why a 503 became a 401."""
    library = pytest.importorskip("requests_oauthlib")
    with FaultServer(Service(oauth1_checker(), *FAILING)) as server:
        response = session_with(library.OAuth1("key" * 10, "secret")).get(server.url)
    assert ([503, 401], WHY) == (statuses(response), retry_history(response).why)


# Digest (RFC 7616, 3.3: stale).


def digest_checker(life: float, said: list[str]) -> Callable[[RecordedRequest], Reply | None]:
    issued: dict[str, float] = {}
    counts: set[tuple[str, str]] = set()

    def hashed(*parts: str) -> str:
        return hashlib.md5(":".join(parts).encode()).hexdigest()

    def challenge(more: str = "") -> Reply:
        nonce = secrets.token_hex(8)
        issued[nonce] = time.monotonic()
        said.append(more or "challenge")
        line = f'Digest realm="r", nonce="{nonce}", qop="auth", algorithm=MD5{more}'
        return Reply(401, headers={"WWW-Authenticate": line})

    def check(request: RecordedRequest) -> Reply | None:
        line = request.header("Authorization")
        if line is None:
            return challenge()
        given = dict(re.findall(r'(\w+)="?([^",]*)"?', line))
        inner, outer = hashed("u", "r", "secret"), hashed(request.method, request.target)
        right = hashed(inner, given["nonce"], given["nc"], given["cnonce"], "auth", outer)
        count = given["nonce"], given["nc"]
        if given["response"] != right:
            return challenge()
        if time.monotonic() - issued[given["nonce"]] > life or count in counts:
            return challenge(", stale=true")
        counts.add(count)
        said.append("passed")
        return None

    return check


PATIENCE = Reply(503, headers={"Retry-After": "1"})


@pytest.mark.parametrize("body", [None, b"body", io.BytesIO(b"body")])
def test_digest(body: Any) -> None:
    """A nonce that became too old in a wait is replaced at once, and the body goes out whole."""
    said: list[str] = []
    with FaultServer(Service(digest_checker(0.5, said), PATIENCE)) as server:
        response = session_with(resign(HTTPDigestAuth("u", "secret"))).put(server.url, data=body)
        assert [200, b"body" if body else b""] == [response.status_code, server.requests[-1].body]
    assert ["challenge", "passed", ", stale=true", "passed"] == said


def test_digest_counts_each_attempt() -> None:
    """A retry within the life of the nonce has the next count (nc), which the server asks for."""
    said: list[str] = []
    with FaultServer(Service(digest_checker(60, said), *FAILING)) as server:
        session = session_with(resign(HTTPDigestAuth("u", "secret")))
        assert [200, 200] == [session.get(server.url).status_code for _ in range(2)]
    assert ["challenge", *["passed"] * 4] == said


def test_a_wrong_password() -> None:
    """It ends with the 401 after two requests."""
    said: list[str] = []
    with FaultServer(Service(digest_checker(60, said))) as server:
        assert 401 == session_with(resign(HTTPDigestAuth("u", "wrong"))).get(server.url).status_code
    assert ["challenge", "challenge"] == said


# DPoP (RFC 9449, 4.3: what is checked; 11.1: a jti is used once).


def coded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


KEY = b"stands for the client's private key"  # HMAC in place of ES256, which the standard library has not


class DPoP(AuthBase):
    """Proves the possession of a key: method, URL, time and a jti for one use."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        url = str(request.url).partition("?")[0]
        claims = {"jti": secrets.token_hex(8), "htm": request.method, "htu": url, "iat": int(time.time())}
        proof = coded(b'{"typ":"dpop+jwt","alg":"HS256"}') + "." + coded(json.dumps(claims).encode())
        request.headers["DPoP"] = f"{proof}.{coded(hmac.digest(KEY, proof.encode(), hashlib.sha256))}"
        request.headers["Authorization"] = "DPoP token"
        return request


def dpop_checker() -> Callable[[RecordedRequest], Reply | None]:
    known: set[str] = set()

    def check(request: RecordedRequest) -> Reply | None:
        proof, _, signed = str(request.header("DPoP")).rpartition(".")
        claims = json.loads(decoded(proof.partition(".")[2]))
        url = f"http://{request.header('Host')}{request.path}"
        is_valid = decoded(signed) == hmac.digest(KEY, proof.encode(), hashlib.sha256)
        if not is_valid or (claims["htm"], claims["htu"]) != (request.method, url) or claims["jti"] in known:
            return Reply(400, body=b'{"error": "invalid_dpop_proof"}')
        known.add(claims["jti"])
        return None

    return check


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_dpop(method: str) -> None:
    """Each attempt has a proof of its own; without, the history says why a 429 became a 400."""
    busy = Reply(429, headers={"Retry-After": "0"})
    for auth, ending in ((resign(DPoP()), [429, 429, 200]), (DPoP(), [429, 400])):
        with FaultServer(Service(dpop_checker(), busy, busy)) as server:
            response = session_with(auth).request(method, f"{server.url}/x?a=1")
        assert ending == statuses(response)
    assert WHY == retry_history(response).why


# A time and an HMAC in the query (Binance, "SIGNED endpoint security": timestamp and recvWindow).


class SignedQuery(AuthBase):
    """Appends the time and an HMAC of all parameters before it to the query."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        url, _, query = str(request.url).partition("?")
        query = f"{query}&timestamp={time.time():.3f}".lstrip("&")
        request.url = f"{url}?{query}&signature={hmac.new(KEY, query.encode(), hashlib.sha256).hexdigest()}"
        return request


def query_checker(window: float) -> Callable[[RecordedRequest], Reply | None]:
    def check(request: RecordedRequest) -> Reply | None:
        signed, _, signature = request.target.partition("?")[2].partition("&signature=")
        if signature != hmac.new(KEY, signed.encode(), hashlib.sha256).hexdigest():
            return Reply(400, body=b'{"code": -1022}')
        fields = parse_qs(signed)
        assert {"symbol": ["BTC"], "timestamp": fields["timestamp"]} == fields
        is_late = time.time() - float(fields["timestamp"][0]) > window
        return Reply(400, body=b'{"code": -1021, "msg": "Timestamp outside of the recvWindow"}') if is_late else None

    return check


def test_a_signed_query() -> None:
    """A new time and one signature, beside the caller's own parameters."""
    for auth, ending in ((resign(SignedQuery()), [503, 200]), (SignedQuery(), [503, 400])):
        with FaultServer(Service(query_checker(0.5), PATIENCE)) as server:
            response = session_with(auth).get(f"{server.url}/order", params={"symbol": "BTC"})
        assert ending == statuses(response)
    assert WHY == retry_history(response).why


def test_a_signed_query_after_a_wait_for_a_limit() -> None:
    """A first attempt that waited is signed anew, if that was too long."""
    for valid_for, ending in ((None, 400), (0.5, 200)):
        used_up = Reply(200, headers={"RateLimit": '"a";r=0;t=1'})
        with FaultServer(Service(query_checker(0.5), used_up)) as server:
            session = session_with(resign(SignedQuery(), valid_for=valid_for))
            order = f"{server.url}/order?symbol=BTC"
            assert [200, ending] == [session.get(order).status_code for _ in range(2)]


# AWS Signature Version 4 ("Create a signed AWS API request"; a signature ages by its x-amz-date).


def sigv4_checker(window: float) -> Callable[[RecordedRequest], Reply | None]:
    def check(request: RecordedRequest) -> Reply | None:
        line = str(request.header("Authorization"))
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=key/(\S+),\s*SignedHeaders=(\S+),\s*Signature=(\S+)", line)
        assert found is not None
        scope, names, signature = found.groups()
        date = str(request.header("X-Amz-Date"))
        assert hashlib.sha256(request.body).hexdigest() == request.header("X-Amz-Content-Sha256")
        headers = "".join(f"{name}:{str(request.header(name)).strip()}\n" for name in names.split(";"))
        path = quote(request.path)
        canonical = "\n".join((request.method, path, "", headers, names, str(request.header("X-Amz-Content-Sha256"))))
        text = "\n".join(("AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()))
        key = b"AWS4secret"
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), hashlib.sha256)
        assert signature == hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        made = datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
        is_late = time.time() - made.timestamp() > window
        return Reply(403, body=b"<Code>RequestTimeTooSkewed</Code>") if is_late else None

    return check


@pytest.mark.parametrize("make", [lambda: b"body", lambda: io.BytesIO(b"body"), lambda: "body"])
def test_aws4auth(make: Callable[[], Any]) -> None:
    """The library reads a file for its hash: each attempt has the hash and all of the body."""
    library = pytest.importorskip("requests_aws4auth")
    auth = library.AWS4Auth("key", "secret", "eu-west-1", "execute-api")
    wait = Reply(503, headers={"Retry-After": "2"})
    with FaultServer(Service(sigv4_checker(1.9), wait)) as server:
        response = session_with(resign(auth)).put(f"{server.url}/x", data=make())
        assert ([503, 200], [b"body"] * 2) == (statuses(response), [request.body for request in server.requests])


def test_ntlm_is_refused() -> None:
    """It authenticates a connection, by several requests; without `resign` it goes on as before."""
    library = pytest.importorskip("requests_ntlm")
    with pytest.raises(RetryConfigError, match="authenticates a connection, not a request"):
        resign(library.HttpNtlmAuth("domain\\u", "p"))


def test_a_download_that_goes_on_is_signed() -> None:
    """The request for the rest of a body has a signature of its own, for the range, too."""
    body = bytes(range(256)) * 1000
    whole = {"ETag": '"v"', "Content-Length": str(len(body))}

    def rest(request: RecordedRequest) -> Behaviour:
        begin = int(str(request.header("Range")).removeprefix("bytes=").removesuffix("-"))
        assert request.header("Authorization") is not None
        line = f"bytes {begin}-{len(body) - 1}/{len(body)}"
        return Reply(206, headers={"ETag": '"v"', "Content-Range": line}, body=body[begin:])

    library = pytest.importorskip("requests_oauthlib")
    check = oauth1_checker()

    def checked(behaviour: Any) -> Callable[[RecordedRequest], Behaviour]:
        return lambda request: check(request) or (behaviour(request) if callable(behaviour) else behaviour)

    first = Reply(200, headers=whole, body=body[:200_000], framing="close")
    with FaultServer([checked(first), checked(Reply(503)), checked(rest)]) as server:
        session = session_with(resign(library.OAuth1("key" * 10, "secret")))
        with session.get(server.url, stream=True) as response:
            assert body == b"".join(response.iter_content(10_000))
        assert 3 == len(server.requests)
