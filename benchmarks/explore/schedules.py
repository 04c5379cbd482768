"""The proof that threads do no harm: every interleaving of small programs, with at most two preemptions.

    python -m benchmarks.explore.schedules [--bound 2] [--only NAMES] [--seconds S]

A program is two or three threads over one object of the package. A thread may be preempted before each statement of the
package; a thread that waits with a time-out may have it expire then, and one that waits may be interrupted. Where a
thread waits or ends, each of the others may go on, which costs no preemption. ``--seconds`` bounds the search of each
program in seconds of the processor, and says so where that cuts it off. Exit status 1: a schedule violates what its
program promises.

Schedules that cannot end otherwise than one that is run are left out. Threads that do the same are one another's twins
until they begin. A thread that would do nothing but wait for a lock which another one has is not chosen; and as long as
no thread is woken, no lock changes hands and nobody reads the clock, it makes no difference when exactly the time-out
of a wait for such a lock's condition expires, nor when one that waits is interrupted.
"""

from __future__ import annotations

import argparse
import gc
import logging
import random
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from . import instrument
from .tasks import NEVER, Interrupted, Stuck, Task, Tasks, Turns, held, tasks

INTERRUPT = -1
LOWEST = -100
"""No number of :attr:`Schedule.preemptions` is below this."""


class Schedule(NamedTuple):
    """The choices that differ from the default: to go on, and then with the first that can.

    :param preemptions: pairs of a step and the number of the thread that goes on there; :data:`INTERRUPT` less a
        number: that thread, which waits, is interrupted.
    :param blocks: which of those that can goes on, each time that a thread has waited or ended.
    """

    preemptions: tuple[tuple[int, int], ...] = ()
    blocks: tuple[int, ...] = ()


class _Scripted(Turns):
    """Follows a schedule, and takes note of the other choices.

    :param notes: what else could happen at each step after the last preemption is taken note of, too.
    """

    def __init__(self, schedule: Schedule, *, notes: bool = False) -> None:
        self._ahead = [*schedule.preemptions]
        self._notes = notes
        self._blocks = schedule.blocks
        self._forced: Task | None = None
        self.seen: list[tuple[int, int, tuple[int, ...]]] = []
        """For each choice where one waited or ended: the step, the choice, the others."""
        self.noted: list[tuple[int, tuple[int, ...]]] = []
        """The steps at which something else could have happened, and what."""
        self.is_void = False
        """A preemption could not be made."""
        self.was_interrupted = False
        self.has_leapt = False
        """A time-out expired while others could have gone on, so that moments say nothing."""
        self._stirred = -1
        self._is_harmed = any(number < 0 for _, number in schedule.preemptions)
        self.program = Program()
        """The one that runs."""

    def next_of(self, ready: list[Task]) -> Task:
        if self._forced is not None:
            task, self._forced = self._forced, None
            return task
        number = len(self.seen)
        chosen = self._blocks[number] if number < len(self._blocks) else 0
        if chosen >= len(ready):
            self.is_void, chosen = True, 0
        ready = sorted(ready, key=tasks.all.index)
        # Where the first one is in line for a lock, nothing happens, and the others have their turn then.
        first = not _is_in_line(ready[0])
        others = tuple(
            number
            for number, other in enumerate(ready)
            if number and first and not (_is_like_another(other) or _is_in_line(other))
        )
        self.seen.append((tasks.total, chosen, others))
        return ready[chosen]

    def steps(self) -> int:
        if self._ahead:
            return max(1, self._ahead[0][0] - tasks.total)
        return 1 if self._notes else NEVER

    def preempt(self, tasks: Tasks) -> None:
        if not self._ahead:
            others = tuple(self._others())
            if others:
                self.noted.append((tasks.total, others))
            return
        if self._ahead[0][0] > tasks.total:
            return
        _, number = self._ahead.pop(0)
        if number <= INTERRUPT:
            waiting = tasks.all[INTERRUPT - number]
            self.is_void = waiting is tasks.current or waiting.is_ready or waiting.is_over
            if not self.is_void:
                self.was_interrupted = True
                tasks.throw(waiting, Interrupted())
            return
        task = tasks.all[number] if 0 <= number < len(tasks.all) else None
        if task is None or task is tasks.current or task.is_over or not (task.is_ready or task.until is not None):
            self.is_void = True
            return
        if not task.is_ready:
            self.has_leapt = True
            tasks.time_out(task)
        self._forced = task
        tasks.give_way()

    def _others(self) -> Iterator[int]:
        """Yield the other things that can happen now, as in :attr:`Schedule.preemptions`."""
        is_stirred, self._stirred = tasks.stirred != self._stirred, tasks.stirred
        for number, task in enumerate(tasks.all):
            if task is not tasks.current and self._may_go(task, is_stirred=is_stirred):
                yield number
        if self._is_harmed:
            return
        if self.program.may_be_interrupted and is_stirred:
            for number, task in enumerate(tasks.all[: len(self.program.threads)]):
                if not (task is tasks.current or task.is_ready or task.is_over):
                    yield INTERRUPT - number

    def _may_go(self, task: Task, *, is_stirred: bool) -> bool:
        """Return True if a thread could go on here, and this differs from what is tried elsewhere.

        :param is_stirred: since the last step a thread was woken, a lock taken or let go, or the clock read.
        """
        if task.is_over or not (task.is_ready or task.until is not None):
            return False
        if _is_like_another(task) or _is_in_line(task):
            return False
        if is_stirred or not _is_held_up(task):
            return True
        # It takes its place among those in line, and then another one may go on instead of the one that is running.
        return any(
            other.is_ready and other not in (task, tasks.current) and not _is_in_line(other) for other in tasks.all
        )


def _is_like_another(task: Task) -> bool:
    """Return True if another thread that does the same comes first, and neither has begun: it stands for both."""
    if task.greenlet or task.is_over:
        return False
    return any(
        other.function == task.function and not (other.greenlet or other.is_over)
        for other in tasks.all[: tasks.all.index(task)]
    )


def _is_held_up(task: Task) -> bool:
    """Return True if a thread that goes on after a wait does nothing but wait for a lock that another one has."""
    return task.wants is not None and task.wants.owner not in (None, task) and task.thrown is None


def _is_in_line(task: Task) -> bool:
    """Return True if it even waits for that lock already, so that nothing at all happens."""
    return task.is_ready and _is_held_up(task) and task.wants is not None and task in task.wants._waiters


class Program:
    """Threads over one object; :meth:`check` says what is wrong afterwards.

    A subclass makes the object in its constructor.
    """

    work: tuple[str, ...] = ()
    """The method that each thread runs."""
    may_be_interrupted = False
    """Where it waits."""
    late: tuple[type[BaseException], ...] = ()
    """The exceptions of a thread whose time is over."""

    def __init__(self) -> None:
        self.threads: list[Callable[[], Any]] = [getattr(self, name) for name in self.work]
        self.wrong: list[str] = []
        self.has_leapt = False
        self.was_interrupted = False

    def check(self) -> None:
        """Add to :attr:`wrong`."""

    def close(self) -> None:
        """Let go of what the run made."""

    def expect(self, *, expected: Any, actual: Any, what: str) -> None:
        """Take note of a difference."""
        if expected != actual:
            self.wrong.append(f"{what}: {actual}, not {expected}")


class Ran(NamedTuple):
    """One schedule that was run.

    :param wrong: what its program says.
    :param seen: for each choice where a thread waited or ended: the step, the choice, the others.
    :param noted: if asked for, each step after the last preemption at which something else could happen, and what.
    """

    wrong: list[str]
    seen: list[tuple[int, int, tuple[int, ...]]]
    noted: list[tuple[int, tuple[int, ...]]]


def run(make: Callable[[], Program], schedule: Schedule, *, notes: bool = False) -> Ran:
    """Run a program under a schedule.

    :param notes: take note of what else could happen.
    """
    turns = _Scripted(schedule, notes=notes)
    tasks.begin(turns)
    random.seed(7)
    known, before = len(tasks.locals), held[0]
    program = turns.program = make()
    made = [tasks.spawn(thread, str(number)) for number, thread in enumerate(program.threads)]
    try:
        tasks.run()
        for task in made:
            if (
                task.error is not None
                and not isinstance(task.error, Interrupted)
                and not ((turns.has_leapt or turns.was_interrupted) and isinstance(task.error, program.late))
            ):
                program.wrong.append(f"thread {task.name} ended with {task.error!r}")
        program.has_leapt, program.was_interrupted = turns.has_leapt, turns.was_interrupted
        program.check()
        if turns.is_void:
            program.wrong.append("the schedule is not one of this program")
        if held[0] != before:
            program.wrong.append(f"{held[0] - before} locks are held")
    except Stuck as stuck:
        program.wrong.append(f"stuck: {stuck}")
    finally:
        held[0] = before
        for task in tasks.all:
            if task.greenlet and not task.greenlet.dead:
                task.is_over = True
                task.greenlet.throw()
        program.close()
        del tasks.locals[known:]
    return Ran(program.wrong, turns.seen, turns.noted)


class Searched(NamedTuple):
    """The outcome of a search.

    :param schedules: the number of them that were run.
    :param is_whole: all of them were.
    :param failure: the first schedule that violates something, and what.
    """

    schedules: int
    is_whole: bool
    failure: tuple[Schedule, list[str]] | None


class _Ahead:
    """The schedules that have one more preemption than one that was run, each in a few bytes: there are millions."""

    def __init__(self, rng: random.Random | None) -> None:
        self._rng = rng
        self._parents: list[tuple[Schedule, Ran]] = []
        self._preemptions = array("Q")
        """The number of the parent, the step, and who goes on there."""

    def __len__(self) -> int:
        return len(self._preemptions)

    def add(self, schedule: Schedule, ran: Ran) -> None:
        """Add those that differ from one in a preemption behind all of its choices."""
        if not ran.noted:
            return
        parent, first = len(self._parents), ran.seen[len(schedule.blocks) - 1][0] if schedule.blocks else 0
        self._parents.append((schedule, ran._replace(noted=[])))
        for step, others in ran.noted:
            if step > first:
                self._preemptions.extend(parent << 32 | step << 8 | other - LOWEST for other in others)

    def pop(self) -> Schedule:
        """Take the last one, or any."""
        ahead = self._preemptions
        if self._rng is not None:
            at = self._rng.randrange(len(ahead))
            ahead[at], ahead[-1] = ahead[-1], ahead[at]
        packed = ahead.pop()
        (preemptions, _), ran = self._parents[packed >> 32]
        step, other = packed >> 8 & 0xFFFFFF, (packed & 0xFF) + LOWEST
        return Schedule((*preemptions, (step, other)), tuple(choice for at, choice, _ in ran.seen if at < step))


def search(make: Callable[[], Program], bound: int, seconds: float, rng: random.Random | None = None) -> Searched:
    """Run every schedule of a program within a bound, those with fewer preemptions first.

    :param make: makes the program.
    :param bound: the most preemptions.
    :param seconds: the longest search.
    :param rng: takes the preemptions in a random order, for a search that is cut off.
    """
    until, count = time.process_time() + seconds, 0
    levels = [_Ahead(rng) for _ in range(bound + 2)]
    same = [Schedule()]
    for level in range(bound + 1):
        while same or levels[level]:
            schedule = same.pop() if same else levels[level].pop()
            ran = run(make, schedule, notes=level < bound)
            count += 1
            if ran.wrong:
                return Searched(count, False, (schedule, ran.wrong))
            same.extend(_siblings(schedule, ran))
            levels[level + 1].add(schedule, ran)
            if count % 500 == 0:
                gc.collect()
            if time.process_time() > until:
                return Searched(count, False, None)
        levels[level] = _Ahead(rng)
    return Searched(count, True, None)


def _siblings(schedule: Schedule, ran: Ran) -> Iterator[Schedule]:
    """Return the schedules that differ from one in a later choice where a thread waited or ended."""
    last = schedule.preemptions[-1][0] if schedule.preemptions else 0
    for number, (step, _, others) in enumerate(ran.seen):
        if number >= len(schedule.blocks) and step >= last:
            chosen = tuple(choice for _, choice, _ in ran.seen[:number])
            yield from (Schedule(schedule.preemptions, (*chosen, other)) for other in others)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bound", type=int, default=2)
    parser.add_argument("--only", help="parts of names, by commas")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--first", action="store_true", help="stop at the first violation")
    arguments = parser.parse_args()
    instrument.install(tasks.step)
    logging.getLogger(instrument.PACKAGE).addHandler(logging.NullHandler())
    from .programs import PROGRAMS

    gc.freeze()
    gc.disable()  # a finalizer in the middle of a run would make steps there
    failed, total, began = False, 0, time.monotonic()
    for name, make in PROGRAMS.items():
        if arguments.only is not None and not any(part in name for part in arguments.only.split(",")):
            continue
        started = time.process_time()
        found = search(make, arguments.bound, arguments.seconds, random.Random(7))
        total += found.schedules
        how = f"{time.process_time() - started:,.0f} s{'' if found.is_whole else ', not all'}"
        print(f"{name}: {found.schedules:,} schedules, {how}", flush=True)
        if found.failure is not None:
            failed = True
            schedule, wrong = found.failure
            print(f"  {schedule} violates: {'; '.join(wrong[:3])}", flush=True)
            if arguments.first:
                break
    gc.collect()  # while finalizers still can make steps
    seconds = time.monotonic() - began
    print(f"{total:,} schedules in {seconds:,.0f} s: {total / max(seconds, 1e-9):,.0f} a second")
    return failed


if __name__ == "__main__":
    sys.exit(main())
