"""A urllib3 ``Retry`` as options of ours, and as rules that no option can express (contract 4.2).

Counts, methods and statuses are the user's; the shape of the backoff, quota, body rules and long hints are ours.
docs/howto/move-from-urllib3-retry.md has every difference. Conversely, :func:`retry_saying` turns options of ours into
a ``Retry``. Works with urllib3 1.26 and 2.x; pure except for one warning.
"""

from __future__ import annotations

import enum
import math
import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any

import urllib3.exceptions as uex
from urllib3 import connection_from_url
from urllib3.response import HTTPResponse
from urllib3.util.retry import Retry

from ...checks import is_finite, level_outside
from ...classifiers.actions import NO_ACTION, RetryAction
from ...classifiers.outcome import Outcome
from ...classifiers.protocol import RetryClassifier, RetryClassifierPriority
from ...classifiers.statuses import HttpStatusCodeClassifier, verdict_on_status
from ...core.backoff import ExponentialRetryBackoffStrategy
from ...core.wait_queue import UNLIMITED, Bounds
from ...errors import RetryConfigError, RetryConfigWarning
from ...interruptions import causes


class FailureKind(enum.Enum):
    """The kinds of failure that urllib3 distinguishes, each with a count of its own."""

    CONNECT = "connect"
    """No connection was made."""
    READ = "read"
    """The request was sent, in part at least, and no whole answer came."""
    STATUS = "status"
    """An answer came, and its status is to be retried."""
    OTHER = "other"
    """Anything else."""


@dataclass(frozen=True, slots=True)
class Urllib3Rules:
    """The rules of a translated ``Retry``."""

    limits: tuple[tuple[FailureKind, int], ...] = ()
    """The most retries after failures of one kind; a kind that is not named has no limit of its own."""
    heeds_hints: bool = True
    """The waits that servers ask for are observed."""
    backoff_jitter: float = 0.0
    """The most seconds that are added to each delay, within ``max_backoff``."""
    hinted_status_codes: frozenset[int] = frozenset()
    """Statuses that are retried if the response has a ``Retry-After``."""

    def classifiers(self, codes: Collection[int]) -> tuple[RetryClassifier, ...]:
        """Return the classifiers of statuses: they look only at the status, as urllib3 does."""
        own = HttpStatusCodeClassifier(codes, by_status_alone=True)
        return (HintedStatusClassifier(self.hinted_status_codes), own) if self.hinted_status_codes else (own,)

    def backoff(self, inner: ExponentialRetryBackoffStrategy) -> ExponentialRetryBackoffStrategy | JitteredBackoff:
        return JitteredBackoff(inner, self.backoff_jitter) if self.backoff_jitter else inner

    def counted(
        self, failures: tuple[FailureKind, ...], outcome: Outcome
    ) -> tuple[tuple[FailureKind, ...], str | None]:
        """Count a failure, and return all of them, with the sentence for a limit that one more retry would exceed."""
        kind = kind_of(outcome)
        failures = (*failures, kind)
        most = dict(self.limits).get(kind)
        if most is None or failures.count(kind) <= most:
            return failures, None
        return failures, f"{most} retries after {kind.value} failures are allowed by the urllib3 Retry"


@dataclass(frozen=True, slots=True)
class OwnIncrement(Urllib3Rules):
    """The rules of a subclass with an ``increment`` of its own, which is called after each failure.

    An operation begins with the given ``Retry`` and goes on with the one that ``increment`` returned, whose counts are
    in force, too. A urllib3 exception from it ends the operation; any other exception reaches the caller.
    """

    retry: Retry = Retry.DEFAULT

    def counted(self, failures: tuple[Any, ...], outcome: Outcome) -> tuple[tuple[Any, ...], str | None]:
        """Call ``increment`` of the latest ``Retry``, the only one that ``failures`` has."""
        latest: Retry = failures[0] if failures else self.retry
        try:
            return (latest.increment(*_arguments(outcome)),), None
        except uex.HTTPError as error:
            return failures, f"{type(latest).__name__}.increment raised {type(error).__name__}"


def _arguments(outcome: Outcome) -> tuple[Any, ...]:
    request, response = outcome.request, getattr(outcome.response, "raw", None)
    response = response if isinstance(response, HTTPResponse) else None
    found = () if outcome.error is None else causes(outcome.error)
    known = (each for each in found if isinstance(each, uex.HTTPError) and not isinstance(each, uex.MaxRetryError))
    error: Any = next(known, outcome.error)
    # Not the error's property of that name, which urllib3 warns about.
    pool = getattr(response, "_pool", None) if error is None else vars(error).get("pool")
    assert request is not None
    pool = pool or connection_from_url(str(request.url))
    return request.method, request.path_url, response, error, pool, getattr(error, "__traceback__", None)


def kind_of(outcome: Outcome) -> FailureKind:
    if outcome.error is None:
        return FailureKind.STATUS
    for cause in causes(outcome.error):
        if isinstance(cause, uex.ConnectTimeoutError):  # a refused connection and a failed look-up, too
            return FailureKind.CONNECT
        if isinstance(cause, (uex.ReadTimeoutError, uex.ProtocolError)):
            return FailureKind.READ
    return FailureKind.OTHER


@dataclass(eq=False)
class JitteredBackoff:
    """Another backoff with a random amount on top, as urllib3's ``backoff_jitter`` asks, within its longest delay."""

    inner: ExponentialRetryBackoffStrategy
    jitter: float

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        if retry_attempt <= 0:
            return 0.0
        delay = self.inner.compute_next_backoff_delay(retry_attempt)
        return max(0.0, min(delay + self.inner.random() * self.jitter, self.inner.max_backoff))

    def longest_delay(self, retry_attempt: int) -> float:
        return min(self.inner.longest_delay(retry_attempt) + max(0.0, self.jitter), self.inner.max_backoff)


class HintedStatusClassifier:
    """Indicates a retry of the chosen statuses if the response has a ``Retry-After``; no opinion otherwise.

    :param codes: the statuses.
    """

    name = "HintedStatusClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.run_before(HttpStatusCodeClassifier.priority)

    def __init__(self, codes: Collection[int]) -> None:
        self.codes: frozenset[int] = frozenset(codes)

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        response = outcome.response
        if response is None or response.status_code not in self.codes or "Retry-After" not in response.headers:
            return NO_ACTION
        return verdict_on_status(response.status_code)


def translate_retry(retry: Retry, *, warns: bool) -> dict[str, Any]:
    """Return the options that a ``Retry`` asks for; warn about settings that cannot be honoured, if wanted."""
    found = overridden(retry)
    if found:
        allowed = (
            "a urllib3 Retry that overrides no method is allowed, but for an increment that calls super().increment, "
            f"raises nothing itself and sets at most counts, and {type(retry).__name__} overrides {', '.join(found)}: "
            "what they decide cannot be translated. Write a classifier (classifiers=...), a backoff strategy or a "
            "retry strategy instead, and give max_attempts"
        )
        raise RetryConfigError("max_retries", retry, "code", allowed)
    dropped = not_honoured(retry)
    if dropped and warns:
        warnings.warn(f"max_retries={retry!r}: {'; '.join(dropped)}", RetryConfigWarning, stacklevel=level_outside())
    # The default of HTTPAdapter itself retries nothing and raises for no status.
    is_default = retry.total == 0 and not retry.status_forcelist and not own_methods(retry)
    return {"max_attempts": 1} if is_default else _options_of(retry)


def _options_of(retry: Retry) -> dict[str, Any]:
    counts = {kind: _count(retry, kind.value) for kind in FailureKind}
    limits = tuple((kind, count) for kind, count in counts.items() if count is not None)
    total = _count(retry, "total")
    if total is None and len(limits) == len(counts):
        total = sum(most for _, most in limits)
    options: dict[str, Any] = {
        "max_attempts": UNLIMITED if total is None else total + 1,
        "retry_status_codes": _statuses(retry),
        "allowed_methods": methods_of(retry),
        "strict_methods": True,
        "raise_on_status": bool(retry.raise_on_status),
        "rules": _rules_of(retry, limits),
    }
    longest_hint = getattr(retry, "retry_after_max", None)
    if longest_hint not in (None, getattr(Retry, "DEFAULT_RETRY_AFTER_MAX", None)):  # not the default of six hours
        options["max_retry_after"] = longest_hint
    return {**options, **_backoff(retry)}


def _rules_of(retry: Retry, limits: tuple[tuple[FailureKind, int], ...]) -> Urllib3Rules:
    heeds = retry.total and retry.respect_retry_after_header  # without a total, urllib3 retries none of them
    rules = Urllib3Rules(
        limits=limits,
        heeds_hints=bool(retry.respect_retry_after_header),
        backoff_jitter=_seconds(retry, "backoff_jitter"),
        hinted_status_codes=frozenset(retry.RETRY_AFTER_STATUS_CODES if heeds else ()),
    )
    if "increment" not in own_methods(retry):
        return rules
    return OwnIncrement(**{each.name: getattr(rules, each.name) for each in fields(rules)}, retry=retry)


def not_honoured(retry: Retry) -> list[str]:
    """List the settings of a ``Retry`` that have no effect here, a phrase for each."""
    phrases = []
    if retry.redirect:
        phrases.append(f"redirect={retry.redirect!r} has no effect, requests follows redirects itself")
    elif retry.redirect is None and not retry.raise_on_redirect:
        phrases.append("raise_on_redirect=False has no effect, requests follows redirects itself")
    default = frozenset(name.lower() for name in Retry.DEFAULT_REMOVE_HEADERS_ON_REDIRECT)
    if _collected("remove_headers_on_redirect", retry.remove_headers_on_redirect) != default:
        phrases.append("remove_headers_on_redirect has no effect, requests removes headers itself")
    if retry.history:
        phrases.append("its history is not taken over")
    return phrases


def overridden(retry: Retry) -> list[str]:
    """List the deciding methods of urllib3's own class that a ``Retry`` overrides: they cannot be translated."""
    return [name for name in own_methods(retry) if name != "increment" or not _only_adds(retry)]


def own_methods(retry: Retry) -> list[str]:
    return [
        name
        for name, method in vars(Retry).items()
        if not name.startswith("__")
        and name != "new"  # it only makes another instance
        and callable(method)
        and (getattr(type(retry), name) is not method or name in vars(retry))
    ]


def _only_adds(retry: Retry) -> bool:
    """Return True if each ``increment`` of a ``Retry`` calls the one of the class above, and neither raises by itself
    nor sets anything but a count, by which the rules go on.
    """
    if "increment" in vars(retry):
        return False
    above = type(retry).__mro__
    own = (vars(kind)["increment"] for kind in above[: above.index(Retry)] if "increment" in vars(kind))
    return not any(map(_decides, own))


def _decides(increment: Any) -> bool:
    import dis  # few have such a method

    code = getattr(increment, "__code__", None)
    if code is None or not {"super", "increment"} <= {*code.co_names}:
        return True
    settings = {*vars(Retry(0)), *vars(Retry)} - {"total", *(kind.value for kind in FailureKind)}
    return any(
        # An except block that ends with a bare raise decides nothing.
        (step.opname == "RAISE_VARARGS" and step.arg) or (step.opname == "STORE_ATTR" and step.argval in settings)
        for step in dis.get_instructions(code)
    )


def _count(retry: Retry, name: str) -> int | None:
    count: Any = getattr(retry, name)
    if count is None or count == math.inf:
        return None
    if count is True or not isinstance(count, (int, float)) or not math.isfinite(count) or count != int(count):
        raise RetryConfigError(name, count, "max_retries", "a whole number of retries, False or None is allowed")
    return max(int(count), 0)


def methods_of(retry: Retry) -> frozenset[str] | None:
    """Return the methods that a ``Retry`` sends again; None: all."""
    # urllib3 1.26 lets it be set under its old name on an instance; there, and in 2.x, an empty one means any method.
    methods: Any = vars(retry).get("method_whitelist", retry.allowed_methods)
    if isinstance(methods, str):
        methods = re.split(r"[\s,;|]+", methods.strip())  # ("GET") is no tuple; urllib3 looks for "GET" in the text
    return _collected("allowed_methods", methods) if methods else None


def _statuses(retry: Retry) -> Any:
    """Return the listed statuses: a single number is one, and those that no server can send are dropped."""
    statuses: Any = retry.status_forcelist or ()  # None, where it was set to that after construction
    if isinstance(statuses, int):
        statuses = (statuses,)  # (500) is no tuple
    if isinstance(statuses, (str, bytes)):
        raise RetryConfigError("status_forcelist", statuses, "max_retries", "a collection of statuses is allowed")
    found = _collected("status_forcelist", statuses)
    return frozenset(status for status in found if not isinstance(status, int) or 100 <= status <= 599)


def _collected(name: str, values: Any) -> frozenset[Any]:
    try:
        return frozenset(values)
    except TypeError:  # not iterable, or a member that is not hashable
        what = "statuses" if name == "status_forcelist" else "names"
        raise RetryConfigError(name, values, "max_retries", f"a collection of {what} is allowed") from None


def _backoff(retry: Retry) -> dict[str, Any]:
    """Return the user's factor as the base of our backoff; with a factor of 0 or less, for which urllib3 never waits,
    ours is left as it is.
    """
    longest = getattr(retry, "backoff_max", retry.DEFAULT_BACKOFF_MAX)
    # With an infinite factor, urllib3 always waits for the longest time.
    factor = longest if retry.backoff_factor == math.inf else _seconds(retry, "backoff_factor")
    if is_finite(factor) and factor <= 0:
        return {} if longest == Retry.DEFAULT_BACKOFF_MAX else {"max_backoff": longest}
    return {"backoff": None, "backoff_base": factor, "max_backoff": longest}


def _seconds(retry: Retry, name: str) -> float:
    """Return a number of seconds; as in urllib3, one below 0 makes no delay shorter than 0."""
    seconds: Any = getattr(retry, name, 0.0) or 0.0
    if seconds is not True and not is_finite(seconds):
        raise RetryConfigError(name, seconds, "max_retries", "a finite number of seconds is allowed")
    return float(seconds)


TRANSLATED = (
    *("max_attempts", "retry_status_codes", "allowed_methods", "strict_methods", "raise_on_status", "rules"),
    *("backoff", "backoff_base", "max_backoff", "max_retry_after"),
)


def retry_saying(options: dict[str, Any], *, factor: float) -> Retry:
    """Return a ``Retry`` with the settings that correspond to options of ours."""
    rules = options["rules"] or Urllib3Rules()
    said = {
        **{kind.value: most for kind, most in rules.limits},
        "total": None if options["max_attempts"] == UNLIMITED else Bounds(options["max_attempts"]).retries,
        "status_forcelist": options["retry_status_codes"],
        "backoff_factor": factor,
        "backoff_max": options["max_backoff"],
        "backoff_jitter": rules.backoff_jitter,
        "raise_on_status": options["raise_on_status"],
        "respect_retry_after_header": rules.heeds_hints,
        "retry_after_max": options["max_retry_after"],
    }
    known = vars(Retry(0))  # an older urllib3 has fewer
    retry = Retry(**{name: value for name, value in said.items() if name in known})
    retry.allowed_methods = options["allowed_methods"]  # the constructor would warn of an empty one
    return retry
