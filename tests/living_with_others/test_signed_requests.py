"""Requests that are signed, once or for each attempt, and throttled as AWS does it (docs/howto/observe-retries.md)."""

from __future__ import annotations

import io
from typing import Any

import pytest
import requests
from requests.auth import AuthBase

from requests_smithy_retry import RetryListener, mount
from requests_smithy_retry.testing import FaultServer, Reply

pytestmark = pytest.mark.real_time


class Numbered(AuthBase):
    """Signs with the number of the signature."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        self.made += 1
        request.headers["Authorization"] = f"signature {self.made}"
        return request


class SignEachAttempt(RetryListener):
    """The listener of the page."""

    def __init__(self, auth: Any) -> None:
        self.auth = auth

    def before_attempt(self, event: Any) -> None:
        self.auth(event.request)


def session(**options: Any) -> requests.Session:
    return mount(requests.Session(), backoff=0, **options)


def signatures(server: FaultServer) -> list[str | None]:
    return [dict(request.headers).get("Authorization") for request in server.requests]


def test_an_auth_object_signs_an_operation():
    """All attempts carry the signature of the first."""
    with FaultServer([Reply(503), Reply(503)]) as server:
        session().get(server.url, auth=Numbered())
        assert ["signature 1"] * 3 == signatures(server)


def test_a_listener_signs_an_attempt():
    """Each attempt has a signature of its own; the caller's request stays unsigned."""
    with FaultServer([Reply(503), Reply(503)]) as server:
        response = session(listeners=[SignEachAttempt(Numbered())]).get(server.url)
        assert ["signature 1", "signature 2", "signature 3"] == signatures(server)
        assert "Authorization" not in response.request.headers


def test_mounted_at_an_endpoint_it_signs_nothing_elsewhere():
    """A redirect to another origin goes out by another adapter."""
    with FaultServer() as elsewhere, FaultServer([Reply(302, {"Location": elsewhere.url})]) as server:
        session(at=server.url, listeners=[SignEachAttempt(Numbered())]).get(server.url)
        assert (["signature 1"], [None]) == (signatures(server), signatures(elsewhere))


def test_aws4auth_signs_a_file_for_each_attempt():
    """The library reads the file from where it stood; the next attempt's copy starts from there again."""
    library = pytest.importorskip("requests_aws4auth")
    auth = library.AWS4Auth("key", "secret", "eu-west-1", "execute-api")
    body = io.BytesIO(b"not this: this")
    body.seek(10)
    with FaultServer([Reply(503)]) as server:
        session(listeners=[SignEachAttempt(auth)]).put(server.url, data=body)
        assert [b"this"] * 2 == [request.body for request in server.requests]
        assert all(value.startswith("AWS4-HMAC-SHA256") for value in signatures(server))
