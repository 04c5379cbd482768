"""A classifier for errors inside a successful response: GraphQL's ``THROTTLED``, a model that is overloaded.

A body is parsed only if everything cheaper says that it may be such an error: it is JSON by its header, short, and has
one of the words in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..checks import is_finite, safe_repr
from .actions import NO_ACTION, ErrorKind, RetryAction, RetryReason
from .outcome import BODY_PREFIX, Outcome
from .protocol import RetryClassifierPriority

Predicate = Callable[[Any], "bool | float | RetryAction | None"]


LONGEST_INTEGER = 15
"""Digits of a whole number that are converted exactly: converting thousands takes long, and Python refuses it."""


def _whole_number(digits: str) -> float:
    return int(digits) if len(digits) <= LONGEST_INTEGER else float(digits)


class ErrorInBodyClassifier:
    """Finds errors in the JSON bodies of responses, those below 400 included.

    A body is parsed if its ``Content-Type`` is JSON, it is shorter than 64 KiB, and it contains one of the words. With
    ``stream=True`` nothing is read.

    >>> overloaded = ErrorInBodyClassifier(lambda body: body["error"] == "overloaded", "overloaded")

    :param predicate: given the parsed body; returns True for an error, a number of seconds for one that may be asked
        again after that time, a :class:`RetryAction`, or False or None for no error. A ``KeyError``, ``IndexError``,
        ``TypeError`` or ``AttributeError`` in it means that the body has another shape: no error.
    :param words: a body without any of them is not parsed.
    :param kind: the kind of error that True and seconds stand for.
    :param name: the name in histories.
    :raises TypeError: without a word, or for a word that is no text.
    """

    sees_successes = True
    priority: RetryClassifierPriority = RetryClassifierPriority.run_before(RetryClassifierPriority.default())

    def __init__(
        self,
        predicate: Predicate,
        *words: Any,
        kind: ErrorKind = ErrorKind.THROTTLING,
        name: str = "ErrorInBodyClassifier",
    ) -> None:
        if not words or not all(isinstance(word, str) and word for word in words):
            raise TypeError(f"words={words!r}: one or more texts are allowed; a body without any of them is not parsed")
        self.predicate = predicate
        self.words: tuple[bytes, ...] = tuple(word.encode() for word in words)
        self.kind = kind
        self.name = name

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        """Judge by the body."""
        response = outcome.response
        if response is None or "json" not in str(response.headers.get("content-type", "")).lower():
            return NO_ACTION
        body = outcome.body_prefix
        if len(body) >= BODY_PREFIX or not any(word in body for word in self.words):
            return NO_ACTION
        try:
            document = json.loads(body, parse_int=_whole_number)
        except (ValueError, RecursionError):
            return NO_ACTION
        try:
            found = self.predicate(document)
        except (LookupError, TypeError, AttributeError):
            return NO_ACTION
        return self._action(found)

    def _action(self, found: object) -> RetryAction:
        if isinstance(found, RetryAction):
            return found
        if found is None or found is False:
            return NO_ACTION
        if found is True:
            return RetryAction.retryable_error(self.kind)
        if is_finite(found) and found >= 0:
            return RetryAction.retry_indicated(RetryReason(self.kind, float(found), self.name))
        raise TypeError(f"{self.name}: True, False, None, seconds or a RetryAction is allowed, not {safe_repr(found)}")
