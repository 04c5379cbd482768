"""The attempts of code under test, whoever made its adapters: logged, capped, or without retries."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from requests import PreparedRequest, Response

from ..adapter import RetryAdapter
from ..checks import most_attempts
from ..config.retry_options import OptionsBlock, current_options, retry_options
from ..errors import StopReason
from ..observing.history import AttemptRecord, RetryHistory, retry_history


@contextmanager
def _around_every_send(
    around: Callable[[Callable[[], Response], RetryAdapter, PreparedRequest], Response],
) -> Iterator[None]:
    """Put a function around every ``RetryAdapter.send`` of the process inside the block. Blocks nest."""
    real = RetryAdapter.send

    @functools.wraps(real)
    def send(self: RetryAdapter, request: PreparedRequest, *args: Any, **options: Any) -> Response:
        return around(lambda: real(self, request, *args, **options), self, request)

    with mock.patch.object(RetryAdapter, "send", send):
        yield


class AttemptLog:
    """The log of every operation of the process since the block was entered."""

    def __init__(self) -> None:
        self._histories: list[RetryHistory] = []

    @property
    def histories(self) -> list[RetryHistory]:
        """The history of each operation, in the order in which they ended: a copy."""
        return list(self._histories)

    @property
    def endings(self) -> list[int | str]:
        """The outcome of each attempt: a status, or the name of an exception."""
        records = [record for history in self.histories for record in history.attempts]
        return [record.error if record.status is None else record.status for record in records]  # type: ignore[misc]

    @property
    def delays(self) -> list[float]:
        """The seconds waited before each retry, also for a service that was down."""
        records = [record for history in self.histories for record in history.attempts if record.number > 1]
        return [record.delay + record.line_wait for record in records]

    def assert_endings(self, *expected: int | str) -> None:
        """Assert that these attempts were made, and no others.

        :param expected: a status or the name of an exception for each attempt, such as ``503, "ReadTimeout", 200``.
        :raises AssertionError: with the history of every operation.
        """
        if list(expected) != self.endings:
            raise AssertionError(f"expected attempts {list(expected)}, got {self.endings}\n{self.explain()}")

    def assert_delays(self, *expected: float, within: float = 1e-9) -> None:
        """Assert that these waits were made before retries, and no others.

        :param expected: seconds for each retry. Delays are random unless the adapter has ``jitter="none"``.
        :param within: the tolerance of each, in seconds.
        :raises AssertionError: with the history of every operation.
        """
        delays = self.delays
        close = all(abs(wanted - got) <= within for wanted, got in zip(expected, delays, strict=False))
        if len(expected) != len(delays) or not close:
            raise AssertionError(f"expected delays {list(expected)}, got {delays}\n{self.explain()}")

    def explain(self) -> str:
        """Return the history of every operation as text."""
        return "\n".join(history.explain() for history in self.histories) or "no operation was made"

    def __len__(self) -> int:
        """Return the number of attempts."""
        return len(self.endings)


@contextmanager
def watched_attempts() -> Iterator[AttemptLog]:
    """Log every operation of every ``RetryAdapter`` of the process inside the block, in every thread.

    >>> with watched_attempts() as log:
    ...     pass
    >>> log.assert_endings()
    """
    log = AttemptLog()

    def around(send: Callable[[], Response], adapter: RetryAdapter, _: object) -> Response:
        try:
            response = send()
        except Exception as error:
            log._histories.append(retry_history(error) or _of_the_program(error, adapter))
            raise
        log._histories += filter(None, [retry_history(response)])
        return response

    with _around_every_send(around):
        yield log


def _of_the_program(error: Exception, adapter: RetryAdapter) -> RetryHistory:
    """Make the history of an operation that a listener, a classifier or the like ended, which has no record."""
    record = AttemptRecord(1, adapter.clock.wall(), None, error=type(error).__name__)
    return RetryHistory(None, (record,), StopReason.REQUEST_FAULT, "the program's own code raised it")


@contextmanager
def retries_disabled() -> Iterator[None]:
    """Make every ``RetryAdapter`` of the process send each request once in the block, in every thread."""

    def around(send: Callable[[], Response], *_: object) -> Response:
        with retry_options(enabled=False):
            return send()

    with _around_every_send(around):
        yield


@contextmanager
def cap_attempts(most: int) -> Iterator[None]:
    """Limit the attempts of every operation of the process inside the block, in every thread.

    Each operation behaves as if it had ``max_attempts=most``, unless its own limit is lower.

    :param most: the limit, 1 or more.
    :raises ValueError: for a limit below 1.
    """
    if most < 1:
        raise ValueError(f"most={most!r}: a whole number of 1 or more is allowed")

    def around(send: Callable[[], Response], adapter: RetryAdapter, _: object) -> Response:
        around = current_options.get()
        configured = around.max_attempts or most_attempts(adapter.strategy) or most
        with OptionsBlock({"max_attempts": min(most, configured)}, adapter.clock):
            return send()

    with _around_every_send(around):
        yield
