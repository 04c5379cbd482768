"""Switching retries off, or capping attempts, in a test suite, whatever the code under test configured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from requests import PreparedRequest, Response

from ..adapter import RetryAdapter
from ..config.retry_options import NOTHING, OptionsBlock, options_in_force, retry_options
from .every_send import Send, around_every_send


@contextmanager
def retries_disabled() -> Iterator[None]:
    """Make every ``RetryAdapter`` of the process behave as a plain ``HTTPAdapter`` in the block, in every thread."""

    def around(send: Send, adapter: RetryAdapter, request: PreparedRequest, options: dict[str, Any]) -> Response:
        with retry_options(enabled=False):
            return send(adapter, request, **options)

    with around_every_send(around):
        yield


@contextmanager
def cap_attempts(most: int) -> Iterator[None]:
    """Limit the attempts of every operation of the process inside the block, in every thread.

    No more are sent, also of an operation that waits for a service that is down, whose attempts count for none. A lower
    limit of the configuration still holds.

    :param most: the limit, 1 or more.
    :raises ValueError: for a limit below 1.
    """
    if most < 1:
        raise ValueError(f"most={most!r}: a whole number of 1 or more is allowed")

    def around(send: Send, adapter: RetryAdapter, request: PreparedRequest, options: dict[str, Any]) -> Response:
        around = options_in_force() or NOTHING
        configured = around.max_attempts
        if configured is None:
            configured = getattr(adapter.strategy, "max_attempts", most)
        sent = most if around.most_sent is None else min(most, around.most_sent)
        with OptionsBlock({"max_attempts": min(most, configured), "most_sent": sent}, adapter.clock):
            return send(adapter, request, **options)

    with around_every_send(around):
        yield
