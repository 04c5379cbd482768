"""One client at work: its server, its child process, and an eye on both.

A child is ended by its handle, when its client does nothing for too long or when the whole run takes too long.
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
from .verdicts import Result, Told, Verdict, judge
from .workload import Assignment, Client

WORKLOAD = f"{__package__}.workload"
_POLL = 0.05
_NOISE_KEPT = 20


@dataclass(frozen=True)
class Setting:
    """What a run is like; durations in seconds.

    :param seed: of the plan.
    :param operations: how many.
    :param outage: how long the outage lasts.
    :param patience: a client of which the server has heard nothing for so long, in the middle of an operation, is
        ended.
    :param limit: what is not done by then is not done.
    """

    seed: int = 1
    operations: int = 60
    outage: float = 3.0
    patience: float = 5.0
    limit: float = 33.0


class Child:
    """A child process that says something, line by line.

    :param command: what to run.
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
        """The next line; None after the last.

        :raises queue.Empty: when there is none yet.
        """
        return self._lines.get_nowait()

    def end(self) -> int:
        """End the process, if it has not ended by itself, and return its exit status. Can be called again."""
        self._process.kill()
        status = self._process.wait()
        self._pump.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        return status


class Contender:
    """One client of a run, from its first operation to its last. A context manager, whose end ends everything.

    :param client: which one.
    :param setting: what the run is like.
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
        self.noise: deque[str] = deque(maxlen=_NOISE_KEPT)
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
        """Take note of what the child has said, and end it if it sleeps too long."""
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
        event = _event(line)
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
        """End a client that sleeps, and go on after the operation in which it does."""
        self._child.end()
        accepted, requests = self._seen()
        verdict = Verdict.WRONG if any(body != told.sent for body in accepted) else Verdict.ASLEEP
        self._note(Result(self._current, verdict, requests, seconds, detail="asleep"))
        if self.is_running:
            self._child = self._start()

    def stop(self, why: str) -> None:
        """Do no more; what was not done is missing."""
        while self.is_running:
            self._note(Result(self._current, Verdict.MISSING, self._seen()[1], detail=why))

    def __enter__(self) -> Contender:
        return self

    def __exit__(self, *error: object) -> None:
        self._child.end()
        self._server.close()


def _event(line: str) -> dict[str, Any]:
    """What a line says; nothing if it is none of ours."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def compete(
    contenders: Sequence[Contender], limit: float, watch: Callable[[], None], clock: Clock = SYSTEM_CLOCK
) -> None:
    """Let contenders work side by side until all are done.

    :param limit: seconds after which those who are not done are stopped.
    :param watch: is called again and again meanwhile.
    """
    until = clock.now() + limit
    while any(contender.is_running for contender in contenders):
        clock.sleep(_POLL)
        for contender in contenders:
            contender.turn()
            if clock.now() > until:
                contender.stop(f"the run was ended after {limit:g} s")
        watch()
