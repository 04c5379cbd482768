"""A process's dealings with one Redis server: what is asked, what is given back, and what happens without an answer.

The rules are those of contract 6: a take is one exchange within the budget, with what is to be given back on board; a
give-back alone never waits for the server; while the server does not answer, nobody asks but once in a while.
"""

from __future__ import annotations

import re
import threading
import weakref

from ..clock import Clock
from ..foreign import is_foreign
from ..forksafe import renew_lock_after_fork
from .at_exit import flush_at_exit
from .outage import Outage
from .redis_connection import Command, RedisConnection, connect, is_late, redis_error
from .redis_pool import RedisPool, UnreachableError
from .redis_script import NonsenseError, Reply, arguments
from .settings import RedisSettings

POST_PATIENCE = 0.001
"""A give-back waits so many seconds for an answer that is overdue, and for room in the socket's buffer."""
POST_MOST = 64
"""So many buckets' give-backs go out at once; the others with the next."""
EXIT_PATIENCE = 0.5
"""At exit, what is to be given back has so many seconds."""
ERROR_WORD = re.compile(r"[A-Z]{2,20}\b")
"""What a server's error begins with; the rest of it may quote what was sent."""


class Account:
    """What this process knows of one bucket, and owes it.

    :param key: the bucket's key.
    :param capacity: the most it holds.
    :param refill_rate: tokens per second.
    """

    __slots__ = ("capacity", "key", "level", "pending", "refill_rate")

    def __init__(self, key: str, capacity: float, refill_rate: float) -> None:
        self.key: str = key
        self.capacity: float = capacity
        self.refill_rate: float = refill_rate
        self.level: float = capacity
        """What it held when the server last answered."""
        self.pending: float = 0.0
        """What is to be given back."""


class Exchange:
    """One run of the script.

    :param key: of the bucket.
    :param arguments: of the script.
    """

    __slots__ = ("arguments", "key", "sent")

    def __init__(self, key: str, arguments: tuple[str, ...]) -> None:
        self.key: str = key
        self.arguments: tuple[str, ...] = arguments
        self.sent: bool = False
        """Whether the server may have got it."""


class RedisLink:
    """The link of one process to one server.

    :param url: as redis-py takes it; it is shown nowhere.
    :param place: the same without secrets.
    :param settings: bounds and intervals.
    :param clock: tells the time.
    """

    def __init__(self, url: str, place: str, settings: RedisSettings, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        self.outage: Outage = Outage(place, settings)
        self._pool = RedisPool(lambda: connect(url, clock, settings.connect_timeout), settings.max_connections, clock)
        self._owing: dict[str, Account] = {}
        self._post_at = 0.0
        self._at_exit = False
        self._lock = threading.Lock()
        renew_lock_after_fork(self)

    def renew_lock(self) -> None:
        """In a forked child: locks and connections of its own. What was to be given back is the parent's to give."""
        self._lock = threading.Lock()
        self._at_exit = False
        self._pool.close_inherited()
        for account in self._owing.values():
            account.pending = 0.0
        self._owing = {}

    def exchange(self, account: Account, take: float, until: float | None = None) -> Reply | None:
        """Give back what is owed and take ``take``, in one round trip within the budget.

        :param until: or within less time.
        :returns: None while the server does not answer.
        """
        now = self.clock.now()
        if not self.outage.may_ask(now):
            return None
        box = now + self.settings.budget
        box = box if until is None else min(box, until)
        give = self._collect(account)
        exchange = Exchange(
            account.key, arguments(account.capacity, account.refill_rate, give, take, self.settings.ttl)
        )
        try:
            reply = self._call(exchange, box)
        except BaseException as error:  # no answer, or one without sense: the server cannot be relied on
            if not isinstance(error, Exception) or is_foreign(error):
                self._owe(account, give)
                raise
            # What is booked late has given, and what it takes comes back.
            self._owe(account, take if exchange.sent and is_late(error) else give)
            self.outage.note_failure(self.clock.now(), reason_of(error))
            return None
        self.outage.note_answer()
        account.level = reply.level
        self._post_at = now + self.settings.flush_interval
        return reply

    def give_back(self, account: Account, amount: float) -> None:
        """Note what is to be given back. Once per interval it is sent, without waiting for the answer."""
        self._owe(account, amount)
        now = self.clock.now()
        if now >= self._post_at and not self.outage.fallen_open:
            self._post_at = now + self.settings.flush_interval
            connection = self._pool.take_idle()
            if connection is not None:
                self._post(connection, now)

    def flush(self) -> None:
        """Give back everything now, and close the connections; at exit, or when nobody holds the quota any more."""
        now = self.clock.now()
        if self._owing and self.outage.may_ask(now):
            until = now + EXIT_PATIENCE
            try:
                connection = self._pool.take(until, inline=True)
                connection.settle(until)
                while self._owing:
                    connection.post(EXIT_PATIENCE, self._commands())
                    connection.settle(until)
                self._pool.put(connection)
            except Exception as error:
                self.outage.note_failure(self.clock.now(), reason_of(error))
        self._pool.close_idle()

    def _call(self, exchange: Exchange, until: float) -> Reply:
        while True:
            connection = self._pool.take(until)
            try:
                connection.settle(until)
                exchange.sent = True
                reply = connection.call(until, exchange.key, exchange.arguments)
            except BaseException as error:
                self._pool.discard(connection)
                if not _is_stale(connection, error):
                    raise
                self._pool.close_idle()
            else:
                self._pool.put(connection)
                return reply

    def _post(self, connection: RedisConnection, now: float) -> None:
        if connection.posted_at + self.settings.budget > now:
            self._pool.put(connection)  # its last answer may still be on the way
            return
        try:
            connection.settle(now + POST_PATIENCE)
            connection.post(POST_PATIENCE, self._commands())
        except BaseException as error:
            self._pool.discard(connection)
            if not isinstance(error, Exception):
                raise
            if not _is_stale(connection, error):
                self.outage.note_failure(now, reason_of(error))
        else:
            self._pool.put(connection)

    def _commands(self) -> list[Command]:
        with self._lock:
            accounts = list(self._owing.values())[:POST_MOST]
        return [self._command(account, self._collect(account)) for account in accounts]

    def _command(self, account: Account, give: float) -> Command:
        def on_reply(reply: Reply | None) -> None:
            if reply is None:
                self._owe(account, give)
            else:
                account.level = reply.level

        values = arguments(account.capacity, account.refill_rate, give, 0, self.settings.ttl)
        return account.key, values, on_reply

    def _owe(self, account: Account, amount: float) -> None:
        if not amount:
            return
        if not self._at_exit:
            self._at_exit = True
            flush_at_exit(self)
        with self._lock:
            account.pending = min(account.capacity, account.pending + amount)
            self._owing[account.key] = account

    def _collect(self, account: Account) -> float:
        with self._lock:
            give, account.pending = account.pending, 0.0
            self._owing.pop(account.key, None)
        return give


class LinkHandle:
    """Whoever uses a link holds its handle; when nobody does, what is owed is given back and the connections close.

    The link itself cannot see to that when it dies: in a cycle of garbage its sockets may be gone before it.

    :param link: it must not refer to its handle.
    """

    __slots__ = ("__weakref__", "link")

    def __init__(self, link: RedisLink) -> None:
        self.link: RedisLink = link
        weakref.finalize(self, link.flush).atexit = False  # at exit: flush_at_exit


def _is_stale(connection: RedisConnection, error: BaseException) -> bool:
    """A server may close a connection that was idle for long; that says nothing of a new one."""
    return connection.served and isinstance(error, redis_error("ConnectionError"))


def reason_of(error: Exception) -> str:
    """Why there is no answer, in a word or two: no text of redis-py or the server, which may quote secrets."""
    if isinstance(error, (UnreachableError, NonsenseError)):
        return str(error)
    name = type(error).__name__
    word = ERROR_WORD.match(str(error)) if name == "ResponseError" else None
    return name if word is None else f"{name} {word[0]}"
