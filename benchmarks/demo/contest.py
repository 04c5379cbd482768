"""The clients of the demo, watched: each has a server and a child process of its own.

A child is killed when its client does nothing for too long, or when its time is over. It never outlives its parent,
however long a client sleeps.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from requests_smithy_retry import uninstall
from requests_smithy_retry.testing import FaultServer

from .clients import Client, play, work
from .plan import FaultScript, Operation, make_plan
from .report import Result, Verdict, judge
from .scenes import SCENES, Scene, SceneScript, turnout_of

SPAWNING = multiprocessing.get_context("spawn")
START = 30.0
"""Seconds that the child of a scene may take to start."""
LOOK = 0.05
"""Seconds between two looks at a child."""


@dataclass(frozen=True)
class Setting:
    """The settings of a run; durations in seconds."""

    seed: int = 1
    operations: int = 30
    outage: float = 3.0
    patience: float = 3.0
    """The longest silence of a client within an operation before it is ended."""
    limit: float = 20.0
    """The longest duration of the run, without the scenes."""
    scenes: tuple[Scene, ...] = SCENES


class Child:
    """A process that calls ``job(tell, *arguments)``. A context manager that ends it."""

    def __init__(self, job: Callable[..., None], *arguments: Any) -> None:
        self._told, tell = SPAWNING.Pipe(duplex=False)
        self._process = SPAWNING.Process(target=_do, args=(tell, job, *arguments), daemon=True)
        self._process.start()
        tell.close()

    def event(self) -> Any:
        """Return the next thing that is told, or None if nothing comes soon.

        :raises EOFError: at its end.
        """
        return self._told.recv() if self._told.poll(LOOK) else None

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


def contend(client: Client, setting: Setting) -> list[Result]:
    """Have one client make the operations of the plan, and return what came of them."""
    plan, results, is_asleep = make_plan(setting.seed, setting.operations), [], True
    script, until = FaultScript(plan, setting.outage), time.monotonic() + setting.limit
    with closing(FaultServer(script)) as server:
        while is_asleep and len(results) < len(plan):
            job = client, server.url, setting.seed, setting.operations, len(results)
            with Child(work, *job) as child:
                is_asleep = _watch(child, script, plan, results, setting.patience, until)
    return [*results, *(Result(each, Verdict.MISSING, script.seen[each.number]) for each in plan[len(results) :])]


def _watch(
    child: Child, script: FaultScript, plan: list[Operation], results: list[Result], patience: float, until: float
) -> bool:
    """Judge the operations of a child until it ends or is to be ended; return True if its client sleeps."""
    sent, began = "", 0.0

    def note(*end: Any) -> None:
        number = len(results)
        results.append(judge(plan[number], sent, script.accepted[number], script.seen[number], *end))

    while time.monotonic() < until:
        try:
            event = child.event()
        except (EOFError, OSError):
            break
        if event is not None and not sent:
            (sent,), began = event, time.monotonic()
        elif event is not None:
            note(*event)
            sent = ""
        elif sent and time.monotonic() - max(began, script.latest) > patience:
            note(time.monotonic() - began, None, "", Verdict.ASLEEP)
            return True
    return False


def crowd(client: Client, scene: Scene) -> dict[str, Any]:
    """Have one client's crowd meet a scene, and return the result, as plain values for JSON."""
    calls: list[tuple[int, bool, float]] = []
    script, until = SceneScript(scene), time.monotonic() + START
    job = scene.rate, scene.count, scene.users
    with closing(FaultServer(script)) as server, Child(play, client, server.url, *job) as child:
        while time.monotonic() < until:
            try:
                event = child.event()
            except (EOFError, OSError):
                break
            calls += [] if event is None else [event]
            if script.began is not None:
                until = script.began + scene.seconds + scene.grace
    return turnout_of(client.name, scene, calls, script.arrivals)
