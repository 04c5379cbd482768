"""The strategy's leave to send (contract 9): asked for before each attempt, after the backoff.

A strategy may offer ``send_permit(*, token, deadline, waited)``. It returns None: send; or something whose
``rest(clock)`` waits a while, after which it is asked again; or it raises
:class:`~requests_smithy_retry.RetryError`: there is no leave in time. A strategy without it is not asked; one that
returns anything else is told so by a ``TypeError``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import RetryError

if TYPE_CHECKING:
    from .operation import Operation


def wait_for_permit(operation: Operation) -> bool:
    """Wait until an operation's next attempt may be sent. False: it may not; the operation knows why."""
    ask, token, now = operation.ask_permit, operation.token, operation.clock.now
    if ask is None or token is None:
        return True
    began = now()
    try:
        while True:
            wait = ask(token=token, deadline=operation.limits.at, waited=now() - began)
            if wait is None:
                operation.record.permit_wait = now() - began
                return True
            if not hasattr(type(wait), "rest"):  # asking it for ever would be no wait (a Mock has any attribute)
                raise TypeError(f"send_permit of {operation.strategy!r}: None or an object to rest on, not {wait!r}")
            wait.rest(operation.clock)
    except RetryError as refusal:
        operation.hold_back(refusal)
        return False
