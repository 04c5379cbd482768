"""Receiving the body of a success (contract 14.4, 14.6): what has it watched, and where it is read."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Protocol

from requests import PreparedRequest, Response
from requests.structures import CaseInsensitiveDict

from ..wire.body import WatchedBody, watch
from ..wire.digests import DIGEST_FIELDS, Checks, expected_digests
from .attempt import complete, is_left_for_hooks
from .continuing import mend, read_in_parts, refuse
from .resuming import Resumable, resumable

if TYPE_CHECKING:
    from ..config.retry_config import RetryConfig
    from .attempt import Call

VALIDATORS = frozenset({"etag", "last-modified"})
NOTABLE = frozenset({"content-encoding", *VALIDATORS, *DIGEST_FIELDS})
"""The header fields, in lower case, for which a body is more than bytes to be read."""

is_plain: Callable[[Collection[str]], bool] = NOTABLE.isdisjoint
"""Tells from the names of a response's header fields, in lower case, whether :func:`receive` would only read."""

WITHOUT_BODY = frozenset({204, 205, 304})
LONG = 100_000
"""A shorter body that breaks off inside an attempt is begun anew: asking for its rest would save nothing."""
_DIGITS = len(str(LONG))


class Sender(Protocol):
    """The adapter as seen from here."""

    retry_config: RetryConfig

    @property
    def go_on(self) -> Callable[..., Response]:
        """The method that asks for the rest of a body."""
        ...


def receive(adapter: Sender, response: Response, request: PreparedRequest, call: Call) -> None:
    """Have the body of a success watched where there is reason to, and read it where that is wanted.

    :param adapter: sends again where a body in the caller's hands breaks off.
    :param response: its status is below 400, and nothing of its body was read.
    :param request: as it was sent.
    :raises Exception: for a body that is not whole, or not the one that was sent.
    """
    fields: Any = getattr(response.headers, "_store", None) or _fields(response)
    heard = None if call.observed is None else call.observed.heard
    is_special = heard is not None or is_notable(fields, preload=call.preload)
    is_watched = is_special and _receive_watched(adapter, response, request, call, fields, heard)
    if call.preload and not is_watched:
        complete(response, request)


def _receive_watched(
    adapter: Sender,
    response: Response,
    request: PreparedRequest,
    call: Call,
    fields: Collection[str],
    heard: Callable[[WatchedBody], None] | None,
) -> bool:
    """Have a body watched, and read it where that is wanted. False: there is no reason to watch it, or no way."""
    checks = plan = None
    if request.method != "HEAD" and response.status_code not in WITHOUT_BODY:
        checks = _checks(adapter, response, call, fields)
        plan = _plan(adapter, response, request, call, fields)
    body = watch(response, checks, heard) if checks or heard or plan else None
    if body is None:
        return False
    if not body.is_on_a_wire:
        plan = None
    if not call.preload:
        body.mend = _mend(adapter, response, request, call, plan)
    elif checks or not is_left_for_hooks(response, request):
        # A body with a digest is not left unread for hooks: its end may be wrong.
        read_in_parts(response, plan if isinstance(plan, Resumable) else None, [])
    return True


def _mend(
    adapter: Sender, response: Response, request: PreparedRequest, call: Call, plan: Resumable | str | None
) -> Callable[[WatchedBody, Exception], None] | None:
    """Return the answer to a body that breaks off in the caller's hands; None: the usual error."""
    if isinstance(plan, Resumable):
        return functools.partial(mend, functools.partial(adapter.go_on, call), request, weakref.ref(response), plan)
    return functools.partial(refuse, plan) if plan is not None and response.status_code == 200 else None


def is_notable(fields: Any, *, preload: bool) -> bool:
    """Return True for a body that is checked, or that is continued where it breaks off, by the fields of its head.

    :param fields: by their names in lower case, those of ``requests`` with the field as it was sent, too.
    :param preload: it is read inside the attempt, where a short one is begun anew instead.
    """
    if not DIGEST_FIELDS.isdisjoint(fields):
        return True
    if VALIDATORS.isdisjoint(fields):
        return False
    return not preload or "content-length" not in fields or len(fields["content-length"][1]) >= _DIGITS


def _is_wanted(adapter: Sender, call: Call, name: str) -> bool:
    """Return an option of the operation's, or else that of the adapter."""
    chosen = None if call.options is None else getattr(call.options, name)
    return bool(getattr(adapter.retry_config, name) if chosen is None else chosen)


def _fields(response: Response) -> Collection[str]:
    """Return the header fields by their names in lower case, where somebody gave the response others."""
    headers: Any = CaseInsensitiveDict(response.headers)
    return headers._store  # type: ignore[no-any-return]


def _plan(
    adapter: Sender, response: Response, request: PreparedRequest, call: Call, fields: Collection[str]
) -> Resumable | str | None:
    """Return how a body may be continued, or why it may not; None where nobody would ask."""
    if VALIDATORS.isdisjoint(fields) or not _is_wanted(adapter, call, "resume"):
        return None
    plan = resumable(request, response)
    if not call.preload:
        return plan
    is_long = isinstance(plan, Resumable) and (plan.end is None or plan.end - plan.start > LONG)
    return plan if is_long else None


def _checks(adapter: Sender, response: Response, call: Call, fields: Collection[str]) -> Checks | None:
    """Return the checks of the digests that were sent; None if no digest was sent, or if they are switched off."""
    if not 200 <= response.status_code < 300 or DIGEST_FIELDS.isdisjoint(fields):
        return None
    if not _is_wanted(adapter, call, "verify_digests"):
        return None
    headers = CaseInsensitiveDict(response.headers)  # the response may have been given another class of headers
    return Checks(expected_digests(headers, response.status_code)) or None
