"""The library's own exceptions, all on one screen.

A caller of ``requests`` meets none of them from a send: there the last attempt's own exception comes through
(contract 2). They are for those who drive a strategy by hand, and for bad configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .finite import shown
from .stop_reason import StopReason

if TYPE_CHECKING:
    from .classification import Classification


class RetryError(Exception):
    """No further attempt: what a strategy raises instead of giving a token (contract 1).

    :param message: one sentence.
    :param stop_reason: the rule that said no.
    :param delay: for long polling, the seconds to wait before the outcome is handed on; else None.
    :param classification: the verdict behind the refusal, where there is one.
    """

    def __init__(
        self,
        message: str = "",
        *,
        stop_reason: StopReason = StopReason.STRATEGY_REFUSED,
        delay: float | None = None,
        classification: Classification | None = None,
    ) -> None:
        super().__init__(message or stop_reason.value)
        self.stop_reason = stop_reason
        self.delay = delay
        self.classification = classification


class TokenError(ValueError):
    """A token that was used before, or that another strategy issued (contract 6.1)."""


class RetryConfigError(ValueError):
    """A bad option. The message names the option, the value, where it came from, and what is allowed.

    :param option: the option's name.
    :param value: what was given.
    :param source: where it came from.
    :param allowed: what is allowed instead.
    """

    def __init__(self, option: str, value: object, source: str, allowed: str) -> None:
        value = _without_secrets(option, value)
        super().__init__(f"{option}={shown(value)} (from {source}): {allowed}")
        self.option = option
        self.value = value
        self.source = source
        self.allowed = allowed

    def __reduce__(self) -> tuple[type[RetryConfigError], tuple[str, object, str, str]]:
        return type(self), (self.option, self.value, self.source, self.allowed)


class RetryConfigWarning(UserWarning):
    """Something in the configuration is very likely not what was meant, or cannot be honoured."""


URL_SCHEMES = ("http", "https", "redis", "rediss", "unix", "shm", "memory")
"""What may be shown of a refused URL."""


def _without_secrets(option: str, value: object) -> object:
    """The value, unless it looks like a URL: that may hold a password, in a part that cannot be told when it is bad.

    An object that knows what of it may be shown says so by ``without_secrets``.
    """
    own = getattr(value, "without_secrets", None)
    if isinstance(own, str):
        return own
    if not isinstance(value, str):
        hidden = option in ("quota", "quota_url") and "://" in shown(value)  # bytes, say, or a list of URLs
        return f"<{type(value).__name__}>" if hidden else value
    if option != "quota_url" and "://" not in value:
        return value
    scheme = value.partition("://")[0]
    return f"{scheme}://..." if scheme in URL_SCHEMES and "://" in value else "..."
