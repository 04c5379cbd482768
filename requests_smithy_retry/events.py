"""What listeners are told (contract 12): one frozen value per event. No rule lives here.

Each is a named tuple, because one is made for every attempt of every request and nothing frozen is cheaper. What costs
something is worked out when it is asked for. Take the fields by name: more may be added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

    from .history import AttemptRecord, RetryHistory
    from .observed import ObservedOperation


class BeforeAttempt(NamedTuple):
    """An attempt is about to be sent.

    :param operation: the call of ``send`` that it belongs to.
    :param number: of the attempt, from 1.
    """

    operation: ObservedOperation
    number: int

    @property
    def request(self) -> PreparedRequest:
        """The attempt's own copy of the request, made when first asked for. Change it as you like.

        The caller's request stays as it is, the next attempt starts from it again, and ``response.request`` is the
        caller's. Headers, URL and hooks are the copy's own; a body is shared, so replace it rather than read it.
        """
        return self.operation.attempt_request()


class AfterAttempt(NamedTuple):
    """An attempt ended, and its body was read where it had to be.

    :param operation: the call of ``send`` that it belongs to.
    :param number: of the attempt, from 1.
    :param response: what came; None with an error. Look, but do not read a body that the caller wants to stream.
    :param error: what was raised, or None. What is no ``Exception`` (Ctrl-C) goes on its way after this event.
    :param duration: seconds.
    :param noted: the history's record of the attempt, or None where none was needed yet; see :attr:`record`.
    """

    operation: ObservedOperation
    number: int
    response: Response | None
    error: BaseException | None
    duration: float
    noted: AttemptRecord | None = None

    @property
    def record(self) -> AttemptRecord:
        """The attempt as the history shows it: votes, delay, quota. It holds no header, body or query."""
        return self.noted or self.operation.record_of(self)

    @property
    def status(self) -> int | None:
        """The response's status; None with an error."""
        return None if self.response is None else self.response.status_code


class RetryScheduled(NamedTuple):
    """Another attempt follows.

    :param operation: the call of ``send`` that it belongs to.
    :param number: of the attempt that failed, from 1.
    :param delay: seconds that are waited now.
    :param delay_source: ``"backoff"``, or the name of the server's hint.
    :param record: of the attempt that failed.
    """

    operation: ObservedOperation
    number: int
    delay: float
    delay_source: str
    record: AttemptRecord


class Throttled(NamedTuple):
    """The server asked for fewer requests, whether or not a retry follows.

    :param operation: the call of ``send`` that it belongs to.
    :param number: of the attempt, from 1.
    :param record: of that attempt.
    """

    operation: ObservedOperation
    number: int
    record: AttemptRecord


class GaveUp(NamedTuple):
    """A retry was wanted and could not be had. An outcome that nobody wants retried (a 404) is no giving up.

    :param operation: the call of ``send`` that ended.
    :param number: of the last attempt; 0 where none was made, because no permit came in time.
    :param history: the whole record; ``history.stop_reason`` and ``history.sentence`` say why.
    """

    operation: ObservedOperation
    number: int
    history: RetryHistory


class Succeeded(NamedTuple):
    """A retry mended it: the operation succeeded at its second attempt or later.

    :param operation: the call of ``send`` that ended.
    :param number: of the last attempt.
    :param history: the whole record.
    """

    operation: ObservedOperation
    number: int
    history: RetryHistory
