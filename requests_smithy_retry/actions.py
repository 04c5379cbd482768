"""What a classifier can say (contract 3.1): values only, no rule lives here.

A verdict is one of three: no action indicated, retry indicated (with a reason), retry forbidden. The union is
closed: nothing else may subclass :class:`RetryAction`. The vocabulary is that of the user-configurable retry
classification RFC.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from .finite import is_finite, shown
from .stop_reason import StopReason


class ErrorKind(enum.Enum):
    """What sort of failure a retry would answer; it chooses the backoff base and the price of the retry."""

    TRANSIENT = "transient"
    """A passing fault: a timeout, a reset, a cut body, a 503."""
    THROTTLING = "throttling"
    """The server said: too many requests. It did not act on this one."""
    SERVER = "server"
    """The server is at fault, and nothing more is known."""
    CLIENT = "client"
    """The client is at fault, and yet a retry may help (an expired token, say)."""


@dataclass(frozen=True, slots=True)
class RetryReason:
    """Why a retry is indicated.

    :param kind: the sort of failure.
    :param retry_after: a floor for the delay in seconds, or None.
    :param retry_after_source: where the floor came from (a header's name, ``"error"``, ...), for the history.
    :param not_applied: the server is known not to have acted on the request, so that even a request that is not
        idempotent may be sent again (contract 4.2).
    :param timeout: nobody answered in time, as the client saw it; such a retry may have a price of its own.
    """

    kind: ErrorKind
    retry_after: float | None = None
    retry_after_source: str | None = None
    not_applied: bool = False
    timeout: bool = False


class RetryAction:
    """A classifier's verdict. Make one with the constructors below.

    >>> RetryAction.throttling_error()
    RetryIndicated(kind=throttling)
    >>> RetryAction.retryable_error_with_explicit_delay(ErrorKind.TRANSIENT, 1.5)
    RetryIndicated(kind=transient, retry_after=1.5)
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        if cls.__module__ != __name__:
            raise TypeError("RetryAction is a closed union: no action indicated, retry indicated, retry forbidden")

    @staticmethod
    def no_action_indicated() -> NoActionIndicated:
        """No opinion: the verdict so far stands."""
        return NO_ACTION

    @staticmethod
    def retry_forbidden(why: str | None = None) -> RetryForbidden:
        """End the classification: this must not be retried, whatever others say.

        :param why: one phrase for the history and the stop reason.
        """
        return RetryForbidden(why)

    @staticmethod
    def retry_indicated(reason: RetryReason) -> RetryIndicated:
        """A retry is indicated, for this reason."""
        return RetryIndicated(reason)

    @staticmethod
    def retryable_error(kind: ErrorKind) -> RetryIndicated:
        """A retry is indicated, for an error of this kind."""
        return RetryIndicated(RetryReason(kind))

    @staticmethod
    def retryable_error_with_explicit_delay(kind: ErrorKind, retry_after: float) -> RetryIndicated:
        """A retry is indicated, and not before ``retry_after`` seconds have passed.

        :raises ValueError: if the delay is not a finite number of seconds from 0 on.
        """
        if not is_finite(retry_after) or retry_after < 0:
            raise ValueError(f"retry_after={shown(retry_after)}: a finite number of seconds from 0 on is allowed")
        return RetryIndicated(RetryReason(kind, float(retry_after), "classifier"))

    @staticmethod
    def transient_error() -> RetryIndicated:
        """A retry is indicated, because of a passing fault."""
        return RetryIndicated(RetryReason(ErrorKind.TRANSIENT))

    @staticmethod
    def throttling_error() -> RetryIndicated:
        """A retry is indicated, because the server asked for fewer requests."""
        return RetryIndicated(RetryReason(ErrorKind.THROTTLING))

    @staticmethod
    def server_error() -> RetryIndicated:
        """A retry is indicated, because the server is at fault."""
        return RetryIndicated(RetryReason(ErrorKind.SERVER))

    @staticmethod
    def client_error() -> RetryIndicated:
        """A retry is indicated, although the client is at fault."""
        return RetryIndicated(RetryReason(ErrorKind.CLIENT))


class NoActionIndicated(RetryAction):
    """No opinion. Where every classifier says so, there is no retry."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NoActionIndicated()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoActionIndicated)

    def __hash__(self) -> int:
        return hash(NoActionIndicated)


@dataclass(frozen=True, slots=True, repr=False)
class RetryIndicated(RetryAction):
    """A retry is indicated for a reason. It is made only if the other rules allow it (contract 2.6)."""

    reason: RetryReason

    def __repr__(self) -> str:
        after = "" if self.reason.retry_after is None else f", retry_after={self.reason.retry_after:g}"
        return f"RetryIndicated(kind={self.reason.kind.value}{after})"


@dataclass(frozen=True, slots=True)
class RetryForbidden(RetryAction):
    """No retry, whatever others say; ends the fold.

    :param why: one phrase for the history and the stop sentence.
    :param stop_reason: the name of the rule that forbids.
    """

    why: str | None = None
    stop_reason: StopReason = StopReason.FORBIDDEN


NO_ACTION = NoActionIndicated()
"""The only "no opinion" there needs to be."""
