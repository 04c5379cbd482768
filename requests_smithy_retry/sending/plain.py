"""Sending with retries switched off: each response is taken as a plain ``HTTPAdapter`` takes it (contract 10.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from requests import PreparedRequest, Response

from ..config.retry_options import NOTHING, current_options
from ..wire.response import CheckedResponse
from ..wire.state import this_thread


def send_plainly(send: Callable[..., Response], request: PreparedRequest, **options: Any) -> Response:
    """Send once, without checking whether head and body are whole."""
    outer, options_outside = this_thread.plain, current_options.get()
    # The body may send a request of its own meanwhile. Its adapter looks closer where options are in force, even
    # empty ones, and then sees that it is not the adapter which is switched off.
    try:
        this_thread.plain = True
        current_options.set(options_outside or NOTHING)
        response = send(request, **options)
    finally:
        # First: a call might be interrupted by a signal's handler.
        this_thread.plain, this_thread.connecting = outer, False
        current_options.set(options_outside)
    original = getattr(response.raw, "_original_response", None)
    if isinstance(original, CheckedResponse):
        original.plain = True  # its body is read later
    return response


def send_within(send: Callable[..., Response], request: PreparedRequest, **options: Any) -> Response:
    """Send for an adapter that retries, while one that is switched off is sending in this thread."""
    this_thread.plain = False
    try:
        return send(request, **options)
    finally:
        this_thread.plain = True
