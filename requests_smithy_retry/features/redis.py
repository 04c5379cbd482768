"""The quota that processes share on Redis or Valkey (contract 6.2): a bucket for each scope, as a number on the server.

One thread of the process talks to the server, by redis-py's client; callers wait at most ``timeout`` seconds. While no
answer comes, a bucket of this process stands in, and the thread tries the server once a second.
"""

from __future__ import annotations

import inspect
import logging
import math
import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from ..checks import BadValue, check_amount, is_finite, safe_repr
from ..clock import SYSTEM_CLOCK, Clock
from ..config.retry_config import RetryConfig
from ..core.quota import TokenBucketSnapshot
from ..core.retry_budget import PayoffTokenBucket, RetryBudget
from ..core.scope import NO_SCOPE, MakeQuota
from ..errors import RetryConfigError
from ..forksafe import FreshCopies, renew_lock_after_fork
from ..urls import without_secrets

logger: logging.Logger = logging.getLogger("requests_smithy_retry")

TIMEOUT = 0.1
"""The most seconds that a call waits for the server."""
PATIENCE = 1.0
"""Seconds for which the thread waits for a connection, and for an answer. The tokens of a late answer are given
back."""
PAUSE = 1.0
"""Seconds after a failure until the server is asked again."""
LOG_PAUSE = 60.0
"""The shortest time between two log records of failures, in seconds."""
IDLE = 5.0
"""Seconds without a request after which the thread ends; the next request starts another."""

SCRIPT = """
local capacity, give, take = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local level = tonumber(redis.call('GET', KEYS[1]) or '') or capacity
level = math.min(capacity, math.max(0, level) + give)
local granted = level >= take
if granted then level = level - take end
if level >= capacity then
    redis.call('DEL', KEYS[1])
else
    redis.call('SET', KEYS[1], string.format('%.17g', level), 'PX', ARGV[4])
end
return {granted and 1 or 0, string.format('%.17g', level)}
"""
"""Gives tokens back, then takes some, all or nothing. A missing bucket counts as full, so a full one is not kept."""

ALLOWED = "redis://host:6379/0, rediss://host:6379/0 or unix:///path/to/socket, percent-encoded, is allowed"


class RedisClient(Protocol):
    """A client of redis-py."""

    def pipeline(self, transaction: Any = ...) -> Any:
        """Gathers commands that go out together."""


@dataclass(eq=False, slots=True)
class Ask:
    """One run of the script, for one caller."""

    key: str
    give: float
    take: float
    is_over: threading.Event = field(default_factory=threading.Event)
    answer: tuple[bool, float] | None = None
    """Whether the tokens were granted, and how many are left; None: there was no answer."""
    is_left: bool = False
    """The caller has stopped waiting."""


class RedisQuota(FreshCopies):
    """The quota of all scopes on one server: called with a scope, it returns that scope's bucket.

    As the option ``quota``, it has the default's wait queue in front of each bucket. It connects at the first
    retry. Copies, pickles and forked processes share the buckets, over connections of their own.

    >>> quota = RedisQuota("redis://app:secret@127.0.0.1:6379/0", capacity=2000)
    >>> quota, quota("payments").capacity
    (<RedisQuota redis://127.0.0.1:6379/0>, 2000)

    :param server: a URL, ``redis://``, ``rediss://`` or ``unix://``, as redis-py takes it; or a client of redis-py that
        the program has made: ``Redis``, ``RedisCluster``, ``Sentinel(...).master_for(...)``.
    :param capacity: the most that a bucket holds, 0 or more; the same in every process.
    :param timeout: the most seconds that a call waits for an answer; by default the URL's ``socket_timeout``, or 0.1.
    :param clock: tells the time.
    :raises ValueError: for anything else; no part of a bad URL is shown.
    """

    has_queue: ClassVar[bool] = True
    """Operations wait in a queue while a bucket is empty."""
    ttl: ClassVar[float] = 3600.0
    """Seconds after which an unused bucket expires, and so is full again."""
    _past: ClassVar[frozenset[str]] = frozenset(
        {"_asks", "_ask_at", "_changed", "_client", "_log_at", "_thread", "is_away"}
    )

    def __init__(
        self,
        server: str | RedisClient,
        *,
        capacity: float = 500,
        timeout: float | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.without_secrets: str = f"the program's {type(server).__name__}"
        """The server, without user, password and query."""
        if isinstance(server, str):
            self.without_secrets, said = _place_and_timeout(server)
            timeout = said if timeout is None else timeout
        elif not is_client(server):
            raise BadValue(f"{ALLOWED}; or a client of redis-py, but not of redis.asyncio")
        timeout = TIMEOUT if timeout is None else timeout
        if not (is_finite(timeout) and 0 < timeout <= threading.TIMEOUT_MAX):
            raise BadValue(f"timeout={safe_repr(timeout)}: a finite number of seconds above 0 is allowed")
        self._server = server
        check_amount(capacity, "capacity")
        self.capacity: float = capacity
        self.timeout: float = timeout
        self._identity = server, self.capacity, timeout
        self.clock = clock
        self._begin()

    def _begin(self) -> None:
        self.is_away: bool = False
        """The server does not answer."""
        self._ask_at = 0.0
        self._log_at = -math.inf
        self.renew_lock()
        renew_lock_after_fork(self)

    def renew_lock(self) -> None:
        """Start over in a forked child, with a lock, a thread and connections of its own."""
        self._changed = threading.Condition()
        self._asks: list[Ask] = []
        self._thread: threading.Thread | None = None
        self._client: Any = None

    def __call__(self, scope: str) -> RedisTokenBucket:
        """Return the bucket of a scope."""
        return RedisTokenBucket(self, scope)

    def problem(self) -> str:
        """Return why redis-py cannot use the URL, without its message; "" if it can."""
        if not isinstance(self._server, str):
            return ""
        if find_spec("redis") is None:
            return "a quota on Redis needs redis-py 5 or later: pip install redis"
        try:
            self._made_client().connection_pool.make_connection()
        except Exception as error:
            return f"redis-py refuses its query or its path ({type(error).__name__})"
        return ""

    def run(self, scope: str, give: float, take: float, deadline: float | None = None) -> tuple[bool, float] | None:
        """Give tokens back and take some; return whether they are granted, and how many are left. None: no answer in
        time.
        """
        ask = Ask(f"requests-smithy-retry:{{{scope}}}", give, take)  # the braces make a cluster hash the scope alone
        now, is_done = self.clock.now(), False
        seconds = self.timeout if deadline is None else min(self.timeout, max(0.0, deadline - now))
        if self.is_away:
            with self._changed:
                if now >= self._ask_at:
                    self._ask_at = now + PAUSE
                    self._asks = []  # all that is in it has waited for too long
                    self._put(Ask(ask.key, 0.0, 0.0))
            return None
        try:
            self._put(ask)
            is_over = ask.is_over.wait(seconds)
            is_done = True
        finally:
            with self._changed:
                ask.is_left = not (is_done and ask.is_over.is_set())
                self._take_back(ask)
        if not is_over and seconds == self.timeout:
            self._failed(f"no answer in {seconds:g} s")
        return None if ask.is_left else ask.answer

    def _put(self, ask: Ask) -> None:
        with self._changed:
            self._asks.append(ask)
            self._changed.notify()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="requests-smithy-retry-quota", daemon=True)
                with suppress(RuntimeError):  # there may be no new threads, as when the interpreter ends
                    self._thread.start()

    def _work(self) -> None:
        while batch := self._next():
            answers: list[tuple[bool, float]] = []
            began = self.clock.now()
            try:
                answers = self._exchange(batch)
                why = "late answers" if self.clock.now() - began > self.timeout else ""
            except Exception as error:  # whatever it is, there is no answer; its text may quote secrets
                why = type(error).__name__
            self._settle(batch, answers, why)

    def _next(self) -> list[Ask]:
        """Wait for requests; return an empty list if the thread is to end."""
        with self._changed:
            if not self._asks:
                self._changed.wait(IDLE)
            # A caller that has left takes no tokens; what it gives back is still sent.
            batch = [ask for ask in self._asks if ask.give or not ask.is_left]
            self._asks = []
            if not batch:
                self._thread = None
            return batch

    def _exchange(self, batch: list[Ask]) -> list[tuple[bool, float]]:
        with self._made_client().pipeline(transaction=False) as pipe:
            for ask in batch:
                amounts = (repr(float(each)) for each in (self.capacity, ask.give, ask.take))
                # The whole script, and not its digest: a server or node that does not know it needs no round trip more.
                pipe.execute_command("EVAL", SCRIPT, 1, ask.key, *amounts, round(self.ttl * 1000))
            return [((0, 1).index(granted) == 1, float(level)) for granted, level in pipe.execute()]

    def _settle(self, batch: list[Ask], answers: list[tuple[bool, float]], why: str) -> None:
        if why:
            self._failed(why)
        elif self.is_away:
            self.is_away = False
            logger.info("the shared retry quota at %s answers again", self.without_secrets)
        with self._changed:
            for ask, answer in zip(batch, answers, strict=False):
                ask.answer = answer
                self._take_back(ask)
            for ask in batch:
                ask.is_over.set()

    def _take_back(self, ask: Ask) -> None:
        """Give back the tokens of a caller that has left. Called with the lock held."""
        if ask.is_left and ask.take and ask.answer is not None and ask.answer[0]:
            self._put(Ask(ask.key, ask.take, 0.0))

    def _failed(self, why: str) -> None:
        with self._changed:
            now, self.is_away = self.clock.now(), True
            self._ask_at = now + PAUSE
            if now < self._log_at:
                return
            self._log_at = now + LOG_PAUSE
        text = "the shared retry quota at %s does not answer (%s): a bucket of this process stands in"
        logger.warning(text, self.without_secrets, why)

    def _made_client(self) -> Any:
        if not isinstance(self._server, str):
            return self._server
        if self._client is None:
            redis = import_module("redis")
            retry = redis.retry.Retry(redis.backoff.NoBackoff(), 0)  # what may have been executed is not sent again
            waits = dict.fromkeys(("socket_connect_timeout", "socket_timeout"), max(PATIENCE, self.timeout))
            self._client = redis.Redis.from_url(self._server, retry=retry, **waits)
        return self._client

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RedisQuota) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __deepcopy__(self, memo: object) -> RedisQuota:
        return self  # a client cannot be copied

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.without_secrets}>"


parse = RedisQuota
"""Read a value of the option ``quota``."""


class RedisTokenBucket(FreshCopies):
    """One bucket on a server: a retry quota. No call raises because of the server, or waits longer than the time-out.

    :param quota: the server.
    :param name: processes that use the same name (and server) share the bucket.
    """

    _past: ClassVar[frozenset[str]] = frozenset({"_level", "_local"})

    def __init__(self, quota: RedisQuota, name: str) -> None:
        self.quota = quota
        self.name = name
        self._begin()

    def _begin(self) -> None:
        self._level = math.inf
        self._local = PayoffTokenBucket(min(self.capacity, 500))

    @property
    def capacity(self) -> float:
        """The most it holds."""
        return self.quota.capacity

    @property
    def available(self) -> float:
        """The tokens that it holds, by the server's last answer; or those of the local bucket."""
        return self._local.available if self.quota.is_away else min(self.capacity, self._level)

    @property
    def source(self) -> str:
        """``"redis"``, or ``"redis, fallen open"`` while the server does not answer."""
        return "redis, fallen open" if self.quota.is_away else "redis"

    def acquire(self, amount: float, *, deadline: float | None = None) -> bool:
        """Take ``amount`` tokens, 0 or more, and return True, or take nothing and return False.

        :param deadline: wait for the server no longer than to this moment, on the clock.
        """
        check_amount(amount)
        told = self.quota.run(self.name, 0.0, amount, deadline)
        if told is None:
            return self._local.acquire(amount)
        granted, self._level = told
        return granted

    def release(self, amount: float) -> None:
        """Give ``amount`` tokens back; what exceeds the capacity is dropped. If it is full, do not ask the server."""
        check_amount(amount)
        self._local.release(amount)  # it stands for what this process would have by itself
        told = self.quota.run(self.name, amount, 0.0) if self._level < self.capacity else None
        if told is not None:
            self._level = told[1]

    def first_tries(self, number: int) -> None:
        """Give a token back for each first-try success."""
        if number:
            self.release(number)

    def succeeded(self, spent: float) -> None:
        """Give back what an operation's retries cost: other processes would miss it."""
        self.release(spent)

    def renew(self) -> None:
        """Do nothing: other processes share it, and may have spent the missing tokens."""

    forget = renew

    def snapshot(self, first_tries: int = 0) -> TokenBucketSnapshot:
        """An immutable view, without asking the server; it adds ``first_tries``."""
        available = self.available
        available = min(max(available, self.capacity), available + first_tries)
        return TokenBucketSnapshot(self.capacity, available, source=self.source)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {without_secrets(self.name)!r} at {self.quota.without_secrets} ({self.source})>"


def is_client(value: object) -> bool:
    """Return True for a client of redis-py, or one like it, whose calls are synchronous."""
    command = getattr(value, "execute_command", None)
    return callable(command) and not isinstance(value, type) and not inspect.iscoroutinefunction(command)


def _place_and_timeout(url: str) -> tuple[str, float | None]:
    """Return what may be shown of a URL, and its ``socket_timeout``; raise :class:`BadValue`, which shows nothing."""
    with suppress(ValueError):
        parts = urlsplit(url)
        # An @ behind the host, or a fragment: an unquoted character of a password ended the host too early.
        is_odd = "#" in url or "@" in parts.path + parts.query or not url.startswith(f"{parts.scheme}://")
        place = None if is_odd or parts.scheme not in ("redis", "rediss", "unix") else _place(parts)
        said = parse_qs(parts.query).get("socket_timeout")
        if place is not None:
            return f"{parts.scheme}://{place}", None if said is None else float(said[-1])
    raise BadValue(ALLOWED)


def _place(parts: SplitResult) -> str | None:
    host, port = parts.hostname, parts.port
    if parts.scheme == "unix":
        return unquote(parts.path) if parts.path and host is None else None
    if host is None or not re.fullmatch(r"/?|/\d+", parts.path):
        return None
    return f"{f'[{host}]' if ':' in host else host}:{6379 if port is None else port}{parts.path.rstrip('/')}"


def quota_maker(quota: Any, config: RetryConfig, clock: Clock) -> MakeQuota | None:
    """Return the maker of quotas on a server; None: the config asks for another kind."""
    if not isinstance(quota, RedisQuota):
        return None
    why = quota.problem()
    if why:
        raise RetryConfigError("quota", quota, config.source("quota"), why)
    return lambda name, now: RetryBudget(
        quota(NO_SCOPE if name is None else name), now, price_of=config.numbers.price_of
    )
