"""The verdicts of a classifier (contract 3.2): no action indicated, retry indicated with a reason, retry forbidden.

The union is closed: nothing else may subclass :class:`RetryAction`. The vocabulary is that of the user-configurable
retry classification RFC.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from ..checks import is_finite, safe_repr
from ..errors import StopReason


class ErrorKind(enum.Enum):
    """The kind of failure; it determines the backoff base and the price of the retry."""

    TRANSIENT = "transient"
    """A passing fault: a timeout, a reset, a cut body, a 503."""
    THROTTLING = "throttling"
    """The server received too many requests, and did not act on this one."""
    SERVER = "server"
    """A server error about which nothing more is known."""
    CLIENT = "client"
    """A refusal of this one request, such as 409 or 423, which a retry may cure: the service works.

    With the default quota, such a retry costs nothing and no other operation waits for it; ``max_attempts`` bounds it.
    """


@dataclass(frozen=True)
class RetryReason:
    """The reason why a retry is indicated.

    :param kind: the kind of failure.
    :param retry_after: the shortest delay allowed, in seconds, 0 or more; None for no such floor.
    :param retry_after_source: where the floor came from (a header's name, ``"error"``, ...), for the history.
    :param not_applied: True if the server is known not to have acted on the request, so that even a request that is
        not idempotent may be sent again (contract 4.2).
    :param timeout: True for a client-side timeout; such a retry may have a price of its own.
    :raises TypeError: if the kind is not an :class:`ErrorKind`.
    :raises ValueError: if the floor is not a finite number of seconds, 0 or more.
    """

    kind: ErrorKind
    retry_after: float | None = None
    retry_after_source: str | None = None
    not_applied: bool = False
    timeout: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.kind, ErrorKind):
            kinds = ", ".join(f"ErrorKind.{kind.name}" for kind in ErrorKind)
            raise TypeError(f"kind={safe_repr(self.kind)}: one of {kinds} is allowed")
        after = self.retry_after
        if after is not None and (not is_finite(after) or after < 0):
            raise ValueError(f"retry_after={safe_repr(after)}: a finite number of seconds (0 or more) is allowed")


CLOSED = "RetryAction is a closed union: no action indicated, retry indicated, retry forbidden"


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
            raise TypeError(CLOSED)

    def __init__(self) -> None:
        raise TypeError(f"{CLOSED}. Make one with a constructor, such as RetryAction.no_action_indicated()")

    @staticmethod
    def no_action_indicated() -> NoActionIndicated:
        """Return "no opinion": the verdict so far stands."""
        return NO_ACTION

    @staticmethod
    def retry_forbidden(why: str | None = None) -> RetryForbidden:
        """Forbid a retry, whatever other classifiers say, and end the classification.

        :param why: one phrase for the history and the stop reason.
        """
        return RetryForbidden(why)

    @staticmethod
    def retry_indicated(reason: RetryReason) -> RetryIndicated:
        """Indicate a retry for a reason."""
        return RetryIndicated(reason)

    @staticmethod
    def retryable_error(kind: ErrorKind) -> RetryIndicated:
        """Indicate a retry for an error of this kind.

        :raises TypeError: if the kind is not an :class:`ErrorKind`.
        """
        return RetryIndicated(RetryReason(kind))

    @staticmethod
    def retryable_error_with_explicit_delay(kind: ErrorKind, retry_after: float) -> RetryIndicated:
        """Indicate a retry after at least ``retry_after`` seconds.

        :raises TypeError: if the kind is not an :class:`ErrorKind`.
        :raises ValueError: if the delay is not a finite number of seconds, 0 or more.
        """
        if retry_after is None:
            raise ValueError("retry_after=None: a finite number of seconds (0 or more) is allowed")
        reason = RetryReason(kind, retry_after, "classifier")
        return RetryIndicated(replace(reason, retry_after=float(retry_after)))

    @staticmethod
    def transient_error() -> RetryIndicated:
        """Indicate a retry after a passing fault."""
        return RetryIndicated(RetryReason(ErrorKind.TRANSIENT))

    @staticmethod
    def throttling_error() -> RetryIndicated:
        """Indicate a retry after throttling."""
        return RetryIndicated(RetryReason(ErrorKind.THROTTLING))

    @staticmethod
    def server_error() -> RetryIndicated:
        """Indicate a retry after a server error."""
        return RetryIndicated(RetryReason(ErrorKind.SERVER))

    @staticmethod
    def client_error() -> RetryIndicated:
        """Indicate a retry of a request that was refused for now, such as 409 or 423."""
        return RetryIndicated(RetryReason(ErrorKind.CLIENT))


@dataclass(frozen=True)
class NoActionIndicated(RetryAction):
    """No opinion. If every classifier gives this verdict, there is no retry."""


@dataclass(frozen=True, repr=False)
class RetryIndicated(RetryAction):
    """A retry is indicated. It is made only if the other rules allow it (contract 2.6)."""

    reason: RetryReason

    def __post_init__(self) -> None:
        if not isinstance(self.reason, RetryReason):
            raise TypeError(
                f"reason={safe_repr(self.reason)}: a RetryReason is allowed, such as RetryReason(ErrorKind.TRANSIENT)"
            )

    def __repr__(self) -> str:
        after = "" if self.reason.retry_after is None else f", retry_after={self.reason.retry_after:g}"
        return f"RetryIndicated(kind={self.reason.kind.value}{after})"


@dataclass(frozen=True)
class RetryForbidden(RetryAction):
    """A retry is forbidden, whatever others say; ends the fold.

    :param why: one phrase for the history and the stop sentence.
    :param stop_reason: the rule that forbids.
    """

    why: str | None = None
    stop_reason: StopReason = StopReason.FORBIDDEN

    def __post_init__(self) -> None:
        if not isinstance(self.stop_reason, StopReason):
            raise TypeError(f"stop_reason={safe_repr(self.stop_reason)}: a StopReason is allowed")


NO_ACTION = NoActionIndicated()
