"""The two published sets of numbers (contract 6.2, 7.1), as data. Nothing branches on a version."""

from __future__ import annotations

from typing import NamedTuple


class RetryNumbers(NamedTuple):
    """The numbers of one published specification.

    :param initial_backoff: backoff base after a transient failure, in seconds.
    :param throttling_backoff: backoff base after throttling, in seconds.
    :param retry_cost: tokens that a retry takes.
    :param throttling_cost: tokens that a retry after throttling takes.
    :param timeout_cost: tokens that a retry after a client-side timeout takes.
    """

    initial_backoff: float
    throttling_backoff: float
    retry_cost: int
    throttling_cost: int
    timeout_cost: int


RETRY_SPECS = {
    "2.1": RetryNumbers(0.05, 1.0, retry_cost=14, throttling_cost=5, timeout_cost=14),
    "2.0": RetryNumbers(1.0, 1.0, retry_cost=5, throttling_cost=5, timeout_cost=10),
}
"""By the value of the option ``retry_spec``."""
