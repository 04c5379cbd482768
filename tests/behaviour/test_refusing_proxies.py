"""A proxy's refusal is final (contract 3.4): it is asked once, and the caller gets what plain ``requests`` raises."""

from __future__ import annotations

import math
import re
import time
import traceback
from dataclasses import dataclass
from typing import Any

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

from requests_smithy_retry import ErrorKind, RetryAction, RetryAdapter, RetryReason, StopReason, retry_history
from requests_smithy_retry.testing import FakeClock
from tests.faults import EarlyFault, FaultProxy, FaultServer, ReadSoFar, Reply, Stall
from tests.faults.oracle import tls_contexts
from tests.support import session_with

TARGET = "https://target.invalid/"
IS_1 = urllib3.__version__.startswith("1.")


@dataclass(frozen=True)
class Answers(EarlyFault):
    """Sends the next answer after each of the client's messages, whatever they are, and falls silent."""

    answers: tuple[bytes, ...] = (b"",)
    begins_after = ReadSoFar.NOTHING

    def greet(self, wire: Any) -> None:
        for answer in self.answers:
            wire.sock.recv(65_536)
            wire.send(answer)
        wire.stall(math.inf)


def retrying(**options: Any) -> requests.Session:
    return session_with(RetryAdapter(clock=FakeClock(), quota=None, **options))


def failure(made: requests.Session, proxy: str, *, url: str = TARGET, timeout: float = 30, verify: bool = True) -> Any:
    with made, pytest.raises(requests.RequestException) as caught:
        made.get(url, proxies={"http": proxy, "https": proxy}, timeout=timeout, verify=verify)
    return caught.value


def plain_failure(proxy: str, **how: Any) -> Any:
    """The error of plain ``requests``, with its frames cleared: Python 3.10 leaves the answer to CONNECT in one."""
    made = error = failure(session_with(HTTPAdapter()), proxy, **how)
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__
    return made


def told(error: BaseException) -> tuple[type, str]:
    """The type and the text of an error, without the addresses of objects."""
    return type(error), re.sub(r" at 0x[0-9a-f]+", "", str(error))


def assert_asked_once(server: FaultServer, proxy: str, **how: Any) -> Any:
    """The retries ask the proxy once, and end with the error of plain ``requests``; return theirs."""
    theirs = plain_failure(proxy, **how)
    server.reset()
    ours = failure(retrying(), proxy, **how)
    assert (1, told(theirs)) == (server.connections, told(ours))
    return ours


@pytest.mark.parametrize("status", [204, 302, 403, 407])
def test_a_refused_tunnel_is_asked_for_once(status: int) -> None:
    """The status of the answer to CONNECT says that another one would be the same, as it does over plain HTTP."""
    with FaultProxy(Reply(status)) as proxy:
        error = assert_asked_once(proxy, proxy.url)
        assert (1, StopReason.NOT_RETRYABLE) == (proxy.tunnels, retry_history(error).stop_reason)


@pytest.mark.parametrize("status", [408, 429, 502])
def test_a_proxy_in_trouble_is_asked_again(status: int) -> None:
    """Such an answer to CONNECT may be another one a moment later."""
    with FaultProxy(Reply(status)) as proxy:
        failure(retrying(), proxy.url)
        assert 3 == proxy.tunnels


def test_a_refusal_is_not_taken_for_the_next_failure() -> None:
    """What the proxy answered to one CONNECT says nothing about another one, in the same thread."""
    made = retrying()
    with FaultProxy(Reply(403)) as refusing:
        failure(made, refusing.url)
    with FaultServer(Answers()) as silent:
        failure(made, silent.url, timeout=0.1)
        assert 3 == silent.connections


def test_a_classifier_may_have_a_refusing_proxy_asked_again() -> None:
    """Of a rotating proxy, the program knows that another attempt leaves by another address."""

    class Rotating:
        name = "Rotating"
        priority = None

        def classify_retry(self, outcome: Any, previous: Any) -> RetryAction:
            return RetryAction.retry_indicated(RetryReason(ErrorKind.TRANSIENT))

    with FaultProxy(Reply(403)) as proxy:
        failure(retrying(classifiers=[Rotating()]), proxy.url)
        assert 3 == proxy.tunnels


PASSWORD_WANTED = b"\x05\x02"
REST = b"\x00\x01" + bytes(6)


@pytest.mark.parametrize(
    ("scheme", "answers"),
    [
        ("socks5h://user:wrong@", (PASSWORD_WANTED, b"\x01\x01")),
        ("socks5h://", (b"\x05\xff",)),
        ("socks5h://", (b"\x05\x00", b"\x05\x02" + REST)),
        ("socks5h://", (b"\x05\x00", b"\x05\x07" + REST)),
        ("socks5h://", (b"\x05\x00", b"\x05\x08" + REST)),
        ("socks4a://", (b"\x00\x5c" + bytes(6),)),
        ("socks4a://", (b"\x00\x5d" + bytes(6),)),
    ],
    ids=["password", "no method", "ruleset", "command", "kind of address", "no identd", "other user"],
)
def test_a_refusing_socks_proxy_is_asked_once(scheme: str, answers: tuple[bytes, ...]) -> None:
    """Credentials that are refused are not sent again, and a blocked site is not asked for again."""
    pytest.importorskip("socks")
    with FaultServer(Answers(answers)) as server:
        assert_asked_once(server, f"{scheme}127.0.0.1:{server.port}")


@pytest.mark.parametrize("code", [1, 3, 4, 5, 6])
def test_a_socks_proxy_in_trouble_is_asked_again(code: int) -> None:
    """It could not reach the target this time."""
    pytest.importorskip("socks")
    with FaultServer(Answers((b"\x05\x00", bytes([5, code]) + REST))) as server:
        failure(retrying(), f"socks5h://127.0.0.1:{server.port}")
        assert 3 == server.connections


@pytest.mark.parametrize("url", [TARGET, "http://target.invalid/"])
def test_a_proxy_that_answers_tls_in_plain_http_is_asked_once(url: str) -> None:
    """Its URL should begin with ``http``: the two disagree, whenever they are asked."""
    with FaultServer(Answers((b"HTTP/1.1 400 Bad Request\r\n\r\n",))) as server:
        assert_asked_once(server, f"https://127.0.0.1:{server.port}", url=url)


@pytest.mark.real_time
@pytest.mark.filterwarnings("ignore:Unverified")
def test_a_proxy_within_tls_that_is_late_is_asked_again() -> None:
    """It speaks TLS: its late answer to CONNECT may come in time the next time, and so may that of the target."""
    with FaultProxy(Stall("status"), tls=tls_contexts()[0]) as proxy:
        failure(retrying(), proxy.url, timeout=0.2, verify=False)
        assert 3 == proxy.tunnels
    with FaultServer(Answers()) as target, FaultProxy(tls=tls_contexts()[0]) as proxy:
        failure(retrying(), proxy.url, url=f"https://127.0.0.1:{target.port}", timeout=0.2, verify=False)
        assert (3, 3) == (proxy.tunnels, target.connections)


@pytest.mark.real_time
@pytest.mark.parametrize(
    "url", [TARGET, pytest.param("http://target.invalid/", marks=pytest.mark.skipif(IS_1, reason="no proxy's error"))]
)
def test_a_proxy_that_never_answers_tls_is_asked_once(url: str) -> None:
    """One that speaks HTTP alone waits for the end of the line; it costs one time-out, as without retries."""
    with FaultServer(Answers()) as server:
        began = time.monotonic()
        assert_asked_once(server, f"https://127.0.0.1:{server.port}", url=url, timeout=0.2)
        assert time.monotonic() - began < 30
