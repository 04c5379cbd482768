"""The clients of the demo, watched: each has a server and a child process of its own.

A child is killed when its client does nothing for too long, or when its time is over. It never outlives its parent,
however long a client sleeps.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from requests_smithy_retry import uninstall
from requests_smithy_retry.clock import SYSTEM_CLOCK, Clock
from requests_smithy_retry.testing import FaultServer

from .clients import Client, play, work
from .plan import FaultScript, Operation, make_plan
from .report import Result, Verdict, judge
from .scenes import SCENES, Scene, SceneScript, turnout_of

SPAWNING = multiprocessing.get_context("spawn")
START = 10.0
"""Seconds that the child of a scene may take to start."""


@dataclass(frozen=True)
class Setting:
    """The settings of a run; durations in seconds."""

    seed: int = 1
    operations: int = 60
    outage: float = 3.0
    patience: float = 5.0
    """The longest silence of a client within an operation before it is ended."""
    limit: float = 25.0
    """The longest duration of the run, without the scenes."""
    scenes: tuple[Scene, ...] = SCENES


class Child:
    """A process that calls ``job(tell, *arguments)``. A context manager that ends it."""

    def __init__(self, job: Callable[..., None], *arguments: Any) -> None:
        self._told, tell = SPAWNING.Pipe(duplex=False)
        self._process = SPAWNING.Process(target=_do, args=(tell, job, *arguments), daemon=True)
        self._process.start()
        tell.close()

    def events(self) -> Iterator[Any]:
        """Yield what is told, and None whenever there is nothing yet."""
        with suppress(EOFError, OSError):
            while True:
                yield self._told.recv() if self._told.poll() else None

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.join()
        self._told.close()


def _do(events: Connection, job: Callable[..., None], *arguments: Any) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for name in list(os.environ):
        if name.startswith("SMITHY_RETRY_"):
            del os.environ[name]
    uninstall()  # the program that runs the demo may have retries in every process that it starts
    lock = threading.Lock()

    def tell(event: object) -> None:
        with lock:
            events.send(event)

    job(tell, *arguments)


def _end_with_parent() -> None:
    parent: Any = multiprocessing.parent_process()
    parent.join()
    os._exit(1)


@dataclass
class Contender:
    """One client that makes the operations of the plan."""

    client: Client
    setting: Setting
    clock: Clock = SYSTEM_CLOCK
    child: Callable[..., Child] = Child
    results: list[Result] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.plan: list[Operation] = make_plan(self.setting.seed, self.setting.operations)
        self._script = FaultScript(self.plan, self.setting.outage, self.clock)

    def run(self) -> Generator[None, None, None]:
        """Have the operations made, and yield while there is nothing to do."""
        setting, until = self.setting, self.clock.now() + self.setting.limit
        is_asleep = True
        with closing(FaultServer(self._script)) as server:
            while is_asleep and len(self.results) < len(self.plan):
                job = self.client, server.url, setting.seed, setting.operations, len(self.results)
                with self.child(work, *job) as child:
                    is_asleep = yield from self._watch(child, until)
        for operation in self.plan[len(self.results) :]:
            self.results.append(Result(operation, Verdict.MISSING, self._script.seen[operation.number]))

    def _watch(self, child: Child, until: float) -> Generator[None, None, bool]:
        """Judge the operations of a child until it ends or is to be ended; return True if its client sleeps."""
        begun: tuple[str, float] | None = None
        for event in child.events():
            now = self.clock.now()
            if event is not None and begun is None:
                begun = event[0], now
            elif event is not None and begun is not None:
                self._judge(begun[0], *event)
                begun = None
            elif now > until:
                break
            elif begun is not None and now - max(begun[1], self._script.latest) > self.setting.patience:
                self._judge(begun[0], now - begun[1], None, "", Verdict.ASLEEP)
                return True
            else:
                yield
        return False

    def _judge(self, sent: str, *end: Any) -> None:
        operation = self.plan[len(self.results)]
        accepted, requests = self._script.accepted[operation.number], self._script.seen[operation.number]
        self.results.append(judge(operation, sent, accepted, requests, *end))


@dataclass
class Crowd:
    """The operations of one client in a scene."""

    client: Client
    scene: Scene
    clock: Clock = SYSTEM_CLOCK
    child: Callable[..., Child] = Child

    def __post_init__(self) -> None:
        self._calls: list[tuple[int, bool, float]] = []
        self._script = SceneScript(self.scene, self.clock)

    def run(self) -> Generator[None, None, None]:
        """Have the operations made, and yield while there is nothing to do."""
        scene, until = self.scene, self.clock.now() + START
        job = scene.rate, scene.count, scene.users
        with closing(FaultServer(self._script)) as server, self.child(play, self.client, server.url, *job) as child:
            for event in child.events():
                if event is not None:
                    self._calls.append(event)
                    continue
                if self._script.began is not None:
                    until = self._script.began + scene.seconds + scene.grace
                if self.clock.now() > until:
                    break
                yield

    def turnout(self) -> dict[str, Any]:
        """Return the result, as plain values for JSON."""
        return turnout_of(self.client.name, self.scene, self._calls, self._script.arrivals)


def take_turns(runs: Sequence[Generator[None, None, None]], clock: Clock = SYSTEM_CLOCK) -> None:
    """Carry out several runs side by side."""
    running = runs
    try:
        while running:
            running = [run for run in running if next(run, "done") is None]
            clock.sleep(0.05)
    finally:
        for run in runs:
            run.close()
