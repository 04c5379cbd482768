"""Exceptions of signal handlers and foreign code, which the package does not handle (contract 2).

A signal handler may raise in the middle of anything: Celery's raises ``SoftTimeLimitExceeded``, an ordinary
``Exception``. Every broad ``except`` in the package checks for this first. Some handlers raise what the network raises,
too: ``TimeoutError``, ``OSError``. Only the traceback distinguishes these.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, TypeVar

from .errors import RetryError

Answer = TypeVar("Answer")

PACKAGES = frozenset(
    {*sys.stdlib_module_names, "OpenSSL", "redis", "requests", "requests_smithy_retry", "socks", "urllib3"}
)
"""The packages whose exceptions can come from sending, reading and asking for a quota."""

MAX_CAUSES = 32


class StoppedByProgram(Exception):
    """Carries an exception of the program's own code to the caller of a send, past all exception handlers.

    A ``RetryError`` in it is not a refusal by the strategy, and a ``RetryLater`` does not end a wait of this call.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


def ask_program(function: Callable[..., Answer], *args: Any, **named: Any) -> Answer:
    """Call a function of the program, within a send.

    :raises StoppedByProgram: with the exception that it raises.
    """
    try:
        return function(*args, **named)
    except Exception as error:
        raise StoppedByProgram(error) from None
    finally:
        del function, args, named  # headers, perhaps: the traceback of what it raises shows this frame


def ask_within_strategy(what: str, function: Callable[..., Answer], *args: Any) -> Answer:
    """Call a function of the program within a strategy, whose refusals are ``RetryError``.

    :raises RuntimeError: if it raises one.
    """
    try:
        return function(*args)
    except RetryError as error:
        raise RuntimeError(f"{what} raised a RetryError, which would pass for the strategy's refusal") from error


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and everything it wraps, outermost first, at most :data:`MAX_CAUSES`; safe against cycles."""
    seen: list[BaseException] = []
    ahead = [error]
    while ahead and len(seen) < MAX_CAUSES:
        current = ahead.pop(0)
        if any(current is known for known in seen):
            continue
        seen.append(current)
        yield current
        inner = (*current.args, getattr(current, "reason", None), current.__cause__)
        ahead.extend(item for item in inner if isinstance(item, BaseException))


def is_foreign(error: BaseException) -> bool:
    """Return True for an exception of a class that neither Python, nor :data:`PACKAGES`, nor a decoder defines."""
    package = type(error).__module__.partition(".")[0]
    decoders: Any = sys.modules.get("urllib3.response")  # if it is not imported, nothing was decoded
    of_decoders = () if decoders is None else decoders.HTTPResponse.DECODER_ERROR_CLASSES
    return package not in PACKAGES and not isinstance(error, of_decoders)


def is_interruption(error: BaseException) -> bool:
    """Return True if a signal handler raised the error or one of its causes: the traceback leads through the handler.

    urllib3 and requests wrap a handler's ``TimeoutError`` as they wrap the socket's. The exception that the caller was
    handling when the request was made is not considered.
    """
    handlers = _handlers()
    if not handlers:
        return False
    outside = sys.exc_info()[1]
    for cause in causes(error):
        at: BaseException | None = cause
        for _ in range(MAX_CAUSES):
            if at is None or (at is outside and at is not error):
                break
            if _leads_through(at, handlers):
                return True
            at = at.__context__
    return False


def _handlers() -> frozenset[CodeType]:
    found: set[CodeType] = set()
    # A program that has not imported signal has set no handler, and the import is slow.
    signal: Any = sys.modules.get("signal")
    for number in () if signal is None else signal.valid_signals():
        handler: Any = signal.getsignal(number)
        if not callable(handler):
            continue  # SIG_DFL and SIG_IGN are members of an enum: their class has its metaclass's __call__
        while isinstance(handler, functools.partial):
            handler = handler.func
        for callee in (handler, getattr(type(handler), "__call__", None)):  # noqa: B004 - the function is wanted
            code = getattr(callee, "__code__", None)  # a bound method has its function's
            if isinstance(code, CodeType):
                found.add(code)
    return frozenset(found)


def _leads_through(error: BaseException, codes: frozenset[CodeType]) -> bool:
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code in codes:
            return True
        at = at.tb_next
    return False
