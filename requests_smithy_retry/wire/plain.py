"""Sending where retries are switched off: what comes is taken as a plain ``HTTPAdapter`` takes it (contract 10.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from requests import PreparedRequest, Response

from .response import CheckedResponse
from .state import attempt


def send_plainly(send: Callable[..., Response], request: PreparedRequest, **options: Any) -> Response:
    """Send once, with no look at whether head and body are whole.

    :param send: the ``send`` of the adapter below.
    :param request: the request.
    :param options: the other arguments of ``send``.
    """
    outer, attempt.plain = attempt.plain, True
    try:
        response = send(request, **options)
    finally:
        attempt.plain, attempt.connecting = outer, False
    original = getattr(response.raw, "_original_response", None)
    if isinstance(original, CheckedResponse):
        original.plain = True  # its body is read later
    return response
