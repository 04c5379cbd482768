"""Switching retries off, or capping attempts, for a test suite: whatever the code under test configured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from requests import PreparedRequest, Response

from ..adapter import RetryAdapter
from ..operation_options import NOTHING, current_options, retry_options
from .every_send import Send, around_every_send


@contextmanager
def retries_disabled() -> Iterator[None]:
    """Make every ``RetryAdapter`` of the process a plain ``HTTPAdapter`` inside the block, in every thread."""

    def around(send: Send, adapter: RetryAdapter, request: PreparedRequest, options: dict[str, Any]) -> Response:
        with retry_options(enabled=False):
            return send(adapter, request, **options)

    with around_every_send(around):
        yield


@contextmanager
def cap_attempts(most: int) -> Iterator[None]:
    """Let no operation of the process make more attempts than this inside the block, in every thread.

    Who configured fewer gets fewer.

    :param most: from 1 on.
    :raises ValueError: for less.
    """
    if most < 1:
        raise ValueError(f"{most!r}: from 1 attempt on is allowed")

    def around(send: Send, adapter: RetryAdapter, request: PreparedRequest, options: dict[str, Any]) -> Response:
        configured = (current_options.get() or NOTHING).max_attempts
        if configured is None:
            configured = getattr(adapter.strategy, "max_attempts", most)
        with retry_options(max_attempts=min(most, configured)):
            return send(adapter, request, **options)

    with around_every_send(around):
        yield
