"""The faults on the wire, by exception (contract 2, 3.4); each class by itself is on the generated page."""

from __future__ import annotations

import http.client
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest
import requests.exceptions as rex
import urllib3.exceptions as uex

from requests_smithy_retry.classifiers.transport_faults import (
    causes,
    forget_frames,
    is_request_fault,
    is_timeout,
    is_transient,
    never_left,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "docs"))

from generators import classification_page as page

WRAPPED = page.wrapped()
FAULTS = {
    *("proxy that speaks no TLS", "proxy with an untrusted certificate", "untrusted certificate"),
    *("certificate of another host", "TLS handshake refused", "CA bundle not found"),
    "request header with a line break",
}
TIMEOUTS = {"connect timeout", "read timeout before the head", "read timeout within the body"}
NONE: Any = None


def tls(reason: str) -> rex.SSLError:
    """A TLS error as OpenSSL reports it, wrapped as requests does."""
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = reason
    return rex.SSLError(uex.MaxRetryError(NONE, "/", uex.SSLError(error)))


@pytest.mark.parametrize("name", WRAPPED)
def test_as_requests_raises_it(name: str) -> None:
    """Each outcome of the wire is a fault of the request or a passing one, and is known to be a timeout or not."""
    error = WRAPPED[name]
    assert is_request_fault(error) is (name in FAULTS)
    assert is_transient(error) is (name not in FAULTS and name != "refused by a proxy")
    assert is_timeout(error) is (name in TIMEOUTS)
    assert never_left(error) is (name == "no free connection in the pool")


def around(inner: Exception) -> rex.SSLError:
    """A TLS error that another error caused."""
    error = rex.SSLError("failed")
    error.__cause__ = inner
    return error


OF_ANOTHER_HOST = uex.ProxyError("Unable to connect to proxy", page.CertificateError("hostname 'a' doesn't match 'b'"))


@pytest.mark.parametrize(
    ("error", "transient", "at_fault"),
    [
        (tls("UNEXPECTED_EOF_WHILE_READING"), True, False),
        (tls("DECRYPTION_FAILED_OR_BAD_RECORD_MAC"), True, False),
        (tls("SSLV3_ALERT_BAD_RECORD_MAC"), True, False),
        (tls("TLSV1_ALERT_INTERNAL_ERROR"), True, False),
        (tls("WRONG_VERSION_NUMBER"), False, True),
        (tls("SSLV3_ALERT_HANDSHAKE_FAILURE"), False, True),
        (tls("TLSV1_ALERT_UNKNOWN_CA"), False, True),
        (around(ConnectionResetError(104, "reset")), True, False),
        (around(TimeoutError("timed out")), True, False),
        (rex.ProxyError(uex.MaxRetryError(NONE, "/", OF_ANOTHER_HOST)), False, True),
        (uex.MaxRetryError(NONE, "/", uex.NewConnectionError(NONE, "refused")), True, False),
        (uex.MaxRetryError(NONE, "/", uex.ResponseError("too many 500 error responses")), False, False),
        (uex.MaxRetryError(NONE, "/"), False, False),
        (rex.InvalidHeader("bad"), False, True),
        (rex.InvalidHeader(uex.InvalidHeader("two lengths")), True, False),
        (rex.ConnectionError(uex.ProtocolError("aborted", http.client.InvalidURL("control characters"))), False, True),
    ],
    ids=repr,
)
def test_the_cause_decides(error: Exception, transient: bool, at_fault: bool) -> None:
    """Damage and a far end in trouble pass, a disagreement and the request's own fault do not, in whatever wrapper."""
    assert (transient, at_fault) == (is_transient(error), is_request_fault(error))


def test_a_pool_that_was_empty_for_somebody_else_says_nothing() -> None:
    """A body that makes requests of its own may raise their failure in the midst of its upload."""
    theirs = rex.ConnectionError(uex.EmptyPoolError(NONE, "full"))
    assert never_left(theirs)
    assert not never_left(rex.ConnectionError(uex.ProtocolError("Connection aborted.", theirs)))


def test_causes_are_found_by_structure_and_bounded() -> None:
    """Arguments, reason and cause; never the context, never in circles, never more than 32."""
    inner, outer, unrelated = ValueError("inner"), RuntimeError("outer"), KeyError("unrelated")
    outer.__cause__ = inner
    inner.__context__ = unrelated
    inner.__cause__ = outer
    assert list(causes(outer)) == [outer, inner]
    chain = RuntimeError("first")
    for _ in range(100):
        chain = RuntimeError(chain)
    assert len(list(causes(chain))) == 32


def test_frames_are_forgotten_as_far_as_errors_are_looked_at() -> None:
    """The frames of an error and of its contexts are dropped, up to a limit."""
    first = latest = RuntimeError("0")
    for number in range(100):
        try:
            raise RuntimeError(str(number)) from None
        except RuntimeError as error:  # noqa: PERF203 - each has a traceback of its own
            error.__context__ = latest
            latest = error
    forget_frames(latest)
    chain: list[Any] = [latest]
    while chain[-1] is not first:
        chain.append(chain[-1].__context__)
    assert [error.__traceback__ is None for error in chain] == [True] * 32 + [False] * 68 + [True]
