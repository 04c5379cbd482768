"""The kit's access to adapters made by code under test: a wrapper around ``RetryAdapter.send``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from requests import PreparedRequest, Response

from ..adapter import RetryAdapter

Send = Callable[..., Response]
Around = Callable[[Send, RetryAdapter, PreparedRequest, dict[str, Any]], Response]
"""A function of the real ``send``, the adapter, the request and the other arguments by name, which calls ``send``."""


@contextmanager
def around_every_send(around: Around) -> Iterator[None]:
    """Put a function around every ``RetryAdapter.send`` of the process inside the block. Blocks nest."""
    real = RetryAdapter.send

    @functools.wraps(real)
    def send(
        self: RetryAdapter,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> Response:
        options = {"stream": stream, "timeout": timeout, "verify": verify, "cert": cert, "proxies": proxies}
        return around(real, self, request, options)

    setattr(RetryAdapter, "send", send)  # noqa: B010 - a type checker takes an assignment for a mistake
    try:
        yield
    finally:
        setattr(RetryAdapter, "send", real)  # noqa: B010
