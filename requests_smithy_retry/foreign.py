"""Which exceptions are none of ours to handle, because somebody else's code raised them (contract 2).

A signal's handler raises in the middle of whatever is under way: Celery's ``SoftTimeLimitExceeded``, an ``Exception``
like any other, at a task's soft time limit. Whoever means "whatever went wrong here" asks this first.
"""

from __future__ import annotations

import sys

from urllib3.response import HTTPResponse

PACKAGES = frozenset(
    {*sys.stdlib_module_names, "OpenSSL", "redis", "requests", "requests_smithy_retry", "socks", "urllib3"}
)
"""Whose exceptions sending, reading and asking for a quota can end with."""


def is_foreign(error: BaseException) -> bool:
    """Whether neither Python, nor the libraries below, nor a decoder of contents has such an exception."""
    package = type(error).__module__.partition(".")[0]
    return package not in PACKAGES and not isinstance(error, HTTPResponse.DECODER_ERROR_CLASSES)
