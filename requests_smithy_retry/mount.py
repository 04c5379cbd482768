"""Putting the adapter into a session (contract 1).

What it puts there is imported when it is called, so that importing the package costs little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import requests

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .config import RetryConfig, RetryOptions
    from .interfaces import RetryStrategy
    from .smithy import SmithyEndpoint

S = TypeVar("S", bound=requests.Session)


def mount(
    session: S,
    *,
    at: str | None = None,
    config: RetryConfig | None = None,
    strategy: RetryStrategy | None = None,
    **options: Unpack[RetryOptions],
) -> S:
    """Mount one shared :class:`RetryAdapter` on ``http://`` and ``https://``, and return the session.

    >>> session = mount(requests.Session(), max_attempts=5)

    An adapter is not told where it is mounted. So a Smithy model is bound here to the URL it is mounted at:

    >>> from requests_smithy_retry import SmithyModel
    >>> model = SmithyModel.from_dict({"smithy": "2.0", "shapes": {}})
    >>> session = mount(requests.Session(), at="https://api.example.com", models=[model])

    :param session: any ``requests`` session.
    :param at: mount at this URL alone, in place of ``http://`` and ``https://``. Models in ``models`` that have no
        endpoint of their own get this one. (requests takes it as a prefix of the URL, as text; a model takes it as an
        endpoint, so that it never speaks for ``https://api.example.com.elsewhere.net``.)
    :param config: the policy, in place of options.
    :param strategy: any retry strategy, in place of ``mode``.
    :param options: any option of :class:`RetryConfig`.
    :raises RetryConfigError: for a bad option.
    :raises ValueError: if ``at`` is no endpoint, and there is a model to bind to it.
    """
    from .adapter import RetryAdapter

    if at is not None and "models" in options:
        options["models"] = [_bound(item, at) for item in options["models"]]
    adapter = RetryAdapter(config=config, strategy=strategy, **options)
    for prefix in ("http://", "https://") if at is None else (at,):
        session.mount(prefix, adapter)
    return session


def _bound(model: Any, url: str) -> SmithyEndpoint:
    from .smithy import SmithyModel

    return model.for_endpoint(url) if isinstance(model, SmithyModel) else model
