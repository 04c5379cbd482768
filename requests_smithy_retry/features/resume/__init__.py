"""Bodies that go on where they broke off (contract 14.6), whether an attempt reads them or their caller does."""

from __future__ import annotations

from requests import PreparedRequest, Response

from ...clock import Clock
from ...config.retry_config import RetryConfig
from ...core.driver import Driver
from ...core.plan import Call
from ...core.port import Feature
from ...core.scope import Scope


class Resume(Feature):
    """The hook: the body of a success is watched where it may be continued, or where listeners hear of it."""

    hears: frozenset[str] | None = frozenset({"etag", "last-modified"})

    def received(self, driver: Driver, call: Call, request: PreparedRequest, response: Response, scope: Scope) -> None:
        """Have a body watched, if there is reason to. What brings the rest of one is received as such."""
        if response.status_code < 400 and call.receives is None:
            from .mending import watch_body  # many programs get no body that could be continued

            watch_body(driver, call, request, response)


def feature(config: RetryConfig, clock: Clock) -> Resume:
    return Resume()
