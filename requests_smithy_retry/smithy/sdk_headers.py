"""The headers by which AWS services count the attempts of an operation, as a listener (Retries 2.0)."""

from __future__ import annotations

from ..observing.events import BeforeAttempt
from ..observing.listeners import RetryListener

INVOCATION_ID = "amz-sdk-invocation-id"
REQUEST = "amz-sdk-request"


class SdkHeaders(RetryListener):
    """Sets ``amz-sdk-invocation-id`` (one UUID per operation) and ``amz-sdk-request: attempt=N; max=M``.

    The caller's own invocation id is kept. ``max`` is left out where no ``max_attempts`` is given.

    >>> from requests_smithy_retry import RetryAdapter, SdkHeaders
    >>> adapter = RetryAdapter(listeners=[SdkHeaders()])
    """

    def before_attempt(self, event: BeforeAttempt, /) -> None:
        """Set the headers on this attempt's copy of the request."""
        headers = event.request.headers
        headers.setdefault(INVOCATION_ID, event.operation.invocation_id)
        most = event.operation.max_attempts
        headers[REQUEST] = f"attempt={event.number}" + ("" if most is None else f"; max={most}")
