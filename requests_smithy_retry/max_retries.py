"""What ``max_retries`` means here: a urllib3 ``Retry`` is never run beneath our own (contract 2)."""

from __future__ import annotations

from typing import Any

from urllib3.util.retry import Retry

from .errors import RetryConfigError

INNER_RETRY = Retry(0, read=False)
"""What urllib3 is given: it retries nothing."""


class Unset:
    """Stands for "not given" where None and 0 mean something."""

    def __repr__(self) -> str:
        return "<not given>"


UNSET = Unset()


def translate(max_retries: Any) -> dict[str, Any]:
    """The options that a ``max_retries`` asks for.

    :param max_retries: ``0``, ``False`` or a ``Retry`` that retries nothing: one attempt; an int: so many retries.
    :raises RetryConfigError: for anything else.
    """
    if isinstance(max_retries, Unset):
        return {}
    if max_retries is False:
        return {"max_attempts": 1}
    if isinstance(max_retries, int) and max_retries is not True and max_retries >= 0:
        return {"max_attempts": max_retries + 1}
    if isinstance(max_retries, Retry) and retries_nothing(max_retries):
        return {"max_attempts": 1}
    raise RetryConfigError(
        "max_retries",
        max_retries,
        "code",
        "a whole number of retries from 0 on is allowed. A urllib3 Retry would run beneath this adapter and multiply "
        "the requests; give max_attempts and the other options of RetryAdapter instead",
    )


def retries_nothing(retry: Retry) -> bool:
    """Whether a urllib3 ``Retry`` never retries."""
    if retry.total is False or (retry.total is not None and retry.total <= 0):
        return True
    return retry.total is None and not any((retry.connect, retry.read, retry.status, retry.other))
