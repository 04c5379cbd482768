"""Receiving the body of a success (contract 14.4, 14.6): what has it watched, and where it is read."""

from __future__ import annotations

from requests import PreparedRequest, Response
from requests.structures import CaseInsensitiveDict

from ..config.retry_config import RetryConfig
from ..config.retry_options import OperationOptions
from ..wire.body import watch
from ..wire.digests import DIGEST_FIELDS, Checks, expected_digests
from .held_response import complete

NOTABLE = frozenset({"content-encoding", *DIGEST_FIELDS})
"""The header fields, in lower case, for which a body is more than bytes to be read."""

is_plain = NOTABLE.isdisjoint
"""Tells from the names of a response's header fields, in lower case, whether :func:`receive` would only read."""

WITHOUT_BODY = frozenset({204, 205, 304})


def receive(
    response: Response,
    request: PreparedRequest,
    config: RetryConfig,
    options: OperationOptions | None,
    *,
    preload: bool,
) -> None:
    """Have the body of a success watched where there is reason to, and read it where that is wanted.

    :param response: its status is below 400, and nothing of its body was read.
    :param request: that was sent.
    :param config: of the adapter.
    :param options: of the ``retry_options`` blocks around the operation, or None.
    :param preload: read the body now.
    :raises Exception: for a body that is not whole, or not the one that was sent.
    """
    checks = _checks(response, request, config, options)
    is_watched = bool(checks) and watch(response, checks) is not None
    if preload:
        # A body with a digest is not left unread for hooks: its end may be wrong.
        complete(response, None if is_watched else request)


def _checks(
    response: Response, request: PreparedRequest, config: RetryConfig, options: OperationOptions | None
) -> Checks | None:
    """Return the checks of the digests that were sent; None if there are none, or if they are switched off."""
    chosen = None if options is None else options.verify_digests
    is_wanted = config.verify_digests if chosen is None else chosen
    if not is_wanted or request.method == "HEAD" or response.status_code in WITHOUT_BODY:
        return None
    if not 200 <= response.status_code < 300 or DIGEST_FIELDS.isdisjoint(map(str.lower, response.headers)):
        return None
    headers = CaseInsensitiveDict(response.headers)  # somebody may have given it others
    return Checks(expected_digests(headers, response.status_code))


def unless_of_odd_headers(
    error: Exception, response: Response | None, request: PreparedRequest, config: RetryConfig, *, preload: bool
) -> Exception | None:
    """Return the error of an attempt; but receive the body if the error is that :data:`is_plain` could not be asked.

    So it is where somebody gave the response headers of another class than that of requests.
    """
    if response is None or not isinstance(error, AttributeError) or hasattr(response.headers, "_store"):
        return error
    try:
        receive(response, request, config, None, preload=preload)
    except Exception as found:
        return found
    return None
