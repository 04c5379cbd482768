"""Putting the adapter into a session (contract 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import requests

from .adapter import RetryAdapter
from .config import RetryConfig, RetryOptions
from .interfaces import RetryStrategy

if TYPE_CHECKING:
    from typing_extensions import Unpack

S = TypeVar("S", bound=requests.Session)


def mount(
    session: S,
    *,
    config: RetryConfig | None = None,
    strategy: RetryStrategy | None = None,
    **options: Unpack[RetryOptions],
) -> S:
    """Mount one shared :class:`RetryAdapter` on ``http://`` and ``https://``, and return the session.

    >>> session = mount(requests.Session(), max_attempts=5)

    :param session: any ``requests`` session.
    :param config: the policy, in place of options.
    :param strategy: any retry strategy, in place of ``mode``.
    :param options: any option of :class:`RetryConfig`.
    :raises RetryConfigError: for a bad option.
    """
    adapter = RetryAdapter(config=config, strategy=strategy, **options)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session
