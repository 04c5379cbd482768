"""New credentials after a 401, once per operation (contract 2.10).

They belong to one user of one service. So requests share nothing, and new credentials go only where the program itself
sent the old ones: not to the target of a redirect, for which requests has removed the old ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from requests import Response
from requests.structures import CaseInsensitiveDict

from ..checks import copy_of
from ..clock import Clock
from ..config.retry_config import RetryConfig
from ..core.port import Feature
from ..errors import RetryConfigError
from ..urls import KEYS, scope_of

if TYPE_CHECKING:
    from ..core.call import Call
    from ..core.port import Send

NAME = "renewal"
DONE = "renewal: done"
UNAUTHORIZED = 401
MOST_CHAINS = 1024
"""The most chains of redirects of the process that are remembered; beyond that, the oldest is forgotten."""
Headers = Mapping[str, str]
Renew = Callable[["Response"], Headers | None]


class _OfThread(threading.local):
    """The functions that are renewing credentials in a thread: their own requests renew nothing."""

    asked: tuple[Renew, ...] = ()


_of_thread = _OfThread()
_chains: dict[int, tuple[object, str]] = {}
"""The hooks of each request that was redirected, by their ``id``, and the origin to which the program sent it. requests
shares the hooks with each request that it makes to follow the redirect.
"""


class Renewal(Feature):
    """The seam: redirects are watched, and a 401 is handled before it is classified."""

    def __init__(self, renew: Renew) -> None:
        self.renew = renew

    def around(self, send: Send, call: Call) -> Response:
        response = send(call)
        self._remember(call, response)
        if response.status_code != UNAUTHORIZED or not self._may_renew(call):
            return response
        call.data[DONE] = True
        if call.goes_anew(partial(renewed, self.renew, call.sent.headers), "on_unauthorized"):
            response = send(call)
            self._remember(call, response)
        return response

    def _remember(self, call: Call, response: Response) -> None:
        """Remember the origin that the program chose, for a redirected request and for the rest of a body."""
        hooks = call.request.hooks
        origin = call.data[NAME] = origin_chosen(call)
        if response.is_redirect:
            _chains[id(hooks)] = hooks, origin
            if len(_chains) > MOST_CHAINS:
                _chains.pop(next(iter(list(_chains))), None)
        elif response.status_code < 400:
            _chains.pop(id(hooks), None)
            call.data.pop(DONE, None)  # the credentials were good: they may expire before a body's rest is asked for

    def _may_renew(self, call: Call) -> bool:
        """Return True once for a call with credentials, at the origin to which the program sent them."""
        request = call.request
        if DONE in call.data or any(self.renew is one for one in _of_thread.asked):
            return False
        is_sent_there = origin_chosen(call) == scope_of(str(request.url))
        has_credentials = not KEYS.isdisjoint(str(name).lower() for name in request.headers)
        return is_sent_there and has_credentials and call.facts.obstacle() is None


def origin_chosen(call: Call) -> str:
    """Return the origin to which the program itself sent what became this request."""
    chosen: str | None = call.data.get(NAME)
    hooks, origin = _chains.get(id(call.request.hooks), (None, ""))
    return chosen or (origin if hooks is call.request.hooks else scope_of(str(call.request.url)))


def renewed(renew: Renew, sent: CaseInsensitiveDict[str | bytes], response: Response) -> Headers | None:
    """Return the headers with which to send a refused request again, or None.

    :param sent: the headers that were refused, which the function finds in ``response.request``.
    """
    before, request = _of_thread.asked, response.request
    try:
        _of_thread.asked = (*before, renew)
        if sent is not request.headers:
            response.request = copy_of(request)
            response.request.headers = sent
        return _checked(renew(response))
    finally:
        _of_thread.asked, response.request = before, request
        del sent  # the traceback of an error shows this frame


def _checked(headers: Any) -> Headers | None:
    if headers is None:
        return None
    is_mapping = isinstance(headers, Mapping)
    if is_mapping and all(isinstance(part, (str, bytes)) for item in headers.items() for part in item):
        return dict(headers)
    kind = type(headers)
    del headers  # the error's traceback shows the locals of this frame
    allowed = "a mapping of headers (name to value) or None is allowed"
    raise RetryConfigError("on_unauthorized", kind, "the function's result", allowed)


def feature(config: RetryConfig, clock: Clock) -> Renewal:
    assert config.on_unauthorized is not None
    return Renewal(config.on_unauthorized)
