"""Transient faults (contract 3.4); for the exceptions see test_transport_faults.py."""

from __future__ import annotations

import requests

from requests_smithy_retry import ErrorKind, Outcome, RetryAction, RetryReason, TransientErrorClassifier
from tests.support import read_timeout, reset_error

NOTHING = RetryAction.no_action_indicated()


def test_a_passing_fault_is_transient_and_says_whether_it_was_a_timeout() -> None:
    """A timeout may have a price of its own (contract 6.2)."""
    ask = TransientErrorClassifier().classify_retry
    assert ask(Outcome(error=reset_error()), NOTHING) == RetryAction.transient_error()
    assert ask(Outcome(error=read_timeout()), NOTHING) == RetryAction.retry_indicated(
        RetryReason(ErrorKind.TRANSIENT, timeout=True)
    )


def test_there_is_no_opinion_on_anything_else() -> None:
    """A response, or an exception that is no fault of the wire."""
    ask = TransientErrorClassifier().classify_retry
    assert ask(Outcome(response=requests.Response()), NOTHING) == NOTHING
    assert ask(Outcome(error=RuntimeError()), NOTHING) == NOTHING
