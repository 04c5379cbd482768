"""What an operation came to, judged from what both ends say of it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from .plan import Operation, digest

EMPTY = digest(b"")


class Verdict(enum.Enum):
    """One word for each operation."""

    SUCCEEDED = "succeeded"
    """The client was told that it went well, and both ends have the same bytes."""
    FAILED = "failed"
    """The client was told that it did not: a status from 400 on, or an exception."""
    WRONG = "wrong"
    """Somebody took other bytes for good than the other end had."""
    ASLEEP = "asleep"
    """Nothing had happened for so long that the client was ended."""
    MISSING = "missing"
    """It was not done."""


@dataclass(frozen=True)
class Told:
    """What the client said of an operation.

    :param sent: hash of the body that it was about to send.
    :param seconds: how long the call took; None while it goes on.
    :param status: of the response; None when there was an exception.
    :param body: hash of the response's body.
    :param error: name of the exception.
    """

    sent: str
    seconds: float | None = None
    status: int | None = None
    body: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Result:
    """An operation's end.

    :param operation: which one.
    :param verdict: the word for it.
    :param requests: how many the server saw.
    :param seconds: how long it took, or had taken when the client was ended; None when it was not done.
    :param is_empty: the wrong body is an empty one.
    :param detail: the status, or the exception's name.
    """

    operation: Operation
    verdict: Verdict
    requests: int
    seconds: float | None = None
    is_empty: bool = False
    detail: str = ""


def judge(operation: Operation, told: Told, accepted: Sequence[str], requests: int) -> Result:
    """Judge an operation that came to its end.

    :param told: what the client says.
    :param accepted: hashes of the bodies that the server took as good.
    :param requests: how many the server saw.
    """
    went_well = told.status is not None and told.status < 400
    wrong = [body for body in accepted if body != told.sent]
    if went_well and told.body is not None and told.body != digest(operation.download()):
        wrong.append(told.body)
    verdict = Verdict.WRONG if wrong else Verdict.SUCCEEDED if went_well else Verdict.FAILED
    detail = str(told.status) if told.error is None else told.error
    return Result(operation, verdict, requests, told.seconds, EMPTY in wrong, detail)
