"""The clients of the demo, watched: each has a server and a child process of its own.

A child is killed when its client does nothing for too long, or when its time is over.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from ...clock import SYSTEM_CLOCK, Clock
from ...testing import FaultServer
from .clients import CROWD_CLIENTS, Client
from .plan import FaultScript, Operation, make_plan
from .results import Result, Verdict, judge
from .scenes import SCENES, Call, Scene, SceneScript, Turnout, turnout_of

PROGRAM = f"{__package__}.clients"
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
    """A child process that writes lines."""

    def __init__(self, command: Sequence[str]) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SMITHY_RETRY_")}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            encoding="utf-8",
            errors="replace",
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._pump = threading.Thread(target=self._read, name=f"child-{self._process.pid}", daemon=True)
        self._pump.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def line(self) -> str | None:
        """Return the next line; None after the last. Raise ``queue.Empty`` if no line has arrived yet."""
        return self._lines.get_nowait()

    def end(self) -> int:
        """End the process if it is running, and return its exit status. Idempotent."""
        self._process.kill()
        status = self._process.wait()
        self._pump.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        return status


Spawn = Callable[[Sequence[str]], Child]
"""Starts a process."""


class Watched(ABC):
    """One client, its server and its child process. A context manager that ends both."""

    def __init__(self, client: Client, script: Callable[..., Any], spawn: Spawn) -> None:
        self.client = client
        self.noise: deque[str] = deque(maxlen=20)
        self.is_running: bool = True
        self._spawn = spawn
        self._server = FaultServer(script)
        self._start()

    def _start(self) -> None:
        job = {"client": self.client.name, "url": self._server.url, **self._job()}
        self._child = self._spawn([sys.executable, "-m", PROGRAM, json.dumps(job)])

    def turn(self) -> None:
        """Process the child's output, and look whether its time is over."""
        while self.is_running:
            try:
                line = self._child.line()
            except queue.Empty:
                break
            if line is None:
                self.stop()
            elif not self._hear(_event_in(line)):
                self.noise.append(line.rstrip("\n"))
        if self.is_running:
            self._look()

    def stop(self) -> None:
        self.is_running = False

    @abstractmethod
    def _job(self) -> dict[str, Any]:
        """Return the arguments of the child, beside client and URL."""

    @abstractmethod
    def _hear(self, event: dict[str, Any]) -> bool:
        """Take note of an event; return False for anything else."""

    @abstractmethod
    def _look(self) -> None:
        """Stop if the time is over."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        self._child.end()
        self._server.close()


def _event_in(line: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def watch(watched: Sequence[Watched], clock: Clock = SYSTEM_CLOCK, draw: Callable[[], None] = lambda: None) -> None:
    """Watch several side by side until all are done."""
    while any(each.is_running for each in watched):
        clock.sleep(0.05)
        for each in watched:
            each.turn()
        draw()


class Contender(Watched):
    """One client that makes the operations of the plan."""

    def __init__(self, client: Client, setting: Setting, clock: Clock = SYSTEM_CLOCK, spawn: Spawn = Child) -> None:
        self.plan: list[Operation] = make_plan(setting.seed, setting.operations)
        self.results: list[Result] = []
        self._setting = setting
        self._clock = clock
        self._until = clock.now() + setting.limit
        self._script = FaultScript(self.plan, setting.outage, clock)
        self._begun: tuple[str, float] | None = None
        super().__init__(client, self._script, spawn)

    def _job(self) -> dict[str, Any]:
        return {"seed": self._setting.seed, "operations": self._setting.operations, "first": len(self.results)}

    def _hear(self, event: dict[str, Any]) -> bool:
        if "begin" in event:
            self._begun = event["sent"], self._clock.now()
        elif "end" in event and self._begun is not None:
            self._note(judge(self._current, self._begun[0], event, *self._seen()))
        else:
            return False
        return True

    def _look(self) -> None:
        now = self._clock.now()
        sent, at = self._begun or ("", now)
        if now - max(at, self._script.latest) > self._setting.patience:
            # The client sleeps: end it, and go on with the next operation.
            self._child.end()
            accepted, requests = self._seen()
            verdict = Verdict.WRONG if any(body != sent for body in accepted) else Verdict.ASLEEP
            self._note(Result(self._current, verdict, requests, now - at))
            if self.is_running:
                self._start()
        if now > self._until:
            self.stop()

    @property
    def _current(self) -> Operation:
        return self.plan[len(self.results)]

    def _seen(self) -> tuple[list[str], int]:
        number = self._current.number
        return self._script.accepted[number], self._script.seen[number]

    def _note(self, result: Result) -> None:
        self._begun = None
        self.results.append(result)
        self.is_running: bool = len(self.results) < len(self.plan)

    def stop(self) -> None:
        while self.is_running:
            self._note(Result(self._current, Verdict.MISSING, self._seen()[1]))


class Crowd(Watched):
    """The operations of one client in a scene."""

    def __init__(self, client: Client, scene: Scene, clock: Clock = SYSTEM_CLOCK, spawn: Spawn = Child) -> None:
        self.calls: list[Call] = []
        self._scene = scene
        self._clock = clock
        self._until = clock.now() + START
        self._script = SceneScript(scene, clock)
        super().__init__(client, self._script, spawn)

    def _job(self) -> dict[str, Any]:
        return {"rate": self._scene.rate, "count": self._scene.count, "users": self._scene.users}

    def _hear(self, event: dict[str, Any]) -> bool:
        if event:
            self.calls.append(Call(event["at"], event["done"], event["seconds"]))
        return bool(event)

    def _look(self) -> None:
        began = self._script.began
        until = self._until if began is None else began + self._scene.seconds + self._scene.grace
        self.is_running: bool = self._clock.now() <= until


def play_scene(
    scene: Scene, clients: Sequence[Client] = CROWD_CLIENTS, clock: Clock = SYSTEM_CLOCK, spawn: Spawn = Child
) -> list[Turnout]:
    """Play a scene with several clients side by side; it is bounded."""
    with ExitStack() as stack:
        crowds: list[Crowd] = [stack.enter_context(Crowd(client, scene, clock, spawn)) for client in clients]
        watch(crowds, clock)
        return [turnout_of(each.client.name, scene, each.calls, each._script.arrivals, each.noise) for each in crowds]
