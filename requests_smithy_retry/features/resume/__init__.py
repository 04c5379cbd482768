"""Bodies that resume where they broke off (contract 14.6), whether an attempt or the caller reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from requests import Response

from ...clock import Clock
from ...config.retry_config import RetryConfig
from ...core.port import Feature
from ...core.server_hints import names_in

if TYPE_CHECKING:
    from ...core.call import Call
    from ...core.port import Send


FIELDS = frozenset({"etag", "last-modified", "content-range"})
"""The fields without which no body is continued, or known to be a part."""


class Resume(Feature):
    """The seam: the body of a success is watched if it may be continued, or if a listener follows it."""

    def around(self, send: Send, call: Call) -> Response:
        """Watch a body, if there is reason to; or receive the rest of one."""
        response = send(call)
        if response.status_code < 400 and call.rest is None:
            is_heard = call.observed is not None and call.observed.heard is not None
            if call.stream or is_heard or not FIELDS.isdisjoint(names_in(response.headers)):
                from .mending import watch_body  # many programs get no body that could be continued

                watch_body(call, response)
        return response


def feature(config: RetryConfig, clock: Clock) -> Resume:
    return Resume()
