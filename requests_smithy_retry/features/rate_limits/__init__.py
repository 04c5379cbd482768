"""Announced rate limits (contract 7.4): all threads of a user wait for one that is used up, and for nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from ...classifiers.actions import NO_ACTION, ErrorKind, RetryAction, RetryReason
from ...classifiers.protocol import RetryClassifier, RetryClassifierPriority
from ...clock import Clock
from ...config.retry_options import patience_given
from ...core.machine import Passed
from ...core.port import Feature
from ...core.server_hints import AMZ_HEADER, Hint, limit_hint, read_hint
from ...core.steps import Before, Join, Steps
from ...observing.log import log_gate
from .announced import DIALECTS, Announced, RateLimitDialect, announced_in
from .limits import Limits, Turn

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

    from ...classifiers.fold import Classification
    from ...classifiers.outcome import Outcome
    from ...config.retry_config import RetryConfig
    from ...core.driver import Call, Driver
    from ...core.scope import Scope

NAME = "rate limits"
BEGAN = "began"
"""What a call is known by for the moment at which it began, where all its waits are bounded."""
WHO = "who"
"""What a call is known by for the object that tells its refusals from those of others."""
MOST_USERS = 1024
"""The most users of one scope whose limits are known."""
KEYS = ("authorization", "x-api-key", "api-key", "x-auth-token", "private-token", "x-goog-api-key")
"""The headers that tell the users of a service apart, in lower case: each has limits of its own."""
UNAVAILABLE, TOO_MANY_REQUESTS, FORBIDDEN = 503, 429, 403


class Announcements(Feature):
    """The hooks by which a request that was refused goes by what the answer announces."""

    def __init__(self, config: RetryConfig, clock: Clock) -> None:
        self.clock = clock
        pacing: Any = config.pacing
        self.dialects: tuple[RateLimitDialect, ...] = DIALECTS if isinstance(pacing, str) else (*pacing, *DIALECTS)

    def classifiers(self, config: RetryConfig) -> tuple[RetryClassifier, ...]:
        """Return the classifier of a 403 that announces a limit of which nothing is left."""
        is_wanted = TOO_MANY_REQUESTS in config.retry_status_codes and config.rules is None
        return (UsedUpLimitClassifier(self.dialects),) if is_wanted else ()

    def hint(self, outcome: Outcome, reason: RetryReason | None = None) -> Hint | None:
        """Return the reset of an announced limit that is used up, for a request that was throttled."""
        if outcome.response is None or (reason is not None and reason.kind is not ErrorKind.THROTTLING):
            return None
        return limit_hint(announced_in(outcome.response.headers, wall=outcome.wall, dialects=self.dialects))


class RateLimits(Announcements):
    """The hooks: a limit is heard of in the head of each response, and counted down by the requests under way."""

    def __init__(self, config: RetryConfig, clock: Clock) -> None:
        super().__init__(config, clock)
        self.longest: float = config.max_retry_after
        self.names = frozenset(name for row in self.dialects for name in (row.remaining, *row.reset))
        """The header fields of which each announcement has one, in lower case."""

    def gate(self, call: Call, scope: Scope) -> OneCall | None:
        """Return the count of a call, where something is known of the limits of its user."""
        patience = patience_given(call.config, call.options)
        if patience is not None:
            call.data.setdefault(BEGAN, self.clock.now())
        users: Users | None = scope.parts.get(NAME)
        limits = None if users is None or call.options.pacing == "off" else users.known.get(user_of(call.request))
        return None if limits is None else OneCall(call, limits, self.longest, patience)

    def received(self, driver: Driver, call: Call, request: PreparedRequest, response: Response, scope: Scope) -> None:  # noqa: ARG002
        """Hear what a response announces."""
        told: tuple[Announced, ...] = ()
        if not self.names.isdisjoint(map(str.lower, response.headers)):
            told = announced_in(response.headers, wall=self.clock.wall(), dialects=self.dialects)
        if told or NAME in scope.parts:
            self._ended(call, scope, told, is_success=response.status_code < 400)

    def attempted(self, call: Call, outcome: Outcome, *_: Any) -> None:
        """Count an attempt without an answer no longer."""
        if outcome.response is None and NAME in call.data:
            limits, passed = call.data.pop(NAME)
            limits.answered(passed, (), outcome.ended, is_success=False)

    def _ended(self, call: Call, scope: Scope, told: tuple[Announced, ...], *, is_success: bool) -> None:
        limits, passed = call.data.pop(NAME, (None, None))
        if limits is None:
            limits = scope.part(NAME, Users).of(user_of(call.request), is_new=bool(told))
        if limits is not None:
            limits.answered(passed, told, self.clock.now(), is_success=is_success)

    def judged(self, call: Call, scope: Scope, outcome: Outcome, verdict: Classification) -> None:
        """Hear of a refusal with a hint: the next one in a row, of another call, holds everybody back."""
        response = outcome.response
        if response is None or not (verdict.is_throttling or response.status_code == UNAVAILABLE):
            return
        hint = read_hint(response.headers, wall=outcome.wall)
        if hint is not None and hint.source != AMZ_HEADER and hint.seconds <= self.longest:
            reset = self.hint(outcome)
            limits = scope.part(NAME, Users).of(user_of(call.request), is_new=True)
            assert limits is not None
            limits.refused(call.data.setdefault(WHO, object()), min(hint, reset or hint).seconds, outcome.ended)


class UsedUpLimitClassifier:
    """Takes a 403 for throttling where it announces a limit of which nothing is left."""

    name = "UsedUpLimitClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.run_after(
        RetryClassifierPriority.http_status_code_classifier()
    )

    def __init__(self, dialects: Collection[RateLimitDialect] = DIALECTS) -> None:
        self.dialects = dialects

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:  # noqa: ARG002
        """Judge by the status and the announcement."""
        if outcome.response is None or outcome.status != FORBIDDEN:
            return NO_ACTION
        limits = announced_in(outcome.response.headers, wall=0.0, dialects=self.dialects)
        return RetryAction.throttling_error() if any(limit.is_used_up for limit in limits) else NO_ACTION


class Users:
    """The limits of the users of one scope."""

    def __init__(self) -> None:
        self.known: dict[bytes, Limits] = {}

    def of(self, user: bytes, *, is_new: bool) -> Limits | None:
        """Return the limits of a user; None if nothing is known of them, unless there is something new."""
        if not is_new:
            return self.known.get(user)
        for other, limits in tuple(self.known.items()) if len(self.known) >= MOST_USERS else ():
            if limits.is_spare:
                self.known.pop(other, None)
        return self.known.setdefault(user, Limits())

    def is_spare(self, now: float) -> bool:  # noqa: ARG002
        """Return True if nobody waits; a new one hears of the limits again."""
        return all(limits.is_spare for limits in tuple(self.known.values()))

    def forget(self, now: float) -> None:  # noqa: ARG002
        """Give up all limits. Who waits goes on waiting."""
        self.known.clear()


class OneCall:
    """The gate of one call.

    :param longest: the most seconds that an attempt of it waits.
    :param patience: a patience that somebody chose, which bounds that as well, and twice of which bounds all its waits.
    """

    def __init__(self, call: Call, limits: Limits, longest: float, patience: float | None) -> None:
        self.limits = limits
        self._call = call
        self._longest = longest if patience is None else min(longest, patience)
        self._until: float | None = None if call.limits is None else call.limits.at
        if patience is not None:
            until: float = call.data[BEGAN] + 2 * patience
            self._until = until if self._until is None else min(until, self._until)

    def admit(self, waited: float) -> Steps:
        """Wait for room, unless that would take too long."""
        call = self._call
        passed = yield Join(Turn(self.limits, max(0.0, self._longest - waited), self._until))
        # Whatever becomes of the call, nobody refers to the pass once it is over.
        call.data[NAME] = self.limits, passed
        log_gate(call.request, passed.waited, passed.source)
        return Passed(passed.waited, passed.source)

    def note(self, before: Before, passed: Passed) -> Before:
        return before._replace(limit=passed.waited, limit_source=passed.source)


def user_of(request: PreparedRequest) -> bytes:
    """Return a mark of the user whom a request is sent for, from which no secret can be read."""
    headers: Mapping[str, str | bytes] = request.headers
    said = [f"{name}={headers[name]!r}" for name in KEYS if name in headers]
    return hashlib.sha256("\n".join(said).encode("utf-8", "backslashreplace")).digest() if said else b""


def feature(config: RetryConfig, clock: Clock) -> Announcements:
    """Return the feature for a configuration."""
    return Announcements(config, clock) if config.pacing == "off" else RateLimits(config, clock)


__all__ = ["RateLimitDialect", "feature"]
