"""What ``max_retries`` means here: a urllib3 ``Retry`` is never run beneath our own (contract 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from urllib3.util.retry import Retry

from .errors import RetryConfigError
from .urllib3_retry import SOURCE, translate_retry

if TYPE_CHECKING:
    from .config import RetryConfig

INNER_RETRY = Retry(0, read=False)
"""What urllib3 is given: it retries nothing."""


class Unset:
    """Stands for "not given" where None and 0 mean something."""

    def __repr__(self) -> str:
        return "<not given>"


UNSET = Unset()


def translate(max_retries: Any) -> dict[str, Any]:
    """The options that a ``max_retries`` asks for.

    :param max_retries: ``0`` or ``False``: one attempt; an int: so many retries; None: urllib3's default,
        three retries, as in ``HTTPAdapter``; a urllib3 ``Retry``: see :mod:`urllib3_retry`.
    :raises RetryConfigError: for anything else, and for a ``Retry`` that cannot be translated.
    """
    if isinstance(max_retries, Unset):
        return {}
    if max_retries is None:
        return {"max_attempts": translate_retry(Retry.DEFAULT)["max_attempts"]}
    if isinstance(max_retries, int) and max_retries is not True and max_retries >= 0:
        return {"max_attempts": max_retries + 1}
    if isinstance(max_retries, Retry):
        return translate_retry(max_retries)
    raise RetryConfigError(
        SOURCE, max_retries, "code", "a whole number of retries from 0 on, False, None or a urllib3 Retry is allowed"
    )


def with_translated(config: RetryConfig, translated: dict[str, Any]) -> RetryConfig:
    """A config with what a ``max_retries`` asks for, in place of what an earlier one asked for.

    :param config: the config.
    :param translated: from :func:`translate`; empty where nothing was given, so that nothing changes.
    """
    if not translated:
        return config
    return config.without(SOURCE).replace_from(dict.fromkeys(translated, SOURCE), **translated)
