"""A process's dealings with one Redis server or cluster: its questions, its returns, and the threads that wait.

One thread of the process talks to the server, with redis-py's client; it starts with the first question. A thread that
asks leaves an :class:`Ask` and waits for it as long as the budget allows, so nothing that happens on the wire, from a
name's resolution to an answer that drips, holds it longer. Questions asked at the same time go out together.
The server is judged by what the thread meets: a caller that leaves early costs nothing but its own call.
"""

from __future__ import annotations

import atexit
import math
import os
import re
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...clock import Clock
from ...forksafe import renew_lock_after_fork
from ..settings import RedisSettings
from ..shared import SLICES, Outage
from .server import (
    SCRIPT,
    NonsenseError,
    RedisClient,
    Reply,
    arguments,
    cluster_client,
    is_late,
    is_moved,
    reply_of,
    single_client,
)

MOST_AT_ONCE = 64
"""The most buckets that are asked about at once; the others follow."""
EXIT_PATIENCE = 0.5
"""The seconds that returning tokens may take at exit."""
STARVED = 10
"""A process without CPU time waits this many budgets by the clock, and a second at least."""
COLD = 10
"""The first question of a process, which includes connecting, may take this many budgets."""
ON_TIME = 1.5
"""A part of the budget that takes this much longer than it should shows that the process itself is late."""
LATE = "late answers"
"""The server answered after the caller had left."""
ERROR_WORD = re.compile(r"[A-Z]{2,20}\b")
"""The word that a server's error begins with. The rest of the error may quote what was sent."""


@dataclass(eq=False, slots=True)
class Ask:
    """One caller's request for ``amount`` tokens."""

    amount: float
    answered: threading.Event = field(default_factory=threading.Event)
    granted: bool | None = None
    """The server's answer; None: it has not answered."""
    is_left: bool = False
    """The caller waits no more: what the server grants comes back."""
    is_late: bool = False
    """It left because the budget was spent, though this process was on time."""


@dataclass(eq=False, slots=True)
class Account:
    """An account with one bucket."""

    key: str
    capacity: float
    refill_rate: float
    level: float = math.inf
    """The tokens that it held when the server last answered."""
    pending: float = 0.0
    """The tokens to be given back."""
    asks: list[Ask] = field(default_factory=list)
    """The questions to be asked."""


class Errand(NamedTuple):
    """One run of the script: the tokens it gives back, and the questions it takes for."""

    account: Account
    give: float
    asks: list[Ask]


class RedisLink:
    """The link of one process to one server, or to its cluster."""

    def __init__(
        self,
        url: str,
        place: str,
        settings: RedisSettings,
        clock: Clock,
        connect: Callable[[str, RedisSettings], RedisClient] = single_client,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.outage: Outage = Outage(place, settings)
        self._url = url
        self._connect = connect
        self._due: dict[Account, None] = {}
        """Accounts that ask or owe something."""
        self.renew_lock()
        renew_lock_after_fork(self)

    def renew_lock(self) -> None:
        """Begin anew in a forked child: a lock, a thread and connections of its own; open errands are the parent's."""
        # Re-entrant: the collector may end the last handle within any of our blocks.
        self._changed = threading.Condition(threading.RLock())
        self._thread: threading.Thread | None = None
        self._client: RedisClient | None = None
        self._busy_since: float | None = None
        self._is_cold = True
        self._runs = 0
        """The number of times that the server was asked."""
        self._hurry = self._closing = self._at_exit = False
        for account in self._due:
            account.pending, account.asks = 0.0, []
        self._due = {}

    def take(self, account: Account, amount: float, deadline: float | None = None) -> bool | None:
        """Ask for tokens, and give back what is owed, in one round trip; None: no answer within budget and deadline."""
        now = self.clock.now()
        if not self.outage.may_ask(now) or self._is_overdue(now):
            return None
        ask = Ask(amount)
        try:
            with self._changed:
                account.asks.append(ask)
                self._due[account] = None
                self._wake()
            self._wait(ask, deadline)
        except RuntimeError:
            self.outage.note_failure(now, "no thread can be started")
        finally:
            with self._changed:
                ask.is_left = not ask.answered.is_set()
                if ask in account.asks:
                    account.asks.remove(ask)
        return ask.granted

    def give_back(self, account: Account, amount: float) -> None:
        """Note tokens to be given back. They go with the next question, or after ``flush_interval``."""
        if not amount:
            return
        with self._changed:
            if not self._at_exit:
                self._at_exit = True
                flush_at_exit(self)
            account.pending = min(account.capacity, account.pending + amount)
            self._due[account] = None
            self._changed.notify_all()

    def flush(self) -> None:
        with self._changed:
            if self._is_idle() or not self.outage.may_ask(self.clock.now()):
                return
            try:
                self._wake()
            except RuntimeError:  # at exit there are no new threads
                while batch := self._collect():
                    self._exchange(batch)
            else:
                self._changed.wait_for(self._is_idle, EXIT_PATIENCE)

    def close(self) -> None:
        """Have the thread give back everything and end, because no handle is left."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    def _is_overdue(self, now: float) -> bool:
        # No caller waits for a server that has kept others waiting this long.
        since = self._busy_since
        return since is not None and now - since > self.settings.connect_timeout

    def _is_idle(self) -> bool:
        return not self._due and self._busy_since is None

    def _wait(self, ask: Ask, deadline: float | None) -> None:
        # The wait is in parts, and only those count in which this process was on time: if a caller gets no time to
        # run, nor does the thread that it waits for, which is not the server's fault. Parts in which others were
        # answered first, or the link was being connected, do not count, either.
        part, counted, state = self.settings.budget / SLICES, 0, (self._is_cold, self._runs)
        now = self.clock.now()
        until = now + max(self.settings.budget * STARVED, 1.0)
        while counted < SLICES * (COLD if state[0] else 1) and now < until:
            left = part if deadline is None else min(part, deadline - now)
            if left <= 0 or ask.answered.wait(left):
                return
            before, now = now, self.clock.now()
            counted += now - before < ON_TIME * part
            if state != (self._is_cold, self._runs):
                state, counted = (self._is_cold, self._runs), 0
        ask.is_late = counted >= SLICES and not state[0]

    def _wake(self) -> None:
        self._hurry = True
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="requests-smithy-retry-quota", daemon=True)
            thread.start()
            self._thread = thread
        self._changed.notify_all()

    def _run(self) -> None:
        while batch := self._next():
            self._exchange(batch)
        self._drop_client()
        with self._changed:
            self._thread = None
            self._changed.notify_all()

    def _next(self) -> list[Errand]:
        """Wait for the next errands; return an empty list when the link is closed."""
        with self._changed:
            while True:
                owing = bool(self._due) and not self.outage.fallen_open
                if self._hurry or (self._closing and owing):
                    self._hurry = False
                    if batch := self._collect():
                        return batch
                elif self._closing:
                    return []
                elif not self._changed.wait(self.settings.flush_interval if owing else None):
                    self._hurry = True

    def _collect(self) -> list[Errand]:
        first_who_waits = sorted(self._due, key=lambda account: not account.asks)
        batch = []
        for account in first_who_waits[:MOST_AT_ONCE]:
            del self._due[account]
            if account.asks or account.pending:
                batch.append(Errand(account, account.pending, account.asks))
            account.pending, account.asks = 0.0, []
        self._hurry = bool(self._due)
        self._busy_since = self.clock.now() if batch else None
        self._runs += bool(batch)
        return batch

    def _exchange(self, batch: list[Errand]) -> None:
        replies: Sequence[Reply | Exception]
        try:
            replies = self._ask_server(batch)
        except Exception as error:  # whatever it is, there is no answer, and the log says why in a word
            replies = [error] * len(batch)
        self._judge(batch, replies)
        with self._changed:
            self._busy_since, self._is_cold = None, False
            for errand, reply in zip(batch, replies, strict=True):
                self._settle(errand, reply)
            self._changed.notify_all()

    def _ask_server(self, batch: list[Errand]) -> list[Reply | Exception]:
        if self._client is None:
            self._client = self._connect(self._url, self.settings)
        answers = self._pipe(self._client, batch)
        moved = [place for place, answer in enumerate(answers) if is_moved(answer)]
        if moved:
            self._drop_client()
            self._client = cluster_client(self._url, self.settings)
            for place, answer in zip(moved, self._pipe(self._client, [batch[place] for place in moved]), strict=True):
                answers[place] = answer
        return answers

    def _pipe(self, client: RedisClient, batch: list[Errand]) -> list[Reply | Exception]:
        with client.pipeline(transaction=False) as pipe:
            for account, give, asks in batch:
                takes = (ask.amount for ask in asks)
                values = arguments(account.capacity, account.refill_rate, give, self.settings.ttl, takes)
                # The whole script, and not its digest: a server, or a node, that does not know it needs no more words.
                pipe.execute_command("EVAL", SCRIPT, 1, account.key, *values)
            answers = pipe.execute(raise_on_error=False)
        return [reply_of(answer, len(errand.asks)) for answer, errand in zip(answers, batch, strict=True)]

    def _judge(self, batch: list[Errand], replies: Sequence[Reply | Exception]) -> None:
        errors = [reply for reply in replies if isinstance(reply, Exception)]
        asks = [ask for errand in batch for ask in errand.asks]
        if len(errors) == len(replies):
            self._drop_client()  # the next question begins anew, at the URL
            self.outage.note_failure(self.clock.now(), reason_of(errors[0]))
        elif asks and all(ask.is_late for ask in asks):
            self.outage.note_failure(self.clock.now(), LATE)
        else:
            self.outage.note_answer()

    def _settle(self, errand: Errand, reply: Reply | Exception) -> None:
        account, give, asks = errand
        if isinstance(reply, Exception):
            # A late run of the script has given its tokens back; those that it takes come back.
            self.give_back(account, sum(ask.amount for ask in asks) if is_late(reply) else give)
        else:
            account.level = reply.level
            for ask, granted in zip(asks, reply.granted, strict=True):
                if not ask.is_left:
                    ask.granted = granted
                elif granted:
                    self.give_back(account, ask.amount)
        for ask in asks:
            ask.answered.set()

    def _drop_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


class LinkHandle:
    """A reference to a link. When the last one is dropped, unsent returns are sent and the connections close.

    The link cannot do so in a finalizer of its own: its thread holds it.
    """

    __slots__ = ("__weakref__", "link")

    def __init__(self, link: RedisLink) -> None:
        self.link: RedisLink = link
        weakref.finalize(self, link.close).atexit = False  # at exit: flush_at_exit


def reason_of(error: Exception) -> str:
    """Return the reason for a missing answer in a word or two, without any text that may quote secrets."""
    if isinstance(error, NonsenseError):
        return str(error)
    name = type(error).__name__
    word = ERROR_WORD.match(str(error)) if name == "ResponseError" else None
    return name if word is None else f"{name} {word[0]}"


# At exit a process returns the tokens that it still owes. No thread waits for that.
_watched: weakref.WeakSet[RedisLink] = weakref.WeakSet()
_multiprocessing_knows: set[int] = set()


def flush_at_exit(owner: RedisLink) -> None:
    """Have ``owner`` flushed when this process ends. Holds no strong reference."""
    _watched.add(owner)
    # A child of multiprocessing ends without atexit, but with its own list.
    util = sys.modules.get("multiprocessing.util")
    if util is not None and os.getpid() not in _multiprocessing_knows:
        _multiprocessing_knows.add(os.getpid())
        util.Finalize(None, flush_all, exitpriority=0)


@atexit.register
def flush_all() -> None:
    for owner in tuple(_watched):
        owner.flush()
