"""The parsers of option values (contract 10.1): one function per kind, value in, value out, or a plain refusal.

A function raises :class:`Refused` with a phrase that says what is allowed; :mod:`options` adds the option's name, the
value and where it came from.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable
from typing import Any

from ..checks import Parse, Refused, is_finite
from ..classifiers.protocol import RetryClassifier, is_classifier, priority_of
from ..pacing.announced import RateLimitDialect, dialects_of
from ..pacing.limiter_settings import RateLimiterSettings
from ..quotas.bucket import RetryQuota

TOKEN_CHARACTERS = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""The characters of a method or a field name, by RFC 9110 5.6.2."""

EVERY_METHOD = frozenset({"*", "all", "any"})
"""Words that people write for all methods. Taken as names of methods, they would match no request."""

LONGEST_TIMEOUT = 2_147_483
"""The longest time-out of a socket, in seconds. Beyond 31 bits of milliseconds, Python raises ``OverflowError``."""


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


def pacing(value: Any) -> Any:
    """Accept ``"announced"``, ``"off"``, and the rows of further dialects, which are kept as a tuple."""
    value = value.lower() if isinstance(value, str) else value
    dialects_of(value)
    if isinstance(value, str):
        return value
    return (value,) if isinstance(value, RateLimitDialect) else tuple(value)


def timeout(value: Any) -> Any:
    """Accept what ``requests`` accepts: seconds, a (connect, read) pair, a urllib3 ``Timeout``, or None."""
    span = f"above 0 and up to {LONGEST_TIMEOUT}"
    allowed = f"seconds {span}, a (connect, read) pair of them, a urllib3 Timeout, or None is allowed"
    parts = value if isinstance(value, tuple) and len(value) == 2 else (value,)
    if all(part is None or (is_finite(part) and 0 < part <= LONGEST_TIMEOUT) for part in parts):
        return value
    if type(value).__module__ == "builtins":  # text above all: the environment's policy is checked without urllib3
        raise Refused(allowed)

    from urllib3.util import Timeout

    if not isinstance(value, Timeout):
        raise Refused(allowed)
    return value


def methods(value: Any) -> frozenset[str] | None:
    """Accept a collection of method names, which may be empty; None means all methods."""
    if value is None:
        return None
    if isinstance(value, (str, bytes)) or not isinstance(value, Collection):
        raise Refused("a collection of method names, or None for all methods, is allowed")
    for name in value:
        if not isinstance(name, str) or name == "" or not TOKEN_CHARACTERS.issuperset(name):
            raise Refused(f"a collection of method names is allowed, and {name!r} is not one")
        if name.lower() in EVERY_METHOD:
            raise Refused(f"a collection of method names is allowed, and {name!r} is not one: None means all")
    return frozenset(name.upper() for name in value)


def header_name(value: Any) -> str:
    if not isinstance(value, str) or value == "" or not TOKEN_CHARACTERS.issuperset(value):
        raise Refused("the name of a header is allowed")
    return value


def quota(value: Any) -> Any:
    """Accept a capacity, ``"payoff"``, a bucket, or None for no quota."""
    if value is None or isinstance(value, RetryQuota):
        return value
    if isinstance(value, str) and value.lower() == "payoff":
        return value.lower()
    if not is_finite(value) or value < 0:
        raise Refused("a finite number of tokens (0 or more), 'payoff', a bucket, or None for no quota is allowed")
    return value


def limiter_settings(value: Any) -> RateLimiterSettings:
    if not isinstance(value, RateLimiterSettings):
        raise Refused("a RateLimiterSettings is allowed")
    return value


def classifiers(value: Any) -> tuple[RetryClassifier, ...]:
    if is_classifier(value) or isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise Refused("a collection of classifiers is allowed")
    items = tuple(value)
    for item in items:
        if not is_classifier(item):
            raise Refused(
                f"a collection of classifiers is allowed, and {item!r} is not one: it needs a name and a method "
                "classify_retry(outcome, previous); classifier(function) makes one from a function"
            )
        try:
            priority_of(item)
        except TypeError as error:
            raise Refused(f"of the classifier {item.name!r}, {error}") from None
    return items


def models(value: Any) -> tuple[Any, ...]:
    """Accept an iterable of Smithy models, each bound to the endpoint it speaks for."""
    if isinstance(value, tuple) and not value:
        return value  # most adapters have no model and need not import the module

    from ..smithy import SmithyEndpoint, SmithyModel

    if isinstance(value, (str, bytes, SmithyModel, SmithyEndpoint)) or not isinstance(value, Iterable):
        raise Refused("a collection of Smithy models is allowed, each with its endpoint: model.for_endpoint(url)")
    items = tuple(value)
    for item in items:
        if not isinstance(item, SmithyEndpoint):
            raise Refused(
                f"a collection of Smithy models is allowed, and {item!r} does not know its endpoint: give "
                "model.for_endpoint(url), or have mount(session, at=url, models=[model]) do it. A model speaks for the "
                "requests to one endpoint alone"
            )
    return items


def idempotency_key(value: Any) -> Any:
    if not isinstance(value, bool) and not callable(value):
        raise Refused("True, False, or a function that makes a key is allowed")
    return value


def aws_config(value: Any) -> bool | str:
    if not isinstance(value, bool) and (not isinstance(value, str) or value.strip() == ""):
        raise Refused("True, False, or the name of a profile is allowed")
    return value


def function(value: Any) -> Any:
    if value is not None and not callable(value):
        raise Refused("a function or None is allowed")
    return value


TELEMETRY = ("log", "otel", "prometheus")
"""The kinds of telemetry that need no code."""


def telemetry(value: Any) -> tuple[str, ...]:
    """Accept a collection of names of :data:`TELEMETRY`."""
    allowed = "a collection of 'log', 'otel' and 'prometheus' is allowed"
    if isinstance(value, (str, bytes)) or not isinstance(value, Collection):
        raise Refused(allowed)
    for name in value:
        if not isinstance(name, str) or name.lower() not in TELEMETRY:
            raise Refused(f"{allowed}, and {name!r} is not one")
    return tuple(sorted({name.lower() for name in value}))


EVENTS = ("before_attempt", "after_attempt", "retry_scheduled", "throttled", "gave_up", "succeeded", "body_progress")
"""The methods of a listener."""


def is_listener(value: Any) -> bool:
    return not isinstance(value, type) and any(callable(getattr(value, name, None)) for name in EVENTS)


def listeners(value: Any) -> tuple[Any, ...]:
    if is_listener(value) or isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise Refused("a collection of listeners is allowed")
    items = tuple(value)
    for item in items:
        if not is_listener(item):
            raise Refused(f"a collection of listeners is allowed, and {item!r} has none of {', '.join(EVENTS)}")
    return items
