"""The page reference/classification.md: what becomes of each outcome, found out by sending it through the adapter."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable
from typing import Any

import requests
import requests.exceptions as rex
import urllib3.exceptions as uex
from requests.adapters import HTTPAdapter
from urllib3.util.ssl_match_hostname import CertificateError

from requests_smithy_retry import RetryAdapter, StopReason, retry_history
from requests_smithy_retry.classifiers import RetryIndicated
from requests_smithy_retry.features.server_verdicts import MEANINGS
from requests_smithy_retry.testing.clock import FakeClock
from requests_smithy_retry.wire.proxies import ProxyRefusal
from requests_smithy_retry.wire.state import this_thread

URL = "https://api.example.com/things"
HEAD = """# Classification of every outcome

- A **request fault** is never classified nor retried. *No opinion*: no classifier asks for a retry.
- A POST is sent again if the server says that it did nothing, if no byte of it can have been written, or with an
  `Idempotency-Key`, by [the resend rule](../howto/resend-post.md#the-resend-rule).

"""


UNWRITTEN = (
    "connection refused",
    "name not resolved",
    "connect timeout",
    "proxy not reached",
    "refused by a proxy",
    "TLS cut within the handshake",
)
"""Outcomes that come while a connection is made, before a byte of the request is written."""


WORD = "By `ServerVerdictClassifier`, whatever `retry_status_codes` says."


class _Scripted(HTTPAdapter):
    """Ends each attempt with the same exception or status, and then, once more, well."""

    def __init__(self, *args: Any, ending: Any = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.ending = ending
        self.sent = 0

    def send(self, request: Any, **options: Any) -> Any:
        self.sent += 1
        if isinstance(self.ending, BaseException):
            this_thread.connecting = hasattr(self.ending, "unwritten")
            raise self.ending
        response = requests.Response()
        response.status_code, response.request, response._content = self.ending, request, b""
        response.connection = self
        response.headers.update(self.said)
        return response


class _Adapter(RetryAdapter, _Scripted):
    pass


def outcome_of(ending: Any, method: str, *, keyed: bool = False, said: Any = ()) -> tuple[bool, str, str]:
    """Return True if a request that ends so is sent again, with the verdict and the stop reason."""
    adapter = _Adapter(ending=ending, max_attempts=2, quota=500, clock=FakeClock())
    adapter.said = said
    headers = {"Idempotency-Key": '"1"'} if keyed else None
    try:
        came: Any = adapter.send(requests.Request(method, URL, headers=headers).prepare())
    except Exception as error:
        came = error
    history = retry_history(came)
    assert history is not None
    return adapter.sent == 2, _verdict(history), history.why


def _verdict(history: Any) -> str:
    if history.stop_reason is StopReason.REQUEST_FAULT:
        return "**request fault**"
    for vote in reversed(history.attempts[0].votes):
        if vote.classifier != "resend rule" and vote.action.__class__.__name__ == "RetryForbidden":
            return "forbidden"
        if isinstance(vote.action, RetryIndicated):
            timeout = ", a timeout" if vote.action.reason.timeout else ""
            return f"{vote.action.reason.kind.value}{timeout}"
    return "success" if history.stop_reason is StopReason.SUCCESS else "no opinion"


def wrapped() -> dict[str, Exception]:
    """Outcomes as requests raises them, with the cause inside that makes the difference."""
    pool: Any = None

    def exceeded(reason: Exception) -> uex.MaxRetryError:
        return uex.MaxRetryError(pool, "/things", reason)

    eof = ssl.SSLEOFError(8, "EOF occurred in violation of protocol")
    untrusted = ssl.SSLCertVerificationError(1, "certificate verify failed")
    other_host = CertificateError("hostname 'a' doesn't match 'b'")
    refused = uex.NewConnectionError(pool, "refused")
    handshake = ssl.SSLError(1, "handshake failure")
    forbidden = OSError("Tunnel connection failed: 403 Forbidden")
    forbidden.__cause__ = ProxyRefusal("answer to CONNECT: 403")
    outcomes: dict[str, Exception] = {
        "connection refused": rex.ConnectionError(exceeded(refused)),
        "name not resolved": rex.ConnectionError(exceeded(refused.__class__(pool, "Name or service not known"))),
        "connect timeout": rex.ConnectTimeout(exceeded(uex.ConnectTimeoutError(pool, "timed out"))),
        "read timeout before the head": rex.ReadTimeout(uex.ReadTimeoutError(pool, URL, "timed out")),
        "read timeout within the body": rex.ConnectionError(uex.ReadTimeoutError(pool, URL, "timed out")),
        "no free connection in the pool": uex.EmptyPoolError(pool, "full"),
        "connection reset": rex.ConnectionError(uex.ProtocolError("aborted", ConnectionResetError(104, "reset"))),
        "closed without an answer": rex.ConnectionError(
            uex.ProtocolError("aborted", http.client.RemoteDisconnected("closed"))
        ),
        "answer that is no HTTP": rex.ConnectionError(uex.ProtocolError("aborted", http.client.BadStatusLine("SSH"))),
        "body cut": rex.ChunkedEncodingError(uex.ProtocolError("broken", http.client.IncompleteRead(b"", 9))),
        "body undecodable": rex.ContentDecodingError(uex.DecodeError("not gzip")),
        "proxy not reached": rex.ProxyError(exceeded(uex.ProxyError("Unable to connect to proxy", refused))),
        "refused by a proxy": rex.ProxyError(exceeded(uex.ProxyError("Unable to connect to proxy", forbidden))),
        "proxy that speaks no TLS": rex.ProxyError(exceeded(uex.ProxyError("only HTTP", uex.SSLError(handshake)))),
        "proxy with an untrusted certificate": rex.ProxyError(exceeded(uex.ProxyError("proxy", untrusted))),
        "untrusted certificate": rex.SSLError(exceeded(uex.SSLError(untrusted))),
        "certificate of another host": rex.SSLError(exceeded(uex.SSLError(other_host))),
        "TLS cut within the handshake": rex.SSLError(exceeded(uex.SSLError(eof))),
        "TLS handshake refused": rex.SSLError(exceeded(uex.SSLError(handshake))),
        "CA bundle not found": OSError("Could not find a suitable TLS CA certificate bundle"),
        "request header with a line break": rex.InvalidHeader("Invalid return character or leading space in header"),
        "answer with two different lengths": rex.InvalidHeader(uex.InvalidHeader("two lengths")),
    }
    for name in UNWRITTEN:
        outcomes[name].unwritten = True
    return outcomes


def yes(flag: bool) -> str:
    """A cell of the table."""
    return "again" if flag else "—"


def fault_rows() -> list[str]:
    """One item for each fate, with the faults of the wire that have it."""
    fates: dict[str, list[str]] = {}
    for name in wrapped():
        # Made anew: an outcome may be judged only once.
        (again, verdict, _), (post, _, _) = (outcome_of(wrapped()[name], method) for method in ("GET", "POST"))
        sent = ", GET and POST sent again" if post else ", GET sent again" if again else ""
        fates.setdefault(verdict + sent, []).append(name)
    return [f"- {fate}: {', '.join(names)}" for fate, names in fates.items()]


def status_rows() -> list[str]:
    """One row for each run of statuses that have the same fate; all of 200 to 599 are tried."""
    fates: list[tuple[list[int], tuple[str, ...]]] = []
    for status in range(200, 600):
        get, post, keyed = (
            outcome_of(status, "GET"),
            outcome_of(status, "POST"),
            outcome_of(status, "POST", keyed=True),
        )
        verdict = get[1] if keyed[1] == get[1] else f"{get[1]}; with a key: {keyed[1]}"
        fate = (verdict, yes(get[0]), yes(post[0]), yes(keyed[0]))
        if fates and fates[-1][1] == fate:
            fates[-1][0].append(status)
        else:
            fates.append(([status], fate))
    told = [(codes, fate) for codes, fate in fates if fate[0] not in ("success", "no opinion")]
    rows = [f"| {codes[0]}{f'–{codes[-1]}' if len(codes) > 1 else ''} | {' | '.join(fate)} |" for codes, fate in told]
    return [*rows, "\nBelow 400: success. Any other one: no opinion."]


WORDS = (
    ("x-should-retry", "false", " (the SDKs of OpenAI and Anthropic)"),
    ("x-should-retry", "true", ""),
    ("stripe-should-retry", "false", " (Stripe, error handling)"),
    ("stripe-should-retry", "true", ""),
    ("grpc-retry-pushback-ms", "-1", " (gRPC proposal A6)"),
    ("x-envoy-overloaded", "true", " (Envoy, HTTP router filter)"),
    ("x-envoy-ratelimited", "true", " (Envoy, HTTP router filter)"),
)
"""A row for each meaning of a header: its name, a value, and its source."""
assert {header for header, _, _ in WORDS} == set(MEANINGS)


def word_rows() -> list[str]:
    """One row for the things that a server may say with the same effect."""
    rows: dict[tuple[str, ...], list[str]] = {}
    answers = ((400, "GET"), (503, "GET"), (503, "POST"))
    for header, value, source in WORDS:
        fates = [outcome_of(status, method, said={header: value}) for status, method in answers]
        verdicts = tuple(f"{verdict}: {yes(again)}" for again, verdict, _ in fates)
        rows.setdefault(verdicts, []).append(f"`{header}: {value}`{source}")
    return [f"| {', '.join(words)} | {' | '.join(verdicts)} |" for verdicts, words in rows.items()]


def build() -> str:
    """The page."""
    parts: list[Callable[[], list[str]]] = [
        lambda: [
            "## Statuses\n",
            "| status | verdict | GET | POST | POST with a key |",
            "|---|---|---|---|---|",
        ],
        status_rows,
        lambda: [f"\n## A server's own word\n\n{WORD}\n", "| header | GET: 400 | GET: 503 | POST: 503 |"],
        lambda: ["|---|---|---|---|"],
        word_rows,
        lambda: ["\n## Faults of the wire, as `requests` raises them\n"],
        fault_rows,
    ]
    return HEAD + "\n".join(line for part in parts for line in part()) + "\n"
