"""How the public interface is used, for the type checkers; nothing here is run."""

from __future__ import annotations

import requests
from requests import PreparedRequest, Response

from requests_smithy_retry import (
    ErrorKind,
    ErrorRetryInfo,
    HasFault,
    Outcome,
    RetryAction,
    RetryAdapter,
    RetryConfig,
    RetryHistory,
    RetryReason,
    RetryStrategy,
    StandardRetryStrategy,
    TokenBucket,
    classifier,
    mount,
    retry_history,
    retry_options,
)


class MySession(requests.Session):
    """A session of somebody's own."""


def mounting_keeps_the_session_type() -> MySession:
    """What is mounted on comes back as what it is."""
    return mount(MySession(), max_attempts=5, mode="standard", quota=None)


def adapters_take_what_http_adapter_takes() -> list[RetryAdapter]:
    """Positions and names are those of ``HTTPAdapter``; the options follow."""
    return [
        RetryAdapter(10, 10, 3, True),
        RetryAdapter(pool_maxsize=1, max_retries=False),
        RetryAdapter(config=RetryConfig(max_attempts=2)),
        RetryAdapter(strategy=StandardRetryStrategy(quota=TokenBucket())),
        RetryAdapter(scope=scope, error_parser=parse_error, classifiers=[also_teapots], timeout=(1, None)),
    ]


def scope(request: PreparedRequest) -> str:
    """A scope of one's own."""
    return str(request.url)


def parse_error(response: Response) -> Exception | None:
    """A parser of errors."""
    return Throttled() if response.status_code == 420 else None


@classifier
def also_teapots(outcome: Outcome) -> RetryAction | None:
    """A function as a classifier."""
    return RetryAction.transient_error() if outcome.status == 418 else None


class Throttled(Exception):
    """An error that knows about retries, with no base class of ours."""

    is_retry_safe: bool | None = True
    retry_after: float | None = 1.0
    is_throttling_error: bool = True
    is_timeout_error: bool = False

    @property
    def fault(self) -> str | None:
        """Whose fault it is."""
        return "server"


def protocols_are_met() -> tuple[ErrorRetryInfo, RetryStrategy]:
    """Ours and other people's objects meet the protocols."""
    return Throttled(), StandardRetryStrategy()


def faults(error: Exception) -> str | None:
    """Protocols can be asked at run time."""
    return error.fault if isinstance(error, HasFault) else None


def driven_by_hand(strategy: RetryStrategy, error: Exception) -> float:
    """The three methods, around any block of code."""
    token = strategy.acquire_initial_retry_token(token_scope="jobs")
    token = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
    strategy.record_success(token=token)
    return token.retry_delay


def history_of(response: Response) -> list[tuple[int, int | None, str | None]]:
    """The record of an operation."""
    history: RetryHistory | None = retry_history(response)
    return [] if history is None else [(each.number, each.status, each.error) for each in history.attempts]


def for_one_call(session: requests.Session) -> Response:
    """Options of one operation."""
    with retry_options(max_attempts=1, idempotent=True):
        return session.get("https://api.example.com/")


REASON: RetryReason = RetryReason(ErrorKind.THROTTLING, retry_after=2.0)
