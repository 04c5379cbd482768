"""The library's exceptions, the reasons why an operation ends, and the text of errors without secrets.

A send raises the last attempt's own exception (contract 2), and none of these: they come from bad configuration, and
from a strategy that a program drives by hand.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import re
from typing import TYPE_CHECKING

from .checks import safe_repr

if TYPE_CHECKING:
    from .core.server_hints import Hint
else:  # pragma: no branch - for typing.get_type_hints
    Hint = object

MOST_CAUSES = 8
"""The maximum number of exceptions followed in a chain."""


def seconds_text(seconds: float) -> str:
    """Return seconds with their unit, to three digits; whole ones from 1,000 on.

    >>> seconds_text(0.12345), seconds_text(1800)
    ('0.123 s', '1800 s')
    """
    return f"{seconds:.3g} s" if seconds < 999.5 else f"{seconds:.0f} s"


def safe_error(error: BaseException | None) -> str:
    """Return the types of an exception and its causes; their text may quote the URL, a header or a body.

    >>> safe_error(ConnectionError("Max retries exceeded with url: /?token=secret"))
    'ConnectionError'
    """
    return " from ".join(_name_of(cause) for cause in causes_of(error)) or repr(error)


def without_text_of(error: BaseException | None, text: str) -> str:
    """Return a text, such as a strategy's reason for refusing, with each quote of an exception replaced by its type.

    A match within a word does not count as a quote, and our own phrases are left as they are.
    """
    if text in {reason.value for reason in StopReason}:
        return text
    for cause in causes_of(error):
        for quote in (repr, str):
            with contextlib.suppress(Exception):  # the exception's own __str__ may raise
                quoted = quote(cause)
                pieces = re.split(rf"(?<!\w){re.escape(quoted)}(?!\w)", text) if quoted != "" else [text]
                text = _name_of(cause).join(pieces)
    return text


def causes_of(error: BaseException | None) -> list[BaseException]:
    """Return an exception and its causes, as requests, urllib3 and Python record them."""
    seen: list[BaseException] = []
    # No generators: Python complains if a signal handler interrupts one while it is being closed.
    while isinstance(error, BaseException) and id(error) not in map(id, seen) and len(seen) < MOST_CAUSES:
        seen.append(error)
        inner = (getattr(error, "reason", None), *error.args, error.__cause__, error.__context__)
        causes = [cause for cause in inner if isinstance(cause, BaseException)]
        error = causes[0] if causes else None
    return seen


def is_unresolved(error: BaseException | None) -> bool:
    """Return True if the name of the service was not found."""
    from socket import gaierror  # a program with such an error has loaded it already

    return bool([cause for cause in causes_of(error) if isinstance(cause, gaierror)])


def _name_of(error: BaseException) -> str:
    code = errno.errorcode.get(error.errno or 0) if isinstance(error, OSError) else None
    return type(error).__name__ + ("" if code is None else f" ({code})")


class StopReason(enum.Enum):
    """The reason why no further attempt was made. ``value`` is the phrase used in histories and logs."""

    SUCCESS = "it succeeded"
    """The last attempt was a success. The caller gets the response."""
    NOT_RETRYABLE = "no classifier asked for a retry"
    """A retry would not help, as with a 404. The caller gets the response or the exception."""
    FORBIDDEN = "a classifier forbade a retry"
    """A classifier ruled out a retry. The caller gets the response or the exception."""
    NOT_RESENDABLE = "the request may have been applied and is not idempotent"
    """Sending it again might do the work twice (contract 4). The caller gets the response or the exception."""
    BODY_NOT_REPLAYABLE = "the body cannot be replayed"
    """The body was read and cannot be read again, or its length changed (contract 5). The caller gets the last response
    or exception; an ``UnrewindableBodyError`` if the body ended before its Content-Length."""
    REQUEST_FAULT = "the request itself is at fault"
    """An invalid URL, a bad certificate or the like; nothing was classified (contract 2). The caller gets the
    exception."""
    BODY_NOT_CONTINUED = "the body broke off and was not continued"
    """While the caller read it, with ``stream=True`` (contract 14.6). The caller gets the exception that says why."""
    MAX_ATTEMPTS = "no attempts are left"
    """``max_attempts`` requests were sent, or three attempts that count (contract 6.2). The caller gets the last
    response or exception."""
    HINT_TOO_LONG = "the server asked for too long a wait"
    """Longer than ``max_retry_after`` or a given ``patience`` allows (contract 7.3). The caller gets the response at
    once, with its hint."""
    DEADLINE = "the wait would not end before the deadline"
    """The wait is not begun; one for a service that is down ends at the deadline (contract 8). The caller gets the last
    response or exception; a ``ConnectTimeout`` if nothing was sent in time."""
    QUOTA_EXCEEDED = "the retry budget is empty"
    """And the operation cannot wait: ``patience=0``, a published bucket, or a response too long to be let go (contract
    6). The caller gets the last response or exception."""
    PATIENCE = "the service has been down for longer than patience allows"
    """Operations wait while an outage is younger than ``patience`` (contract 6.2). The caller gets the last response or
    exception."""
    LINE_FULL = "too many operations are waiting for the service already"
    """At most 1,000 wait (contract 6.2). The caller gets the last response or exception."""
    RATE_LIMITED = "no send permit in time"
    """From the client rate limiter (contract 9); or an announced limit opens too late for the call (contract 7.4). The
    caller gets the last response or exception; a ``ConnectTimeout`` if nothing was answered yet, or if the answer was
    too long to be kept."""
    CANCELLED = "the program cancelled the wait"
    """The event of ``retry_options(cancel=...)`` is set. The caller gets a ``RetryCancelled``."""
    WAIT_TOO_LONG = "the wait would be longer than max_wait"
    """The next wait, or the rest of this one. The caller gets a ``RetryLater``."""
    STRATEGY_REFUSED = "the retry strategy refused"
    """A strategy raised :class:`~requests_smithy_retry.RetryError` without a reason of its own. The caller gets the
    last response or exception."""
    DISABLED = "retries are switched off"
    """By ``enabled=False``. The caller gets the response or the exception of one send."""


TOO_LATE = "the deadline had passed before the request was sent"
"""The phrase for an attempt that is not made, because no time is left for it."""
QUIET_ENDINGS = frozenset({StopReason.SUCCESS, StopReason.NOT_RETRYABLE, StopReason.REQUEST_FAULT, StopReason.DISABLED})
"""The stop reasons that do not count as giving up, because no retry was indicated."""
ENDED_BY_PROGRAM = frozenset({StopReason.WAIT_TOO_LONG, StopReason.CANCELLED})
"""The stop reasons of waits that the program itself ended, to requeue a task or stop a worker."""


class RetryError(Exception):
    """Raised by a strategy that refuses another attempt (contract 1).

    :param stop_reason: the rule that refused.
    :param delay: for long polling, the seconds to wait before the outcome is returned; else None.
    :param classification: the verdict behind the refusal, or None.
    :param unmade: the wait that the rule forbids: its ``seconds`` and its ``source``; or None.
    """

    def __init__(
        self,
        message: str = "",
        *,
        stop_reason: StopReason = StopReason.STRATEGY_REFUSED,
        delay: float | None = None,
        classification: object | None = None,
        unmade: Hint | None = None,
    ) -> None:
        super().__init__(message or stop_reason.value)
        self.stop_reason = stop_reason
        self.delay = delay
        self.classification = classification
        self.unmade = unmade


class TokenError(ValueError):
    """A token that was used before, or that another strategy issued (contract 6.1)."""


class RetryConfigError(ValueError):
    """A bad option. The message names the option, its value, the value's source, and what is allowed.

    :param allowed: the values that are allowed instead, as a phrase.
    """

    def __init__(self, option: str, value: object, source: str, allowed: str) -> None:
        value = _without_secrets(option, value)
        super().__init__(f"{option}={safe_repr(value)} (from {source}): {allowed}")
        self.option = option
        self.value = value
        self.source = source
        self.allowed = allowed

    def __reduce__(self) -> tuple[type[RetryConfigError], tuple[str, object, str, str]]:
        return type(self), (self.option, self.value, self.source, self.allowed)


class RetryConfigWarning(UserWarning):
    """A configuration that is probably a mistake, or cannot be honoured."""


URL_SCHEMES = ("http", "https", "redis", "rediss", "unix")
"""The schemes of a refused URL that may be shown."""


def _without_secrets(option: str, value: object) -> object:
    """Return the value without its secrets. A URL may hold a password, and an invalid one anywhere in it."""
    own = getattr(value, "without_secrets", None)  # an object may provide its own text
    if isinstance(own, str):
        return own
    if not isinstance(value, str):
        hidden = option == "quota" and "://" in safe_repr(value)  # bytes, say, or a list of URLs
        return f"<{type(value).__name__}>" if hidden else value
    if "://" not in value and not (option == "quota" and set(value) & {":", "/", "@"}):
        return value
    scheme = value.partition("://")[0]
    return f"{scheme}://..." if scheme in URL_SCHEMES and "://" in value else "..."
