"""The parsers of option values (contract 10.1): one function per kind, value in, value out, or a plain refusal.

A function raises :class:`BadValue` with a phrase that says what is allowed; :mod:`options` adds the option's name, the
value and where it came from.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from ..checks import LONGEST_TIMEOUT, BadValue, Parse, is_finite, items_of
from ..classifiers.protocol import Only, RetryClassifier, is_classifier, priority_of
from ..core.quota import RetryQuota

TOKEN_CHARACTERS = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""The characters of a method or a field name, by RFC 9110 5.6.2."""

NO_METHODS = frozenset({"*", "all", "any", "none"})
"""Words that people write for all methods, or for none. As names of methods they would match no request."""


def only(allowed: str, is_allowed: Callable[[Any], bool]) -> Parse:
    """Accept the values that pass a test, as they are."""

    def parse(value: Any) -> Any:
        if not is_allowed(value):
            raise BadValue(f"{allowed} is allowed")
        return value

    return parse


def is_name(value: Any) -> bool:
    return isinstance(value, str) and value != "" and TOKEN_CHARACTERS.issuperset(value)


def is_bool(value: Any) -> bool:
    return isinstance(value, bool)


boolean: Parse = only("True or False", is_bool)
"""0 and 1 are refused, because they are usually a mistake."""
idempotency_key: Parse = only(
    "True, False, or a function that makes a key", lambda value: is_bool(value) or callable(value)
)
aws_config: Parse = only(
    "True, False, or the name of a profile",
    lambda value: is_bool(value) or (isinstance(value, str) and value.strip() != ""),
)
backoff: Parse = only(
    "a finite number of seconds (0 or more), a backoff strategy, a function of (attempt, outcome), or None",
    lambda value: (
        value is None
        or (is_finite(value) and value >= 0)
        or (
            not isinstance(value, type)
            and (callable(value) or callable(getattr(value, "compute_next_backoff_delay", None)))
        )
    ),
)
event: Parse = only("a threading.Event", lambda value: callable(getattr(value, "is_set", None)))
function: Parse = only("a function or None", lambda value: value is None or callable(value))


def one_of(*names: str) -> Parse:
    """Accept one of some words, in any case, or a member of an enum with such a value."""

    def parse(value: Any) -> str:
        value = value.value if isinstance(value, enum.Enum) else value
        word = value.lower() if isinstance(value, str) else None
        if word not in names:
            raise BadValue(f"one of {', '.join(map(repr, names))} is allowed")
        return str(word)

    return parse


def pacing(value: Any) -> Any:
    if isinstance(value, str):
        return one_of("announced", "off")(value)
    from ..features.rate_limits import RateLimitDialect  # few have a dialect of their own

    rows = (value,) if isinstance(value, RateLimitDialect) else value
    is_some = isinstance(rows, Collection) and len(rows) > 0
    if not is_some or not all(isinstance(row, RateLimitDialect) for row in rows):
        raise BadValue("'announced', 'off', a RateLimitDialect, or a collection of them is allowed")
    return tuple(rows)


def validate(value: Any) -> Any:
    if value is None:
        return None
    from ..features.validate import parse  # few need it

    return parse(value)


def deadline_header(value: Any) -> Any:
    if value is None:
        return None
    from ..features.deadline_header import parse  # few need it

    return parse(value)


def on_redis(value: Any) -> Any:
    from ..features.redis import parse  # few need it

    return parse(value)


def timeout(value: Any) -> Any:
    """Accept what ``requests`` accepts: seconds, a (connect, read) pair, a urllib3 ``Timeout``, or None."""
    parts = value if isinstance(value, tuple) and len(value) == 2 else (value,)
    if all(part is None or (is_finite(part) and 0 < part <= LONGEST_TIMEOUT) for part in parts):
        return value
    if type(value).__module__ != "builtins":  # no text: the environment's policy is checked without urllib3
        from urllib3.util import Timeout

        if isinstance(value, Timeout):
            return value
    span = f"seconds above 0 and up to {LONGEST_TIMEOUT}"
    raise BadValue(f"{span}, a (connect, read) pair of them, a urllib3 Timeout, or None is allowed")


def methods(value: Any) -> frozenset[str] | None:
    if value is None:
        return None
    allowed = "a collection of method names"
    names = items_of(value, allowed, is_name, kind=Collection, whole=f"{allowed}, or None for all methods, is allowed")
    for name in names:
        if name.lower() in NO_METHODS:
            raise BadValue(f"{allowed} is allowed, and {name!r} is not one: None means all")
    return frozenset(name.upper() for name in names)


def quota(value: Any) -> Any:
    if value is None or isinstance(value, RetryQuota) or (is_finite(value) and value >= 0):
        return value
    if isinstance(value, str) and value.lower() == "payoff":
        return value.lower()
    if (isinstance(value, str) and "://" in value) or hasattr(value, "pipeline"):
        with suppress(BadValue):
            return on_redis(value)
    elif callable(value) and not isinstance(value, type):
        return value
    raise BadValue(
        "a finite number of tokens (0 or more), 'payoff', a redis://, rediss:// or unix:// URL (special characters "
        "percent-encoded), a client of redis-py, a bucket, a function that makes one for a scope, or None for no quota "
        "is allowed"
    )


def classifiers(value: Any) -> tuple[RetryClassifier, ...]:
    otherwise = (
        "is not one: it needs a name and a method classify_retry(outcome, previous); classifier(function) makes one "
        "from a function"
    )
    items = items_of(value, "a collection of classifiers", is_classifier, otherwise=otherwise)
    for item in items:
        try:
            priority_of(item)
        except TypeError as error:  # noqa: PERF203 - a handful, once per adapter
            raise BadValue(f"of the classifier {item.name!r}, {error}") from None
    return Only(items) if isinstance(value, Only) else items


TELEMETRY = ("log", "otel", "prometheus")


def telemetry(value: Any) -> tuple[str, ...]:
    names = items_of(
        value,
        "a collection of 'log', 'otel' and 'prometheus'",
        lambda name: isinstance(name, str) and name.lower() in TELEMETRY,
        kind=Collection,
    )
    return tuple(sorted({name.lower() for name in names}))


EVENTS = (
    *("before_attempt", "after_attempt", "wait_began", "retry_scheduled"),
    *("throttled", "gave_up", "succeeded", "body_progress"),
)


def is_listener(value: Any) -> bool:
    return not isinstance(value, type) and any(callable(getattr(value, name, None)) for name in EVENTS)


def listeners(value: Any) -> tuple[Any, ...]:
    return items_of(value, "a collection of listeners", is_listener, otherwise=f"has none of {', '.join(EVENTS)}")
