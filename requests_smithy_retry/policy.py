"""Policies of the smithy-kotlin retry design: what they see, what they may say, and the standard one. Values only.

The loop that asks a policy is in :mod:`policy_loop`. The names are those of that design.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from .actions import ErrorKind, NoActionIndicated, RetryIndicated, RetryReason
from .classification import classify
from .classifier import RetryClassifier, in_order
from .outcome import context_of

R_co = TypeVar("R_co", covariant=True)
R_contra = TypeVar("R_contra", contravariant=True)


class RetryErrorType(enum.Enum):
    """What sort of error was seen; a strategy may price and delay them differently."""

    ServerSide = "server side"
    ClientSide = "client side"
    Throttling = "throttling"
    Timeout = "timeout"


@dataclass(frozen=True, slots=True)
class Result(Generic[R_co]):
    """What a block of code came to: a value, or an exception.

    :param value: what it returned.
    :param error: what it raised; None if it returned.
    """

    value: R_co | None = None
    error: Exception | None = None

    @property
    def is_success(self) -> bool:
        """Whether it returned."""
        return self.error is None


class RetryDirective:
    """What a policy wants, one of three.

    >>> RetryDirective.RetryError(RetryErrorType.Throttling).reason
    <RetryErrorType.Throttling: 'throttling'>
    """

    __slots__ = ()

    TerminateAndSucceed: ClassVar[RetryDirective]
    """Hand the value on; None, where an exception is what was waited for."""
    TerminateAndFail: ClassVar[RetryDirective]
    """Raise the exception."""

    @staticmethod
    def RetryError(reason: RetryErrorType) -> RetryOnError:
        """Run the block again, if the strategy allows.

        :param reason: what sort of error it was.
        """
        return RetryOnError(reason)


@dataclass(frozen=True, slots=True)
class RetryOnError(RetryDirective):
    """Made by :meth:`RetryDirective.RetryError`."""

    reason: RetryErrorType


class _Terminate(RetryDirective, enum.Enum):
    SUCCEED = "terminate and succeed"
    FAIL = "terminate and fail"


RetryDirective.TerminateAndSucceed = _Terminate.SUCCEED
RetryDirective.TerminateAndFail = _Terminate.FAIL


class RetryPolicy(Protocol[R_contra]):
    """Judges each result of a block."""

    def evaluate(self, result: Result[R_contra], /) -> RetryDirective:
        """Say how to go on."""
        ...


class StandardRetryPolicy:
    """Any value is a success; an exception is judged by classifiers. Override :meth:`evaluate_other_exceptions`.

    :param classifiers: in place of the default ones.
    """

    def __init__(self, classifiers: Iterable[RetryClassifier] | None = None) -> None:
        if classifiers is None:
            # Imported here: only the default classifiers know an HTTP library.
            from .classifiers import default_classifiers

            classifiers = default_classifiers()
        self.classifiers: tuple[RetryClassifier, ...] = in_order(classifiers)

    def evaluate(self, result: Result[object], /) -> RetryDirective:
        """Judge a result."""
        if result.error is None:
            return RetryDirective.TerminateAndSucceed
        action = classify(self.classifiers, context_of(result.error).outcome).action
        if isinstance(action, RetryIndicated):
            return RetryDirective.RetryError(error_type_of(action.reason))
        other = self.evaluate_other_exceptions(result.error) if isinstance(action, NoActionIndicated) else None
        return RetryDirective.TerminateAndFail if other is None else other

    def evaluate_other_exceptions(self, error: Exception) -> RetryDirective | None:  # noqa: ARG002
        """What to do about an exception of which no classifier has an opinion; None: fail."""
        return None


def error_type_of(reason: RetryReason) -> RetryErrorType:
    """The design's word for a reason."""
    if reason.kind is ErrorKind.THROTTLING:
        return RetryErrorType.Throttling
    if reason.timeout:
        return RetryErrorType.Timeout
    return RetryErrorType.ClientSide if reason.kind is ErrorKind.CLIENT else RetryErrorType.ServerSide


def reason_of(error_type: RetryErrorType) -> RetryReason:
    """What a strategy is told for each of the design's words."""
    return {
        RetryErrorType.ServerSide: RetryReason(ErrorKind.SERVER),
        RetryErrorType.ClientSide: RetryReason(ErrorKind.CLIENT),
        RetryErrorType.Throttling: RetryReason(ErrorKind.THROTTLING),
        RetryErrorType.Timeout: RetryReason(ErrorKind.TRANSIENT, timeout=True),
    }[error_type]
