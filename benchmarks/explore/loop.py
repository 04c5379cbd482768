"""What a run of a plan is, with the real adapter, and what must be true of it afterwards."""

from __future__ import annotations

import errno
import gc
import io
import os
import queue
import random
import signal
import socket
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from . import instrument
from . import tasks as tasks_module
from .network import FakeSocket, Link, net, wait_for_read
from .plans import WELL, Op, Plan, Try
from .server import Exchange, Server, content, error_content, request_body
from .tasks import Cancelled, Interrupted, Limit, Stuck, Task, Turns, tasks

if "requests_smithy_retry" not in sys.modules:  # else in a test that only prints plans
    instrument.install(tasks.step)

import requests
import urllib3._collections
import urllib3.connection
import urllib3.util.connection
import urllib3.util.timeout
from requests.adapters import HTTPAdapter
from requests.hooks import default_hooks
from requests.structures import CaseInsensitiveDict

from requests_smithy_retry import RetryAdapter, StopReason, TokenBucket, interruptions, retry_history, retry_options
from requests_smithy_retry.clock import SystemClock
from requests_smithy_retry.features.addresses import resolving
from requests_smithy_retry.wire.state import this_thread

from . import fakes

interruptions.signal = SimpleNamespace(
    valid_signals=lambda: (signal.SIGUSR2,), getsignal=signal.getsignal
)  # to ask for each of 64 signals takes longer than all the rest
urllib3._collections.RLock = tasks_module.RLock
queue.threading, queue.time = fakes.threading, fakes.monotonic  # type: ignore[attr-defined]
for module in (urllib3.connection, urllib3.util.connection):
    module.wait_for_read = wait_for_read
urllib3.util.timeout.time = fakes.time

SLACK = 0.01 + 1e-9
"""Seconds by which a deadline may be missed: the shortest timeouts of sockets, and rounding."""
RENEWAL = 0.05
"""The seconds that the program's function takes to renew credentials."""
KINDS = {"stop": Interrupted, "limit": Limit, "timeout": TimeoutError, "leap": float}
NOT_APPLIED = frozenset({401, 408, 425, 429, 529})
"""Statuses by which a server says that it did not act on a request."""
BUCKET = 5_000.0
WAITING = 14.0

done: Counter[str] = Counter()
"""Counts of the events met, over all runs of this process."""


class Call:
    """One operation of a plan as it went."""

    def __init__(self, number: int, op: Op) -> None:
        self.number = number
        self.op = op
        self.began = 0.0
        self.ended: float | None = None
        self.exchanges: list[Exchange] = []
        self.seen: list[tuple[int | None, str]] = []
        """The end of each attempt as plain requests saw it: its status, or the name of its exception."""
        self.raw: Any = None
        """The response of the last attempt, as urllib3 has it."""
        self.response: Any = None
        self.error: BaseException | None = None
        self.body: bytes | None = None
        self.body_error: BaseException | None = None
        self.history: Any = None
        self.was_cancelled = False
        self.resumed = 0
        self.task: Task | None = None

    @property
    def exchange(self) -> Exchange | None:
        return self.exchanges[-1] if self.exchanges else None


class _Drawn(Turns):
    def __init__(self, plan: Plan) -> None:
        self._random = random.Random(plan.seed ^ 0x5EED)
        self._preempts = plan.preempts

    def next_of(self, ready: list[Task]) -> Task:
        return ready[int(self._random.random() * len(ready))]

    def steps(self) -> int:
        return 1 + int(self._random.expovariate(1 / self._preempts)) if self._preempts else tasks_module.NEVER

    def preempt(self, tasks: Any) -> None:
        if tasks.ready:
            tasks.give_way()


class _Below(HTTPAdapter):
    """The plain adapter below ours, which counts the attempts."""

    world: World

    def send(self, request: Any, *args: Any, **how: Any) -> Any:
        call: Call = tasks.current.call
        number = len(call.exchanges)
        call.exchanges.append(Exchange(number + 1, call.op.tries[number] if number < len(call.op.tries) else WELL))
        try:
            response = super().send(request, *args, **how)
        except BaseException as error:
            call.seen.append((None, type(error).__name__))
            raise
        call.seen.append((response.status_code, ""))
        call.raw = response.raw
        return response


class Adapter(RetryAdapter, _Below):
    """The real adapter, over that."""


class Parts:
    """A body that can be iterated again; ``is_changing``: with other bytes."""

    def __init__(self, body: bytes, *, is_changing: bool = False) -> None:
        self._body, self._is_changing, self._times = body, is_changing, 0

    def __iter__(self) -> Iterator[bytes]:
        body, self._times = self._body, self._times + 1
        if self._is_changing and self._times > 1:
            body = bytes(reversed(body)) + b"!"
        return _parts(body)


def _parts(body: bytes) -> Iterator[bytes]:
    for at in range(0, len(body), 9_000):
        if at == 9_000:
            tasks.wait(0.01)
        yield body[at : at + 9_000]


class Heard:
    """A listener, which waits while it listens."""

    def before_attempt(self, event: Any) -> None:
        tasks.pause()

    def after_attempt(self, event: Any) -> None:
        tasks.pause()


class Watched(SystemClock):
    """The machine's clock. Who waits by it holds no connection."""

    def __init__(self, world: World) -> None:
        self._world = world

    def sleep(self, seconds: float) -> None:
        self._world.examine_held()
        super().sleep(seconds)

    def wait(self, condition: Any, seconds: float) -> None:
        self._world.examine_held()
        super().wait(condition, seconds)


class World:
    """One run of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.options = dict(plan.options)
        self.found: list[str] = []
        self.server = Server(self.report)
        self.calls = [Call(number, op) for number, op in enumerate(plan.ops)]
        self.bucket: TokenBucket | None = None
        self.held_before = 0

    def report(self, what: str) -> None:
        """Take note of a violation."""
        if what not in self.found:
            self.found.append(what)

    # What the network asks.

    def resolve(self, host: str, port: int) -> Any:
        met = self._met()
        if met.resolve:
            tasks.wait(met.seconds if met.resolve == "late" else 0.01)
            if met.resolve == "unknown":
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        number = int(host[1:].partition(".")[0])
        count = self.plan.addresses[number] if number < len(self.plan.addresses) else 1
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"10.0.{number}.{at}", port)) for at in range(count)]

    def connect(self, sock: FakeSocket, address: Any) -> tuple[float, int]:
        sock.link = Link(*address)
        self.server.accept(sock.link)
        _, _, host, number = map(int, address[0].split("."))
        if (host, number) in self.plan.dead:
            return 1000.0, errno.ETIMEDOUT
        if (host, number) in self.plan.refusing:
            return 0.0005, errno.ECONNREFUSED
        met = self._met()
        if met.connect == "refused":
            return 0.001, errno.ECONNREFUSED
        if met.connect == "lost":
            return met.seconds + 10, errno.ETIMEDOUT
        return (min(met.seconds, 1.5) if met.connect == "late" else 0.001), 0

    def sending(self, sock: FakeSocket) -> None:
        met = self._met()
        assert sock.link is not None
        sock.link.stall = met.seconds if met.request == "stall" else 0.0
        self.server.sending(sock.link, tasks.current.call.exchange)

    def receiving(self, sock: FakeSocket) -> None:
        assert sock.link is not None
        self.server.awaited(sock.link)

    def sent(self, sock: FakeSocket, data: bytes) -> None:
        call: Call = tasks.current.call
        assert sock.link is not None
        self.server.receive(sock.link, data, call.number, call.op, call.exchange)

    def _met(self) -> Try:
        """Return what the attempt meets that is running; a look-up or a connection may be nobody's."""
        call = None if tasks.current is None else tasks.current.call
        return WELL if call is None or call.exchange is None else call.exchange.met

    # The run.

    def adapter(self) -> Adapter:
        options = dict(self.options)
        if options.get("quota") == "bucket":
            options["quota"] = self.bucket = TokenBucket(2 * BUCKET, initial=BUCKET)
        elif options.get("quota") == "waiting":
            options["quota"] = TokenBucket(WAITING, refill_rate=1, on_empty="wait")
        if "listeners" in options:
            options["listeners"] = [Heard()]
        if "on_unauthorized" in options:
            options["on_unauthorized"] = self._renew
        return Adapter(trust_env=False, clock=Watched(self), **options)

    def _renew(self, response: Any) -> dict[str, str]:
        self.examine_held()
        tasks.wait(RENEWAL)
        return {"Authorization": "new"}

    def run(self) -> list[str]:
        """Run the plan; return what was violated."""
        random.seed(self.plan.seed)
        tasks.begin(_Drawn(self.plan))
        net.begin()
        net.world = self
        resolving._lookups.renew_lock()
        self.made = self.adapter()
        self.made.world = self
        for call in self.calls:
            self._spawn(call)
        if self.plan.fork is not None:
            tasks.spawn(self._fork, "fork")
        try:
            tasks.run()
            self.examine()
        except Stuck as stuck:
            self.report(f"stuck: {stuck}")
        finally:
            for task in tasks.all:
                if not task.is_over:
                    task.is_over = True
                    task.greenlet.throw()
        where = [call.task.where for call in self.calls if call.task is not None and call.task.where]
        return [f"{what} (interrupted at {', '.join(where)})" for what in self.found] if where else self.found

    def _spawn(self, call: Call) -> None:
        task = call.task = tasks.spawn(lambda: self._send(call), f"operation {call.number}")
        task.call, task.leap = call, call.op.leap
        if call.op.cancel is not None:
            tasks.spawn(lambda: self._cancel(call), f"cancels {call.number}")

    def _cancel(self, call: Call) -> None:
        assert call.op.cancel is not None
        assert call.task is not None
        tasks.wait(call.op.start + call.op.cancel)
        if call.began and call.ended is None and not call.task.is_ready:
            call.was_cancelled = True
            done["cancelled"] += 1
            tasks.throw(call.task, Cancelled())

    def _fork(self) -> None:
        assert self.plan.fork is not None
        tasks.wait(self.plan.fork)
        done["forked"] += 1
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            if status:
                self.report("fork: the child found a violation, see above")
            return
        try:
            net.pid, now = os.getpid(), tasks.now
            tasks.begin(_Drawn(self.plan))
            tasks.now = now
            net.open.clear()
            self.calls = [Call(number, Op(method="GET", host=number % len(self.plan.addresses))) for number in range(4)]
            if self.plan.dead or self.plan.refusing:
                self.calls = []
            self.bucket = None
            for call in self.calls:
                self._spawn(call)
            tasks.run()
            self.examine()
            for call in self.calls:
                if call.error is not None or call.response.status_code != 200:
                    self.report(f"fork: in the child operation {call.number} ended with {call.error!r}")
        except BaseException:
            traceback.print_exc()
            self.report("fork")
        if self.found:
            print("in a forked child:", *self.found, sep="\n", file=sys.stderr, flush=True)
        os._exit(1 if self.found else 0)

    def _send(self, call: Call) -> None:
        op, task = call.op, call.task
        assert task is not None
        if op.start:
            tasks.wait(op.start)
        request, how = self._request(call), {"stream": bool(op.stream), "timeout": op.timeout}
        options: dict[str, Any] = {}
        if op.vouched is not None:
            options["idempotent"] = op.vouched
        if op.deadline is not None:
            options["deadline"] = op.deadline
        if op.interrupt is not None:
            task.steps = 0
            task.interrupt = op.interrupt[0], KINDS[op.interrupt[1]]
            tasks._arm(task)
        call.began = tasks.now
        try:
            if options:
                with retry_options(**options):
                    call.response = self.made.send(request, **how)
            else:
                call.response = self.made.send(request, **how)
        except BaseException as error:
            call.error = error
        call.ended = tasks.now
        later, task.interrupt = task.interrupt, None
        if isinstance(call.error, greenlet_exit):
            raise call.error
        target = call.error or call.response
        call.history = retry_history(target) if not isinstance(target, (Interrupted, Cancelled)) else None
        call.resumed = len(call.exchanges)
        if call.response is not None:
            if op.stream and later is not None:
                task.interrupt = later
                tasks._arm(task)
            self._read(call)
        left = this_thread.deadline, this_thread.retries_off, tuple(this_thread.tried)
        if left != (None, False, ()):
            self.report(f"left: the thread of operation {call.number} has {left}")

    def _read(self, call: Call) -> None:
        response, stream = call.response, call.op.stream
        try:
            if not stream:
                call.body = response.content
            elif stream == "read":
                call.body = b"".join(response.iter_content(5_000))
            elif stream == "part":
                for _ in response.iter_content(10):
                    break
        except BaseException as error:
            call.body_error = error
        if stream:
            if call.task is not None:
                call.task.interrupt = None
            response.close()

    def _request(self, call: Call) -> requests.PreparedRequest:
        op, request = call.op, requests.PreparedRequest()
        request.method, request.url = op.method, f"http://h{op.host}.test/{call.number}"
        request.headers, request.hooks = CaseInsensitiveDict({"Authorization": "old"}), default_hooks()
        if op.keyed:
            request.headers["Idempotency-Key"] = f"key-{call.number}"
        if not op.body:
            return request
        body = request_body(call.number, op.length)
        if op.body in ("bytes", "file"):
            request.headers["Content-Length"] = str(len(body))
            request.body = body if op.body == "bytes" else io.BytesIO(body)
        else:
            request.headers["Transfer-Encoding"] = "chunked"
            is_changing = op.body == "changing"
            request.body = _parts(body) if op.body == "generator" else Parts(body, is_changing=is_changing)
        return request

    # What must be true.

    def examine(self) -> None:
        """Examine what is left, and each operation."""
        for call in self.calls:
            self._examine_applied(call)
            self._examine_time(call)
            self._examine_outcome(call)
            self._examine_history(call)
        self._examine_rest()
        if self.bucket is not None:
            self._examine_bucket(self.bucket)

    def _examine_applied(self, call: Call) -> None:
        op = call.op
        may_repeat = op.method in ("GET", "PUT", "DELETE", "HEAD")
        is_keyed = op.keyed or self.options.get("idempotency_key")
        if op.vouched is True or (op.vouched is None and (may_repeat or is_keyed)):
            return
        for exchange, (status, _) in zip(call.exchanges[:-1], call.seen, strict=False):
            later = any(other.written for other in call.exchanges[exchange.number :])
            limited = status == 403 and exchange.met.headers
            is_safe = status in NOT_APPLIED or _is_throttled(exchange.met, status) or limited
            if exchange.written and later and not is_safe:
                self.report(f"applied twice: {op.method} {call.number}, attempt {exchange.number} got {status}")

    def _examine_time(self, call: Call) -> None:
        bounds = [self.options.get("operation_timeout"), call.op.deadline]
        bound = min((bound for bound in bounds if bound is not None), default=None)
        if bound is None or call.ended is None:
            return
        leap = sum(each.op.leap for each in self.calls)
        # No deadline interrupts the program's own function.
        renewal = RENEWAL if self.options.get("on_unauthorized") else 0.0
        took = call.ended - call.began
        if took > bound + SLACK + leap + renewal:
            self.report(f"late: operation {call.number} took {took:.3f} s of {bound}")

    def _examine_outcome(self, call: Call) -> None:
        error = call.error
        if error is None:
            self._examine_response(call)
            return
        if isinstance(error, Cancelled):
            if not call.was_cancelled:
                self.report(f"cancelled: operation {call.number}, by nobody")
        elif isinstance(error, (Interrupted, Limit)) or (call.op.interrupt and call.op.interrupt[1] == "timeout"):
            if call.op.interrupt is None:
                self.report(f"interrupted: operation {call.number}, by nobody")
        elif not isinstance(error, requests.RequestException):
            self.report(f"raised: operation {call.number} ended with {error!r}")
        elif call.was_cancelled:
            self.report(f"swallowed: operation {call.number} was cancelled and ended with {error!r}")

    def _examine_response(self, call: Call) -> None:
        response, op = call.response, call.op
        if call.was_cancelled and call.body_error is None and not op.stream:
            self.report(f"swallowed: operation {call.number} was cancelled and has a response")
        if call.body_error is not None and self._is_continued(op):
            self.report(f"given up: operation {call.number} could have its body, and got {call.body_error!r}")
        body, status = call.body, response.status_code
        if body is None:
            return
        last = call.exchanges[-1]
        if status >= 300:
            expected = {error_content(call.number, last.number, last.met.size), b""}
            if op.method != "HEAD":
                expected = {last.answer[1]} if last.answer else set()
        else:
            versions = {exchange.met.version for exchange in call.exchanges if exchange.was_whole or exchange.answer}
            expected = {content(call.number, version, op.answer) for version in versions}
            if op.method == "HEAD" or status == 204:
                expected = {b""}
        if body in expected:
            return
        if any(exchange.is_cut for exchange in call.exchanges) and any(whole.startswith(body) for whole in expected):
            return  # no client can know
        self.report(f"body: operation {call.number} got {len(body)} bytes that are not its answer: {body[:60]!r}")

    def _is_continued(self, op: Op) -> bool:
        """Return True if the server gives the rest of a body that breaks off, where nothing else is the matter."""
        if self.plan.options or op != Op(answer=op.answer, stream="read", tries=op.tries) or not op.tries:
            return False
        first, *later = op.tries
        is_first_well = first == Try(framing=first.framing, version=first.version, fault=first.fault, at=first.at)
        parts = [Try(ranges=ranges, version=first.version) for ranges in ("kept", "half")]
        return is_first_well and first.framing != "close" and len(later) < 2 and all(met in parts for met in later)

    def _examine_history(self, call: Call) -> None:
        history = call.history
        if history is None:
            return
        rows = history.attempts
        seen = call.seen[: call.resumed]
        made = len(rows)
        if 0 < made - len(seen) <= sum(row.error == "ConnectTimeout" for row in rows):
            return  # its time was over before it was sent
        if history.stop_reason is StopReason.NOT_RETRYABLE and call.op.interrupt:
            return
        if made != len(seen) and not (call.op.interrupt and call.op.interrupt[1] != "leap"):
            self.report(f"history: operation {call.number} has {made} attempts, and {len(seen)} were made: {seen}")
            return
        for row, (status, _) in zip(rows, seen, strict=False):
            # A part that goes on with a body is told with the status of the whole.
            if None not in (row.status, status) and row.status != status and (row.status, status) != (200, 206):
                self.report(f"history: operation {call.number} has {row.status} where {status} came")
        for exchange, (status, _) in zip(call.exchanges, seen, strict=False):
            sent = exchange.answer and exchange.answer[0]
            if status is not None and sent is not None and status not in (sent, 206):
                self.report(f"history: operation {call.number} got {status} where {sent} was sent")
            if status is not None and sent is None:
                self.report(f"history: operation {call.number} got {status}, which nobody sent")

    def _examine_rest(self) -> None:
        """Nothing is left: no lock, waiter, permit, connection or thread."""
        if tasks_module.held[0] != self.held_before:
            self.report(f"left: {tasks_module.held[0] - self.held_before} locks are held")
            tasks_module.held[0] = self.held_before
        for pool in self._pools():
            if self.options.get("pool_block") and len(pool.pool.queue) != pool.pool.maxsize:
                self.report(f"left: a pool has {len(pool.pool.queue)} of {pool.pool.maxsize} places")
        connections = [each for pool in self._pools() for each in pool.pool.queue]
        kept = {each.sock.fileno() for each in connections if each is not None and each.sock is not None}
        stray = net.open.keys() - kept
        if stray:
            self.report(f"left: {len(stray)} sockets are open and in no pool")
        lookups = resolving._lookups
        if lookups._running or lookups._line:
            self.report("left: names are looked up for nobody")
        scopes: Any = getattr(self.made.strategy, "scopes", ())
        for name, scope in scopes:
            if scope.is_waited_on:
                self.report(f"left: scope {name} is waited on")
            self._examine_quota(scope.quota)
            self._examine_parts(scope.parts)

    def _pools(self) -> list[Any]:
        return list(self.made.poolmanager.pools._container.values())

    def examine_held(self) -> None:
        """Examine one that is about to wait: it has no connection of an attempt that is over."""
        call: Call = tasks.current.call
        connection = getattr(call.raw, "_connection", None)
        if connection is not None and connection.sock is not None and connection.sock.fileno() >= 0:
            self.report(f"held: operation {call.number} waits with the connection of attempt {len(call.seen)}")

    def _examine_quota(self, quota: Any) -> None:
        line, bucket = getattr(quota, "_queue", None), getattr(quota, "bucket", None)
        if line is not None and line.waiters:
            self.report("left: an operation waits in the line")
        if bucket is None:
            return
        if getattr(bucket, "_places", ()):
            self.report("left: an operation waits for tokens")
        available, most = bucket.available, max(bucket.capacity, 36.0)
        if not -1e-9 <= available <= most + 1e-9:
            self.report(f"quota: a bucket holds {available}")

    def _examine_parts(self, parts: Any) -> None:
        """Examine what features keep of a scope."""
        limiter, users = parts.get("limiter"), parts.get("rate limits")
        if limiter is not None and (limiter._waiting or limiter._capacity < -1e-9):
            self.report("left: somebody waits for a permit, or there are fewer than none")
        for limits in () if users is None else users.known.values():
            if limits.queue:
                self.report("left: somebody waits for a rate limit")
            if limits._in_flight and not any(call.op.interrupt or call.was_cancelled for call in self.calls):
                self.report(f"left: {len(limits._in_flight)} requests are under way")

    def _examine_bucket(self, bucket: TokenBucket) -> None:
        """The bucket lacks the price of the retries, and has what successes gave back."""
        least = most = BUCKET
        for call in self.calls:
            low, high = self._balance(call)
            low -= 14.0 * (len(call.exchanges) - call.resumed)  # the rest of a body that broke off as it was read
            least, most = least + low, most + high
        if not least - 1e-6 <= bucket.available <= most + 1e-6:
            self.report(f"quota: {bucket.available} tokens are left, where {least} to {most} are right")

    def _balance(self, call: Call) -> tuple[float, float]:
        history = call.history
        if any(exchange.is_of_rest for exchange in call.exchanges):  # by operations of their own
            return -14.0 * len(call.seen), 1.0 + 2 * len(call.seen)
        if history is None or call.op.interrupt:  # an interrupted operation may have paid once more, or once less
            paid = [self._price(call, at) for at in range(len(call.seen))]
            if call.error is None and len(call.seen) <= 1:
                return 0.0, 1.0
            return -sum(paid) - 14.0, max([1.0, *paid])
        rows = history.attempts
        prices = [self._price(call, at) for at in range(len(rows) - 1)]
        if history.stop_reason is StopReason.SUCCESS:
            paid = [price for price in prices if price]  # an attempt with new credentials costs nothing
            back = paid[-1] - sum(paid) if paid else 1.0
            return back, back
        # A body that came further shows that the service is up, as a success does.
        cut = sum(row.status is None and status is not None for row, (status, _) in zip(rows, call.seen, strict=False))
        return -sum(prices), cut - sum(prices)

    def _price(self, call: Call, at: int) -> float:
        """Return what the retry after an attempt costs."""
        status = call.seen[at][0] if at < len(call.seen) else None
        met = call.exchanges[at].met if at < len(call.exchanges) else WELL
        row = call.history.attempts[at] if call.history is not None and at < len(call.history.attempts) else None
        if row is not None and row.status is None:
            return 14.0
        if status == 401 and "on_unauthorized" in self.options:
            return 0.0
        return 5.0 if status in (429, 529, 403) or _is_throttled(met, status) else 14.0


def _is_throttled(met: Try, status: int | None) -> bool:
    return any(name == "x-amzn-errortype" for name, _ in met.headers) and (status or 0) >= 400


greenlet_exit = tasks_module.greenlet.GreenletExit


def run(plan: Plan) -> list[str]:
    """Run a plan; return what it violated."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        world = World(plan)
        world.held_before = tasks_module.held[0]
        found = world.run()
    finally:
        net.world = None
        if was_on:
            gc.enable()
    done["operations"] += len(plan.ops)
    done["attempts"] += sum(len(call.exchanges) for call in world.calls)
    for call in world.calls:
        if call.task is not None and call.op.interrupt and call.task.where:
            done[f"interrupted: {call.op.interrupt[1]}"] += 1
        for exchange in call.exchanges:
            met: Try = exchange.met
            done[met.fault or met.request or met.connect or met.resolve or "well"] += 1
    return found
