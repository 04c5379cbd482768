"""Announced rate limits, by public names alone (contract 7.4): whatever a server writes, then real sockets."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry import mount
from requests_smithy_retry.testing import FakeClock, FaultServer
from requests_smithy_retry.testing import Reply as FaultReply
from tests.support import Reply, scripted, send

HEADERS = [
    *("RateLimit", "RateLimit-Policy", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Limit"),
    *("X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Reset-After", "X-RateLimit-Limit"),
    *("X-RateLimit-Remaining-Requests", "X-RateLimit-Reset-Requests", "X-Shopify-Shop-Api-Call-Limit"),
    *("x-amzn-RateLimit-Limit", "Retry-After", "retry-after-ms", "Date"),
]
VALUES = st.one_of(
    st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=30),
    st.integers(0, 10**18).map(str),
    st.sampled_from(["0", "1", "5", "100", "0.5", "1m30s", '"a";r=0;t=7', '"a";r=1;t=3, "b";r=0;t=900', "39/40"]),
)
ANSWER = st.tuples(
    st.sampled_from([200, 200, 403, 429, 503]), st.dictionaries(st.sampled_from(HEADERS), VALUES, max_size=5)
)


@given(st.lists(ANSWER, min_size=1, max_size=8))
def test_whatever_a_server_writes_nobody_waits_beyond_the_bound(answers: list[tuple[int, dict[str, str]]]) -> None:
    """Each operation sleeps no longer than its configuration says, and nothing is raised."""
    clock = FakeClock()
    script = [Reply(status, headers) for status, headers in answers]
    adapter = scripted(*script, *[200] * 30, clock=clock, max_retry_after=5)
    most = adapter.retry_config.worst_case().sleep
    for _ in range(len(script) + 2):
        before = sum(clock.sleeps)
        assert send(adapter).status_code in (200, 403, 429, 503)
        assert sum(clock.sleeps) - before <= most + 1e-6


@pytest.mark.real_time
def test_one_threads_hint_holds_its_siblings_back() -> None:
    """None of them is sent before the moment that the server named, and then all of them are answered."""
    came: list[float] = []

    def answer(_: Any) -> FaultReply:
        came.append(time.monotonic())
        return FaultReply(429, {"Retry-After": "1"}) if len(came) == 1 else FaultReply()

    with FaultServer(answer) as server, mount(requests.Session(), max_attempts=1) as session:
        began = time.monotonic()
        assert 429 == session.get(server.url).status_code
        answers: list[requests.Response] = []
        threads = [threading.Thread(target=lambda: answers.append(session.get(server.url))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert [200] * 8 == [answer.status_code for answer in answers]
    assert min(came[1:]) - began >= 1.0
