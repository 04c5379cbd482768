"""Measure all subjects in interleaved rounds: counts, CPU time, throughput of threads.

Each round visits every subject once, in an order that changes from round to round, and is compared with the
plain adapter of the same round, so that a drifting machine falls on all alike. URLs never repeat, so that a
per-URL cache helps nobody.

CPU time is that of the client's thread alone. Throughput is whole calls per second of N threads that share
one session against a server in another process; with one client process it mostly says how much work
happens under the interpreter lock, and how much waiting for the subject's own locks. Neither says anything
about failures.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from typing import TYPE_CHECKING

from counting import Counts, count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from subjects import Subject

SHAPES = (
    "/items/{:07d}",
    "/a/b/c/{:07d}/d.json",
    "/items/{:07d}?page=2&q=blue%20shoes",
    "/search?name=J%C3%BCrgen&id={:07d}",
)
_numbers = itertools.count(1_000_000)


def url(origin: str, shape: str = SHAPES[0]) -> str:
    """A URL that was not used before."""
    return origin + shape.format(next(_numbers))


def shuffled(subjects: Sequence[Subject], rounds: int) -> Iterator[list[Subject]]:
    """The order of each round; the same in every run."""
    order = random.Random(1)
    for _ in range(rounds):
        yield order.sample(list(subjects), len(subjects))


def warm_up(subject: Subject, origin: str) -> Subject:
    """Open its connection, fill caches, count it once for nothing; a subject that fails is marked as such."""
    if subject.get is None:
        return subject
    try:
        for shape in SHAPES * 3:
            subject.get(url(origin, shape)).raise_for_status()
        count(subject.get, lambda: (url(origin),))
    except Exception as error:  # the others are measured all the same
        return subject._replace(get=None, reason=f"{type(error).__name__}: {error}")
    return subject


def counts(subjects: Sequence[Subject], origin: str, rounds: int) -> dict[str, list[list[Counts]]]:
    """For every subject, for every shape of URL, the counts of each round."""
    found: dict[str, list[list[Counts]]] = {subject.name: [[] for _ in SHAPES] for subject in subjects}
    for order in shuffled(subjects, rounds):
        for number, shape in enumerate(SHAPES):
            for subject in order:
                found[subject.name][number].append(count(subject.get, lambda s=shape: (url(origin, s),)))
    return found


def cpu(subjects: Sequence[Subject], origin: str, rounds: int, calls: int) -> dict[str, list[float]]:
    """For every subject, the CPU seconds per call of each round."""
    found: dict[str, list[float]] = {subject.name: [] for subject in subjects}
    for order in shuffled(subjects, rounds):
        for subject in order:
            urls = [url(origin) for _ in range(calls)]
            get = subject.get
            start = time.thread_time()
            for each in urls:
                get(each)
            found[subject.name].append((time.thread_time() - start) / calls)
    return found


def throughput(
    subjects: Sequence[Subject], origin: str, threads: int, rounds: int, seconds: float
) -> dict[str, list[float]]:
    """For every subject, the calls per second of each round, after a short one that opens the connections."""
    found: dict[str, list[float]] = {subject.name: [] for subject in subjects}
    for subject in subjects:
        per_second(subject.get, origin, threads, seconds / 4)
    for order in shuffled(subjects, rounds):
        for subject in order:
            found[subject.name].append(per_second(subject.get, origin, threads, seconds))
    return found


def per_second(get: Callable[[str], object], origin: str, threads: int, seconds: float) -> float:
    """Whole calls per second, from the common start to the end of the last call."""
    done: list[int] = []
    failures: list[BaseException] = []
    began = 0.0

    def begin() -> None:
        nonlocal began
        began = time.perf_counter()

    barrier = threading.Barrier(threads, action=begin)

    def work() -> None:
        calls = 0
        try:
            barrier.wait(30)
            while time.perf_counter() - began < seconds:
                get(url(origin))
                calls += 1
        except Exception as error:
            failures.append(error)
        done.append(calls)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    return sum(done) / (time.perf_counter() - began)
