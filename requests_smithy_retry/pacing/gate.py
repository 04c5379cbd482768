"""The gate of a scope (contract 7.4): holds sends back while its server has announced that it would refuse them.

The decisions are made in :mod:`.pace`; here are a lock, a clock and the waiting. A waiting send holds no connection.
Sends go in the order in which they came, each no later than its bounds; then it is sent even if the gate is closed.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Collection, Mapping
from typing import Any

from ..clock import Clock, wait_on
from ..forksafe import renew_lock_after_fork
from .announced import Announced, RateLimitDialect, announced_in, limit_hint, probe_for, speaks
from .pace import Pace
from .server_hints import AMZ_HEADER, Hint, read_hint

MOST_GATES = 1024
"""The most scopes that have a gate."""
AT_ONCE = 1e-6
"""A wait shorter than this, in seconds, is not made."""
ROUNDING = 1.0
"""A ``Retry-After`` in whole seconds is up to so much later than the reset that it means."""

# The remaining number, in each shape of a header: a number, "r=5" of a structured field, or "remaining=5". Python
# refuses to convert thousands of digits.
_left_in = re.compile(r"(?:^|;[ \t]*r=|remaining=)([0-9]{1,15})").findall


class Gate:
    """The gate of one scope. Safe to use from several threads; in the child of a fork nobody waits."""

    def __init__(self, gates: Gates) -> None:
        self.clock: Clock = gates.clock
        self._gates = gates
        self._rows: tuple[RateLimitDialect, ...] = ()
        self._glances: tuple[tuple[str, float], ...] = ()
        self._until = 0.0
        self._heard = 0
        self._pace = Pace(self.clock.now())
        self.renew_lock()
        renew_lock_after_fork(self)

    def renew_lock(self) -> None:
        """Make the lock anew, after a fork; the waiting threads do not exist in the child."""
        self._lock = threading.Lock()
        self._waiters: deque[tuple[float, threading.Condition]] = deque()
        """Those who wait, each with the moment up to which it does."""

    @property
    def is_limiting(self) -> bool:
        """Sends are held back or spaced."""
        return self in self._gates.shut

    def look(self, headers: Mapping[str, str]) -> None:
        """Take in the headers of a success. Where plenty is left, that is seen at a glance."""
        self._heard += 1
        if self.clock.now() < self._until:
            told = headers._store  # type: ignore[attr-defined]  # its own look-up by name costs as much as the rest
            for name, enough in self._glances:
                if name not in told or min(map(int, _left_in(told[name][1])), default=0) <= enough:
                    break
            else:
                return
        self.hear(headers, self.clock.wall(), heard=0)

    def hear(
        self,
        headers: Mapping[str, str],
        wall: float,
        *,
        hint: Hint | None = None,
        refused: bool = False,
        heard: int = 1,
    ) -> None:
        """Take in the headers of a response.

        :param hint: for a refused request, the wait that its response asks for.
        :param heard: 0: it was counted already.
        """
        # A scope goes on speaking as it does, until its window is over.
        rows = self._rows or speaks(headers, self._gates.dialects)
        said = [(row, limit) for row in rows for limit in announced_in(headers, wall=wall, dialects=(row,))]
        with self._lock:
            now = self.clock.now()
            heard, self._heard = self._heard + heard, 0
            limits = [limit for _, limit in said]
            self._pace.hear(limits, now, max(heard, 1), refused=refused or hint is not None)
            if hint is not None:
                hint = _exact(hint, limits)
                self._pace.throttled(hint.seconds, now, hint.source)
            self._plan_looks(said, rows, now)
            self._follow(now)

    def _plan_looks(
        self, said: list[tuple[RateLimitDialect, Announced]], rows: tuple[RateLimitDialect, ...], now: float
    ) -> None:
        """Remember how much must be left in the next headers for them to be passed over, and until when."""
        looks = [(row, *self._pace.next_look(limit, at)) for at, (row, limit) in enumerate(said)]
        self._glances = tuple((row.remaining, enough) for row, enough, _ in looks)
        self._until = min((until for _, _, until in looks), default=0.0)
        self._rows = rows if now < self._until or self._pace.is_spaced else ()

    def _follow(self, now: float) -> None:
        """Keep up to date who is told. Called with the lock held."""
        if self._waiters:
            self._waiters[0][1].notify()
            last_turn = self._pace.due(now, len(self._waiters), len(self._waiters))
            for until, waiter in self._waiters:
                if until <= last_turn:
                    waiter.notify()  # its own turn may be too late now
        elif self._pace.relax(now):
            self._open()
            return
        self._gates.busy.add(self)
        self._gates.shut.add(self)

    def _open(self) -> None:
        self._gates.shut.discard(self)
        self._gates.busy.discard(self)

    def enter(self, deadline: float | None, longest: float) -> tuple[float, str]:
        """Wait for a send's turn; return the seconds and the header behind it. Then hear, or call :meth:`lost`."""
        began = self.clock.now()
        until = began + longest if deadline is None else min(began + longest, deadline)
        me = until, threading.Condition(self._lock)
        with self._lock:
            place = len(self._waiters) + 1
            if self._pace.due(began, place, place) >= until:
                # Sent at once, it gets the server's own answer; it would get the same one later.
                self._pace.sent(began)
                return 0.0, ""
            try:
                self._waiters.append(me)
                due = self._wait(me)
            finally:
                if me in self._waiters:
                    self._waiters.remove(me)
                if self._waiters:
                    self._waiters[0][1].notify()
            now = self.clock.now()
            self._pace.sent(now, due)
            if not self._waiters and self._pace.relax(now):
                self._open()
            return now - began, self._pace.source

    def _wait(self, me: tuple[float, threading.Condition]) -> float | None:
        """Wait until it is the turn of this one; return that moment, or None as soon as it is known to be too late."""
        until, woken = me
        while True:
            now = self.clock.now()
            place = self._waiters.index(me) + 1
            due = self._pace.due(now, len(self._waiters), place)
            if place == 1 and due - now < AT_ONCE:
                return due
            if due >= until or now >= until:
                return None  # at its deadline it could not be sent any more
            wait_on(self.clock, woken, (due if place == 1 else until) - now)

    def lost(self) -> None:
        with self._lock:
            self._pace.lost()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'limiting' if self.is_limiting else 'open'}>"


def _exact(hint: Hint, limits: Collection[Announced]) -> Hint:
    """Return the reset of a used-up limit in place of a hint that is the same one in whole seconds."""
    reset = limit_hint(limits)
    return reset if reset is not None and 0 <= hint.seconds - reset.seconds <= ROUNDING else hint


class Gates:
    """The gates of a strategy's scopes. A scope has one once its server has announced something.

    There is no lock: where threads make gates at the same moment, a scope has one, and one too many may be given up.

    :param busy: a live set: has the gates in it that sends must ask, beside others.
    :param hooks: the remembered hooks of origins, whose successes are not looked at.
    """

    def __init__(
        self,
        clock: Clock,
        dialects: Collection[RateLimitDialect],
        busy: set[Any],
        hooks: dict[str, Any],
    ) -> None:
        self.clock = clock
        self.dialects = dialects
        self.busy = busy
        self._hooks = hooks
        self.shut: set[Any] = set()
        """The gates that sends must ask now."""
        self.known: dict[str, tuple[Any, Gate]] = {}
        """The hook and the gate of each origin whose server announces limits."""
        self._gates: dict[str, Gate] = {}
        self._silent: set[str] = set()
        self._probe = probe_for(dialects)

    def of(self, scope: str) -> Gate | None:
        """Return the gate of a scope; None: its server has announced nothing."""
        return self._gates.get(scope)

    def forget(self) -> None:
        """Give up every gate. Sends that wait at one go on waiting there."""
        self._gates.clear()
        self.known.clear()
        self.busy.difference_update(self.shut)
        self.shut.clear()
        self.look_anew()

    def look_anew(self) -> None:
        """Have the next success of each silent scope looked at: a new connection may lead to a server that speaks."""
        self._silent.clear()
        self._hooks.clear()

    def remember(self, origin: str, hook: Any, gate: Gate) -> None:
        """Have a gate found by the origin of a URL, with the hook for its first-try successes."""
        if len(self.known) >= MOST_GATES:
            self.known.clear()
        self.known[origin] = hook, gate

    def first_look(self, scope: str, headers: Mapping[str, str], *, once: bool = True) -> Gate | None:
        """Take in a success; return the gate if limits are announced. A silent scope is looked at ``once``."""
        gate = self._gates.get(scope)
        if gate is None:
            if scope in self._silent:
                return None
            if not self._is_told(headers):
                if once:
                    if len(self._silent) >= MOST_GATES:
                        self._silent.clear()
                    self._silent.add(scope)
                return None
            gate = self._made(scope)
        if gate is not None:
            gate.look(headers)
        return gate

    def failed(
        self, scope: str, headers: Mapping[str, str], *, throttled: bool, floor: float | None, longest: float
    ) -> None:
        """Take in a response that is no success.

        :param floor: the wait that the classifiers found, in seconds, or None.
        :param longest: a longer wait is not made, so it closes nothing.
        """
        gate = self._gates.get(scope)
        hint = self._hint(headers, floor, longest) if throttled else None
        if gate is None and (hint is not None or self._is_told(headers)):
            gate = self._made(scope)
        if gate is not None:
            gate.hear(headers, self.clock.wall(), hint=hint, refused=throttled)

    def _is_told(self, headers: Mapping[str, str]) -> bool:
        """Return True if headers announce a limit. All names at once come first, as nearly every scope is silent."""
        return self._probe("\n".join(headers)) is not None and bool(speaks(headers, self.dialects))

    def _hint(self, headers: Mapping[str, str], floor: float | None, longest: float) -> Hint | None:
        """Return the wait that a refusal asks of everybody."""
        wall = self.clock.wall()
        hint = read_hint(headers, wall=wall)
        if hint is None:
            hint = limit_hint(announced_in(headers, wall=wall, dialects=self.dialects))
        if hint is None and floor is not None:
            hint = Hint(floor, "rate limit")
        return hint if hint is not None and hint.source != AMZ_HEADER and 0 < hint.seconds <= longest else None

    def _made(self, scope: str) -> Gate | None:
        """Return a new gate; None if there is no room for one."""
        if len(self._gates) >= MOST_GATES:
            spare = next((name for name, gate in tuple(self._gates.items()) if not gate.is_limiting), None)
            if spare is None:
                return None
            self._gates.pop(spare, None)
            self.known.clear()
        gate = self._gates.setdefault(scope, Gate(self))
        self._silent.discard(scope)
        self._hooks.clear()
        return gate
