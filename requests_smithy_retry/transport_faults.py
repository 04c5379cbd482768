"""What went wrong on the wire, by exception type (contract 2, 3.4). Knows the exceptions of requests, urllib3, ssl.

Three questions: is the request itself at fault, is the fault a passing one, was it a client-side timeout. Types
decide, never messages. The cause inside a wrapper is found by structure (``args``, ``reason``, ``__cause__``), never by
``__context__``, which may lead to an unrelated exception that the caller was handling.
"""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator

import requests.exceptions as rex
import urllib3.exceptions as uex
from urllib3.util.ssl_match_hostname import CertificateError

REQUEST_FAULTS = (
    rex.InvalidURL,
    rex.MissingSchema,
    rex.InvalidSchema,
    rex.InvalidProxyURL,
    rex.InvalidHeader,
    ValueError,
)
"""Never retried: sending the same request again would fail in the same way."""

CERTIFICATE_FAULTS = (ssl.SSLCertVerificationError, CertificateError)
"""The far end is not who it should be; urllib3 has a class of its own for a host name that does not match."""

TRANSIENT = (
    rex.ConnectionError,
    rex.Timeout,
    rex.ChunkedEncodingError,
    rex.ContentDecodingError,
    uex.TimeoutError,
    uex.ProtocolError,
    uex.ProxyError,
    uex.SSLError,
    uex.DecodeError,
    uex.NewConnectionError,
    uex.EmptyPoolError,
    uex.ClosedPoolError,
    uex.InvalidHeader,
    http.client.HTTPException,
    ssl.SSLError,
    ConnectionError,
    TimeoutError,
    socket.gaierror,
)
"""A passing fault of the network, a proxy or the far end."""

TIMEOUTS = (rex.Timeout, uex.TimeoutError, TimeoutError)

PASSING_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError, ConnectionError, TimeoutError)
"""A TLS connection that was cut. Any other TLS error is a disagreement, which a retry does not settle."""

PASSING_TLS_REASONS = frozenset(
    {
        "UNEXPECTED_EOF_WHILE_READING",
        "DECRYPTION_FAILED_OR_BAD_RECORD_MAC",
        "SSLV3_ALERT_BAD_RECORD_MAC",
        "TLSV1_ALERT_INTERNAL_ERROR",
    }
)
"""Damage on the way, and the alert of RFC 8446 6.2 that has nothing to do with what the client asked for."""

MAX_CAUSES = 32


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and everything it wraps, outermost first; bounded, and safe against cycles."""
    seen: list[BaseException] = []
    ahead = [error]
    while ahead and len(seen) < MAX_CAUSES:
        current = ahead.pop(0)
        if any(current is known for known in seen):
            continue
        seen.append(current)
        yield current
        inner = (*current.args, getattr(current, "reason", None), current.__cause__)
        ahead.extend(item for item in inner if isinstance(item, BaseException))


def forget_frames(error: BaseException) -> None:
    """Drop the tracebacks of an error that is only kept for the record, and of all that led to it.

    Their frames, and the frames that called those, would keep response, pool and sockets in a cycle.
    """
    for cause in causes(error):
        at: BaseException | None = cause
        for _ in range(MAX_CAUSES):
            if at is None:
                break
            at.__traceback__ = None
            at = at.__context__


def is_request_fault(error: BaseException) -> bool:
    """Whether the request itself is at fault, so that nothing is retried and nobody is asked (contract 2)."""
    if isinstance(error, rex.InvalidHeader):
        # urllib3 found it in the response: two different lengths, say. That is the far end's fault.
        return not any(isinstance(cause, uex.InvalidHeader) for cause in causes(error))
    if any(isinstance(cause, (*CERTIFICATE_FAULTS, http.client.InvalidURL)) for cause in causes(error)):
        return True
    if isinstance(error, (rex.SSLError, uex.SSLError, ssl.SSLError)):
        return not _is_passing_tls(error)
    if isinstance(error, REQUEST_FAULTS):
        return not isinstance(error, TRANSIENT)
    # A missing CA bundle or client certificate is a bare OSError.
    return type(error) is OSError


def is_transient(error: BaseException) -> bool:
    """Whether the error is a passing fault on the wire."""
    if isinstance(error, uex.MaxRetryError):
        # Only who uses urllib3 without requests sees one; what it wraps is what happened.
        return error.reason is not None and is_transient(error.reason)
    return isinstance(error, (*TRANSIENT, rex.InvalidHeader)) and not is_request_fault(error)


def is_timeout(error: BaseException) -> bool:
    """Whether nobody answered in time, as the client saw it: connecting, reading, or waiting for a connection.

    A refused connection is none, although urllib3 derives its exception from that of a connect timeout.
    """
    return any(isinstance(cause, TIMEOUTS) and not isinstance(cause, uex.NewConnectionError) for cause in causes(error))


def never_left(error: BaseException) -> bool:
    """Whether no connection was to be had at all, so that nothing can have been written.

    Only the pool of the attempt itself counts, which requests wraps once at most: what is found deeper may have been
    raised by the caller's body, in the midst of an upload.
    """
    return any(isinstance(found, (uex.EmptyPoolError, uex.ClosedPoolError)) for found in (error, *error.args))


def _is_passing_tls(error: BaseException) -> bool:
    for cause in causes(error):
        if isinstance(cause, PASSING_TLS):
            return True
        # One that Python code made, such as urllib3's pyOpenSSL layer, has no reason.
        if isinstance(cause, ssl.SSLError) and getattr(cause, "reason", None) in PASSING_TLS_REASONS:
            return True
    return False
