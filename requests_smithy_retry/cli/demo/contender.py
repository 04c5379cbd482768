"""One client of the demo: its server and its child process.

A child is killed when its client does nothing for too long, or when the whole run takes too long.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...clock import SYSTEM_CLOCK, Clock
from ...testing import FaultServer
from .fault_script import FaultScript
from .plan import Operation, make_plan
from .scenes import SCENES, Scene
from .verdicts import Result, Told, Verdict, judge
from .workload import Assignment, Client

WORKLOAD = f"{__package__}.workload"
_POLL = 0.05
NOISE_KEPT = 20


@dataclass(frozen=True)
class Setting:
    """The settings of a run; durations in seconds.

    :param seed: the seed of the plan.
    :param operations: the number of operations.
    :param outage: the length of the outage.
    :param patience: the longest silence of a client within an operation before it is ended.
    :param limit: the longest duration of the run, without the scenes.
    :param scenes: the scenes that are played after it.
    """

    seed: int = 1
    operations: int = 60
    outage: float = 3.0
    patience: float = 5.0
    limit: float = 25.0
    scenes: tuple[Scene, ...] = SCENES


class Child:
    """A child process that writes lines.

    :param command: the command to run.
    """

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
        """Return the next line; None after the last.

        :raises queue.Empty: if there is none yet.
        """
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


class Contender:
    """One client of a run, from its first operation to its last. A context manager that ends child and server.

    :param client: the client.
    :param setting: the settings of the run.
    :param clock: tells the time.
    :param spawn: starts a process.
    """

    def __init__(
        self,
        client: Client,
        setting: Setting,
        clock: Clock = SYSTEM_CLOCK,
        spawn: Callable[[Sequence[str]], Child] = Child,
    ) -> None:
        self.client = client
        self.setting = setting
        self.plan: list[Operation] = make_plan(setting.seed, setting.operations)
        self.results: list[Result] = []
        self.noise: deque[str] = deque(maxlen=NOISE_KEPT)
        self.is_running: bool = True
        self._clock = clock
        self._spawn = spawn
        self._script = FaultScript(self.plan, setting.outage, clock)
        self._server = FaultServer(self._script)
        self._begun: tuple[Told, float] | None = None
        self._child = self._start()

    def _start(self) -> Child:
        setting = self.setting
        job = Assignment(self.client.name, self._server.url, setting.seed, setting.operations, len(self.results))
        return self._spawn([sys.executable, "-m", WORKLOAD, job.to_json()])

    @property
    def _current(self) -> Operation:
        return self.plan[len(self.results)]

    def turn(self) -> None:
        """Process the child's output, and end the child if it sleeps too long."""
        while self.is_running:
            try:
                line = self._child.line()
            except queue.Empty:
                break
            if line is None:
                self.stop("the client's process ended")
            else:
                self._hear(line)
        if self.is_running and self._begun is not None:
            told, at = self._begun
            now = self._clock.now()
            if now - max(at, self._script.latest) > self.setting.patience:
                self._wake(told, now - at)

    def _hear(self, line: str) -> None:
        event = event_in(line)
        if "begin" in event:
            self._begun = Told(event["sent"]), self._clock.now()
        elif "end" in event and self._begun is not None:
            told = Told(self._begun[0].sent, event["seconds"], event["status"], event["body"], event["error"])
            self._note(judge(self._current, told, *self._seen()))
        else:
            self.noise.append(line.rstrip("\n"))

    def _seen(self) -> tuple[list[str], int]:
        number = self._current.number
        return self._script.accepted_of(number), self._script.requests_of(number)

    def _note(self, result: Result) -> None:
        self._begun = None
        self.results.append(result)
        if len(self.results) == len(self.plan):
            self.is_running = False

    def _wake(self, told: Told, seconds: float) -> None:
        """End a sleeping client, and go on with the next operation."""
        self._child.end()
        accepted, requests = self._seen()
        verdict = Verdict.WRONG if any(body != told.sent for body in accepted) else Verdict.ASLEEP
        self._note(Result(self._current, verdict, requests, seconds, detail="asleep"))
        if self.is_running:
            self._child = self._start()

    def stop(self, why: str) -> None:
        """Stop, and record the remaining operations as missing."""
        while self.is_running:
            self._note(Result(self._current, Verdict.MISSING, self._seen()[1], detail=why))

    def __enter__(self) -> Contender:
        return self

    def __exit__(self, *error: object) -> None:
        self._child.end()
        self._server.close()


def event_in(line: str) -> dict[str, Any]:
    """Return the event in a line; empty if there is none."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def compete(
    contenders: Sequence[Contender], limit: float, draw: Callable[[], None], clock: Clock = SYSTEM_CLOCK
) -> None:
    """Run contenders side by side until all are done.

    :param limit: the seconds after which unfinished ones are stopped.
    :param draw: called after each round.
    """
    until = clock.now() + limit
    while any(contender.is_running for contender in contenders):
        clock.sleep(_POLL)
        for contender in contenders:
            contender.turn()
            if clock.now() > until:
                contender.stop(f"the run was ended after {limit:g} s")
        draw()
