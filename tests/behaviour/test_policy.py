"""Policies of the smithy-kotlin design: values and the standard policy."""

from __future__ import annotations

from typing import Any

import pytest

from requests_smithy_retry import ErrorKind, RetryAction, RetryReason, classifier
from requests_smithy_retry.policy import (
    Result,
    RetryDirective,
    RetryErrorType,
    StandardRetryPolicy,
    error_type_of,
    reason_of,
)
from tests.unit.classifiers.test_modeled import Faulty, Info

SUCCEED, FAIL = RetryDirective.TerminateAndSucceed, RetryDirective.TerminateAndFail


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, SUCCEED),
        (Info(True, throttling=True), RetryDirective.RetryError(RetryErrorType.Throttling)),
        (Info(True, timeout=True), RetryDirective.RetryError(RetryErrorType.Timeout)),
        (Info(True), RetryDirective.RetryError(RetryErrorType.ServerSide)),
        (Info(True, fault="client"), RetryDirective.RetryError(RetryErrorType.ClientSide)),
        (Info(True, throttling=True, fault="client"), RetryDirective.RetryError(RetryErrorType.Throttling)),
        (Info(False), FAIL),
        (Info(None), FAIL),
        (Faulty("server"), RetryDirective.RetryError(RetryErrorType.ServerSide)),
        (Faulty("client"), FAIL),
        (TimeoutError(), RetryDirective.RetryError(RetryErrorType.Timeout)),
        (ConnectionResetError(), RetryDirective.RetryError(RetryErrorType.ServerSide)),
        (RuntimeError(), FAIL),
    ],
)
def test_the_standard_policy(error: Any, expected: RetryDirective) -> None:
    """A value is a success, None as well; an exception is judged by the default classifiers."""
    assert (error is None, expected) == (
        Result(error=error).is_success,
        StandardRetryPolicy().evaluate(Result(error=error)),
    )
    assert StandardRetryPolicy().evaluate(Result(value=1)) is SUCCEED


def test_its_classifiers_can_be_replaced_and_its_last_word_overridden() -> None:
    """A subclass judges what no classifier has an opinion of, and nothing that one forbade."""

    class Mine(StandardRetryPolicy):
        def evaluate_other_exceptions(self, error: Exception) -> RetryDirective | None:
            return None if isinstance(error, LookupError) else RetryDirective.RetryError(RetryErrorType.ClientSide)

    assert Mine().evaluate(Result(error=RuntimeError())) == RetryDirective.RetryError(RetryErrorType.ClientSide)
    assert Mine().evaluate(Result(error=LookupError())) is FAIL
    assert Mine().evaluate(Result(error=Info(False))) is FAIL
    expired = classifier(lambda outcome: RetryAction.client_error())
    assert StandardRetryPolicy([expired]).evaluate(Result(error=RuntimeError())) == RetryDirective.RetryError(
        RetryErrorType.ClientSide
    )


def test_the_words_of_the_two_designs() -> None:
    """Each error type has a reason, and the reason leads back to it."""
    assert {error_type: reason_of(error_type) for error_type in RetryErrorType} == {
        RetryErrorType.ServerSide: RetryReason(ErrorKind.SERVER),
        RetryErrorType.ClientSide: RetryReason(ErrorKind.CLIENT),
        RetryErrorType.Throttling: RetryReason(ErrorKind.THROTTLING),
        RetryErrorType.Timeout: RetryReason(ErrorKind.TRANSIENT, timeout=True),
    }
    assert [error_type_of(reason_of(error_type)) for error_type in RetryErrorType] == list(RetryErrorType)
    assert [error_type.value for error_type in RetryErrorType] == [
        "server side",
        "client side",
        "throttling",
        "timeout",
    ]
