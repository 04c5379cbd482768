"""New credentials after a 401, once per operation (contract 2.10): who is asked for them, and about whom.

They are one user's, for one service. So nothing is shared between requests, and they go nowhere but where the program
itself sent the old ones: not to whom the service redirects, for whom requests has taken the old ones off.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from typing import Any

from requests import PreparedRequest, Response

from ..classifiers.outcome import Outcome
from ..clock import Clock
from ..config.retry_config import RetryConfig
from ..core.driver import Driver
from ..core.line import Progress
from ..core.machine import Remedy
from ..core.plan import Call
from ..core.port import Feature
from ..core.scope import Scope
from ..core.steps import Again, AskProgram, Step
from ..errors import RetryConfigError
from ..urls import KEYS, scope_of

NAME = "renewal"
UNAUTHORIZED = 401
MOST_CHAINS = 1024
"""The most chains of redirects, of the whole process, that may be under way; of more, the oldest is forgotten."""
Headers = Mapping[str, str]
Renew = Callable[["Response"], Headers | None]


class _OfThread(threading.local):
    """The functions that are renewing credentials in a thread: requests of their own are not theirs to renew."""

    asked: tuple[Renew, ...] = ()


_of_thread = _OfThread()
_chains: dict[int, tuple[object, str]] = {}
"""The hooks of each request that was redirected, by their ``id``, and the origin to which the program sent it. requests
shares this object with each request that it makes from it to follow the redirect.
"""


class Renewal(Feature):
    """The hooks: redirects are watched, and a 401 is asked about before it is judged."""

    def __init__(self, renew: Renew) -> None:
        self.renew = renew

    def received(self, driver: Driver, call: Call, request: PreparedRequest, response: Response, scope: Scope) -> None:
        """Remember the origin that the program chose, for a request that goes on elsewhere and for a body's rest."""
        hooks = call.request.hooks
        origin = call.data[NAME] = origin_chosen(call)
        if response.is_redirect:
            _chains[id(hooks)] = hooks, origin
            if len(_chains) > MOST_CHAINS:
                _chains.pop(next(iter(list(_chains))), None)
        elif response.status_code < 400:
            _chains.pop(id(hooks), None)

    def remedy(self, call: Call) -> Remedy | None:
        """Return the mend for a call that the program sent with credentials, where it sent them to."""
        request = call.request
        if any(self.renew is one for one in _of_thread.asked):
            return None
        is_sent_there = origin_chosen(call) == scope_of(str(request.url))
        has_credentials = not KEYS.isdisjoint(str(name).lower() for name in request.headers)
        return Mend(self.renew, call) if is_sent_there and has_credentials else None


def origin_chosen(call: Call) -> str:
    """Return the origin to which the program itself sent what became this request."""
    chosen: str | None = call.data.get(NAME)
    hooks, origin = _chains.get(id(call.request.hooks), (None, ""))
    return chosen or (origin if hooks is call.request.hooks else scope_of(str(call.request.url)))


class Mend:
    """One operation's mend: it is made once."""

    def __init__(self, renew: Renew, call: Call) -> None:
        self._renew = renew
        self._most = call.options.max_attempts or call.config.most_attempts
        self._deadline = call.deadline
        self._is_used = False

    def __call__(self, outcome: Outcome, progress: Progress) -> Generator[Step, Any, Again | None]:
        response = outcome.response
        is_last = self._most is not None and outcome.attempt >= self._most
        if response is None or outcome.error is not None or outcome.status != UNAUTHORIZED or self._is_used or is_last:
            return None
        if outcome.resend is None or not outcome.resend.replayable:
            return None
        self._is_used = True
        headers, now = yield AskProgram(renewed, (self._renew, response))
        is_late = self._deadline is not None and now >= self._deadline
        return None if headers is None or is_late else Again(progress, source="on_unauthorized", headers=headers)


def renewed(renew: Renew, response: Response) -> Headers | None:
    """Return the headers with which a refused request is to be sent again; None: it is not."""
    before = _of_thread.asked
    try:
        _of_thread.asked = (*before, renew)
        return _checked(renew(response))
    finally:
        _of_thread.asked = before


def _checked(headers: Any) -> Headers | None:
    if headers is None:
        return None
    is_mapping = isinstance(headers, Mapping)
    if is_mapping and all(isinstance(part, (str, bytes)) for item in headers.items() for part in item):
        return dict(headers)
    allowed = "a mapping of headers (name to value) or None is allowed"
    raise RetryConfigError("on_unauthorized", type(headers), "the function's result", allowed)


def feature(config: RetryConfig, clock: Clock) -> Renewal:
    assert config.on_unauthorized is not None
    return Renewal(config.on_unauthorized)
