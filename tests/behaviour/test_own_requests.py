"""Requests of a program's own class, and with attributes of its own: they keep both, however they are sent."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import requests
from requests import PreparedRequest
from requests.adapters import HTTPAdapter

from requests_smithy_retry import RetryAdapter, RetryListener, resign
from requests_smithy_retry.testing import CutBody, FaultServer, Reply

pytestmark = pytest.mark.real_time

TARGET = "/bucket/a%2Fb%2E"
BODIES: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "bytes": lambda: b"body",
    "a file": lambda: io.BytesIO(b"body"),
    "a generator": lambda: iter([b"body"]),
    "a list": lambda: [b"bo", b"dy"],
}


class Raw(PreparedRequest):
    """A request for a path that requests would normalise."""

    path_url = TARGET  # type: ignore[assignment]


class Touching(RetryListener):
    """A listener that has a copy of the request made."""

    def before_attempt(self, event: Any) -> None:
        event.request.headers["X-Attempt"] = str(event.number)


def prepared(kind: type[PreparedRequest], url: str, body: Any = None, auth: Any = None) -> PreparedRequest:
    request = kind()
    request.prepare("PUT" if body is not None else "GET", url, data=body, headers={"Authorization": "a"}, auth=auth)
    return request


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"idempotency_key": lambda request: "key"},
        {"deadline_header": "X-Deadline", "operation_timeout": 60},
        {"listeners": [Touching()]},
        {"on_unauthorized": lambda response: {"Authorization": "b"}},
    ],
    ids=["no option", "a key", "a deadline's header", "a listener", "new credentials"],
)
def test_a_request_of_an_own_class_goes_where_it_says(body: Callable[[], Any], options: dict[str, Any]) -> None:
    """Each attempt has the target of the program's own class, whatever the body and whoever changes headers."""
    with FaultServer([Reply(401 if "on_unauthorized" in options else 200), Reply(200)]) as server:
        adapter = RetryAdapter(**options)
        adapter.send(prepared(Raw, f"{server.url}/other", body()), stream=True).close()
        assert {TARGET} == {request.target for request in server.requests}


def test_the_rest_of_a_body_is_asked_for_where_its_beginning_was() -> None:
    """The request for the rest has the target of the program's own class."""
    whole = Reply(200, {"ETag": '"1"'}, b"x" * 100_000)
    rest = Reply(206, {"ETag": '"1"', "Content-Range": "bytes 50000-99999/100000"}, b"x" * 50_000)
    with FaultServer([CutBody(whole, at=50_000), rest]) as server:
        adapter = RetryAdapter()
        assert 100_000 == len(adapter.send(prepared(Raw, f"{server.url}/other"), stream=True).content)
        assert [TARGET, TARGET] == [request.target for request in server.requests]


def test_a_request_that_is_signed_anew_goes_where_it_says() -> None:
    """A retry with another signature has the target of the program's own class."""

    def sign(request: PreparedRequest) -> PreparedRequest:
        request.headers["Authorization"] = "signed"
        return request

    with FaultServer([Reply(503), Reply(200)]) as server:
        adapter = RetryAdapter()
        adapter.send(prepared(Raw, f"{server.url}/other", auth=resign(sign)))
        assert [TARGET, TARGET] == [request.target for request in server.requests]


class ByTenant(HTTPAdapter):
    """An adapter that sends an attribute of the request."""

    def add_headers(self, request: PreparedRequest, **kwargs: Any) -> None:
        request.headers["X-Tenant"] = request.tenant  # type: ignore[attr-defined]


class OursByTenant(ByTenant, RetryAdapter):
    """The same, with retries."""


@pytest.mark.parametrize("kind", [ByTenant, OursByTenant])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_mix_in_finds_the_programs_attributes(kind: type[HTTPAdapter], body: Callable[[], Any]) -> None:
    """It reads them whatever the body, and the headers that it adds are in ``response.request``, as with requests."""
    with FaultServer(default=Reply(200)) as server:
        request = prepared(PreparedRequest, server.url, body())
        request.tenant = "acme"  # type: ignore[attr-defined]
        response = kind().send(request)
        assert ("acme", "acme") == (server.requests[0].header("X-Tenant"), response.request.headers["X-Tenant"])


def test_a_401_shows_the_credentials_that_were_refused() -> None:
    """A poll whose new credentials expire, too: the function finds them in ``response.request``."""
    seen: list[str] = []

    def renew(response: requests.Response) -> dict[str, str]:
        seen.append(str(response.request.headers["Authorization"]))
        return {"Authorization": f"new {len(seen)}"}

    answers = [Reply(401), Reply(202), Reply(401), Reply(200)]
    with FaultServer(answers) as server:
        adapter = RetryAdapter(on_unauthorized=renew, validate=lambda response: response.status_code == 200 or 0.01)
        request = prepared(PreparedRequest, server.url)
        response = adapter.send(request)
        assert (200, ["a", "new 1"]) == (response.status_code, seen)
        assert (request, "a") == (response.request, request.headers["Authorization"])
