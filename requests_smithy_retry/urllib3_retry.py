"""A urllib3 ``Retry`` as options of ours (contract 4.2). Works with urllib3 1.26 and 2.x; pure but for one warning.

Counts, methods and statuses are the user's; backoff in its shape, quota, body rules and the treatment of long hints
are ours. docs/explanation/differences-from-urllib3.md has every difference.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from urllib3.util.retry import Retry

from .errors import RetryConfigError, RetryConfigWarning
from .urllib3_rules import FailureKind, Urllib3Rules

SOURCE = "max_retries"
"""How a translated ``Retry`` is named as the source of a value."""

UNLIMITED = sys.maxsize
"""The attempts of a ``Retry`` that sets no limit. The quota is what ends its retries."""


def translate_retry(retry: Retry) -> dict[str, Any]:
    """The options that a ``Retry`` asks for. What cannot be honoured is listed in one warning.

    :param retry: an instance of urllib3's own class, or of a subclass that overrides none of its methods.
    :raises RetryConfigError: for a subclass that overrides a method, and for counts that are no counts.
    """
    _refuse_overridden(retry)
    dropped = not_honoured(retry)
    if dropped:
        warnings.warn(
            f"max_retries={retry!r}: {'; '.join(dropped)}", RetryConfigWarning, stacklevel=_outside_of_package()
        )
    if is_plain_default(retry):
        return {"max_attempts": 1}
    limits = _limits(retry)
    options: dict[str, Any] = {
        "max_attempts": _max_attempts(retry, limits),
        "retry_status_codes": frozenset(retry.status_forcelist),
        "allowed_methods": _methods(retry),
        "strict_methods": True,
        "raise_on_status": bool(retry.raise_on_status),
        "urllib3_rules": Urllib3Rules(
            limits=limits,
            respect_retry_after=bool(retry.respect_retry_after_header),
            backoff_jitter=float(getattr(retry, "backoff_jitter", 0.0)),
            hinted_status_codes=_hinted_statuses(retry),
        ),
    }
    options.update(_backoff(retry))
    options.update(_longest_hint(retry))
    return options


def is_plain_default(retry: Retry) -> bool:
    """Whether it is what ``HTTPAdapter`` itself has by default: it retries nothing and raises for no status."""
    return retry.total == 0 and not retry.status_forcelist


def not_honoured(retry: Retry) -> list[str]:
    """What a ``Retry`` asks for in vain, a phrase for each."""
    phrases = []
    if retry.redirect:
        phrases.append(f"redirect={retry.redirect!r} has no effect, requests follows redirects itself")
    elif retry.redirect is None and not retry.raise_on_redirect:
        phrases.append("raise_on_redirect=False has no effect, requests follows redirects itself")
    default = frozenset(name.lower() for name in Retry.DEFAULT_REMOVE_HEADERS_ON_REDIRECT)
    if frozenset(retry.remove_headers_on_redirect) != default:
        phrases.append("remove_headers_on_redirect has no effect, requests removes headers itself")
    if retry.history:
        phrases.append("its history is not taken over")
    return phrases


def _refuse_overridden(retry: Retry) -> None:
    overridden = [
        name
        for name, method in vars(Retry).items()
        if not name.startswith("__")
        and name != "new"  # it only makes another instance
        and callable(method)
        and (getattr(type(retry), name) is not method or name in vars(retry))
    ]
    if overridden:
        raise RetryConfigError(
            "max_retries",
            retry,
            "code",
            f"a urllib3 Retry that overrides no method is allowed, and {type(retry).__name__} overrides "
            f"{', '.join(overridden)}: what they decide cannot be translated. Write a classifier (classifiers=...), a "
            "backoff strategy or a retry strategy instead, and give max_attempts",
        )


def _limits(retry: Retry) -> tuple[tuple[FailureKind, int], ...]:
    limits = []
    for kind in FailureKind:
        count = getattr(retry, kind.value)
        if count is None:
            continue
        if count is True or not isinstance(count, int):
            raise RetryConfigError(
                kind.value, count, "max_retries", "a whole number of retries, False or None is allowed"
            )
        limits.append((kind, max(int(count), 0)))
    return tuple(limits)


def _max_attempts(retry: Retry, limits: tuple[tuple[FailureKind, int], ...]) -> int:
    total = retry.total
    if total is None:
        return 1 + sum(most for _, most in limits) if len(limits) == len(FailureKind) else UNLIMITED
    if total is True or not isinstance(total, int):
        raise RetryConfigError("total", total, "max_retries", "a whole number of retries, False or None is allowed")
    return max(total, 0) + 1


def _methods(retry: Retry) -> frozenset[str] | None:
    # urllib3 1.26 lets it be set under its old name on an instance; there, and in 2.x, an empty one means any method.
    methods = vars(retry).get("method_whitelist", retry.allowed_methods)
    return frozenset(methods) if methods else None


def _hinted_statuses(retry: Retry) -> frozenset[int]:
    heeds = retry.total and retry.respect_retry_after_header  # without a total, urllib3 retries none of them
    return frozenset(retry.RETRY_AFTER_STATUS_CODES) if heeds else frozenset()


def _backoff(retry: Retry) -> dict[str, Any]:
    """The user's factor as the base of our backoff; with a factor of 0, ours is left as it is."""
    longest = getattr(retry, "backoff_max", retry.DEFAULT_BACKOFF_MAX)
    factor = retry.backoff_factor
    if factor == 0:
        return {} if longest == Retry.DEFAULT_BACKOFF_MAX else {"max_backoff": longest}
    return {"initial_backoff": factor, "throttling_backoff": factor, "max_backoff": longest}


def _longest_hint(retry: Retry) -> dict[str, Any]:
    """The longest bearable hint, where the user chose one: urllib3's own default is six hours."""
    longest = getattr(retry, "retry_after_max", None)
    if longest is None or longest == Retry.DEFAULT_RETRY_AFTER_MAX:
        return {}
    return {"max_retry_after": longest}


def _outside_of_package() -> int:
    """How far up the stack the caller's own code is, so that a warning points there."""
    frame = sys._getframe(1)
    level = 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == __package__:
        frame = frame.f_back
        level += 1
    return level
