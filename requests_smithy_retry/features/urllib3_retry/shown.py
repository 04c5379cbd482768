"""What ``max_retries`` reads as (contract 2.9, 4.2): its value and options, and urllib3's part."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

from urllib3.util.retry import Retry

from ...config.options import UNSET
from ...core.line import UNLIMITED
from ...errors import RetryConfigError
from .translation import SOURCE, translate_retry

if TYPE_CHECKING:
    from ...config.retry_config import RetryConfig


class InnerRetry(Retry):
    """Retries nothing, even if it is changed. Each response refers to it (``response.raw.retries``)."""

    def __init__(self) -> None:
        vars(self).update(vars(Retry(0, read=False)))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{name} cannot be set: urllib3 was given this Retry beneath a RetryAdapter. Change adapter.max_retries"
        )

    def is_retry(self, *_: Any, **__: Any) -> bool:
        return False

    def new(self, **options: Any) -> Any:
        return Retry(0, read=False).new(**options)

    def __reduce__(self) -> Any:
        return Retry, (0, None, False)


INNER_RETRY: Retry = InnerRetry()
"""The ``Retry`` that urllib3 is given."""


def translate(max_retries: Any) -> dict[str, Any]:
    """Return the options that a ``max_retries`` asks for: a number of retries, None or a urllib3 ``Retry``.

    :raises RetryConfigError: for anything else, and for a ``Retry`` that cannot be translated.
    """
    if max_retries is UNSET:
        return {}
    if isinstance(max_retries, InnerRetry):
        return {"max_attempts": 1}
    if max_retries is None:
        return {"max_attempts": translate_retry(Retry.DEFAULT)["max_attempts"]}
    if isinstance(max_retries, Retry):
        return translate_retry(max_retries)
    if isinstance(max_retries, (int, float)) and max_retries is not True and max_retries >= 0:
        if max_retries == math.inf:
            return {"max_attempts": UNLIMITED}
        if max_retries == int(max_retries):
            return {"max_attempts": int(max_retries) + 1}
    raise RetryConfigError(
        SOURCE, max_retries, "code", "a whole number of retries (0 or more), False, None or a urllib3 Retry is allowed"
    )


def with_translated(config: RetryConfig, translated: dict[str, Any]) -> RetryConfig:
    """Return a config with the options of a ``max_retries`` in place of those of an earlier one."""
    if not translated:
        return config
    return config.without(SOURCE).replace_from(dict.fromkeys(translated, SOURCE), **translated)


class ShownRetry:
    """The ``Retry`` that an adapter shows, with its settings and its options at that time."""

    def __init__(self, retry: Retry, options: dict[str, Any]) -> None:
        # A later change in place does not reach these.
        self.seen: dict[str, Any] = {
            name: copy.copy(value) if isinstance(value, (set, list, dict)) else value
            for name, value in vars(retry).items()
        }
        self.retry = retry
        self.options = options

    def put_into(self, raw: Any) -> None:
        """Have the raw response of a first try refer to the ``Retry``, unused, as it would with ``HTTPAdapter``."""
        if getattr(raw, "retries", None) is INNER_RETRY:
            raw.retries = self.retry

    def used(self, retries: int, history: tuple[Any, ...]) -> Retry:
        """Return the ``Retry`` that is left after some retries."""
        left = copy.copy(self.retry)
        if left.total:
            left.total = max(left.total - retries, 0)
        left.history = history
        return left

    @classmethod
    def of(cls, max_retries: Any, options: dict[str, Any]) -> ShownRetry | None:
        """Return one for a ``max_retries`` that is a ``Retry``; None for a number."""
        return cls(max_retries, options) if isinstance(max_retries, Retry) else None

    def is_changed(self) -> bool:
        return vars(self.retry) != self.seen

    def translated_anew(self) -> ShownRetry:
        """Return the same ``Retry`` with its settings of now; raise ``RetryConfigError`` where that is impossible."""
        seen = ShownRetry(self.retry, {})  # before it is translated: a change made meanwhile is noticed later on
        seen.options = translate_retry(self.retry)
        return seen

    def copied(self) -> ShownRetry:
        """Return the same with a ``Retry`` of its own, for another adapter."""
        return ShownRetry(copy.copy(self.retry), self.options)


def refuse_own_max_retries(adapter_class: Any, base: type) -> None:
    """Refuse a subclass that has a ``max_retries`` of its own: urllib3 would retry each of our attempts."""
    own = adapter_class.max_retries
    if own is not vars(base)["max_retries"]:
        raise RetryConfigError(
            "max_retries",
            own,
            f"class {adapter_class.__name__}",
            "no max_retries in a subclass is allowed: urllib3 would retry beneath this adapter, and multiply each "
            "of its attempts. Give max_retries or max_attempts to the constructor",
        )
