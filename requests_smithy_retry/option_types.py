"""What each kind of option accepts (contract 10.1): one function per kind, value in, value out, or a plain refusal.

A function raises :class:`Refused` with a phrase that says what is allowed; :mod:`options` adds the option's name, the
value and where it came from.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable
from typing import Any

from urllib3.util import Timeout

from .classifier import RetryClassifier, is_classifier
from .finite import is_finite
from .limiter_settings import RateLimiterSettings
from .listeners import EVENTS, is_listener
from .payoff_numbers import PAYOFF_NUMBERS
from .quota import RetryQuota
from .urllib3_rules import Urllib3Rules

TOKEN_CHARACTERS = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""RFC 9110 5.6.2: what a method or a field name is made of."""

MOST_BITS = 10_000
"""A whole number of more could not be written into a message: Python refuses to turn it into text."""

Parse = Callable[[Any], Any]


class Refused(ValueError):
    """A value that is not allowed; the message says what is."""


def whole_number(lowest: int) -> Parse:
    """Accept an int from ``lowest`` on (a bool is none)."""

    def parse(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < lowest or value.bit_length() > MOST_BITS:
            raise Refused(f"a whole number from {lowest} on is allowed")
        return value

    return parse


def number(*, above: float | None = None, unit: str = "seconds", none: bool = False) -> Parse:
    """Accept a finite int or float from 0 on (or strictly above ``above``), and None if ``none``."""
    span = "from 0 on" if above is None else f"above {above:g}"
    allowed = f"a finite number of {unit} {span}{' or None' if none else ''} is allowed"

    def parse(value: Any) -> float | None:
        if value is None and none:
            return None
        if not is_finite(value) or value < 0 or (above is not None and value <= above):
            raise Refused(allowed)
        return value

    return parse


def one_of(*names: str) -> Parse:
    """Accept one of some words, in any case, or the member of an enum that has it as its value."""

    def parse(value: Any) -> str:
        value = value.value if isinstance(value, enum.Enum) else value
        word = value.lower() if isinstance(value, str) else None
        if word not in names:
            raise Refused(f"one of {', '.join(map(repr, names))} is allowed")
        return str(word)

    return parse


def boolean(value: Any) -> bool:
    """Accept True and False alone: 0 and 1 are more often a mistake than a wish."""
    if not isinstance(value, bool):
        raise Refused("True or False is allowed")
    return value


def timeout(value: Any) -> Any:
    """Accept what ``requests`` accepts: seconds, a (connect, read) pair, a urllib3 ``Timeout``, or None."""
    allowed = "seconds above 0, a (connect, read) pair of them, a urllib3 Timeout, or None is allowed"
    if isinstance(value, Timeout):
        return value
    parts = value if isinstance(value, tuple) and len(value) == 2 else (value,)
    for part in parts:
        if part is None:
            continue
        if not is_finite(part) or part <= 0:
            raise Refused(allowed)
    return value


def methods(value: Any) -> frozenset[str] | None:
    """Accept a collection of method names, also an empty one; None means all methods."""
    if value is None:
        return None
    if isinstance(value, (str, bytes)) or not isinstance(value, Collection):
        raise Refused("a collection of method names, or None for all methods, is allowed")
    for name in value:
        if not isinstance(name, str) or name == "" or not TOKEN_CHARACTERS.issuperset(name):
            raise Refused(f"a collection of method names is allowed, and {name!r} is none")
    return frozenset(name.upper() for name in value)


def status_codes(value: Any) -> frozenset[int]:
    """Accept a collection of statuses from 100 to 599, also an empty one."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Collection):
        raise Refused("a collection of statuses from 100 to 599 is allowed")
    for code in value:
        if not isinstance(code, int) or not 100 <= code <= 599:
            raise Refused(f"a collection of statuses from 100 to 599 is allowed, and {code!r} is none")
    return frozenset(int(code) for code in value)


def header_name(value: Any) -> str:
    """Accept the name of a header."""
    if not isinstance(value, str) or value == "" or not TOKEN_CHARACTERS.issuperset(value):
        raise Refused("the name of a header is allowed")
    return value


def quota(value: Any) -> Any:
    """Accept a capacity, the name of a payoff quota, a bucket, or None for no quota."""
    if value is None or isinstance(value, RetryQuota):
        return value
    if isinstance(value, str) and value.lower() in PAYOFF_NUMBERS:
        return value.lower()
    if not is_finite(value) or value < 0:
        names = ", ".join(map(repr, sorted(map(str, PAYOFF_NUMBERS), reverse=True)))
        raise Refused(f"a finite number of tokens from 0 on, {names}, a bucket, or None for no quota is allowed")
    return value


def limiter_settings(value: Any) -> RateLimiterSettings:
    """Accept the numbers of a rate limiter."""
    if not isinstance(value, RateLimiterSettings):
        raise Refused("a RateLimiterSettings is allowed")
    return value


def classifiers(value: Any) -> tuple[RetryClassifier, ...]:
    """Accept an iterable of classifiers."""
    if is_classifier(value) or isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise Refused("a collection of classifiers is allowed")
    items = tuple(value)
    for item in items:
        if not is_classifier(item):
            raise Refused(
                f"a collection of classifiers is allowed, and {item!r} is none: it needs a name and a method "
                "classify_retry(outcome, previous); classifier(function) makes one from a function"
            )
    return items


def models(value: Any) -> tuple[Any, ...]:
    """Accept an iterable of Smithy models, each bound to the endpoint it speaks for."""
    if isinstance(value, tuple) and not value:
        return value  # most have none, and need not import what they are

    from .smithy import SmithyEndpoint, SmithyModel

    if isinstance(value, (str, bytes, SmithyModel, SmithyEndpoint)) or not isinstance(value, Iterable):
        raise Refused("a collection of Smithy models is allowed, each with its endpoint: model.for_endpoint(url)")
    items = tuple(value)
    for item in items:
        if not isinstance(item, SmithyEndpoint):
            raise Refused(
                f"a collection of Smithy models is allowed, and {item!r} is none that knows its endpoint: give "
                "model.for_endpoint(url), or have mount(session, at=url, models=[model]) do it. A model speaks for the "
                "requests to one endpoint alone"
            )
    return items


def idempotency_key(value: Any) -> Any:
    """Accept True, False, or a function that makes a key."""
    if not isinstance(value, bool) and not callable(value):
        raise Refused("True, False, or a function that makes a key is allowed")
    return value


def urllib3_rules(value: Any) -> Urllib3Rules | None:
    """Accept what the translation of a urllib3 ``Retry`` makes, or None."""
    if value is not None and not isinstance(value, Urllib3Rules):
        raise Refused("what a urllib3 Retry given as max_retries is translated to, or None, is allowed")
    return value


def aws_config(value: Any) -> bool | str:
    """Accept True, False, or the name of a profile."""
    if not isinstance(value, bool) and (not isinstance(value, str) or value.strip() == ""):
        raise Refused("True, False, or the name of a profile is allowed")
    return value


def function(value: Any) -> Any:
    """Accept something that can be called, or None."""
    if value is not None and not callable(value):
        raise Refused("a function or None is allowed")
    return value


def listeners(value: Any) -> tuple[Any, ...]:
    """Accept an iterable of listeners."""
    if is_listener(value) or isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise Refused("a collection of listeners is allowed")
    items = tuple(value)
    for item in items:
        if not is_listener(item):
            raise Refused(f"a collection of listeners is allowed, and {item!r} has none of {', '.join(EVENTS)}")
    return items
