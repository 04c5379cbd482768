"""New credentials after a 401, once per operation (contract 2.10): who is asked for them, and about whom.

They are one user's, for one service. So nothing is shared between requests, and they go nowhere but where the program
itself sent the old ones: not to whom the service redirects, for whom requests has taken the old ones off.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

from ..core.port import Feature
from ..core.steps import Again, AskProgram
from ..errors import RetryConfigError
from ..urls import scope_of

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

    from ..classifiers.outcome import Outcome
    from ..clock import Clock
    from ..config.retry_config import RetryConfig
    from ..core.driver import Call, Driver
    from ..core.machine import Remedy
    from ..core.progress import Progress
    from ..core.scope import Scope
    from ..core.steps import Step

UNAUTHORIZED = 401
CREDENTIALS = frozenset(
    {
        *("authorization", "api-key", "apikey", "x-api-key", "x-auth-token", "x-access-token", "private-token"),
        *("x-goog-api-key", "x-vault-token", "x-shopify-access-token", "ocp-apim-subscription-key", "x-functions-key"),
    }
)
"""The headers by which a request has credentials, in lower case."""

Headers = Mapping[str, str]
Renew = Callable[["Response"], Headers | None]


class _OfThread(threading.local):
    """What a thread knows from one request to the next.

    :param asked: the functions that are renewing credentials: requests of their own are not theirs to renew.
    :param hooks: of the last request that was redirected, and ``origin`` to which the program sent it: requests shares
        this object with each request that it makes from it to follow the redirect.
    """

    asked: tuple[Renew, ...] = ()
    hooks: object = None
    origin: str = ""


_of_thread = _OfThread()


class Renewal(Feature):
    """The hooks: redirects are watched, and a 401 is asked about before it is judged."""

    def __init__(self, renew: Renew) -> None:
        self.renew = renew

    def received(self, driver: Driver, call: Call, request: PreparedRequest, response: Response, scope: Scope) -> None:  # noqa: ARG002
        """Remember the origin that the program chose for a request that goes on elsewhere."""
        if response.is_redirect:
            _of_thread.origin, _of_thread.hooks = origin_chosen(call.request), call.request.hooks

    def remedy(self, call: Call) -> Remedy | None:
        """Return the mend for a call that the program sent with credentials, where it sent them to."""
        request = call.request
        if any(self.renew is one for one in _of_thread.asked):
            return None
        is_sent_there = origin_chosen(request) == scope_of(str(request.url))
        has_credentials = not CREDENTIALS.isdisjoint(str(name).lower() for name in request.headers)
        return (
            Mend(self.renew, call.options.max_attempts or call.config.most_attempts)
            if is_sent_there and has_credentials
            else None
        )


class Mend:
    """One operation's mend: it is made once.

    :param most: the most requests that may be sent; None: there is no such number.
    """

    def __init__(self, renew: Renew, most: int | None) -> None:
        self._renew = renew
        self._most = most
        self._is_used = False

    def __call__(self, outcome: Outcome, progress: Progress) -> Generator[Step, Any, Again | None]:
        """Ask the program for new credentials."""
        response = outcome.response
        is_last = self._most is not None and outcome.attempt >= self._most
        if response is None or outcome.error is not None or outcome.status != UNAUTHORIZED or self._is_used or is_last:
            return None
        if outcome.resend is None or not outcome.resend.replayable:
            return None
        self._is_used = True
        headers = yield AskProgram(renewed, (self._renew, response))
        return None if headers is None else Again(progress, source="new credentials", headers=headers)


def origin_chosen(request: PreparedRequest) -> str:
    """Return the origin to which the program itself sent what became this request."""
    is_followed = _of_thread.hooks is not None and request.hooks is _of_thread.hooks
    return _of_thread.origin if is_followed else scope_of(str(request.url))


def renewed(renew: Renew, response: Response) -> Headers | None:
    """Return the headers with which a refused request is to be sent again; None: it is not.

    :raises RetryConfigError: if the function returns anything but headers or None.
    """
    before = _of_thread.asked
    _of_thread.asked = (*before, renew)
    try:
        return _checked(renew(response))
    finally:
        _of_thread.asked = before


def _checked(headers: Any) -> Headers | None:
    """Return headers as a dict, or None; refuse anything else without showing a value."""
    if headers is None:
        return None
    is_mapping = isinstance(headers, Mapping)
    if is_mapping and all(isinstance(part, (str, bytes)) for item in headers.items() for part in item):
        return dict(headers)
    allowed = "a mapping of headers (name to value) or None is allowed"
    raise RetryConfigError("on_unauthorized", type(headers), "the function's result", allowed)


def feature(config: RetryConfig, clock: Clock) -> Renewal:  # noqa: ARG001
    """Return the feature for a configuration."""
    assert config.on_unauthorized is not None
    return Renewal(config.on_unauthorized)
