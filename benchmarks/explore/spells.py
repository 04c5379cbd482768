"""Operations on a service that fails in spells: the real adapter in virtual time, without a socket or a thread.

    python -m benchmarks.explore.spells [--operations 100000] [--seed 1]

In each world a few clients' threads operate on one service, with drawn methods, deadlines, caps, patience, hints,
``max_wait`` and ``cancel``. A world is played with the built-in strategy, with a subclass whose methods only call
``super()``, with a wrapper that hands on, and with a strategy by the Smithy guide alone, or one that says yes to
everything. The first three must do the same. What must be true of every operation is in :func:`violations`. A violation
is printed with the seed of its world, and is the exit status.
"""

from __future__ import annotations

import argparse
import io
import itertools
import random
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from types import SimpleNamespace
from typing import Any
from unittest import mock

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse
from urllib3.exceptions import ProtocolError

from requests_smithy_retry import (
    AdaptiveRetryStrategy,
    RetryAdapter,
    RetryHistory,
    StandardRetryStrategy,
    StopReason,
    TokenBucket,
    retry_history,
    retry_options,
)
from requests_smithy_retry.clock import SystemClock
from requests_smithy_retry.core.retry_budget import MOST
from requests_smithy_retry.core.waiting import LOOK_EVERY
from requests_smithy_retry.wire.state import this_thread

from .tasks import Stuck, Task, Turns, tasks

URL = "http://service.test/"
REFUSALS = frozenset({408, 425, 429})
"""The statuses by which a server says that it did not act on a request."""
WORLD = 40
"""Operations of one world."""
SLACK = 1e-6
BACKOFF = 3.0
"""Seconds before the second and the third attempt of one that is throttled, at most."""
SLOWEST = 2.0
"""Seconds that an attempt may take."""
HINTS = (0, 1, 3, 20, 60)
CAPACITY = 60.0
"""Tokens of a bucket that is no default."""


class TaskClock:
    """The scheduler's clock, for a package that is as it stands: its conditions are those of ``threading``."""

    def now(self) -> float:
        return tasks.now

    def wall(self) -> float:
        return 1_700_000_000.0 + self.now()

    def sleep(self, seconds: float) -> None:
        tasks.wait(seconds)

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        bell = _Bell(tasks.current)
        condition._waiters.append(bell)  # type: ignore[attr-defined]
        condition.release()
        try:
            tasks.wait(seconds)
        finally:
            condition.acquire()
            if not bell.has_rung:
                condition._waiters.remove(bell)  # type: ignore[attr-defined]


class _Bell:
    """What a condition lets go when it is notified."""

    def __init__(self, task: Any) -> None:
        self.task = task
        self.has_rung = False

    def release(self) -> None:
        self.has_rung = True
        tasks.wake(self.task)


class Wrapper:
    """A strategy that hands everything on to another one."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def acquire_initial_retry_token(self, **given: Any) -> Any:
        return self.inner.acquire_initial_retry_token(**given)

    def refresh_retry_token_for_retry(self, **given: Any) -> Any:
        return self.inner.refresh_retry_token_for_retry(**given)

    def record_success(self, **given: Any) -> None:
        self.inner.record_success(**given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Guide:
    """A strategy by the Smithy guide, which knows only the attributes of errors.

    :param is_eager: it says yes to everything.
    """

    def __init__(self, *, is_eager: bool) -> None:
        self.is_eager = is_eager

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Any:
        return SimpleNamespace(retry_count=0, retry_delay=0.0)

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Any) -> Any:
        number = token_to_renew.retry_count + 1
        if number > 3 or (error.is_retry_safe is False and not self.is_eager):
            raise error
        return SimpleNamespace(retry_count=number, retry_delay=max(0.1 * 2**number, error.retry_after or 0.0))

    def record_success(self, *, token: Any) -> None:
        """Do nothing."""


def _super(name: str) -> Any:
    return lambda self, **given: getattr(super(type(self), self), name)(**given)


OWN = {
    name: _super(name) for name in ("acquire_initial_retry_token", "refresh_retry_token_for_retry", "record_success")
}
FORMS = ("class", "subclass", "wrapper", "guide")
ALIKE = FORMS[:3]


@dataclass(frozen=True)
class Op:
    """One operation. What it is told is None where nothing is said.

    :param cancel: the moment from which it is not wanted any more.
    """

    number: int
    method: str
    began: float
    deadline: float | None
    cap: int | None
    patience: float | None
    max_wait: float | None
    cancel: float | None

    def is_set(self) -> bool:
        """Return True once it is cancelled: it is its own event."""
        return self.cancel is not None and tasks.now >= self.cancel


@dataclass(eq=False)
class Run:
    """One operation as it went."""

    op: Op
    sent: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    got: list[int] = field(default_factory=list)  # the status of each attempt; 0: none
    asked: list[float] = field(default_factory=list)  # seconds that the server asked for after each attempt
    result: Any = None
    over: float = inf

    @property
    def history(self) -> RetryHistory | None:
        return retry_history(self.result)

    def tell(self) -> tuple[Any, ...]:
        """Return what must not depend on the form of the strategy."""
        history, result = self.history, self.result
        ending = result.status_code if isinstance(result, requests.Response) else (type(result), str(result))
        return self.sent, self.over, ending, None if history is None else history._replace(max_attempts=None)


class _Service(HTTPAdapter):
    """The service, below the adapter: a function of the time, of the operation and of the attempt."""

    world: World

    def send(self, request: Any, *args: Any, timeout: Any = None, **how: Any) -> requests.Response:
        world, run = self.world, tasks.current.call
        draw = random.Random(f"{world.seed}/{run.op.number}/{len(run.sent)}")
        now = world.clock.now()
        run.sent.append(now)
        took, allowed = draw.uniform(0.001, SLOWEST), inf if timeout is None else getattr(timeout, "_read", timeout)
        is_down = sum(moment <= now for moment in world.spells) % 2 == 1
        kind = (draw.choice(("503", "429", "reset")) if world.kind == "mixed" else world.kind) if is_down else "200"
        hint = draw.choice(HINTS) if kind in ("503", "429") and draw.random() < world.hints else None
        status = 0 if kind == "reset" or took > allowed else int(kind)
        tasks.wait(min(took, allowed))
        run.ended.append(world.clock.now())
        run.got.append(status)
        run.asked.append(0.0 if hint is None or not status else float(hint))
        if took > allowed:
            raise requests.exceptions.ReadTimeout(request=request)
        if not status:
            raise requests.exceptions.ConnectionError(ProtocolError("Connection aborted.", ConnectionResetError()))
        headers = {} if hint is None else {"Retry-After": str(hint)}
        raw = HTTPResponse(io.BytesIO(b"body"), headers=headers, status=status, preload_content=False)
        return self.build_response(request, raw)


class Adapter(RetryAdapter, _Service):
    """The real adapter, over that."""


class World:
    """A service, a scope, and operations on it.

    :param form: of the strategy, one of :data:`FORMS`.
    """

    def __init__(self, seed: int, form: str = FORMS[0]) -> None:
        self.seed, self.form = seed, form
        draw = self.draw = random.Random(seed)
        self.span = draw.choice((6, 20, 60))
        self.spells = sorted(draw.uniform(0, self.span) for _ in range(2 * draw.randrange(1, 4)))
        self.kind = draw.choice(("503", "429", "reset", "mixed"))
        self.clock = TaskClock()
        self.quota = draw.choice(("payoff", "payoff", "payoff", "bucket", "waiting"))
        self.hints = draw.choice((0.0, 0.0, 0.1, 0.5))
        self.is_adaptive = draw.random() < 0.2
        self.runs = [Run(self._op(number)) for number in range(WORLD)]
        self.stuck = ""

    def _op(self, number: int) -> Op:
        draw = self.draw
        began = draw.uniform(0, self.span)
        return Op(
            number,
            draw.choice(("GET", "GET", "GET", "POST")),
            began,
            draw.choice((0.5, 5.0, 30.0)) if draw.random() < 0.3 else None,
            draw.choice((None, None, None, 1, 2, 5)),
            draw.choice((None, None, None, 0.0, 2.0, 15.0)),
            draw.choice((0.0, 0.4, 4.0)) if draw.random() < 0.1 else None,
            began + draw.uniform(0, 8) if draw.random() < 0.1 else None,
        )

    def strategy(self) -> Any:
        """Make the strategy."""
        if self.form == "guide":
            return Guide(is_eager=self.seed % 2 == 0)
        options: dict[str, Any] = {"clock": self.clock}
        if self.quota != "payoff":
            waits = {"refill_rate": 2.0, "on_empty": "wait"} if self.quota == "waiting" else {}
            options["quota"] = TokenBucket(CAPACITY, clock=self.clock, **waits)
        kind = AdaptiveRetryStrategy if self.is_adaptive else StandardRetryStrategy
        made = (type("Own", (kind,), OWN) if self.form == "subclass" else kind)(**options)
        return Wrapper(made) if self.form == "wrapper" else made

    def play(self) -> World:
        """Let time pass until every operation has ended."""
        random.seed(self.seed)  # for the spread of backoff
        known = [*tasks.locals]
        tasks.locals.append(this_thread)
        tasks.begin(Turns())
        tasks.now = 0.0
        with mock.patch.object(SystemClock, "now", staticmethod(self.clock.now)):
            self.adapter = Adapter(strategy=self.strategy(), clock=self.clock)
            self.adapter.world = self
            for run in self.runs:
                self._spawn(run).call = run
            try:
                tasks.run()
            except Stuck as stuck:
                self.stuck = str(stuck)
            finally:
                for task in tasks.all:
                    if not task.is_over:
                        task.is_over = True
                        task.greenlet.throw()
                tasks.locals[:] = known
        return self

    def _spawn(self, run: Run) -> Task:
        return tasks.spawn(lambda: self._operate(run), str(run.op.number))

    def _operate(self, run: Run) -> None:
        op = run.op
        tasks.wait(op.began)
        told = {"max_attempts": op.cap, "patience": op.patience, "deadline": op.deadline, "max_wait": op.max_wait}
        told["cancel"] = None if op.cancel is None else op
        options: dict[str, Any] = {name: value for name, value in told.items() if value is not None}
        try:
            with retry_options(**options):
                run.result = self.adapter.send(requests.Request(op.method, URL).prepare())
        except requests.RequestException as error:
            run.result = error
        run.over = self.clock.now()


def violations(world: World) -> Iterator[str]:
    """Yield the rules that the operations of a world that is over have broken, a phrase each."""
    if world.stuck:
        yield f"stuck: {world.stuck}"
    for run in world.runs:
        for broken in itertools.chain(_broken(run), _late(run, world)):
            yield f"{broken} (operation {run.op.number})"
    if world.form == "guide":
        return
    for _, scope in world.adapter.strategy.scopes:
        held = scope.quota.snapshot(world.clock.now())
        if held.waiting or scope.is_waited_on or not 0 <= held.available <= max(MOST, held.capacity):
            yield f"the scope is left with {held}"


def _broken(run: Run) -> Iterator[str]:
    """Yield what is wrong with the requests of an operation, and with what came of them."""
    history, op = run.history, run.op
    is_success = isinstance(run.result, requests.Response) and run.result.status_code == 200
    if history is None or is_success != (run.got[-1:] == [200]) or is_success != _says_success(history):
        yield f"ended as {run.result!r} after {run.got}, and its record is {history}"
    if history is not None and len(history.attempts) != len(run.sent):
        yield f"{len(history.attempts)} attempts are in the record, and {len(run.sent)} were made"
    if op.cap is not None and len(run.sent) > op.cap:
        yield f"{len(run.sent)} requests, where {op.cap} are the most"
    if op.method == "POST" and any(status not in REFUSALS for status in run.got[:-1]):
        yield f"a POST was sent again after {run.got}"
    for gap, asked in zip(_gaps(run), run.asked, strict=False):
        if gap < asked - SLACK:
            yield f"waited {gap:.3f} s, where the server asked for {asked:g} s"


def _says_success(history: RetryHistory) -> bool:
    return history.stop_reason is StopReason.SUCCESS


def _gaps(run: Run) -> list[float]:
    """Return the seconds from the end of each attempt to the next one."""
    return [sent - ended for ended, sent in zip(run.ended, run.sent[1:], strict=False)]


def _late(run: Run, world: World) -> Iterator[str]:
    """Yield the bounds of time that an operation has not kept."""
    op, deadline = run.op, run.op.began + (inf if run.op.deadline is None else run.op.deadline)
    if max([run.over, *run.sent]) > deadline + SLACK:
        yield f"ended {run.over - deadline:.3f} s after its deadline"
    last = run.over - run.ended[-1] if run.ended else 0.0
    if op.max_wait is not None and max([last, *_gaps(run)]) > op.max_wait + SLACK:
        yield f"waited {max([last, *_gaps(run)]):.3f} s, where {op.max_wait:g} s are the most"
    if op.cancel is not None:
        under_way = [ended for sent, ended in zip(run.sent, run.ended, strict=False) if sent <= op.cancel + LOOK_EVERY]
        ends_by = max([op.cancel, *under_way]) + LOOK_EVERY
        if run.over > ends_by + SLACK:
            yield f"ended {run.over - ends_by:.3f} s after it was cancelled"
    patience = 5.0 if op.patience is None else op.patience
    waits = 0.0 if run.history is None else sum(_waits(row) for row in run.history.attempts)
    most = 2 * patience + waits * (op.patience is None) + SLOWEST * len(run.sent) + max([0.0, *run.asked])
    # Only the default quota goes by patience: a bucket on which others wait has all the time until the deadline.
    is_patient = world.form != "guide" and world.quota != "waiting" and not world.is_adaptive
    if is_patient and run.over - op.began > most + SLACK + BACKOFF:
        yield f"lasted {run.over - op.began:.1f} s, with a patience of {op.patience}"


def _waits(row: Any) -> float:
    return float(row.delay + row.gate_wait)


def found_in(seed: int) -> Iterator[str]:
    """Play a world in each form; yield what it has violated, and where forms that must be alike are not."""
    played = {form: World(seed, form).play() for form in FORMS}
    for form, world in played.items():
        yield from (f"{form}: {broken}" for broken in violations(world))
    for form in ALIKE[1:]:
        for one, other in zip(played[ALIKE[0]].runs, played[form].runs, strict=True):
            if one.tell() != other.tell():
                yield f"{form}: operation {one.op.number} went as {other.tell()}, and with the class as {one.tell()}"
                break


def main() -> int:
    """Play worlds until so many operations are over."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", action="store_true", help="stop at the first violation")
    options = parser.parse_args()
    began, bad, each = time.process_time(), 0, WORLD * len(FORMS)
    for seed in range(options.seed, options.seed + -(-options.operations // each)):
        for violation in found_in(seed):
            print(f"seed {seed} violates: {violation}", flush=True)
            bad += 1
            if options.first:
                return 1
    took = time.process_time() - began
    print(f"{options.operations} operations, {bad} violations, {took:.0f} s of CPU")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
