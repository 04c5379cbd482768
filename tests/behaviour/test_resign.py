"""A signature for each attempt (contract 2.10): what is signed anew, when, and what stays."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import weakref
from typing import Any

import pytest
import requests
from requests.auth import AuthBase, HTTPBasicAuth
from requests.sessions import Session

from requests_smithy_retry import (
    RetryAction,
    RetryConfigError,
    RetryError,
    RetryListener,
    StopReason,
    classifier,
    resign,
    retry_history,
    retry_options,
)
from requests_smithy_retry.testing import FakeClock
from tests.support import URL, Reply, ScriptedAdapter, let_go, scripted, session_with

ELSEWHERE = "https://other.example.net/things"


class Numbered(AuthBase):
    """Signs with the number of the signature, over what it was given."""

    def __init__(self) -> None:
        self.signed: list[tuple[Any, ...]] = []

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        self.signed.append((request.method, request.url, dict(request.headers), request.body))
        request.headers["Authorization"] = f"Mac n={len(self.signed)}"
        return request


class InQuery(Numbered):
    """Adds its signature to the query."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        self.signed.append((request.url,))
        request.url = f"{request.url}{'&' if '?' in str(request.url) else '?'}sig={len(self.signed)}"
        return request


class InBody(Numbered):
    """Adds its signature to the body, whatever kind that is of."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        body: Any = request.body
        text = body if isinstance(body, bytes) else body.read() if hasattr(body, "read") else b"".join(body)
        self.signed.append((text,))
        request.body = text + b"&n=%d" % (len(self.signed) + 98) * len(self.signed)
        return request


class Reading(Numbered):
    """Reads a file to its end, for a hash, and leaves it there."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        body: Any = request.body
        stood = body.tell()
        request.headers["Authorization"] = f"Mac of {body.read().decode()}"
        if not self.signed:
            body.seek(stood)
        self.signed.append(())
        return request


def send(*script: Any, auth: Any, method: str = "GET", url: str = URL, given: Any = None, **options: Any) -> Any:
    """Send by a session, and return its adapter and its response."""
    adapter = scripted(*script, **options)
    return adapter, session_with(adapter).request(method, url, auth=auth, **(given or {}))


def seen(adapter: ScriptedAdapter, name: str = "Authorization") -> list[Any]:
    return [sent.headers.get(name) for sent in adapter.sent]


def test_each_retry_is_signed_anew() -> None:
    """Each attempt has a signature of its own; the caller's request keeps that of the first."""
    auth = Numbered()
    adapter, response = send(503, 503, 200, auth=resign(auth))
    assert ["Mac n=1", "Mac n=2", "Mac n=3"] == seen(adapter)
    assert "Mac n=1" == response.request.headers["Authorization"]
    assert all("Authorization" not in signed[2] for signed in auth.signed)


def test_a_session_and_a_prepared_request() -> None:
    """It makes no difference whether the session has the auth, or a request that was prepared before."""
    auth = Numbered()
    adapter = scripted(503, 200, 503, 200)
    session = session_with(adapter)
    session.auth = resign(auth)
    session.get(URL)
    session.send(session.prepare_request(requests.Request("GET", URL)))
    assert [f"Mac n={number}" for number in (1, 2, 3, 4)] == seen(adapter)


def test_a_copy_of_a_prepared_request() -> None:
    """Copies of either kind are signed anew as the request is."""
    prepared = requests.Request("GET", URL, auth=resign(Numbered())).prepare()
    for copied in (prepared.copy(), copy.deepcopy(prepared)):
        adapter = scripted(503, 200)
        adapter.send(copied)
        assert 2 == len(set(seen(adapter)))


def test_by_another_adapter_it_is_the_auth() -> None:
    """Nothing but the auth's own change is made to a request."""
    plain, wrapped = (requests.Request("PUT", URL, data=b"a", auth=auth) for auth in (Numbered(), resign(Numbered())))
    first, second = plain.prepare(), wrapped.prepare()
    assert (first.headers, first.url, first.body) == (second.headers, second.url, second.body)


def test_a_pair_is_basic() -> None:
    """A pair of user and password is what it is for requests."""
    adapter, _ = send(503, 200, auth=resign(("u", "p")))
    assert [requests.Request("GET", URL, auth=HTTPBasicAuth("u", "p")).prepare().headers["Authorization"]] * 2 == seen(
        adapter
    )


def test_a_signed_query_is_signed_anew() -> None:
    """The second URL has the caller's own parameters, and one signature."""
    adapter, _ = send(503, 200, auth=resign(InQuery()), given={"params": {"a": "b"}})
    assert [f"{URL}?a=b&sig=1", f"{URL}?a=b&sig=2"] == [sent.url for sent in adapter.sent]


class Unseekable(io.RawIOBase):
    """A stream that is read once."""

    def __init__(self, data: bytes) -> None:
        self.data = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self.data.read(size)


def closing(data: bytes) -> Any:
    """A file that is closed once it was read to its end."""

    class Closing(io.BytesIO):
        def read(self, *size: Any) -> bytes:
            data = super().read(*size)
            self.close()
            return data

    return Closing(data)


def growing(data: bytes) -> Any:
    """A file that grows once it was read."""

    class Growing(io.BytesIO):
        def read(self, *size: Any) -> bytes:
            data = super().read(*size)
            self.write(b" more")
            return data

    return Growing(data)


@pytest.mark.parametrize(
    ("make", "again"),
    [
        (lambda: b"a", b"a"),
        (lambda: io.BytesIO(b"a"), b"a"),
        # What was read once is all there is: it is signed as it was sent.
        (lambda: iter([b"a"]), b"a&n=99"),
        (lambda: Unseekable(b"a"), b"a&n=99"),
        (lambda: closing(b"a"), b"a&n=99"),
        (lambda: growing(b"a"), b"a&n=99"),
    ],
    ids=["bytes", "file", "iterator", "stream", "closed", "grown"],
)
def test_a_signed_body_is_signed_anew(make: Any, again: bytes) -> None:
    """A body that the auth changes, and its length, are changed anew; it is read again where it can be."""
    auth = InBody()
    adapter, _ = send(503, 200, auth=resign(auth), method="PUT", given={"data": make()})
    first, second = adapter.sent
    assert [b"a", again] == [body for (body,) in auth.signed]
    assert (b"a&n=99", again + b"&n=100" * 2) == (first.body, second.body) or again == b"a"
    assert str(len(second.body)) == second.headers["Content-Length"]


def test_a_file_that_the_auth_reads_is_sent_whole() -> None:
    """Signed from where it began for each attempt, and sent from there."""
    body = io.BytesIO(b"not this: this")
    body.seek(10)
    adapter, _ = send(503, 503, 200, auth=resign(Reading()), method="PUT", given={"data": body})
    assert [(b"this", "Mac of this")] * 3 == [(sent.body, sent.headers["Authorization"]) for sent in adapter.sent]
    assert ["4"] * 3 == seen(adapter, "Content-Length")


class IntoFile(Numbered):
    """Puts another file in the place of the body."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        self.signed.append(())
        body: Any = request.body
        request.body = io.BytesIO(b"%d %s" % (len(self.signed), body.read()))
        return request


def test_a_file_in_the_place_of_a_file() -> None:
    """Each attempt sends the file that the auth made for it."""
    adapter, _ = send(503, 503, 200, auth=resign(IntoFile()), method="PUT", given={"data": io.BytesIO(b"a")})
    assert [b"1 a", b"2 a", b"3 a"] == [sent.body for sent in adapter.sent]


def test_a_body_that_was_read_once_is_not_sent_again() -> None:
    """Nothing is signed for an attempt that cannot be made."""
    auth = Numbered()
    _, response = send(503, auth=resign(auth), method="PUT", given={"data": iter([b"a"])})
    assert (503, 1) == (response.status_code, len(auth.signed))


@pytest.mark.parametrize(
    ("name", "value"),
    [("X-Trace", "mine"), ("Accept", None), ("Authorization", "mine"), ("Authorization", None), ("User-Agent", "me")],
)
def test_what_the_program_changed_stays(name: str, value: str | None) -> None:
    """A header that was set or taken away after the signature is as the program left it, in each attempt."""
    adapter = scripted(503, 503, 200)
    session = session_with(adapter)
    prepared = session.prepare_request(requests.Request("GET", URL, auth=resign(Numbered())))
    if value is None:
        del prepared.headers[name]
    else:
        prepared.headers[name] = value
    session.send(prepared)
    assert [value] * 3 == seen(adapter, name)


def test_a_body_and_a_url_that_the_program_changed_stay() -> None:
    """They are what is signed from the second attempt on."""
    auth = Numbered()
    adapter = scripted(503, 200)
    prepared = requests.Request("PUT", URL, data=b"a", auth=resign(auth)).prepare()
    prepared.prepare_body(b"other", None)
    prepared.url = f"{URL}?x=1"
    adapter.send(prepared)
    assert [b"other", b"other"] == [sent.body for sent in adapter.sent]
    assert ("PUT", f"{URL}?x=1", "5", b"other") == (
        *auth.signed[1][:2],
        auth.signed[1][2]["Content-Length"],
        auth.signed[1][3],
    )


def test_a_body_in_parts_has_its_length() -> None:
    """Requests would take the number of its parts for that."""
    adapter = scripted(503, 200)
    prepared = requests.Request("PUT", URL, data=b"abc", auth=resign(Numbered())).prepare()
    prepared.body = [b"a", b"bc"]  # type: ignore[assignment]
    adapter.send(prepared)
    assert [(b"abc", "3")] * 2 == [(sent.body, sent.headers["Content-Length"]) for sent in adapter.sent]


@pytest.mark.parametrize("hooks", [None, {}, {"response": print}, {"response": [print]}])
def test_any_hooks_are_fine(hooks: Any) -> None:
    """A program may have set a function in the place of a list, or nothing."""
    adapter, prepared = scripted(503, 200), requests.Request("GET", URL).prepare()
    prepared.hooks = hooks
    assert 200 == adapter.send(prepared).status_code


def test_a_minted_key_is_signed() -> None:
    """The key of a POST is the same in each attempt, and the auth sees it from the second on."""
    auth = Numbered()
    adapter, _ = send(503, 503, 200, auth=resign(auth), method="POST", idempotency_key=True)
    keys = seen(adapter, "Idempotency-Key")
    assert 1 == len(set(keys))
    assert [None, *keys[1:]] == [signed[2].get("Idempotency-Key") for signed in auth.signed]


def test_renewed_credentials_stay() -> None:
    """What `on_unauthorized` returns goes before the auth, until the end of the operation."""
    new = {"Authorization": "Bearer new"}
    adapter, _ = send(503, 401, 503, 200, auth=resign(Numbered()), on_unauthorized=lambda _: new)
    assert ["Mac n=1", "Mac n=2", "Bearer new", "Bearer new"] == seen(adapter)


class Tracing(RetryListener):
    """Numbers each attempt."""

    def before_attempt(self, event: Any) -> None:
        event.request.headers["X-Attempt"] = str(event.number)


def test_a_listener_changes_what_was_signed() -> None:
    """It comes after the signature, and its change is for one attempt."""
    auth = Numbered()
    adapter, _ = send(503, 200, auth=resign(auth), listeners=[Tracing()])
    assert (["1", "2"], ["Mac n=1", "Mac n=2"]) == (seen(adapter, "X-Attempt"), seen(adapter))
    assert [None, None] == [signed[2].get("X-Attempt") for signed in auth.signed]


class OwnHeader(Numbered):
    """Signs in a header that requests does not know as credentials."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        self.signed.append(())
        request.headers["X-Signature"] = str(len(self.signed))
        return request


@pytest.mark.parametrize(("waited", "valid_for", "count"), [(6, 5, 2), (4, 5, 1), (50, None, 1)])
def test_a_signature_that_is_too_old_is_not_sent(waited: float, valid_for: float | None, count: int) -> None:
    """A first attempt that waited for a rate limit for too long is signed anew right before it is sent."""
    clock = FakeClock()
    adapter = scripted(Reply(headers={"RateLimit": f'"a";r=0;t={waited}'}), 200, clock=clock)
    session = session_with(adapter)
    session.get(URL)
    response = session.put(URL, auth=resign(OwnHeader(), valid_for=valid_for), data=io.BytesIO(b"a"))
    assert [pytest.approx(waited, abs=1)] == clock.sleeps
    assert (str(count), b"a") == (seen(adapter, "X-Signature")[-1], adapter.sent[-1].body)
    assert ("1", 1) == (response.request.headers["X-Signature"], len(retry_history(response).attempts))


def test_a_request_that_was_prepared_long_ago_is_signed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The age of a signature counts from when it was made, by the machine's clock."""
    adapter, auth = scripted(200), Numbered()
    prepared = requests.Request("GET", URL, auth=resign(auth, valid_for=5)).prepare()
    hook = prepared.hooks["response"][-1]
    monkeypatch.setattr(hook, "at", hook.at - 6)
    adapter.send(prepared)
    assert ["Mac n=2"] == seen(adapter)


def location(url: str, status: int = 307) -> Reply:
    return Reply(status, headers={"Location": url})


@pytest.mark.parametrize("status", [307, 303])
def test_a_redirect_within_the_origin_is_signed(status: int) -> None:
    """Each attempt of it is, from the first: the signature before was for another URL."""
    auth = Numbered()
    data = io.BytesIO(b"a") if status == 307 else b"a"
    adapter, response = send(location("/b", status), 503, 200, auth=resign(auth), method="PUT", given={"data": data})
    assert ["Mac n=1", "Mac n=2", "Mac n=3"] == seen(adapter)
    method = "PUT" if status == 307 else "GET"
    assert [(method, "https://api.example.com/b")] * 2 == [signed[:2] for signed in auth.signed[1:]]
    assert [b"a" if status == 307 else None] * 2 == [sent.body for sent in adapter.sent[1:]]
    assert "https://api.example.com/b" == response.url


@pytest.mark.parametrize("kind", [Numbered, OwnHeader, InQuery])
def test_nothing_is_signed_for_a_stranger(kind: type[Numbered]) -> None:
    """Whom the service redirects to gets no signature that requests would not give him."""
    auth = kind()
    adapter, _ = send(location(ELSEWHERE), 503, 200, auth=resign(auth))
    assert 1 == len(auth.signed)
    assert [None, None] == seen(adapter)[1:]


@pytest.mark.parametrize(
    ("target", "signed"),
    [
        ("/b?sig=1&c=d", "/b?c=d&sig=2"),
        ("/b?a=1", "/b?a=1&sig=2"),
        ("/b", "/b?sig=2"),
    ],
)
def test_a_redirect_of_a_signed_query(target: str, signed: str) -> None:
    """A signature that the service gave back is replaced."""
    adapter, _ = send(location(target), 200, auth=resign(InQuery()), given={"params": {"a": "1"}})
    assert f"https://api.example.com{signed}" == adapter.sent[1].url


def test_a_redirect_that_takes_a_signed_body_away_is_left_alone() -> None:
    """What was signed is not there any more; an auth may refuse to sign a GET in its body."""
    auth = InBody()
    adapter, _ = send(location("/b", 303), 503, 200, auth=resign(auth), method="POST", given={"data": b"a"})
    assert [b"a&n=99", None, None] == [sent.body for sent in adapter.sent]
    assert 1 == len(auth.signed)


class Typing(Numbered):
    """Sets a type of the body, too."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Content-Type"] = "text/plain"
        request.headers.pop("Accept-Encoding", None)
        return super().__call__(request)


def test_a_redirect_that_takes_a_body_away_is_signed() -> None:
    """The headers of the body go with it, and the signature stays."""
    adapter, _ = send(location("/b", 303), 200, auth=resign(Typing()), method="POST", given={"data": b"a"})
    assert ["Mac n=1", "Mac n=2"] == seen(adapter)


class InPath(Numbered):
    """Adds its signature to the path."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        self.signed.append(())
        request.url = f"{request.url}/{len(self.signed)}"
        return request


def test_a_redirect_of_a_signed_path_is_left_alone() -> None:
    """Nobody knows what of the new URL is the signature; without a redirect it is signed anew."""
    adapter, _ = send(503, location("/b/2"), 503, 200, auth=resign(InPath()))
    assert ["/things/1", "/things/2", "/b/2", "/b/2"] == [
        str(sent.url)[len("https://api.example.com") :] for sent in adapter.sent
    ]


def test_credentials_that_were_taken_off_stay_off() -> None:
    """A copy of a signed request without its signature is sent without."""
    auth = Numbered()

    class Careful(Session):
        def rebuild_auth(self, prepared_request: Any, response: Any) -> None:
            prepared_request.headers.pop("Authorization")

    adapter = scripted(location("/b"), 503, 200)
    session = Careful()
    session.mount("https://", adapter)
    session.get(URL, auth=resign(auth))
    assert (["Mac n=1", None, None], 1) == (seen(adapter), len(auth.signed))


def test_credentials_of_another_kind_stay() -> None:
    """Those of a .netrc that requests sends with a redirect."""

    class Netrc(Session):
        def rebuild_auth(self, prepared_request: Any, response: Any) -> None:
            prepared_request.headers["Authorization"] = "Basic dTpw"

    adapter = scripted(location("/b"), 503, 200)
    session = Netrc()
    session.mount("https://", adapter)
    session.get(URL, auth=resign(Numbered()))
    assert ["Mac n=1", "Basic dTpw", "Basic dTpw"] == seen(adapter)


class Answering(Numbered):
    """Answers a challenge by a hook, with a request that it sends itself."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        super().__call__(request)
        request.register_hook("response", self.answer)
        return request

    def answer(self, response: requests.Response, **how: Any) -> Any:
        if response.status_code != 401:
            return None
        request = response.request.copy()
        self.signed.append(())
        request.headers["Authorization"] = f"Mac n={len(self.signed)} answer"
        return response.connection.send(request, **how)


CHALLENGE = Reply(401, headers={"WWW-Authenticate": 'Digest realm="r", nonce="n", stale=TRUE'})


def test_an_answer_of_the_auth_is_signed_anew() -> None:
    """A retry of what the hook of the auth sent is signed by the auth, too."""
    adapter, _ = send(401, 503, 200, auth=resign(Answering()))
    assert ["Mac n=1", "Mac n=2 answer", "Mac n=3"] == seen(adapter)


def test_a_stale_nonce_is_answered_once() -> None:
    """At once and at no price, after which retries are signed anew as before; a second one is handed over."""
    adapter = scripted(503, CHALLENGE, 503, CHALLENGE, backoff=0)
    response = adapter.send(requests.Request("GET", URL, auth=resign(Answering())).prepare())
    assert ["Mac n=1", "Mac n=2", "Mac n=3 answer", "Mac n=4"] == seen(adapter)
    assert 401 == response.status_code


def test_a_stale_nonce_is_answered_after_the_last_attempt() -> None:
    """The answer is no retry of something that failed."""
    adapter, response = send(503, CHALLENGE, 200, auth=resign(Answering()), max_attempts=2)
    assert (200, 3) == (response.status_code, len(adapter.sent))


def test_the_answer_is_in_the_history() -> None:
    """As an attempt that was signed anew."""
    _, response = send(503, CHALLENGE, 200, auth=resign(Answering()))
    assert "attempt 3: signed anew 200" in retry_history(response).explain()


@pytest.mark.parametrize(
    "auth",
    [
        pytest.param(Numbered, id="an auth without hooks"),
        pytest.param(lambda: Silent(), id="a hook that does not answer"),
    ],
)
def test_a_stale_nonce_is_handed_over(auth: Any) -> None:
    """Where nobody answers it in the operation, the caller's own hooks get it."""
    adapter = scripted(503, CHALLENGE, 200)
    prepared = requests.Request("GET", URL, auth=resign(auth())).prepare()
    response = adapter.send(prepared)
    assert (401, 2) == (response.status_code, len(adapter.sent))
    assert prepared is response.request


class Silent(Answering):
    """Has a hook that does nothing."""

    def answer(self, response: requests.Response, **how: Any) -> Any:
        return None


def test_no_answer_passes_the_deadline() -> None:
    """A hook that took too long ends with the 401."""
    clock = FakeClock()

    class Slow(Answering):
        def answer(self, response: requests.Response, **how: Any) -> Any:
            clock.advance(100)
            return super().answer(response, **how)

    adapter = scripted(503, CHALLENGE, 200, clock=clock, operation_timeout=50)
    assert 401 == adapter.send(requests.Request("GET", URL, auth=resign(Slow())).prepare()).status_code


class Failing(Numbered):
    """Cannot sign a second time."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self.signed:
            raise LookupError("no key")
        return super().__call__(request)


def test_an_auth_that_fails_ends_the_call() -> None:
    """Its exception is no failure of an attempt, and nothing is sent."""
    adapter = scripted(503, 200)
    with pytest.raises(LookupError, match="no key"):
        session_with(adapter).get(URL, auth=resign(Failing()))
    assert 1 == len(adapter.sent)


class HttpNtlmAuth(AuthBase):
    """Stands for requests-ntlm, by its module."""

    __module__ = "requests_ntlm.requests_ntlm"


class MyNtlm(HttpNtlmAuth):
    """A program's own."""


@pytest.mark.parametrize(
    ("auth", "options", "said"),
    [
        (HttpNtlmAuth(), {}, r"auth=<class 'requests_ntlm.*authenticates a connection"),
        (MyNtlm(), {}, r"auth=<class .*authenticates a connection"),
        (None, {}, r"auth=<class 'NoneType'> \(from resign\): an auth object"),
        ("hunter2", {}, r"auth=<class 'str'>"),
        (("a", "b", "c"), {}, r"auth=<class 'tuple'>"),
        (HTTPBasicAuth, {}, r"auth=<class 'type'>"),
        (Numbered(), {"valid_for": 0}, r"valid_for=0 \(from resign\): a finite number of seconds above 0 or None"),
        (Numbered(), {"valid_for": "5"}, r"valid_for='5' \(from resign\)"),
    ],
)
def test_what_cannot_be_signed_anew_is_refused(auth: Any, options: Any, said: str) -> None:
    """By name, and without showing a secret."""
    with pytest.raises(RetryConfigError, match=said) as caught:
        resign(auth, **options)
    assert "hunter2" not in str(caught.value)


def test_a_pickle_holds_no_secret() -> None:
    """A response is pickled without the auth, whose key may not be; a session with it."""
    _, response = send(503, 200, auth=resign(HTTPBasicAuth("u", "hunter2")))
    assert b"hunter2" not in pickle.dumps(response)
    restored = pickle.loads(pickle.dumps(response))
    adapter = scripted(503, 200)
    adapter.send(restored.request)
    assert 1 == len(set(seen(adapter)))
    session = requests.Session()
    session.auth = resign(HTTPBasicAuth("u", "p"), valid_for=3)
    auth = pickle.loads(pickle.dumps(session)).auth
    assert (3, HTTPBasicAuth("u", "p")) == (auth.valid_for, auth.auth)


def test_nothing_lives_longer() -> None:
    """What is remembered goes with the request, without a collection of garbage."""
    gc.disable()
    try:
        auth = Numbered()
        adapter, _ = send(503, 200, auth=resign(auth))
        adapter.responses.clear()  # each of which refers to the adapter
        seen_by = weakref.ref(auth)
        del auth, adapter, _
        let_go()
        assert seen_by() is None
    finally:
        gc.enable()


# Without it.

MAC = {"Authorization": "Mac n=1"}
WHY = "the server refused the repeated signature"


def history_of(*script: Any, headers: Any, url: str = URL, **options: Any) -> Any:
    return retry_history(scripted(*script, **options).send(requests.Request("GET", url, headers=headers).prepare()))


@pytest.mark.parametrize(
    ("headers", "url"),
    [
        (MAC, URL),
        ({"Authorization": b'OAuth realm="r", oauth_nonce="n"'}, URL),
        ({"authorization": "AWS4-HMAC-SHA256 Credential=a"}, URL),
        ({"Authorization": 'Digest username="u"'}, URL),
        ({"Authorization": "DPoP token", "DPoP": "proof"}, URL),
        ({"Signature": "sig1=:abc:"}, URL),
        ({"CB-ACCESS-SIGN": "abc"}, URL),
        ({}, f"{URL}?timestamp=1&signature=abc"),
        ({}, f"{URL}?X-Amz-Signature=abc"),
        ({}, f"{URL}?sig=abc"),
    ],
)
def test_the_history_says_that_a_signature_was_refused(headers: Any, url: str) -> None:
    """A 401 to the signature of the attempt before."""
    history = history_of(503, 401, headers=headers, url=url)
    assert (WHY, StopReason.NOT_RETRYABLE) == (history.why, history.stop_reason)
    assert f"ended at attempt 2 with 401: {WHY}" == history.sentence
    assert not history.gave_up


BLAMES = b'{"code": -1021, "msg": "Timestamp for this request is outside of the recvWindow."}'


@pytest.mark.parametrize(
    ("script", "headers", "is_said"),
    [
        ([503, Reply(400, body=BLAMES)], MAC, True),
        ([503, Reply(400, body=b'{"error": "invalid_dpop_proof"}')], MAC, True),
        ([503, Reply(403, body=b"<Code>RequestExpired</Code>")], MAC, True),
        ([503, Reply(400, body=b"no such symbol")], MAC, False),
        ([503, 404], MAC, False),
        ([401], MAC, False),
        ([503, 401], {"Authorization": "Bearer a"}, False),
        ([503, 401], {"Authorization": "Basic a", "X-Design": "b", "X-Assigned": "c"}, False),
        ([503, 401], {}, False),
    ],
)
def test_the_history_says_so_where_it_is_known(script: Any, headers: Any, is_said: bool) -> None:
    """Not of another refusal, nor of credentials that are good for many requests."""
    assert is_said is (history_of(*script, headers=headers).why == WHY)


def test_a_retry_that_a_classifier_asks_for_is_made() -> None:
    """What is said of a refusal forbids nothing; it is said of the last one."""

    @classifier
    def again(outcome: Any) -> Any:
        return RetryAction.transient_error() if outcome.status == 401 and outcome.attempt == 2 else None

    with retry_options(classifiers=[again]):
        history = history_of(503, 401, 401, headers=MAC)
    assert ([503, 401, 401], WHY) == ([attempt.status for attempt in history.attempts], history.why)


def test_a_listener_that_signs_repeats_nothing() -> None:
    """Each attempt has its own signature, so a refusal has another reason."""

    class Signer(RetryListener):
        def before_attempt(self, event: Any) -> None:
            event.request.headers["Authorization"] = f"Mac n={event.number}"

    assert WHY != history_of(503, 401, headers={}, listeners=[Signer()]).why
    assert WHY != retry_history(send(503, 401, auth=resign(Numbered()))[1]).why


def test_what_the_auth_raises_is_no_refusal_of_the_strategy() -> None:
    """Not even a RetryError, as ``policy.retry`` raises one around a request for a key."""

    class Failing(Numbered):
        def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
            if self.signed:
                raise error
            return super().__call__(request)

    error = RetryError("no key")
    session = session_with(scripted(503, 200))
    with pytest.raises(RetryError) as caught:
        session.get(URL, auth=resign(Failing()))
    assert (error, None) == (caught.value, retry_history(error))
