"""The clients of a scene: run by ``python -m`` in a child process, and watched from here.

The child writes a JSON object per line to its standard output, for each operation that ended: ``{"at": seconds, "done":
true, "seconds": ...}``. Operations begin at their time, whatever came of those before, each in a thread of its own.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import IO, Any

import requests

from ...clock import SYSTEM_CLOCK, Clock
from ...testing import FaultServer
from .contender import NOISE_KEPT, Child, event_in
from .scenes import Call, Scene, SceneScript, Turnout, turnout_of
from .workload import CROWD_CLIENTS, TIMEOUT, Client, client_named, end_with

CROWD = f"{__package__}.crowd"
START = 10.0
"""Seconds that a child may take to start."""
_POLL = 0.05


@dataclass(frozen=True)
class Cast:
    """The task of a child.

    :param client: the name of the client.
    :param url: the URL of its server.
    :param rate: operations a second.
    :param count: operations in all.
    :param users: sessions.
    """

    client: str
    url: str
    rate: float
    count: int
    users: int

    def to_json(self) -> str:
        """Return the child's argument."""
        return json.dumps(asdict(self))


def play(cast: Cast, tell: Callable[[dict[str, Any]], None], clock: Clock = SYSTEM_CLOCK) -> None:
    """Make the operations.

    :param tell: called with each event, by the thread of its operation.
    """
    sessions = [_session(client_named(cast.client)) for _ in range(cast.users)]

    def call(number: int) -> None:
        began = clock.now()
        try:
            response = sessions[number % cast.users].get(f"{cast.url}/{number}", timeout=TIMEOUT)
            is_done = response.status_code == 200
        except requests.RequestException:
            is_done = False
        tell({"at": number / cast.rate, "done": is_done, "seconds": clock.now() - began})

    began = clock.now()
    with ThreadPoolExecutor(cast.count) as threads:
        for number in range(cast.count):
            clock.sleep(max(0.0, began + number / cast.rate - clock.now()))
            threads.submit(call, number)


def _session(client: Client) -> requests.Session:
    session = requests.Session()
    session.trust_env = False  # no proxy of the environment between the two ends
    session.mount("http://", client.adapter())
    return session


class Watched:
    """One client of a scene: its server and its child process. A context manager that ends both.

    :param scene: the scene.
    :param client: the client.
    :param clock: tells the time.
    :param spawn: starts a process.
    """

    def __init__(
        self,
        scene: Scene,
        client: Client,
        clock: Clock = SYSTEM_CLOCK,
        spawn: Callable[[Sequence[str]], Child] = Child,
    ) -> None:
        self.calls: list[Call] = []
        self._noise: deque[str] = deque(maxlen=NOISE_KEPT)
        self.is_running: bool = True
        self._scene = scene
        self._client = client
        self._script = SceneScript(scene, clock)
        self._server = FaultServer(self._script)
        cast = Cast(client.name, self._server.url, scene.rate, scene.count, scene.users)
        self._child = spawn([sys.executable, "-m", CROWD, cast.to_json()])
        self._until = clock.now() + START

    def turn(self, now: float) -> None:
        """Process the child's output, and look no longer once its time is over.

        :param now: the time.
        """
        began = self._script.began
        if now > (self._until if began is None else began + self._scene.seconds + self._scene.grace):
            self.is_running = False
        while self.is_running:
            try:
                line = self._child.line()
            except queue.Empty:
                return
            if line is None:
                self.is_running = False
            elif event := event_in(line):
                self.calls.append(Call(event["at"], event["done"], event["seconds"]))
            else:
                self._noise.append(line.rstrip("\n"))

    def turnout(self) -> Turnout:
        """Return what came of it so far."""
        return turnout_of(self._client.name, self._scene, self.calls, self._script.arrivals, self._noise)

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *error: object) -> None:
        self._child.end()
        self._server.close()


def watch(
    scene: Scene,
    clients: Sequence[Client] = CROWD_CLIENTS,
    clock: Clock = SYSTEM_CLOCK,
    spawn: Callable[[Sequence[str]], Child] = Child,
) -> list[Turnout]:
    """Play a scene with several clients side by side, with a server and a process each; it is bounded.

    :param clock: tells when it is over.
    :param spawn: starts a process.
    """
    with ExitStack() as stack:
        all_of_them = [stack.enter_context(Watched(scene, client, clock, spawn)) for client in clients]
        while any(each.is_running for each in all_of_them):
            clock.sleep(_POLL)
            for each in all_of_them:
                each.turn(clock.now())
        return [each.turnout() for each in all_of_them]


def main(
    arguments: Sequence[str], stdin: int, stdout: IO[str], exit_now: Callable[[int], object] | None = None
) -> threading.Thread:
    """Do the task in the one argument.

    :param stdin: the descriptor of the standard input, whose end ends the process.
    :param stdout: the stream of the events.
    :param exit_now: ends the process.
    :returns: the thread that reads the standard input.
    """
    watcher = end_with(stdin) if exit_now is None else end_with(stdin, exit_now)
    lock = threading.Lock()

    def tell(event: dict[str, Any]) -> None:
        with lock:
            stdout.write(json.dumps(event) + "\n")
            stdout.flush()

    play(Cast(**json.loads(arguments[0])), tell)
    return watcher


if __name__ == "__main__":  # pragma: no cover - runs in the child, where nothing is measured
    main(sys.argv[1:], sys.stdin.fileno(), sys.stdout)
