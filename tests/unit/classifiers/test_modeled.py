"""Errors that say themselves whether they may be retried (contract 3.4; the smithy-python design)."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from requests_smithy_retry import ErrorKind, ErrorRetryInfo, Outcome, RetryAction, RetryReason
from requests_smithy_retry.classifiers import ModeledAsRetryableClassifier, RetryForbidden
from tests.support import scripted, send
from tests.unit.classifiers.test_http_status import outcome_of

NOTHING = RetryAction.no_action_indicated()
FORBIDDEN = RetryForbidden("Info says that a retry is not safe")


class Info(Exception):
    """An error with all that the two protocols ask for."""

    def __init__(
        self, safe: Any, after: Any = None, *, throttling: Any = False, timeout: Any = False, fault: Any = None
    ):
        super().__init__("modelled")
        self.is_retry_safe, self.retry_after, self.fault = safe, after, fault
        self.is_throttling_error, self.is_timeout_error = throttling, timeout


class Faulty(Exception):
    """An error with a fault and nothing else."""

    def __init__(self, fault: Any) -> None:
        super().__init__("faulty")
        self.fault = fault


def indicated(kind: ErrorKind, after: float | None = None, *, safe: bool = True, timeout: bool = False) -> RetryAction:
    """A retry that an error indicates itself."""
    source = None if after is None else "error"
    return RetryAction.retry_indicated(RetryReason(kind, after, source, not_applied=safe, timeout=timeout))


class Bare(Exception, ErrorRetryInfo):
    """Derives from the protocol and sets what differs."""

    is_retry_safe = True


class Older(Exception):
    """An error of the older smithy-python design, before time-outs were told apart."""

    is_retry_safe: bool | None = True
    retry_after: float | None = 2.0
    is_throttling_error: bool = True


class Safe(Exception):
    """Says that it is safe, and nothing else."""

    is_retry_safe = True


FLOORS = [
    *((2, 2.0), (0, 0.0), (Decimal("1.5"), 1.5), (Fraction(3, 2), 1.5), (timedelta(minutes=2), 120.0)),
    *(("7", 7.0), (" 0.5 ", 0.5), (10**400, 1e15)),
]
NO_FLOORS = [-1, math.inf, math.nan, "soon", "nan", "-1", True, 1j, Decimal("nan"), timedelta(seconds=-1), [1]]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Info(True), indicated(ErrorKind.TRANSIENT)),
        *((Info(True, after), indicated(ErrorKind.TRANSIENT, floor)) for after, floor in FLOORS),
        *((Info(True, after), indicated(ErrorKind.TRANSIENT)) for after in NO_FLOORS),
        (Info(True, throttling=True), indicated(ErrorKind.THROTTLING)),
        (Info(True, timeout=True), indicated(ErrorKind.TRANSIENT, timeout=True)),
        *((error, NOTHING) for error in (Info(None), Info(None, throttling=True), Info(None, fault="client"))),
        (Info(None, 3, fault="server"), indicated(ErrorKind.SERVER, 3.0, safe=False)),
        (Info(True, fault="client"), indicated(ErrorKind.TRANSIENT)),
        *((Info(False, fault=fault), FORBIDDEN) for fault in (None, "server", "client")),
        (Faulty("server"), indicated(ErrorKind.SERVER, safe=False)),
        *((error, NOTHING) for error in (Faulty("client"), Faulty(None), RuntimeError(), None)),
        (Bare(), indicated(ErrorKind.TRANSIENT)),
        (Older(), indicated(ErrorKind.THROTTLING, 2.0)),
        (Safe(), indicated(ErrorKind.TRANSIENT)),
    ],
)
def test_what_an_error_says_of_itself(error: Any, expected: RetryAction) -> None:
    """Safe is a retry, unsafe forbids one, None is no opinion but for a server's fault; only seconds are a floor."""
    assert ModeledAsRetryableClassifier().classify_retry(Outcome(error=error), NOTHING) == expected


def test_what_an_error_leaves_unsaid_has_its_default() -> None:
    """The protocol's own attributes are those defaults."""
    names = ("is_retry_safe", "retry_after", "is_throttling_error", "is_timeout_error")
    assert [None, None, False, False] == [getattr(ErrorRetryInfo, name) for name in names]


def test_the_error_parser_makes_an_error_from_a_response() -> None:
    """The parser is asked about failures alone, and may return None."""
    asked = []

    def parse(response: Any) -> Exception | None:
        asked.append(response.status_code)
        return Info(True) if response.status_code == 418 else None

    ask = ModeledAsRetryableClassifier(parse).classify_retry
    assert ask(outcome_of(418), NOTHING) == indicated(ErrorKind.TRANSIENT)
    assert ask(outcome_of(404), NOTHING) == NOTHING
    assert ask(outcome_of(200), NOTHING) == NOTHING
    assert asked == [418, 404]
    assert ModeledAsRetryableClassifier().classify_retry(outcome_of(418), NOTHING) == NOTHING


def test_an_error_that_carries_a_response_speaks_for_itself_first() -> None:
    """Only an error with no modelled facts of its own leaves the response to the parser."""
    ask = ModeledAsRetryableClassifier(lambda response: Info(True)).classify_retry
    response = outcome_of(418).response
    assert ask(Outcome(error=Faulty("client"), response=response), NOTHING) == NOTHING
    assert ask(Outcome(error=RuntimeError(), response=response), NOTHING) == indicated(ErrorKind.TRANSIENT)
    assert ask(Outcome(error=Older(), response=response), NOTHING) == indicated(ErrorKind.THROTTLING, 2.0)


@pytest.mark.parametrize(
    ("error", "statuses"),
    [(Info(True), [418, 200]), (Info(None, fault="server"), [418]), (Info(False), [418]), (None, [418])],
)
def test_a_post_is_sent_again_only_where_the_modelled_error_says_safe(error: Any, statuses: list[int]) -> None:
    """Contract 4.2: safe=True means that the server did not act on it."""
    adapter = scripted(*statuses, classifiers=[ModeledAsRetryableClassifier(lambda response: error)])
    assert send(adapter, "POST").status_code == statuses[-1]


def test_a_parser_that_returns_no_exception_is_a_bug() -> None:
    """Such a bug raises, as does a classifier that returns no verdict."""
    with pytest.raises(TypeError, match=r"^error_parser returned {'code': 7}: an exception or None is allowed$"):
        send(scripted(400, classifiers=[ModeledAsRetryableClassifier(lambda response: {"code": 7})]))
