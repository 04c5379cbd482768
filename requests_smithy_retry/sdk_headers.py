"""The headers by which the AWS SDKs tell a server about retries (option ``sdk_headers``)."""

from __future__ import annotations

from .events import BeforeAttempt
from .listeners import RetryListener

INVOCATION_ID = "amz-sdk-invocation-id"
REQUEST = "amz-sdk-request"


class SdkHeaders(RetryListener):
    """Sets ``amz-sdk-invocation-id`` (one UUID per operation) and ``amz-sdk-request: attempt=N; max=M``.

    An invocation id that the caller set is kept. Where the strategy does not say how many attempts there may be,
    ``max`` is left out.
    """

    def before_attempt(self, event: BeforeAttempt, /) -> None:
        """Set the headers on this attempt's copy."""
        headers = event.request.headers
        headers.setdefault(INVOCATION_ID, event.operation.invocation_id)
        most = event.operation.max_attempts
        headers[REQUEST] = f"attempt={event.number}" + ("" if most is None else f"; max={most}")


SDK_HEADERS = SdkHeaders()
"""It remembers nothing, so one is enough."""
