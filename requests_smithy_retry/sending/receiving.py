"""Receiving the body of a success (contract 14.4, 14.6): what has it watched, and where it is read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Protocol

from requests import PreparedRequest, Response
from requests.structures import CaseInsensitiveDict

from ..wire.body import WatchedBody, watch
from ..wire.digests import DIGEST_FIELDS, Checks, expected_digests
from .attempt import complete, is_left_for_hooks
from .continuing import KEPT, Continuation, KeptPart, Refused, hold_whole
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
    if heard is not None or is_notable(fields, preload=call.preload):
        _receive_watched(adapter, response, request, call, fields, heard)
    elif call.preload:
        complete(response, request)


def _receive_watched(
    adapter: Sender,
    response: Response,
    request: PreparedRequest,
    call: Call,
    fields: Collection[str],
    heard: Callable[[WatchedBody], None] | None,
) -> None:
    checks, plan = None, None
    if request.method != "HEAD" and response.status_code not in WITHOUT_BODY:
        checks = _checks(response, fields, _option(adapter, call, "verify_digests"))
        plan = _plan(response, request, fields, _option(adapter, call, "resume"))
    if call.preload and not _is_long(plan):
        plan = None
    body = watch(response, checks, heard) if checks or heard or plan else None
    if body is None or not body.is_on_a_wire:
        plan = None
    if call.preload:
        _read(response, request, body is not None, plan, checks)
    elif body is not None:
        body.mend = _mend(plan, functools.partial(adapter.go_on, call), request, response)


def _plan(
    response: Response, request: PreparedRequest, fields: Collection[str], is_wanted: bool
) -> Resumable | str | None:
    """Return how a body may be continued, or why it may not; None where nobody would ask."""
    return None if not is_wanted or VALIDATORS.isdisjoint(fields) else resumable(request, response)


def _mend(
    plan: Resumable | str | None, go_on: Callable[..., Response], request: PreparedRequest, response: Response
) -> Continuation | Refused | None:
    """Return the answer to a body that breaks off in the caller's hands; None: the usual error."""
    if isinstance(plan, Resumable):
        return Continuation(go_on, request, response, plan)
    return Refused(plan) if plan is not None and response.status_code == 200 else None


def _read(
    response: Response,
    request: PreparedRequest,
    is_watched: bool,
    plan: Resumable | str | None,
    checks: Checks | None,
) -> None:
    """Read a body inside the attempt; keep the part that came, if the rest may be asked for later.

    :param plan: how it may be continued, if that is worth while.
    """
    if not is_watched:
        complete(response, request)
    elif checks or not is_left_for_hooks(response, request):
        # A body with a digest is not left unread for hooks: its end may be wrong.
        kept = KeptPart(plan if isinstance(plan, Resumable) else None)
        setattr(response, KEPT, kept)
        kept.read_on(response)
        hold_whole(response, kept)


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


def _is_long(plan: Resumable | str | None) -> bool:
    return isinstance(plan, Resumable) and (plan.end is None or plan.end - plan.start > LONG)


def _option(adapter: Sender, call: Call, name: str) -> bool:
    """Return an option of the operation's, or else that of the adapter."""
    chosen = None if call.options is None else getattr(call.options, name)
    return bool(getattr(adapter.retry_config, name) if chosen is None else chosen)


def _fields(response: Response) -> Collection[str]:
    """Return the header fields by their names in lower case, where somebody gave the response others."""
    headers: Any = CaseInsensitiveDict(response.headers)
    return headers._store  # type: ignore[no-any-return]


def _checks(response: Response, names: Collection[str], is_wanted: bool) -> Checks | None:
    """Return the checks of the digests that were sent; None if no digest was sent, or if they are switched off."""
    if not is_wanted or not 200 <= response.status_code < 300 or DIGEST_FIELDS.isdisjoint(names):
        return None
    headers = CaseInsensitiveDict(response.headers)  # the response may have been given another class of headers
    return Checks(expected_digests(headers, response.status_code)) or None
