"""Idempotency keys (contract 4.2, issue 3; the IETF draft on the Idempotency-Key header): is there one, and minting.

Pure: nothing here changes a request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .errors import RetryConfigError
from .resend import IDEMPOTENT_METHODS

if TYPE_CHECKING:
    from requests import PreparedRequest


def has_key(headers: Mapping[str, Any], name: str) -> bool:
    """Whether a request carries an idempotency key that is not blank; the draft's quotes do not count.

    :param name: of the header.
    """
    value = headers.get(name)
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    return isinstance(value, str) and value.strip(' \t"') != ""


def new_key() -> str:
    """A random UUID as the draft writes it: a string of RFC 8941, which has quotes around it."""
    from uuid import uuid4  # it brings much that others do not need

    return f'"{uuid4()}"'


def key_for(request: PreparedRequest, header: str, option: bool | Callable[..., str]) -> str | None:
    """The key to send with a request, or None: it needs none, has one, or nobody asked for one.

    Methods that are idempotent by themselves (RFC 9110 9.2.2) need none.

    :param header: where the request would have one.
    :param option: what ``idempotency_key`` holds: False, True, or a function of the request (or of nothing).
    :raises RetryConfigError: if the function gives something that cannot be sent as a key.
    """
    if option is False:
        return None
    if str(request.method).upper() in IDEMPOTENT_METHODS or has_key(request.headers, header):
        return None
    if option is True:
        return new_key()
    assert callable(option)
    key: object = option(request) if _takes_request(option) else option()
    if not isinstance(key, str) or not key.isascii() or not key.isprintable() or key.strip(' "') == "":
        # The value is not shown: no header value goes into a message.
        raise RetryConfigError(
            "idempotency_key", type(key), "the function's result", "a text of printable ASCII, not blank, is allowed"
        )
    return key


def _takes_request(function: Callable[..., object]) -> bool:
    import inspect

    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:  # a callable written in C may have no signature
        return True
    return True
