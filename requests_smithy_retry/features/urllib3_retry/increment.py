"""The ``increment`` of a translated urllib3 ``Retry``, called as urllib3 would call it (contract 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from urllib3.exceptions import HTTPError, MaxRetryError
from urllib3.response import HTTPResponse

from ...interruptions import causes
from ...observing.listeners import RetryListener

if TYPE_CHECKING:
    from urllib3.util.retry import Retry

    from ...observing.events import AfterAttempt, GaveUp, ObservedOperation, RetryScheduled


@dataclass
class Latest:
    """The latest attempt of an operation, and the ``Retry`` that the ``increment`` before it returned."""

    retry: Retry
    response: HTTPResponse | None = None
    error: BaseException | None = None


class OwnIncrement(RetryListener):
    """Calls ``increment`` after each failure that is retried, and after the one that no retry is left for.

    Each operation begins with the given ``Retry`` and goes on with what ``increment`` returns. Attempts are counted by
    the strategy, so what urllib3's own method raises where it would retry no more changes nothing. Any other exception
    reaches the caller.
    """

    def __init__(self, retry: Retry) -> None:
        self.retry = retry

    def after_attempt(self, event: AfterAttempt, /) -> None:
        latest = event.operation.data.setdefault(self, Latest(self.retry))
        raw = getattr(event.response, "raw", None)
        latest.response = raw if isinstance(raw, HTTPResponse) else None
        found = () if event.error is None else causes(event.error)
        known = (each for each in found if isinstance(each, HTTPError) and not isinstance(each, MaxRetryError))
        latest.error = next(known, event.error)

    def retry_scheduled(self, event: RetryScheduled, /) -> None:
        self._increment(event.operation)

    def gave_up(self, event: GaveUp, /) -> None:
        self._increment(event.operation)

    def _increment(self, operation: ObservedOperation) -> None:
        latest: Latest | None = operation.data.get(self)
        if latest is None:  # not even the first attempt was made
            return
        error: Any = latest.error
        trace = None if error is None else error.__traceback__
        try:
            pool = _pool_of(latest) or operation.adapter.poolmanager.connection_from_url(operation.request.url)
            latest.retry = latest.retry.increment(
                operation.method, operation.request.path_url, latest.response, error, pool, trace
            )
        except HTTPError:
            return


def _pool_of(latest: Latest) -> Any:
    """Return the pool that an attempt was made by, if its end knows it."""
    if latest.error is None:
        return getattr(latest.response, "_pool", None)
    return vars(latest.error).get("pool")  # not the property of that name, which urllib3 warns of
