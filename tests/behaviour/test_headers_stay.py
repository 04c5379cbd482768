"""No header of ours, or of the caller's, reaches another origin than plain ``requests`` sends it to (contract 2.10).

The stranger of these tests is another origin, to which the program's own server redirects.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from requests_smithy_retry import RetryListener, mount
from requests_smithy_retry.testing import RecordedRequest
from tests.behaviour.test_resume import BODY, Shelf
from tests.faults import FaultProxy, FaultServer, Reply
from tests.faults.oracle import tls_contexts
from tests.support import scripted, send
from tests.unit.wire.support import session

OLD, NEW = {"Authorization": "Bearer old"}, {"Authorization": "Bearer new"}


def to(stranger: FaultServer, status: int = 302) -> Reply:
    return Reply(status, {"Location": f"{stranger.url}/there"})


@contextlib.contextmanager
def two_servers() -> Iterator[tuple[FaultServer, FaultServer]]:
    """The program's own server, and the stranger."""
    with FaultServer() as own, FaultServer() as stranger:
        yield own, stranger


def seen(server: FaultServer, name: str) -> list[str | None]:
    """The values of a header in the requests that a server got, in order."""
    return [request.header(name) for request in server.requests]


def renewing(calls: list[str]) -> Callable[[requests.Response], dict[str, str]]:
    """A function for ``on_unauthorized`` that notes the URL of each response that it is asked about."""

    def renew(response: requests.Response) -> dict[str, str]:
        calls.append(response.url)
        return {**NEW, "X-API-Key": "new"}

    return renew


# Who is asked for new credentials, and who gets them.


def test_a_stranger_gets_no_renewed_credentials() -> None:
    """After the redirect ``Authorization`` is off: the program is not asked about the stranger's 401."""
    calls: list[str] = []
    with two_servers() as (own, stranger), session(on_unauthorized=renewing(calls)) as made:
        own.script(to(stranger))
        stranger.script(Reply(401))
        assert 401 == made.get(own.url, headers=OLD).status_code
        assert ([], [None]) == (calls, seen(stranger, "Authorization"))


CREDENTIALS = ["authorization", "X-API-Key", "API-Key", "PRIVATE-TOKEN", "x-goog-api-key", "X-Vault-Token"]


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        *[(name, ["old", "new"]) for name in CREDENTIALS],
        *[(name, ["old"]) for name in ("Accept", "Cookie", "Idempotency-Key", "Proxy-Authorization")],
    ],
)
def test_the_usual_headers_are_credentials(name: str, seen: list[str]) -> None:
    """Who sends a token or a key in one of them is asked for a new one; of any other 401 the program is not asked."""
    adapter = scripted(401, 200, on_unauthorized=lambda _: {name: "new"})
    send(adapter, headers={name: "old"})
    assert seen == [sent.headers[name] for sent in adapter.sent]


def test_a_redirect_back_to_the_origin_is_its_own_again() -> None:
    """What counts is where the program itself sent its key, not which way the request came."""
    calls: list[str] = []
    with two_servers() as (own, stranger), session(on_unauthorized=renewing(calls)) as made:
        own.script([to(stranger), Reply(401)])
        stranger.script(Reply(302, {"Location": f"{own.url}/back"}))
        assert 200 == made.get(own.url, headers={"X-API-Key": "old"}).status_code
        assert (["old", "old", "new"], ["old"]) == (seen(own, "X-API-Key"), seen(stranger, "X-API-Key"))


def test_renewed_credentials_do_not_go_with_a_redirect() -> None:
    """The request that follows is made from the caller's own, from which requests takes ``Authorization`` off."""
    with two_servers() as (own, stranger), session(on_unauthorized=lambda _: {**NEW, "X-New": "1"}) as made:
        own.script([Reply(401), to(stranger)])
        response = made.get(own.url, headers=OLD)
        assert (["Bearer old", "Bearer new"], [None]) == (seen(own, "Authorization"), seen(stranger, "Authorization"))
        assert [None] == seen(stranger, "X-New")
        assert "Bearer old" == response.history[0].request.headers["Authorization"]


@pytest.mark.real_time
def test_each_user_gets_his_own_new_token() -> None:
    """Two requests are refused at the same time: each is sent again with what the function returned for itself."""
    together = threading.Barrier(2, timeout=60)

    def answer(request: RecordedRequest) -> Reply:
        token = request.header("Authorization") or ""
        if not token.startswith("fresh"):
            together.wait()
            return Reply(401)
        return Reply(body=f"the account of {token[6:]}".encode())

    def renew(response: requests.Response) -> dict[str, str]:
        together.wait()
        return {"Authorization": response.request.headers["Authorization"].replace("expired", "fresh")}

    with FaultServer(answer) as server, session(on_unauthorized=renew) as made, ThreadPoolExecutor(2) as pool:

        def view(user: str) -> str:
            return made.get(server.url, headers={"Authorization": f"expired {user}"}).text

        assert ["the account of Alice", "the account of Bob"] == list(pool.map(view, ["Alice", "Bob"]))


def test_a_token_that_expires_in_the_midst_of_a_download_is_renewed() -> None:
    """The rest is asked for with the new one, at the same origin."""
    shelf = Shelf(9000)
    with FaultServer([shelf, Reply(401), shelf]) as server:
        with session(on_unauthorized=renewing([])) as made:
            assert BODY == made.get(server.url, headers=OLD, stream=True).content
        assert ["Bearer old", "Bearer old", "Bearer new"] == seen(server, "Authorization")


@pytest.mark.parametrize("keep", [True, False])
def test_a_stranger_gets_no_renewed_credentials_for_the_rest_of_its_body(keep: bool) -> None:
    """A download behind a redirect breaks off, and the request for its rest is refused; whatever the caller kept."""
    calls: list[str] = []
    with two_servers() as (own, stranger), session(on_unauthorized=renewing(calls)) as made:
        own.script(to(stranger))
        stranger.script([Shelf(9000), Reply(401)])
        response = made.get(own.url, headers={"X-API-Key": "old"}, stream=True)
        read = response.raw.read
        if not keep:
            del response
        with pytest.raises(Exception, match="answered with 401"):
            read()
        assert ([], ["old", "old"]) == (calls, seen(stranger, "X-API-Key"))


# Every other way.


@pytest.mark.parametrize("stream", [True, False])
def test_the_rest_of_a_body_behind_a_redirect_is_asked_for_without_credentials(stream: bool) -> None:
    """It is asked for where the body came from, with what was sent there."""
    with two_servers() as (own, stranger), session() as made:
        own.script(to(stranger))
        stranger.script(Shelf(150_000))
        assert BODY == made.get(own.url, headers=OLD, stream=stream).content
        assert ([None, None], 1) == (seen(stranger, "Authorization"), len(own.requests))


def test_no_redirect_is_followed_for_the_rest_of_a_body() -> None:
    """Its server redirects that request, with its Range and the caller's token: the stranger gets neither."""
    with two_servers() as (own, stranger), session() as made:
        own.script([Shelf(9000), to(stranger)])
        with pytest.raises(requests.RequestException, match="302"):
            made.get(own.url, headers=OLD, stream=True).content  # noqa: B018
        assert ([], 2) == (stranger.requests, len(own.requests))


def test_a_minted_key_does_not_go_with_a_redirect() -> None:
    """The stranger gets the POST, and a key of its own."""
    with two_servers() as (own, stranger), session(idempotency_key=True) as made:
        own.script(to(stranger, 307))
        made.post(own.url, data=b"x", headers=OLD)
        (ours,), (theirs,) = (seen(server, "Idempotency-Key") for server in (own, stranger))
        assert ours is not None
        assert ours != theirs
        assert [b"x"] == [request.body for request in stranger.requests]


def test_what_a_listener_sets_does_not_go_with_a_redirect() -> None:
    """Its copy of the request is that of one attempt: it signs for the program's own server, and only there."""

    class Signs(RetryListener):
        def before_attempt(self, event: Any) -> None:
            if event.request.url.startswith(own.url):
                event.request.headers["X-Signature"] = "secret"

    with two_servers() as (own, stranger), session(listeners=[Signs()]) as made:
        own.script([Reply(503), to(stranger)])
        stranger.script([Reply(503)])
        assert 200 == made.get(own.url).status_code
        assert (["secret"] * 2, [None] * 2) == (seen(own, "X-Signature"), seen(stranger, "X-Signature"))


@pytest.mark.filterwarnings("ignore:Unverified")
@pytest.mark.parametrize("stream", [True, False])
def test_a_proxys_password_does_not_go_through_its_tunnel(stream: bool) -> None:
    """Each CONNECT has it; neither a retry behind the proxy, nor the request for the rest of a body."""
    shelf, tls = Shelf(150_000), tls_contexts()[0]
    with FaultServer([Reply(503), shelf, shelf], tls=tls) as server, FaultProxy() as proxy:
        by = proxy.url.replace("http://", "http://user:password@")
        with session() as made:
            assert BODY == made.get(server.url, proxies={"https": by}, verify=False, stream=stream).content
        assert [None] * 3 == seen(server, "Proxy-Authorization")
        assert 3 == sum(value is not None for value in seen(proxy, "Proxy-Authorization"))


# The page's own examples.


def examples(**names: Any) -> dict[str, Any]:
    """What the examples of the page define, with the names that they leave open."""
    page = Path(__file__).resolve().parents[2] / "docs/howto/rate-limits.md"
    text = page.read_text(encoding="utf-8").partition("## An expired token")[2].partition("\n## ")[0]
    space = {"requests": requests, "mount": mount, **names}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        exec(compile(block, page.name, "exec"), space)
    return space


@pytest.mark.real_time
def test_ten_threads_with_the_function_of_the_page_renew_one_token_once() -> None:
    """Refused at the same time, the first renews it, and the others take that one."""
    tokens, together = iter(["new", "one too many"]), threading.Barrier(10, timeout=60)
    refused = "Bearer the-first-one"

    def answer(request: RecordedRequest) -> Reply:
        if request.header("Authorization") != refused:
            return Reply()
        together.wait()
        return Reply(401)

    made = examples(fetch_token=lambda: next(tokens))["session"]
    made.trust_env = False
    with FaultServer(answer) as server, made, ThreadPoolExecutor(10) as pool:
        assert [200] * 10 == [response.status_code for response in pool.map(made.get, [server.url] * 10)]
        assert [refused] * 10 + ["Bearer new"] * 10 == seen(server, "Authorization")
