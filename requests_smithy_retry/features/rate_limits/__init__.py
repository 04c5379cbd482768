"""Announced rate limits (contract 7.4): all threads of a user wait for a limit that is used up, and only for that."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from ...classifiers.actions import NO_ACTION, RetryAction
from ...classifiers.protocol import RetryClassifier, RetryClassifierPriority
from ...clock import Clock
from ...core.backoff import Jitter
from ...core.port import Feature
from ...core.server_hints import AMZ_HEADER, HINTS, Hint, names_in, read_hint
from ...observing.log import log_gate
from ...urls import user_of
from .announced import DIALECTS, PAUSE, Announced, RateLimitDialect, announced_in, limit_hint, pause_in
from .limits import LAG, ROUNDING, SPREAD, Caller, InFlight, Limits, PlaceAtLimits, opens_too_late, spread

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

    from ...classifiers.fold import Classification
    from ...classifiers.outcome import Outcome
    from ...config.retry_config import RetryConfig
    from ...core.call import Call
    from ...core.port import Send

NAME = "rate limits"
WHO, TRIES_SHORTER = f"{NAME}: who", f"{NAME}: tries the shorter wait"
"""Keys in the data of a call: its :class:`Caller`; and whether its next attempt goes after a shorter wait."""
WHAT = "a rate limit"
"""What is waited for, as a phrase."""
ASKED = f"{NAME}: asked to wait"
"""Another key: the seconds that its last answer asked for."""
MOST_USERS = 1024
"""The most users of one scope whose limits are known."""
UNAVAILABLE, TOO_MANY_REQUESTS, FORBIDDEN, BAD_REQUEST = 503, 429, 403, 400


class Announcements(Feature):
    """The seams for a refused request, which follows what the answer announces."""

    def __init__(self, config: RetryConfig, clock: Clock) -> None:
        self.clock = clock
        self.dialects: tuple[RateLimitDialect, ...] = DIALECTS
        if not isinstance(config.pacing, str):
            own: Any = config.pacing
            theirs = {row.remaining for row in own}
            self.dialects = (*own, *(row for row in DIALECTS if row.remaining not in theirs))
        names = (name for row in self.dialects for name in (row.remaining, *row.reset))
        self.headers: frozenset[str] = frozenset((PAUSE, *names))
        """The headers that announce a limit."""

    def classifiers(self, config: RetryConfig) -> tuple[RetryClassifier, ...]:
        """Return the classifier of a 403 that announces a limit of which nothing is left."""
        is_wanted = TOO_MANY_REQUESTS in config.retry_status_codes and config.rules is None
        return (UsedUpLimitClassifier(self.dialects),) if is_wanted else ()

    def hint(self, outcome: Outcome) -> Hint | None:
        """Return the reset of an announced limit that is used up, for a request that was throttled."""
        assert outcome.response is not None
        return limit_hint(announced_in(outcome.response.headers, wall=outcome.wall, dialects=self.dialects))


class RateLimits(Announcements):
    """The seams: limits are read from the head of each response, and counted down by the requests under way."""

    def around(self, send: Send, call: Call) -> Response:
        """Wait for the limits of the call's user, count the request, and read what its answer announces."""
        limits, in_flight = self._limits_of(call), None
        if limits is not None:
            in_flight = limits.try_enter(self.clock.now(), path_of(call.request)) if call.number == 0 else None
            in_flight = in_flight or self._wait(call, limits)
        try:
            response = send(call)
        except BaseException:
            if limits is not None:
                limits.answered(in_flight, (), 0, self.clock.now())
            raise
        self._hear(call, response, limits, in_flight)
        return response

    def check_ahead(self, call: Call, delay: float) -> None:
        """End the call before a delay if its limit stays shut for too long after it.

        :raises RetryError: if the limit is known to open after the deadline or the end of patience.
        """
        limits = self._limits_of(call)
        if limits is None or call.data.get(TRIES_SHORTER, False):
            return
        now = self.clock.now()
        seconds, cause = limits.shut_for(now)
        if seconds > delay:
            call.clock.check(seconds, WHAT)
            if now + seconds >= ends_of(call, 0.0):
                raise opens_too_late(seconds, cause)

    def _limits_of(self, call: Call) -> Limits | None:
        """Return the limits that apply to a call; None: none are known."""
        users: Users | None = call.scope.parts.get(NAME)
        if users is None or call.options.pacing == "off":
            return None
        return users.found(user_of(call.request.headers), self.clock.now())

    def _wait(self, call: Call, limits: Limits) -> InFlight:
        """Wait for room, unless that would take too long, or a shorter wait that the server asked for is over.

        :raises RetryError: if the limit is known to open after the deadline or the end of patience.
        """
        waited = call.before.delay
        ends = ends_of(call, waited)
        longest = call.policy.config.max_retry_after
        if call.data.pop(TRIES_SHORTER, False):
            longest, ends = 0.0, inf
        elif (seconds := limits.shut_for(self.clock.now())[0]) > 0:
            call.clock.check(seconds, WHAT)  # also instead of a wait that another bound forbids
        call.clock.begin(WHAT)
        latest = call.clock.now() + most_wait(call) - waited
        in_flight: InFlight = call.clock.wait_in(PlaceAtLimits(limits, max(0.0, longest - waited), ends, latest), WHAT)
        log_gate(call.request, in_flight.waited, in_flight.source)
        later = self._later(call, limits, waited, in_flight, ends)
        if later > 0:
            call.clock.sleep(later)
        call.before = call.before._replace(
            delay=call.before.delay + max(0.0, later), gate_wait=in_flight.waited, gate_source=in_flight.source
        )
        return in_flight

    def _later(self, call: Call, limits: Limits, waited: float, in_flight: InFlight, ends: float) -> float:
        """Return the seconds that a call waits beyond what it was asked to, within all bounds."""
        asked = call.data.pop(ASKED, inf)
        if not limits.spreads or in_flight.waited > LAG or waited < asked:
            return 0.0
        most = call.policy.config.max_retry_after
        rooms = most - waited, (ends - in_flight.sent) * SPREAD, most_wait(call) - waited
        return min(spread(waited, is_alone=len(limits.asked) == 1), *rooms)

    def _hear(self, call: Call, response: Response, limits: Limits | None, in_flight: InFlight | None) -> None:
        """Read what a response announces."""
        told: Collection[Announced] = ()
        if not self.headers.isdisjoint(names_in(response.headers)):
            told = announced_in(response.headers, wall=self.clock.wall(), dialects=self.dialects)
            pause = pause_in(response.headers)
            if 0 < pause <= call.policy.config.max_retry_after:  # a longer one is ignored
                self.users(call).pause(self.clock.now() + pause)
        if limits is None and (told or NAME in call.scope.parts):
            users, user = self.users(call), user_of(call.request.headers)
            limits = users.made(user) if told else users.known.get(user)
        if limits is not None:
            limits.answered(in_flight, told, response.status_code, self.clock.now(), path_of(call.sent))

    def judged(self, call: Call, outcome: Outcome, verdict: Classification) -> None:
        """Note a refusal with a hint: a second one in a row, for another call, holds back all calls."""
        if outcome.response is None:
            return
        names = names_in(outcome.response.headers)
        if HINTS.isdisjoint(names) and self.headers.isdisjoint(names):
            return
        is_refused = verdict.is_throttling or outcome.status == UNAVAILABLE
        said = read_hint(outcome.response.headers, wall=outcome.wall)
        reset = self.hint(outcome) if has_failed(outcome.response, said, is_refused) else None
        hints: list[Hint] = list(filter(None, (said, reset)))
        if not hints or hints[0].source == AMZ_HEADER or hints[0].seconds > call.policy.config.max_retry_after:
            return
        who = call.data.setdefault(WHO, Caller())
        limits = self.users(call).made(user_of(call.request.headers))
        limits.asked.add(who)
        call.data[ASKED] = asked = hints[0].seconds
        # hints[0] is what was said if there are two of them.
        call.data[TRIES_SHORTER] = outcome.attempt == 1 and asked + ROUNDING < hints[-1].seconds
        if said is not None and is_refused:
            limits.refused(who, asked, outcome.ended, outcome.status)

    def users(self, call: Call) -> Users:
        """Return the users of the call's scope."""
        spreads = call.policy.config.jitter != Jitter.NONE.value
        return call.scope.part(NAME, partial(Users, spreads=spreads))


class UsedUpLimitClassifier:
    """Classifies a 403 as throttling if it announces a limit of which nothing is left."""

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


def ends_of(call: Call, waited: float) -> float:
    """Return the moment after which a call does not wait for a limit: its deadline, or the end of a given patience.

    :param waited: seconds of the delay before.
    """
    deadline = inf if call.deadline is None else call.deadline
    given = call.policy.config.patience_for_hints(call.options.patience)
    if given is None:
        return deadline
    return min(deadline, call.clock.now() + max(0.0, given - waited), call.began + 2 * given)


def most_wait(call: Call) -> float:
    """Return the seconds of ``max_wait``."""
    most = call.config.max_wait if call.options.max_wait is None else call.options.max_wait
    return inf if most is None else most


def has_failed(response: Response, said: Hint | None, is_refused: bool) -> bool:
    return is_refused or (said is not None and response.status_code >= BAD_REQUEST)


def path_of(request: PreparedRequest) -> str:
    return (request.url or "").partition("?")[0]


class Users:
    """The limits of the users of one scope."""

    def __init__(self, *, spreads: bool = False) -> None:
        self.known: dict[bytes, Limits] = {}
        self._spreads = spreads
        self._paused_until = -inf

    def found(self, user: bytes, now: float) -> Limits | None:
        """Return the limits of a user; None: none are known."""
        limits = self.known.get(user)
        return self.made(user) if limits is None and now < self._paused_until else limits

    def pause(self, until: float) -> None:
        """Hold all users back until a moment."""
        self._paused_until = max(self._paused_until, until)
        for limits in list(self.known.values()):
            limits.pause(until)

    def made(self, user: bytes) -> Limits:
        """Return the limits of a user; new ones replace the oldest spare ones."""
        if user not in self.known and len(self.known) >= MOST_USERS:
            spare = (other for other, limits in list(self.known.items()) if limits.is_spare)
            self.known.pop(next(spare, user), None)
        return self.known.setdefault(user, Limits(spreads=self._spreads, paused_until=self._paused_until))

    @property
    def is_waited_on(self) -> bool:
        """True if some call waits for one of its limits."""
        return any(limits.queue for limits in list(self.known.values()))

    def forget(self, now: float) -> None:
        """Forget all limits. Waiters go on waiting."""
        self.known.clear()
        self._paused_until = -inf


def feature(config: RetryConfig, clock: Clock) -> Announcements:
    return Announcements(config, clock) if config.pacing == "off" else RateLimits(config, clock)


__all__ = ["RateLimitDialect", "feature"]
