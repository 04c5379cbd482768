"""Faults on the wire, by the exception types of requests, urllib3 and ssl (contract 2, 3.4).

Three questions: is the request itself at fault, is the fault a passing one, was it a client-side timeout. A proxy's
refusal is neither the request's fault nor a passing one. Types decide, never messages. Causes are found in ``args``,
``reason`` and ``__cause__``, never in ``__context__``, which may be an unrelated exception that the caller handled.
"""

from __future__ import annotations

import http.client
import socket
import ssl

import requests.exceptions as rex
import urllib3.exceptions as uex
from urllib3.util.ssl_match_hostname import CertificateError

from ..interruptions import MAX_CAUSES, causes
from ..wire.proxies import ProxyRefusal
from .actions import NO_ACTION, ErrorKind, RetryAction, RetryReason
from .outcome import Outcome
from .protocol import RetryClassifierPriority

CERTIFICATE_FAULTS = (ssl.SSLCertVerificationError, CertificateError)
"""The far end is not the expected one. urllib3 has its own class for a host name that does not match."""

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

TLS = (rex.SSLError, uex.SSLError, ssl.SSLError)

PROXY = (rex.ProxyError, uex.ProxyError)

TIMEOUTS = (rex.Timeout, uex.TimeoutError, TimeoutError)

PASSING_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError, ConnectionError, TimeoutError)
"""Errors of a TLS connection that was cut. Any other TLS error is a disagreement, which a retry does not settle."""

PASSING_TLS_REASONS = frozenset(
    {
        "UNEXPECTED_EOF_WHILE_READING",
        "DECRYPTION_FAILED_OR_BAD_RECORD_MAC",
        "SSLV3_ALERT_BAD_RECORD_MAC",
        "TLSV1_ALERT_INTERNAL_ERROR",
    }
)
"""Damage in transit, and the internal error of RFC 8446 6.2."""


CAUSES: tuple[tuple[type[BaseException], str], ...] = (
    (socket.gaierror, "name not found"),
    (http.client.RemoteDisconnected, "closed without an answer"),
    (ConnectionRefusedError, "connection refused"),
    (ConnectionResetError, "connection reset"),
    (http.client.IncompleteRead, "the body broke off"),
    (uex.ReadTimeoutError, "read timed out"),
)
"""The fault of a connection, by the exceptions that are found among the causes."""


def cause_in_words(error: BaseException | None) -> str | None:
    """Return what happened to the connection of an attempt, without any part of the request.

    :returns: None if it is unknown, or if the type of the error says it, as with ``ReadTimeout``.
    """
    if error is None or isinstance(error, rex.Timeout):
        return None
    found = tuple(causes(error))
    words = [text for kind, text in CAUSES for cause in found if isinstance(cause, kind)]
    return words[0] if words else None


def forget_frames(error: BaseException) -> None:
    """Drop the tracebacks of an error kept for the record: their frames hold response, pool and sockets in a cycle."""
    for cause in causes(error):
        at: BaseException | None = cause
        for _ in range(MAX_CAUSES):
            if at is None:
                break
            at.__traceback__ = None
            at = at.__context__


def is_request_fault(error: BaseException) -> bool:
    """Return True if the request itself is at fault, so that there is neither a classification nor a retry."""
    if isinstance(error, rex.InvalidHeader):
        # If urllib3 found it in the response (two different lengths, say), the far end is at fault.
        return not any(isinstance(cause, uex.InvalidHeader) for cause in causes(error))
    if any(isinstance(cause, (*CERTIFICATE_FAULTS, http.client.InvalidURL)) for cause in causes(error)):
        return True
    if isinstance(error, TLS) or (isinstance(error, PROXY) and any(isinstance(cause, TLS) for cause in causes(error))):
        return not _is_passing_tls(error)
    if isinstance(error, ValueError):  # as are all errors of requests that blame a URL or a header
        return not isinstance(error, TRANSIENT)
    # A missing CA bundle or client certificate is a bare OSError.
    return type(error) is OSError


def is_transient(error: BaseException) -> bool:
    if isinstance(error, uex.MaxRetryError):
        # Only direct users of urllib3 see this one.
        return error.reason is not None and is_transient(error.reason)
    if any(isinstance(cause, ProxyRefusal) for cause in causes(error)):
        return False
    return isinstance(error, (*TRANSIENT, rex.InvalidHeader)) and not is_request_fault(error)


def is_timeout(error: BaseException) -> bool:
    """Return True for a client-side timeout; not for a refused connection, whose class urllib3 derives from one."""
    return any(isinstance(cause, TIMEOUTS) and not isinstance(cause, uex.NewConnectionError) for cause in causes(error))


def never_left(error: BaseException) -> bool:
    """Return True if the attempt's own pool gave no connection; a deeper error may be that of an upload's body."""
    return any(isinstance(found, (uex.EmptyPoolError, uex.ClosedPoolError)) for found in (error, *error.args))


def _is_passing_tls(error: BaseException) -> bool:
    # An error made by Python code, such as urllib3's pyOpenSSL layer, has no reason.
    return any(
        isinstance(cause, PASSING_TLS)
        or (isinstance(cause, ssl.SSLError) and getattr(cause, "reason", None) in PASSING_TLS_REASONS)
        for cause in causes(error)
    )


class TransientErrorClassifier:
    """Classifies timeouts, resets, refused or closed connections, DNS, proxy and body faults as transient errors."""

    name = "TransientErrorClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.transient_error_classifier()

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        """Judge by the exception's type."""
        if outcome.error is None or not is_transient(outcome.error):
            return NO_ACTION
        return RetryAction.retry_indicated(RetryReason(ErrorKind.TRANSIENT, timeout=is_timeout(outcome.error)))
