"""What makes threads take turns: greenlets under a scheduler that alone decides who runs, and a clock that jumps.

A task runs until it waits, or until it is preempted at a step. When all tasks wait, the clock jumps to the next
moment at which one is due. So a run is a function of its plan and of the choices of its :class:`Turns`.
"""

from __future__ import annotations

import gc
import heapq
import itertools
import signal
import sys
from collections.abc import Callable
from typing import Any

import greenlet

from .instrument import is_cleaning_up

NEVER = 1 << 60
LONGEST = 50_000.0
"""Seconds on the clock that no run needs."""
MOST_STEPS = 3_000_000
"""Steps after which a task that neither waits nor ends is stuck."""


class Stuck(Exception):
    """Every task waits, and none has a moment at which it is due. The message names them."""


class Cancelled(BaseException):
    """Ends a task where it waits, as gevent does."""


class Interrupted(BaseException):
    """Arrives at any statement, as Ctrl-C does."""


class Limit(Exception):
    """Arrives at any statement, out of a signal's handler, as a task queue's soft time limit does."""


def handler(kind: type[BaseException]) -> None:
    """Raise as a signal's handler does; the package knows a handler's exceptions by their traceback."""
    raise kind("a signal")


class Turns:
    """The choices of a run: who is next, and at which step a task is preempted."""

    def next_of(self, ready: list[Task]) -> Task:
        """Choose among the tasks that can run, after one has waited or ended."""
        return ready[0]

    def steps(self) -> int:
        """Return the number of steps until the next call of :meth:`preempt`."""
        return NEVER

    def preempt(self, tasks: Tasks) -> None:
        """Have another task run, or not: see :meth:`Tasks.give_way`."""


class Task:
    """One simulated thread."""

    def __init__(self, tasks: Tasks, function: Callable[[], Any], name: str) -> None:
        self.tasks = tasks
        self.name = name
        self.function = function
        self.greenlet = greenlet.greenlet(self._run, tasks.hub)
        self.is_ready = True
        self.is_over = False
        self.until: float | None = None
        self.token = 0
        self.error: BaseException | None = None
        self.thrown: BaseException | None = None
        self.wants: Lock | None = None
        """The lock that it takes before it does anything else, while it waits."""
        self.result: Any = None
        self.locals: list[dict[str, Any]] = [{} for _ in tasks.locals]
        self.interrupt: tuple[int, type[BaseException]] | None = None
        self.steps = 0
        self.leap = 0.0
        self.where = ""
        """The line at which it was interrupted."""
        self.call: Any = None if tasks.current is None else tasks.current.call
        """What its work belongs to: that of the task that began it."""

    def _run(self) -> None:
        try:
            self.result = self.function()
        except BaseException as error:
            if isinstance(error, greenlet.GreenletExit):
                return
            self.error = error
        finally:
            self.is_over = True
            self.is_ready = False
            self.tasks.ended(self)

    def __repr__(self) -> str:
        return self.name


class Tasks:
    """The scheduler."""

    def __init__(self) -> None:
        self.locals: list[Any] = []
        """Objects of ``threading.local``: each task sees its own attributes of them."""
        self.begin(Turns())

    def begin(self, turns: Turns) -> None:
        """Begin a run."""
        self.hub = greenlet.getcurrent()
        self.turns = turns
        self._now = 1000.0
        self.stirred = 0
        """Changes as a thread is woken or another one goes on, a lock is taken or let go, or the clock is read."""
        self.all: list[Task] = []
        self.ready: list[Task] = []
        self.current: Task | None = None
        self._timers: list[tuple[float, int, Task, int]] = []
        self._number = itertools.count()
        self.countdown = NEVER
        self._armed = NEVER
        self.total = 0
        """Steps of all tasks."""
        self._spun = 0
        self._horizon = LONGEST / 10

    @property
    def now(self) -> float:
        """The moment, in seconds."""
        self.stirred += 1
        return self._now

    @now.setter
    def now(self, moment: float) -> None:
        self._now = moment

    def spawn(self, function: Callable[[], Any], name: str) -> Task:
        """Make a task that runs as soon as it is chosen."""
        task = Task(self, function, name)
        self.all.append(task)
        self.ready.append(task)
        return task

    def run(self) -> None:
        """Run until every task has ended.

        :raises Stuck: if those that are left wait for ever.
        """
        while True:
            if not self.ready:
                if not self._leap():
                    waiting = [task for task in self.all if not task.is_over]
                    if waiting:
                        raise Stuck(f"{waiting} wait for ever")
                    return
                continue
            task = self.ready[0] if len(self.ready) == 1 else self.turns.next_of(self.ready)
            self.ready.remove(task)
            self._switch(task)

    def _switch(self, task: Task) -> None:
        self.current = task
        self.stirred += 1
        self._spun = 0
        for mine, shared in zip(task.locals, self.locals, strict=False):
            there = vars(shared)
            there.clear()
            there.update(mine)
        self._arm(task)
        task.greenlet.switch()
        self._disarm(task)
        for mine, shared in zip(task.locals, self.locals, strict=False):
            mine.clear()
            mine.update(vars(shared))
        self.current = None

    def _arm(self, task: Task) -> None:
        ahead = min(self.turns.steps(), MOST_STEPS)
        if task.interrupt is not None:
            ahead = min(ahead, max(1, task.interrupt[0] - task.steps))
        self.countdown = self._armed = ahead

    def _disarm(self, task: Task) -> None:
        made = self._armed - self.countdown
        task.steps += made
        self.total += made
        self._spun += made
        self.countdown = self._armed = NEVER

    def step(self) -> None:
        """Take note of one statement; here things happen to the task that is running."""
        self.countdown -= 1
        if not self.countdown:
            self._happen()

    def _happen(self) -> None:
        task = self.current
        if task is None or greenlet.getcurrent() is not task.greenlet:
            self.countdown = self._armed = NEVER
            return
        self._disarm(task)
        if task.interrupt is not None and task.steps >= task.interrupt[0]:
            self._interrupt(task)
        elif self._spun >= MOST_STEPS:
            raise Stuck(f"{task} never ends")
        else:
            self.turns.preempt(self)
        if self._armed == NEVER:
            self._arm(task)

    def _interrupt(self, task: Task) -> None:
        assert task.interrupt is not None
        number, kind = task.interrupt
        if kind is float:  # the whole process stood still
            task.interrupt = None
            task.where = "a leap"
            self.now += task.leap
        elif is_cleaning_up(sys._getframe(3)):
            task.interrupt = number + 1, kind  # not while it cleans up after another exception
        else:
            frame = sys._getframe(3)
            file = frame.f_code.co_filename.rpartition("requests_smithy_retry/")[2]
            task.where = f"{file}:{frame.f_lineno} {frame.f_code.co_name}"
            task.interrupt = None
            self._arm(task)
            handler(kind)

    def give_way(self) -> None:
        """Preempt the task that is running: it stays ready."""
        task = self.current
        assert task is not None
        self._disarm(task)
        task.is_ready = True
        self.ready.append(task)
        self.hub.switch()
        self._raise_thrown(task)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until :meth:`wake`, at most for ``seconds``; return False if the time is over."""
        task = self.current
        assert task is not None, "something waits outside of a task"
        task.is_ready = False
        task.token += 1
        task.until = None
        if seconds is not None:
            task.until = self.now + max(0.0, seconds)
            heapq.heappush(self._timers, (task.until, next(self._number), task, task.token))
        self.hub.switch()
        is_late, task.until = task.until == -1.0, None
        self._raise_thrown(task)
        return not is_late

    def _raise_thrown(self, task: Task) -> None:
        if task.thrown is not None:
            error, task.thrown = task.thrown, None
            raise error

    def wake(self, task: Task) -> None:
        """End the wait of a task."""
        self.stirred += 1
        if not (task.is_ready or task.is_over):
            task.is_ready = True
            task.token += 1
            self.ready.append(task)

    def throw(self, task: Task, error: BaseException) -> None:
        """Have a task that waits raise; one that is not waiting raises when it waits next or goes on."""
        if not task.is_over:
            task.thrown = error
            self.wake(task)

    def _leap(self) -> bool:
        """Jump to the next moment at which a task is due; return False if there is none."""
        while self._timers:
            at, _, task, token = heapq.heappop(self._timers)
            if token == task.token and not task.is_ready and not task.is_over:
                self.now = max(self.now, at)
                self._bound()
                self.time_out(task)
                return True
        return False

    def _bound(self) -> None:
        """Have finalizers run after hours, as they would; after days nothing will change any more."""
        if self.now > self._horizon:
            if self._horizon > LONGEST:
                raise Stuck(f"{[task for task in self.all if not task.is_over]} wait for days")
            gc.collect()
            self._horizon *= 10

    def time_out(self, task: Task) -> None:
        """End the wait of a task as if its time were over, with the clock at that moment at least."""
        assert task.until is not None
        self.now = max(self.now, task.until)
        task.until = -1.0
        self.wake(task)

    def ended(self, task: Task) -> None:
        """Take note that a task has ended."""

    def pause(self) -> None:
        """Let others run, as a system call does."""
        if self.ready:
            self.give_way()


tasks = Tasks()
step = tasks.step


held = [0]
"""How many locks are held."""


class Lock:
    """A lock between tasks."""

    def __init__(self) -> None:
        self.owner: Any = None
        self._waiters: list[Task] = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        me = tasks.current or tasks
        tasks.stirred += 1
        if self.owner is None:
            self.owner = me
            held[0] += 1
            return True
        if not blocking:
            return False
        until = None if timeout < 0 else tasks.now + timeout
        self._waiters.append(me)
        me.wants = self if until is None else None
        try:
            while self.owner is not None:
                left = None if until is None else until - tasks.now
                if left is not None and left <= 0:
                    return False
                tasks.wait(left)
        except BaseException:
            if self.owner is None and len(self._waiters) > 1:  # the release woke this one: another one takes it instead
                tasks.wake(next(other for other in self._waiters if other is not me))
            raise
        finally:
            me.wants = None
            self._waiters.remove(me)
        self.owner = me
        held[0] += 1
        return True

    def release(self) -> None:
        if self.owner is None:
            raise RuntimeError("release unlocked lock")
        self.owner = None
        tasks.stirred += 1
        held[0] -= 1
        if self._waiters:
            tasks.wake(self._waiters[0])

    def locked(self) -> bool:
        return self.owner is not None

    def __enter__(self) -> bool:
        if self.owner is None:
            self.owner = tasks.current or tasks
            tasks.stirred += 1
            held[0] += 1
            return True
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class RLock(Lock):
    """A lock that its owner can take again."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self.owner is (tasks.current or tasks):
            self._depth += 1
            return True
        return super().acquire(blocking, timeout)

    __enter__ = acquire

    def release(self) -> None:
        if self._depth:
            self._depth -= 1
        else:
            super().release()


class Condition:
    """A condition on a lock."""

    def __init__(self, lock: Any = None) -> None:
        self._lock = RLock() if lock is None else lock
        self._waiters: list[list[Any]] = []
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def __enter__(self) -> Any:
        return self._lock.__enter__()

    def __exit__(self, *exc: object) -> None:
        self._lock.__exit__(*exc)

    def wait(self, timeout: float | None = None) -> bool:
        me = [tasks.current, False]
        if self._lock.owner is not tasks.current:
            raise RuntimeError("cannot wait on un-acquired lock")
        self._waiters.append(me)
        self._lock.release()
        tasks.current.wants = self._lock
        try:
            if not me[1]:
                until = None if timeout is None else tasks.now + timeout
                while not me[1]:
                    left = None if until is None else until - tasks.now
                    if (left is not None and left <= 0) or not tasks.wait(left):
                        break
        finally:
            me[0].wants = None
            self._take_back()
            if not me[1]:
                self._waiters.remove(me)
        return bool(me[1])

    def _take_back(self) -> None:
        """Take the lock back, whatever is thrown meanwhile."""
        thrown = None
        while True:
            try:
                self._lock.acquire()
            except BaseException as error:  # noqa: PERF203 - a lock is taken once
                thrown = error
            else:
                break
        if thrown is not None:
            raise thrown

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        until = None if timeout is None else tasks.now + timeout
        result = predicate()
        while not result:
            left = None if until is None else until - tasks.now
            if left is not None and left <= 0:
                break
            self.wait(left)
            result = predicate()
        return result

    def notify(self, n: int = 1) -> None:
        if self._lock.owner is None:
            raise RuntimeError("cannot notify on un-acquired lock")
        for waiter in self._waiters[:n]:
            waiter[1] = True
            self._waiters.remove(waiter)
            tasks.wake(waiter[0])

    def notify_all(self) -> None:
        self.notify(len(self._waiters))


class Event:
    """A flag to wait for."""

    def __init__(self) -> None:
        self._is_set = False
        self._waiters: list[Task] = []

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        for task in self._waiters:
            tasks.wake(task)

    def wait(self, timeout: float | None = None) -> bool:
        until = None if timeout is None else tasks.now + timeout
        assert tasks.current is not None
        self._waiters.append(tasks.current)
        try:
            while not self._is_set:
                left = None if until is None else until - tasks.now
                if left is not None and left <= 0:
                    break
                tasks.wait(left)
        finally:
            self._waiters.remove(tasks.current)
        return self._is_set


class Thread:
    """A thread that the package starts."""

    def __init__(
        self, target: Callable[..., Any], args: tuple[Any, ...] = (), name: str = "", daemon: bool | None = None
    ) -> None:
        self._target, self._args, self.name, self.daemon = target, args, name, daemon
        self.task: Task | None = None

    def start(self) -> None:
        self.task = tasks.spawn(lambda: self._target(*self._args), f"thread {self.name}")

    def is_alive(self) -> bool:
        return self.task is not None and not self.task.is_over


def get_ident() -> int:
    """Return the number of the task that is running."""
    return id(tasks.current)


signal.signal(signal.SIGUSR2, handler)  # so that the package finds it when it looks for handlers
