"""A server's own word on a retry (contract 3.4): "no" forbids it, "yes" indicates it, "slow down" makes it wait."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import replace

from ..classifiers.actions import NO_ACTION, ErrorKind, RetryAction, RetryIndicated
from ..classifiers.outcome import Outcome
from ..classifiers.protocol import RetryClassifier, RetryClassifierPriority
from ..clock import Clock
from ..config.retry_config import RetryConfig
from ..core.port import Feature


class Says(enum.Enum):
    """The meaning of a header."""

    NO = "no"
    SLOW_DOWN = "slow down"
    YES = "yes"


_flag: Callable[[str], Says | None] = {"true": Says.YES, "false": Says.NO}.get


def _dropped(_: str) -> Says:
    """Envoy dropped the request, and does not retry it itself. The client may, after a while."""
    return Says.SLOW_DOWN


def _pushed_back(value: str) -> Says | None:
    return Says.NO if re.fullmatch("-0*[1-9][0-9]*", value) else None


MEANINGS: dict[str, Callable[[str], Says | None]] = {
    "x-should-retry": _flag,
    "stripe-should-retry": _flag,
    "grpc-retry-pushback-ms": _pushed_back,
    "x-envoy-overloaded": _dropped,
    "x-envoy-ratelimited": _dropped,
}
"""By header: a function that returns the meaning of a value in lower case, or None."""


class ServerVerdictClassifier:
    """Follows what the server itself says about a retry; of several headers, the first in :class:`Says`."""

    name = "ServerVerdictClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.run_after(
        RetryClassifierPriority.aws_error_code_classifier()
    )

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        """Judge by the headers. "Yes" leaves a retry that is indicated as it is; "slow down" changes its kind."""
        if outcome.response is None:
            return NO_ACTION
        headers = outcome.response.headers
        said: dict[Says | None, str] = {}
        for header, meaning in MEANINGS.items():
            if header in headers:
                said[meaning(str(headers[header]).strip().lower())] = header
        if Says.NO in said:
            return RetryAction.retry_forbidden(f"the server said so ({said[Says.NO]})")
        if isinstance(previous, RetryIndicated):
            is_dropped = Says.SLOW_DOWN in said and previous.reason.kind is not ErrorKind.THROTTLING
            return RetryIndicated(replace(previous.reason, kind=ErrorKind.THROTTLING)) if is_dropped else NO_ACTION
        if Says.YES not in said:
            return NO_ACTION
        return RetryAction.client_error() if outcome.response.status_code < 500 else RetryAction.server_error()


class ServerVerdicts(Feature):
    """The classifier, as one of the default ones."""

    def classifiers(self, config: RetryConfig) -> tuple[RetryClassifier, ...]:
        """Return it, unless a urllib3 ``Retry`` says what is retried."""
        return (ServerVerdictClassifier(),) if config.rules is None else ()


def feature(config: RetryConfig, clock: Clock) -> ServerVerdicts:
    return ServerVerdicts()
