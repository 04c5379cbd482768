"""Announced rate limits (contract 7.4): all threads of a user wait for one that is used up, and for nothing else."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from ...classifiers.actions import NO_ACTION, RetryAction
from ...classifiers.protocol import RetryClassifier, RetryClassifierPriority
from ...clock import Clock
from ...core.backoff import Jitter
from ...core.machine import Passed
from ...core.port import Feature
from ...core.server_hints import AMZ_HEADER, HINTS, Hint, names_in, read_hint
from ...core.steps import Before, Join, Pause, Steps
from ...observing.log import log_gate
from ...urls import user_of
from .announced import DIALECTS, RateLimitDialect, announced_in, limit_hint
from .limits import LAG, ROUNDING, SPREAD, Caller, Limits, Pass, Turn, spread

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

    from ...classifiers.fold import Classification
    from ...classifiers.outcome import Outcome
    from ...config.retry_config import RetryConfig
    from ...core.driver import Driver
    from ...core.plan import Call
    from ...core.scope import Scope

NAME = "rate limits"
WHO, TRIES_SHORTER = f"{NAME}: who", f"{NAME}: tries the shorter wait"
"""What is kept of a call: what tells it from others; and if its next attempt goes after a shorter wait."""
ASKED = f"{NAME}: asked to wait"
"""And the seconds for which its last answer asked."""
MOST_USERS = 1024
"""The most users of one scope whose limits are known."""
UNAVAILABLE, TOO_MANY_REQUESTS, FORBIDDEN = 503, 429, 403


class Announcements(Feature):
    """The hooks by which a request that was refused goes by what the answer announces."""

    def __init__(self, config: RetryConfig, clock: Clock) -> None:
        own: Any = () if isinstance(config.pacing, str) else config.pacing
        theirs = {row.remaining for row in own}
        self.clock = clock
        self.dialects: tuple[RateLimitDialect, ...] = (*own, *(row for row in DIALECTS if row.remaining not in theirs))
        self.hears: frozenset[str] = frozenset(name for row in self.dialects for name in (row.remaining, *row.reset))

    def classifiers(self, config: RetryConfig) -> tuple[RetryClassifier, ...]:
        """Return the classifier of a 403 that announces a limit of which nothing is left."""
        is_wanted = TOO_MANY_REQUESTS in config.retry_status_codes and config.rules is None
        return (UsedUpLimitClassifier(self.dialects),) if is_wanted else ()

    def hint(self, outcome: Outcome) -> Hint | None:
        """Return the reset of an announced limit that is used up, for a request that was throttled."""
        assert outcome.response is not None
        return limit_hint(announced_in(outcome.response.headers, wall=outcome.wall, dialects=self.dialects))


class RateLimits(Announcements):
    """The hooks: a limit is heard of in the head of each response, and counted down by the requests under way."""

    def __init__(self, config: RetryConfig, clock: Clock) -> None:
        super().__init__(config, clock)
        self.spreads: bool = config.jitter != Jitter.NONE.value

    def gate(self, call: Call, scope: Scope) -> OneCall | None:
        """Return the count of a call, where something is known of the limits of its user."""
        users: Users | None = scope.parts.get(NAME)
        if users is None or call.options.pacing == "off":
            return None
        limits = users.known.get(user_of(call.request.headers))
        return None if limits is None else OneCall(call, limits)

    def received(self, driver: Driver, call: Call, request: PreparedRequest, response: Response, scope: Scope) -> None:
        """Hear what a response announces."""
        told = announced_in(response.headers, wall=self.clock.wall(), dialects=self.dialects)
        if not told and NAME not in scope.parts:
            return
        limits, passed = call.data.pop(NAME, (None, None))
        if limits is None:
            users, user = self.users(scope), user_of(call.request.headers)
            limits = users.made(user) if told else users.known.get(user)
        if limits is not None:
            limits.answered(passed, told, response.status_code, self.clock.now(), path_of(request))

    def attempted(self, call: Call, outcome: Outcome, *_: Any) -> None:
        """Count an attempt without an answer no longer."""
        if outcome.response is None and NAME in call.data:
            limits, passed = call.data.pop(NAME)
            limits.answered(passed, (), 0, outcome.ended)

    def on_verdict(self, call: Call, scope: Scope, outcome: Outcome, verdict: Classification) -> None:
        """Hear of a refusal with a hint: the next one in a row, of another call, holds everybody back."""
        if outcome.response is None or (self.hears | HINTS).isdisjoint(names_in(outcome.response.headers)):
            return
        is_refused = verdict.is_throttling or outcome.status == UNAVAILABLE
        said = read_hint(outcome.response.headers, wall=outcome.wall)
        reset = self.hint(outcome) if is_refused else None
        hints: list[Hint] = list(filter(None, (said, reset)))
        if not hints or hints[0].source == AMZ_HEADER or hints[0].seconds > call.config.max_retry_after:
            return
        who = call.data.setdefault(WHO, Caller())
        limits = self.users(scope).made(user_of(call.request.headers))
        limits.asked.add(who)
        call.data[ASKED] = asked = hints[0].seconds
        if said is not None and is_refused:
            call.data[TRIES_SHORTER] = outcome.attempt == 1 and asked + ROUNDING < hints[-1].seconds
            limits.refused(who, asked, outcome.ended)

    def users(self, scope: Scope) -> Users:
        """Return the users of a scope."""
        return scope.part(NAME, partial(Users, spreads=self.spreads))


class UsedUpLimitClassifier:
    """Takes a 403 for throttling where it announces a limit of which nothing is left."""

    name = "UsedUpLimitClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.run_after(
        RetryClassifierPriority.http_status_code_classifier()
    )

    def __init__(self, dialects: Collection[RateLimitDialect] = DIALECTS) -> None:
        self.dialects = dialects

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        """Judge by the status and the announcement."""
        if outcome.response is None or outcome.status != FORBIDDEN:
            return NO_ACTION
        limits = announced_in(outcome.response.headers, wall=0.0, dialects=self.dialects)
        return RetryAction.throttling_error() if any(limit.is_used_up for limit in limits) else NO_ACTION


def path_of(request: PreparedRequest) -> str:
    """Return the URL without a query."""
    return (request.url or "").partition("?")[0]


class Users:
    """The limits of the users of one scope."""

    def __init__(self, *, spreads: bool = False) -> None:
        self.known: dict[bytes, Limits] = {}
        self._spreads = spreads

    def made(self, user: bytes) -> Limits:
        """Return the limits of a user, new ones if need be, for which the oldest spare ones go."""
        if user not in self.known and len(self.known) >= MOST_USERS:
            spare = (other for other, limits in list(self.known.items()) if limits.is_spare)
            self.known.pop(next(spare, user), None)
        return self.known.setdefault(user, Limits(spreads=self._spreads))

    def is_spare(self, now: float) -> bool:
        """Return True if nobody waits; a new one hears of the limits again."""
        return all(limits.is_spare for limits in list(self.known.values()))

    def forget(self, now: float) -> None:
        """Give up all limits. Who waits goes on waiting."""
        self.known.clear()


class OneCall:
    """The gate of one call."""

    def __init__(self, call: Call, limits: Limits) -> None:
        self._call = call
        self._limits = limits
        self._spread = 0.0

    def is_open(self, now: float) -> bool:
        """Let the first attempt through if nobody waits and something is left."""
        passed = self._limits.enter(now, path_of(self._call.request))
        if passed is not None:
            self._call.data[NAME] = self._limits, passed
        return passed is not None

    def admit(self, waited: float, began: float) -> Steps:
        """Wait for room, unless that would take too long, or the server has asked for a shorter wait, which is over."""
        call, longest = self._call, self._call.config.max_retry_after
        until = inf if call.deadline is None else call.deadline
        patience = call.config.patience_given if call.options.patience is None else call.options.patience
        if patience is not None:
            longest, until = min(longest, patience), min(until, began + 2 * patience)
        if call.data.pop(TRIES_SHORTER, False):
            longest = 0.0
        passed = yield Join(Turn(self._limits, max(0.0, longest - waited), until))
        # Whatever becomes of the call, nobody refers to the pass once it is over.
        call.data[NAME] = self._limits, passed
        log_gate(call.request, passed.waited, passed.source)
        yield from self._later(waited, passed, until)
        return Passed(passed.waited, passed.source)

    def _later(self, waited: float, passed: Pass, until: float) -> Steps:
        """Go a little later than this call was asked to, within all bounds."""
        call, limits = self._call, self._limits
        asked = call.data.pop(ASKED, inf)
        if not limits.spreads or passed.waited > LAG or waited < asked:
            return
        own, most = call.options.max_wait, call.config.max_retry_after
        most_wait = call.config.max_wait if own is None else own
        rooms = most - waited, (until - passed.sent) * SPREAD, inf if most_wait is None else most_wait - waited
        self._spread = min(spread(waited, is_alone=len(limits.asked) == 1), *rooms)
        if self._spread > 0:
            yield Pause(self._spread)

    def add_to(self, before: Before, passed: Passed) -> Before:
        delay = before.delay + self._spread
        return before._replace(delay=delay, gate_wait=passed.waited, gate_source=passed.source)


def feature(config: RetryConfig, clock: Clock) -> Announcements:
    """Return the feature for a configuration."""
    return Announcements(config, clock) if config.pacing == "off" else RateLimits(config, clock)


__all__ = ["RateLimitDialect", "feature"]
