"""New credentials after a 401, once per operation (contract 2.10): who is asked for them, and about whom.

They are one user's, for one service. So nothing is shared between requests, and they go nowhere but where the program
itself sent the old ones: not to whom the service redirects, for whom requests has taken the old ones off.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from requests import PreparedRequest, Response, Session
from requests.sessions import SessionRedirectMixin

from ..errors import RetryConfigError
from ..urls import scope_of

UNAUTHORIZED = 401
KEYS = frozenset(
    {
        *("authorization", "api-key", "apikey", "x-api-key", "x-auth-token", "x-access-token", "private-token"),
        *("x-goog-api-key", "x-vault-token", "x-shopify-access-token", "ocp-apim-subscription-key", "x-functions-key"),
    }
)
"""The headers by which a request has credentials, in lower case."""

Headers = Mapping[str, str]
Renew = Callable[[Response], Headers | None]

_of_session, _of_redirects = (
    getattr(method, "__code__", None) for method in (Session.request, SessionRedirectMixin.resolve_redirects)
)


class _Asked(threading.local):
    """The functions that are renewing credentials in this thread: requests of their own are not theirs to renew."""

    functions: tuple[Renew, ...] = ()


_asked = _Asked()


def has_credentials(request: PreparedRequest) -> bool:
    """Return True if the program sent credentials with a request."""
    return not KEYS.isdisjoint(str(name).lower() for name in request.headers)


def origin_chosen(request: PreparedRequest) -> str:
    """Return the origin to which the program itself sent what became this request; "" if that cannot be told.

    It is the request's own, unless ``requests`` is following redirects: then it is that of the first request.
    """
    frame: Any = sys._getframe()
    while frame is not None and frame.f_code is not _of_session:
        if frame.f_code is _of_redirects:
            before = frame.f_locals.get("hist")
            return scope_of(str(before[0].request.url)) if before else ""
        frame = frame.f_back
    return scope_of(str(request.url))


def renewed(renew: Renew, response: Response) -> Headers | None:
    """Return the headers with which a refused request is to be sent again; None: it is not.

    :raises RetryConfigError: if the function returns anything but headers or None.
    """
    before = _asked.functions
    if any(renew is one for one in before):
        return None
    _asked.functions = (*before, renew)
    try:
        return _checked(renew(response))
    finally:
        _asked.functions = before


def _checked(headers: Any) -> Headers | None:
    """Return headers as a dict, or None; refuse anything else without showing a value."""
    if headers is None:
        return None
    is_mapping = isinstance(headers, Mapping)
    if is_mapping and all(isinstance(part, (str, bytes)) for item in headers.items() for part in item):
        return dict(headers)
    allowed = "a mapping of headers (name to value) or None is allowed"
    raise RetryConfigError("on_unauthorized", type(headers), "the function's result", allowed)
