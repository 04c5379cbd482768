"""What a retry answers, as far as its price goes: what :mod:`payoff_quota` charges by. Pure."""

from __future__ import annotations

from ..actions import ErrorKind, RetryReason
from ..outcome import Outcome
from ..payoff_quota import RetryCause


def cause_of(reason: RetryReason, outcome: Outcome) -> RetryCause:
    """The cause that a retry's price goes by.

    :param reason: what the classifiers said.
    :param outcome: what the attempt ended with; an error before any byte was written is a failed connection.
    """
    if reason.kind is ErrorKind.THROTTLING:
        return RetryCause.THROTTLING
    if reason.timeout:
        return RetryCause.TIMEOUT
    if outcome.error is None:
        return RetryCause.ERROR
    unwritten = outcome.resend is not None and outcome.resend.unwritten
    if unwritten or isinstance(outcome.error, ConnectionRefusedError):
        return RetryCause.CONNECT
    return RetryCause.ERROR
