"""The outcome of an attempt as classifiers see it (contract 3): the response, the error, what it says about itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Number
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from ..errors import StopReason, safe_error

if TYPE_CHECKING:
    from requests import PreparedRequest, Response
else:  # pragma: no branch - for typing.get_type_hints; classifiers know no HTTP library
    PreparedRequest = Response = Any


LONGEST_FLOOR = 1e15
"""The longest floor for a delay, in seconds; a larger number could overflow."""

Fault = Literal["client", "server"] | None
"""The party at fault; None if unknown."""


@runtime_checkable
class ErrorRetryInfo(Protocol):
    """An error that says whether it may be retried. A subclass sets only what differs."""

    is_retry_safe: bool | None = None
    """True: a retry is allowed (not promised). False: it is forbidden. None: unknown."""
    retry_after: float | None = None
    """A floor for the delay, in seconds, or None."""
    is_throttling_error: bool = False
    """True if the server throttled the request."""
    is_timeout_error: bool = False
    """True for a client-side timeout."""


@runtime_checkable
class HasFault(Protocol):
    """An error that says who is at fault."""

    fault: Fault
    """``"client"``, ``"server"`` or None."""


def floor_of(error: object) -> float | None:
    """Return the floor in an error's ``retry_after``, in seconds: a number, a ``timedelta`` or text; else None."""
    after: Any = getattr(error, "retry_after", None)
    try:
        if hasattr(after, "total_seconds"):
            after = after.total_seconds()
        elif isinstance(after, str):
            after = float(after)
        if isinstance(after, bool) or not isinstance(after, Number):
            return None
        seconds: Any = after
        return float(min(seconds, LONGEST_FLOOR)) if 0 <= seconds < float("inf") else None
    except (TypeError, ValueError, ArithmeticError):  # a complex number, a word, a Decimal NaN
        return None


class Replayable(Protocol):
    """A body that may be sent again."""

    def obstacle(self) -> str | None:
        """Return why the whole body cannot be sent again now, in a phrase; None: it can."""


class ResendFacts(NamedTuple):
    """The facts about the request that failed.

    :param method: the request's method.
    :param idempotent: True if the method may always be sent again (``allowed_methods``).
    :param keyed: True if the request carries an idempotency key.
    :param vouched: True if the caller or a model declares the request idempotent; False if the caller declares that it
        is not, whatever its method and key; None without a declaration.
    :param unwritten: True if it is known that no byte of the request was written.
    :param strict: True if a request that is not idempotent may be sent again only if unwritten, as in urllib3.
    :param is_cut: True if the body of a response below 400 broke off: the server has done the work.
    :param long_poll: True if the caller or a model declares the request a long poll.
    :param body: asked, once a retry is indicated, whether all of it can be sent again; None: it never changes.
    """

    method: str
    idempotent: bool = False
    keyed: bool = False
    vouched: bool | None = None
    unwritten: bool = False
    strict: bool = False
    is_cut: bool = False
    long_poll: bool = False
    body: Replayable | None = None

    def obstacle(self) -> str | None:
        """Return why the whole body cannot be sent again now, in a phrase; None: it can."""
        return None if self.body is None else self.body.obstacle()


BODY_PREFIX = 65_536
"""The most bytes of a body that classifiers see."""


@dataclass(frozen=True, repr=False)
class Outcome:
    """The outcome of one attempt: a response, an exception, or an exception that carries a response.

    :param error: the exception that was raised, or None.
    :param response: the response, or None. With ``stream`` its body must not be read.
    :param request: the request that was sent, or None.
    :param attempt: the attempt's number, from 1.
    :param stream: True if the caller asked for an unread body.
    :param resend: the facts that decide whether the request may be sent again (contract 4); None without HTTP.
    :param peeked: the beginning of a body that was not read whole, because it is long or slow; see ``body_prefix``.
    :param look: returns the same for a body that the caller streams; None: that cannot be looked at.
    :param started: when the attempt began, and ``ended`` when it was over, on the clock; ``wall`` is the latter in
        seconds since the epoch.
    :param allowed: seconds that a success was allowed; None: as long as it took.
    :param address: the far end's address, or all that were tried; None if it is not known.
    :param received: the encoded bytes received of the body; None if they were not counted.
    :param sent: the bytes of a file that were read for it; None for other bodies.
    :param final: the reason why it is final, whatever a strategy would decide, and a phrase.
    :param has_progressed: it brought more of a body, which can be continued where it broke off.
    :param head: the header fields of a response of 400 or above, even if its body broke off, which is an exception.
    """

    error: BaseException | None = None
    response: Response | None = None
    request: PreparedRequest | None = None
    attempt: int = 1
    stream: bool = False
    resend: ResendFacts | None = None
    peeked: bytes | None = None
    started: float = 0.0
    ended: float = 0.0
    wall: float = 0.0
    allowed: float | None = None
    address: str | None = None
    received: int | None = None
    sent: int | None = None
    final: tuple[StopReason, str] | None = None
    has_progressed: bool = False
    head: Mapping[str, str] | None = None
    look: Callable[[], bytes] | None = field(default=None, compare=False)
    status: int | None = field(init=False, compare=False)
    """The response's status, or None without a response."""
    is_success: bool = field(init=False, compare=False)
    """True if there is a response below 400, and no exception."""

    def __post_init__(self) -> None:
        status = getattr(self.response, "status_code", None)
        object.__setattr__(self, "status", status)
        object.__setattr__(self, "is_success", self.error is None and status is not None and status < 400)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(error={safe_error(self.error)}, response={self.response!r}, "
            f"request={self.request!r}, attempt={self.attempt!r}, stream={self.stream!r}, resend={self.resend!r})"
        )

    @property
    def body_prefix(self) -> bytes:
        """The first 64 KiB of the response's body, decoded; empty without a response.

        ``response.content`` would read a long or slow body to its end, however long the server takes. With
        ``stream``, only short JSON is looked at (contract 3.4); its caller can still read all of it.
        """
        return self.look() if self.stream and self.look is not None else self.read_prefix

    @property
    def read_prefix(self) -> bytes:
        """The same, but empty with ``stream``: all that the default classifiers look at."""
        if self.stream or self.response is None:
            return b""
        if self.peeked is not None:
            return self.peeked
        try:
            body: object = self.response.content
        except Exception as error:  # another library's response may refuse to give out an unread body
            from ..interruptions import is_interruption  # imports urllib3, which strategies do without

            if is_interruption(error):
                raise
            return b""
        return body[:BODY_PREFIX] if isinstance(body, bytes) else b""
