"""Errors that say themselves whether they may be retried (contract 3.4; the smithy-python design)."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from requests_smithy_retry import (
    ErrorKind,
    ErrorRetryInfo,
    ModeledAsRetryableClassifier,
    Outcome,
    RetryAction,
    RetryForbidden,
    RetryReason,
)
from tests.support import scripted, send
from tests.unit.classifiers.test_http_status import outcome_of

NOTHING = RetryAction.no_action_indicated()


class Info(Exception):
    """An error with all that the two protocols ask for."""

    def __init__(
        self, safe: Any, after: Any = None, *, throttling: Any = False, timeout: Any = False, fault: Any = None
    ):
        super().__init__("modelled")
        self.is_retry_safe = safe
        self.retry_after = after
        self.is_throttling_error = throttling
        self.is_timeout_error = timeout
        self.fault = fault


class Faulty(Exception):
    """An error with a fault and nothing else."""

    def __init__(self, fault: Any) -> None:
        super().__init__("faulty")
        self.fault = fault


def indicated(kind: ErrorKind, after: float | None = None, *, safe: bool = True, timeout: bool = False) -> RetryAction:
    """A retry that an error indicates itself."""
    source = None if after is None else "error"
    return RetryAction.retry_indicated(RetryReason(kind, after, source, not_applied=safe, timeout=timeout))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Info(True), indicated(ErrorKind.TRANSIENT)),
        (Info(True, 2), indicated(ErrorKind.TRANSIENT, 2.0)),
        (Info(True, 0), indicated(ErrorKind.TRANSIENT, 0.0)),
        (Info(True, throttling=True), indicated(ErrorKind.THROTTLING)),
        (Info(True, timeout=True), indicated(ErrorKind.TRANSIENT, timeout=True)),
        (Info(True, -1), indicated(ErrorKind.TRANSIENT)),
        (Info(True, float("inf")), indicated(ErrorKind.TRANSIENT)),
        (Info(True, float("nan")), indicated(ErrorKind.TRANSIENT)),
        (Info(True, "soon"), indicated(ErrorKind.TRANSIENT)),
        (Info(None), NOTHING),
        (Info(None, throttling=True), NOTHING),
        (Info(None, fault="client"), NOTHING),
        (Info(None, 3, fault="server"), indicated(ErrorKind.SERVER, 3.0, safe=False)),
        (Info(True, fault="client"), indicated(ErrorKind.TRANSIENT)),
        (Faulty("server"), indicated(ErrorKind.SERVER, safe=False)),
        (Faulty("client"), NOTHING),
        (Faulty(None), NOTHING),
        (RuntimeError(), NOTHING),
        (None, NOTHING),
    ],
)
def test_what_an_error_says_of_itself(error: Any, expected: RetryAction) -> None:
    """Safe is a retry, None is no opinion unless the server is at fault; only a sensible number is a floor."""
    assert ModeledAsRetryableClassifier().classify_retry(Outcome(error=error), NOTHING) == expected


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


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Bare(), indicated(ErrorKind.TRANSIENT)),
        (Older(), indicated(ErrorKind.THROTTLING, 2.0)),
        (Safe(), indicated(ErrorKind.TRANSIENT)),
        (Info(True, 10**400), indicated(ErrorKind.TRANSIENT, 1e15)),
    ],
)
def test_what_an_error_leaves_unsaid_has_its_default(error: Any, expected: RetryAction) -> None:
    """An error need not have every attribute to be judged; a number past all sense is just a very large one."""
    assert ModeledAsRetryableClassifier().classify_retry(Outcome(error=error), NOTHING) == expected
    assert (None, None, False, False) == (
        ErrorRetryInfo.is_retry_safe,
        ErrorRetryInfo.retry_after,
        ErrorRetryInfo.is_throttling_error,
        ErrorRetryInfo.is_timeout_error,
    )


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


@pytest.mark.parametrize(
    ("after", "floor"),
    [
        (Decimal("1.5"), 1.5),
        (Fraction(3, 2), 1.5),
        (timedelta(minutes=2), 120.0),
        ("7", 7.0),
        (" 0.5 ", 0.5),
        (10**400, 1e15),
        ("soon", None),
        ("nan", None),
        ("-1", None),
        (True, None),
        (1j, None),
        (Decimal("nan"), None),
        (timedelta(seconds=-1), None),
        ([1], None),
    ],
)
def test_a_floor_may_be_any_number_of_seconds(after: object, floor: float | None) -> None:
    """A floor may be a text or a timedelta; a value that is not a number of seconds means no floor."""
    assert indicated(ErrorKind.TRANSIENT, floor) == ModeledAsRetryableClassifier().classify_retry(
        Outcome(error=Info(True, after)), NOTHING
    )


@pytest.mark.parametrize("fault", [None, "server", "client"])
def test_an_error_that_is_not_safe_forbids(fault: Any) -> None:
    """The classifier forbids a retry with every ``fault``: the server's, the client's or unknown."""
    verdict = ModeledAsRetryableClassifier().classify_retry(Outcome(error=Info(False, fault=fault)), NOTHING)
    assert verdict == RetryForbidden("Info says that a retry is not safe")


def test_a_parser_that_returns_no_exception_is_a_bug() -> None:
    """Such a bug raises, as does a classifier that returns no verdict."""
    with pytest.raises(TypeError, match=r"^error_parser returned {'code': 7}: an exception or None is allowed$"):
        send(scripted(400, classifiers=[ModeledAsRetryableClassifier(lambda response: {"code": 7})]))
