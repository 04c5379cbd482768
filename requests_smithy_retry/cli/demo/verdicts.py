"""The verdict on an operation, from the reports of both ends."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from .plan import Operation, digest

EMPTY = digest(b"")


class Verdict(enum.Enum):
    """The result of an operation in a word."""

    SUCCEEDED = "succeeded"
    """The client got a success, and both ends have the same bytes."""
    FAILED = "failed"
    """The client got a status of 400 or above, or an exception."""
    WRONG = "wrong"
    """One end accepted other bytes than the other end sent."""
    ASLEEP = "asleep"
    """The client did nothing for so long that it was ended."""
    MISSING = "missing"
    """The operation was not made."""


@dataclass(frozen=True)
class Told:
    """The client's report on an operation.

    :param sent: the hash of the request's body.
    :param seconds: the duration of the call; None while it goes on.
    :param status: the response's status; None with an exception.
    :param body: the hash of the response's body.
    :param error: the name of the exception.
    """

    sent: str
    seconds: float | None = None
    status: int | None = None
    body: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Result:
    """The result of an operation.

    :param operation: the operation.
    :param verdict: the verdict.
    :param requests: the number of requests that the server saw.
    :param seconds: the duration, up to the end of the client if it was ended; None if the operation was not made.
    :param is_empty: True if a wrong body is empty.
    :param detail: the status, or the exception's name.
    """

    operation: Operation
    verdict: Verdict
    requests: int
    seconds: float | None = None
    is_empty: bool = False
    detail: str = ""


def judge(operation: Operation, told: Told, accepted: Sequence[str], requests: int) -> Result:
    """Judge a finished operation.

    :param told: the client's report.
    :param accepted: the hashes of the bodies that the server accepted.
    :param requests: the number of requests that the server saw.
    """
    went_well = told.status is not None and told.status < 400
    wrong = [body for body in accepted if body != told.sent]
    if went_well and told.body is not None and told.body != digest(operation.download()):
        wrong.append(told.body)
    verdict = Verdict.WRONG if wrong else Verdict.SUCCEEDED if went_well else Verdict.FAILED
    detail = str(told.status) if told.error is None else told.error
    return Result(operation, verdict, requests, told.seconds, EMPTY in wrong, detail)
