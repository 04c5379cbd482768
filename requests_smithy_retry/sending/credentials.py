"""New credentials after a 401, once per operation (contract 2.10): the program's function, asked once for all threads.

A scope has one lock. Who finds that the credentials were renewed after its own attempt had begun takes those, and does
not ask again: fifty threads whose token expired renew one token once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from requests import Response

from ..clock import Clock
from ..errors import RetryConfigError
from ..forksafe import renew_lock_after_fork

UNAUTHORIZED = 401
MOST_SCOPES = 1024
"""The most scopes whose renewals are remembered."""

Headers = Mapping[str, str]


@dataclass(eq=False, slots=True)
class _Renewal:
    """The last renewal of one scope."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    owner: int | None = None
    at: float = float("-inf")
    headers: Headers | None = None


class Credentials:
    """Renews the credentials of each scope by a function of the program."""

    def __init__(self, renew: Callable[[Response], Headers | None], clock: Clock) -> None:
        self._renew = renew
        self._clock = clock
        self.renew_lock()
        renew_lock_after_fork(self)

    def renew_lock(self) -> None:
        """Begin anew, after a fork: a thread that was renewing does not exist in the child."""
        self._renewals: dict[str, _Renewal] = {}

    def after(self, response: Response, scope: str, started: float, seconds: float | None) -> Headers | None:
        """Return the headers with which a refused request is to be sent again; None: it is not.

        :param started: when its attempt began, on the clock.
        :param seconds: the longest wait for another thread's renewal; None: as long as that takes.
        :raises RetryConfigError: if the function returns anything but headers or None.
        """
        if len(self._renewals) >= MOST_SCOPES and scope not in self._renewals:
            self._renewals.clear()
        renewal = self._renewals.setdefault(scope, _Renewal())
        if renewal.owner == threading.get_ident():
            return None  # the function itself made this request
        longest, has_lock = -1 if seconds is None else max(0.0, min(seconds, threading.TIMEOUT_MAX)), False
        try:
            has_lock = renewal.lock.acquire(timeout=longest)
            if not has_lock:
                return None
            if started > renewal.at:
                renewal.owner = threading.get_ident()
                renewal.headers = _checked(self._renew(response))
                renewal.at = self._clock.now()
            return renewal.headers
        finally:
            if has_lock:
                renewal.owner = None
                renewal.lock.release()


def _checked(headers: Any) -> Headers | None:
    """Return headers as a dict, or None; refuse anything else without showing a value."""
    if headers is None:
        return None
    is_mapping = isinstance(headers, Mapping)
    if is_mapping and all(isinstance(part, (str, bytes)) for item in headers.items() for part in item):
        return dict(headers)
    allowed = "a mapping of headers (name to value) or None is allowed"
    raise RetryConfigError("on_unauthorized", type(headers), "the function's result", allowed)
