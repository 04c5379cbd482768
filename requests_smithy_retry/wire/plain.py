"""Sending where retries are switched off: what comes is taken as a plain ``HTTPAdapter`` takes it (contract 10.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from requests import PreparedRequest, Response

from ..operation_options import NOTHING, current_options
from .response import CheckedResponse
from .state import attempt


def send_plainly(send: Callable[..., Response], request: PreparedRequest, **options: Any) -> Response:
    """Send once, with no look at whether head and body are whole.

    :param send: the ``send`` of the adapter below.
    :param request: the request.
    :param options: the other arguments of ``send``.
    """
    outer, attempt.plain = attempt.plain, True
    # Somebody else's request may be made meanwhile, by what makes the body. Its adapter looks closer where options
    # are in force, be they none, and sees then that it is not the one which is switched off.
    mark = current_options.set(current_options.get() or NOTHING)
    try:
        response = send(request, **options)
    finally:
        current_options.reset(mark)
        attempt.plain, attempt.connecting = outer, False
    original = getattr(response.raw, "_original_response", None)
    if isinstance(original, CheckedResponse):
        original.plain = True  # its body is read later
    return response


def send_within(send: Callable[..., Response], request: PreparedRequest, **options: Any) -> Response:
    """Send for an adapter that retries, while one that is switched off is sending in this thread.

    :param send: its ``send``.
    :param request: the request.
    :param options: the other arguments of ``send``.
    """
    attempt.plain = False
    try:
        return send(request, **options)
    finally:
        attempt.plain = True
