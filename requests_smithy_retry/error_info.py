"""What an exception may say about itself, so that a strategy can decide without knowing its type (contract 1).

Protocols only. They come from the smithy-python design; ``is_timeout_error`` from the Smithy retry guide.
"""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

Fault = Literal["client", "server"] | None
"""Who is at fault; None: nobody knows."""


@runtime_checkable
class ErrorRetryInfo(Protocol):
    """An error that knows whether it may be retried. A class that derives from it need only set what differs."""

    is_retry_safe: bool | None = None
    """True: a retry is allowed (not promised). False: it is forbidden. None: the error does not know."""
    retry_after: float | None = None
    """A floor for the delay, in seconds, or None."""
    is_throttling_error: bool = False
    """The server asked for fewer requests."""
    is_timeout_error: bool = False
    """Nobody answered in time."""


@runtime_checkable
class HasFault(Protocol):
    """An error that knows who is at fault."""

    fault: Fault
    """``"client"``, ``"server"`` or None."""
