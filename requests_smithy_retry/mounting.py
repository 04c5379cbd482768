"""Mounting the adapter on one session."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import requests
    from typing_extensions import Unpack

    from .config.retry_config import RetryConfig, RetryOptions
    from .core.strategy import RetryStrategy


S = TypeVar("S", bound="requests.Session")


def mount(
    session: S,
    *,
    at: str | None = None,
    config: RetryConfig | None = None,
    strategy: RetryStrategy | None = None,
    defaults: RetryConfig | None = None,
    **options: Unpack[RetryOptions],
) -> S:
    """Mount one shared :class:`RetryAdapter` on ``http://`` and ``https://``, and return the session.

    >>> session = mount(requests.Session(), max_attempts=5)

    :param at: the URL to mount at, in place of ``http://`` and ``https://``.
    :param config: the policy, in place of options.
    :param strategy: any retry strategy, in place of ``mode``.
    :param defaults: options of a library that mounts the adapter for its users: the environment's values, and options
        given here, override them.
    :param options: any option of :class:`RetryConfig`.
    :raises RetryConfigError: for a bad option.
    """
    from .adapter import RetryAdapter

    adapter = RetryAdapter(config=config, strategy=strategy, defaults=defaults, **options)
    for prefix in ("http://", "https://") if at is None else (at,):
        session.mount(prefix, adapter)
    return session
