"""The classifiers of errors that describe themselves, as an exception or in a body (contract 3.4)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..checks import is_finite, safe_repr
from .actions import NO_ACTION, ErrorKind, RetryAction, RetryReason
from .outcome import BODY_PREFIX, HasFault, Outcome, floor_of
from .protocol import RetryClassifierPriority

if TYPE_CHECKING:
    from requests import Response
else:  # pragma: no branch - for typing.get_type_hints; classifiers know no HTTP library
    Response = Any


class ModeledAsRetryableClassifier:
    """Judges by the modelled facts of an error: the one raised, or the one that a parser makes from a response.

    ``is_retry_safe`` True means transient or throttling, False means forbidden. None is no opinion, unless the error
    is the server's fault. The error's ``retry_after`` is a floor for the delay.

    :param error_parser: takes a response of 400 or above; returns an exception, or None if it does not know the error.
    """

    name = "ModeledAsRetryableClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.modeled_as_retryable_classifier()

    def __init__(self, error_parser: Callable[[Response], Exception | None] | None = None) -> None:
        self.error_parser = error_parser

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        """Judge by the attributes of the error."""
        if outcome.error is None and self.error_parser is None:
            return NO_ACTION
        return verdict_of(self._error_of(outcome))

    def _error_of(self, outcome: Outcome) -> BaseException | None:
        error, response = outcome.error, outcome.response
        if response is None or hasattr(error, "is_retry_safe") or isinstance(error, HasFault):
            return error
        if self.error_parser is None or outcome.is_success:
            return None
        parsed: object = self.error_parser(response)
        if parsed is not None and not isinstance(parsed, BaseException):
            raise TypeError(f"error_parser returned {safe_repr(parsed)}: an exception or None is allowed")
        return parsed


def verdict_of(error: BaseException | None) -> RetryAction:
    """Return the verdict that an error implies. A missing attribute of :class:`ErrorRetryInfo` has its default."""
    safe = getattr(error, "is_retry_safe", None)
    if error is not None and safe is False:
        return RetryAction.retry_forbidden(f"{type(error).__name__} says that a retry is not safe")
    if error is not None and safe is True:
        throttled = getattr(error, "is_throttling_error", False)
        return _indicated(ErrorKind.THROTTLING if throttled else ErrorKind.TRANSIENT, error, safe=True)
    if isinstance(error, HasFault) and error.fault == "server":
        return _indicated(ErrorKind.SERVER, error, safe=False)
    return NO_ACTION


def _indicated(kind: ErrorKind, error: BaseException, *, safe: bool) -> RetryAction:
    floor = floor_of(error)
    source = None if floor is None else "error"
    timeout = getattr(error, "is_timeout_error", False) is True
    return RetryAction.retry_indicated(RetryReason(kind, floor, source, not_applied=safe, timeout=timeout))


Predicate = Callable[[Any], "bool | float | RetryAction | None"]


class ErrorInBodyClassifier:
    """Finds errors in the JSON bodies of responses, those below 400 included.

    A body shorter than 64 KiB is parsed if it contains any of the words. With ``stream=True`` its ``Content-Type`` must
    be JSON, and its length announced, unless it is an error in chunks; its caller can still read all of it.

    >>> overloaded = ErrorInBodyClassifier(lambda body: body["error"] == "overloaded", "overloaded")

    :param predicate: given the parsed body; returns True for an error, a number of seconds for one that may be asked
        again after that time, a :class:`RetryAction`, or False or None for no error. A ``KeyError``, ``IndexError``,
        ``TypeError`` or ``AttributeError`` in it means that the body has another shape: no error.
    :param words: a body without any of them is not parsed.
    :param kind: the kind of error that True and seconds stand for.
    :param name: the name in histories.
    :raises TypeError: without a word, or for a word that is not a string.
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
        body = outcome.body_prefix
        if len(body) >= BODY_PREFIX or not any(word in body for word in self.words):
            return NO_ACTION
        try:
            document = json.loads(body)
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
