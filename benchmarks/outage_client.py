"""One policy through one trouble, on loopback: many threads that want something of a server that fails them.

A process of its own (`outage_loopback.py` and `outage_picture.py` start it), given an `Episode` as JSON; it prints what
came of it as JSON. Operations are wanted at times that are drawn beforehand, the same for every policy, and given to
whichever thread is free. Threads that share a client share its adapter; each has a session of its own.

Its figures hold only if it kept up itself. `late` says when operations begun that a free thread waited for: the 99th of
a hundred. Above `MOST_LATE` the episode is invalid. `no thread` is the part of the operations for which none was free.
"""

from __future__ import annotations

import json
import logging
import queue
import random
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from loopback import start_server
from outage_policies import POLICIES, Get

TIMEOUT, MOST_LATE, PATIENCE = 0.5, 0.1, 3.0
TROUBLES = {
    "reset": "reset",
    "time-out": "hole",
    "load x3": "well",
    "throttled": "throttle 35",
    "errors 10 %": "errors 0.1",
}
"""The server's command while each lasts."""


@dataclass(frozen=True)
class Episode:
    """What is done; durations in seconds.

    :param policy: one of `POLICIES`.
    :param trouble: one of `TROUBLES`.
    :param lasts: how long, after `before` seconds of health and before `after` more.
    :param threads: all of them together.
    :param clients: adapters that the threads share.
    :param load: operations a second, all threads together.
    :param rate: what the server can do in a second.
    """

    policy: str
    trouble: str
    before: float = 3.0
    lasts: float = 5.0
    after: float = 7.0
    threads: int = 400
    clients: int = 10
    load: float = 70.0
    rate: float = 100.0
    seed: int = 1

    @property
    def end(self) -> float:
        """Seconds from the first operation to the last."""
        return self.before + self.lasts + self.after

    def is_in_trouble(self, at: float) -> bool:
        """Whether the trouble lasts at that second."""
        return self.before <= at < self.before + self.lasts


def arrivals(episode: Episode) -> list[float]:
    """When operations are wanted: a Poisson process, with three times the load where that is the trouble."""
    draw, times, at = random.Random(episode.seed), [], 0.0
    while True:
        at += draw.expovariate(3 * episode.load)
        if at >= episode.end:
            return times
        is_spike = episode.trouble == "load x3" and episode.is_in_trouble(at)
        if draw.random() < (1.0 if is_spike else 1 / 3):
            times.append(at)


class _Load:
    """The threads, and what they note down."""

    def __init__(self, episode: Episode, origin: str) -> None:
        self.episode, self.url = episode, origin + "/"
        self.wanted: queue.SimpleQueue[float] = queue.SimpleQueue()
        self.begun: list[tuple[float, float]] = []  # wanted at, begun at
        self.done: list[tuple[float, float, bool]] = []  # wanted at, ended at, went well
        self.unserved: set[float] = set()  # wanted when no thread was free
        pool = -(-episode.threads // episode.clients)
        clients = [POLICIES[episode.policy][1](pool) for _ in range(episode.clients)]
        for number in range(episode.threads):
            get = clients[number % episode.clients]()
            threading.Thread(target=self._work, args=(get,), daemon=True).start()

    def _work(self, get: Get) -> None:
        while True:
            at = self.wanted.get()
            self.begun.append((at, time.time() - self.start))
            try:
                is_good = get(self.url, timeout=TIMEOUT).status_code == 200
            except requests.RequestException:
                is_good = False
            self.done.append((at, time.time() - self.start, is_good))

    def run(self, times: list[float]) -> None:
        """Want each operation at its time; then wait for those under way, for some seconds."""
        self.start = time.time()
        for at in times:
            time.sleep(max(0.0, self.start + at - time.time()))
            if len(self.begun) - len(self.done) + self.wanted.qsize() >= self.episode.threads:
                self.unserved.add(at)
            self.wanted.put(at)
        until = time.time() + PATIENCE
        while len(self.done) < len(times) and time.time() < until:
            time.sleep(0.05)


def run(episode: Episode) -> dict[str, Any]:
    """Per second: requests that reached the server, operations wanted, successes by when they were wanted or came."""
    times = arrivals(episode)
    server, origin = start_server(str(Path(__file__).with_name("outage_server.py")), str(episode.rate))
    try:
        load = _Load(episode, origin)
        command = TROUBLES[episode.trouble]
        began = time.time()
        commander = threading.Thread(
            target=_command,
            args=(server.stdin, began, ((episode.before, command), (episode.before + episode.lasts, "well"))),
            daemon=True,
        )
        commander.start()
        load.run(times)
        done, begun = list(load.done), list(load.begun)
        seen = json.loads(server.communicate(timeout=5)[0])
    finally:
        if server.poll() is None:
            server.kill()
            server.wait(5)
    seconds = int(episode.end)
    late = sorted(started - at for at, started in begun if at not in load.unserved)
    return {
        "load": histogram([at - load.start for at in seen], seconds),
        "wanted": histogram(times, seconds),
        "successes": histogram([at for at, _, is_good in done if is_good], seconds),
        "goodput": histogram([ended for _, ended, is_good in done if is_good], seconds),
        "late": round(late[int(0.99 * (len(late) - 1))], 4) if late else None,
        "no thread": round(len(load.unserved) / len(times), 4),
    }


def _command(pipe: Any, start: float, commands: tuple[tuple[float, str], ...]) -> None:
    for at, line in commands:
        time.sleep(max(0.0, start + at - time.time()))
        pipe.write(line + "\n")
        pipe.flush()


def histogram(times: list[float], seconds: int) -> list[int]:
    """How many fall into each second."""
    counts = [0] * seconds
    for at in times:
        if 0 <= at < seconds:
            counts[int(at)] += 1
    return counts


def figures(episode: Episode, counts: dict[str, Any]) -> dict[str, float]:
    """Attempts per operation and success while the trouble lasts, and success after it, in percent."""
    begin, end = int(episode.before), int(episode.before + episode.lasts)
    inside, after = slice(begin, end), slice(end, None)

    def success(part: slice) -> float:
        return 100 * sum(counts["successes"][part]) / max(1, sum(counts["wanted"][part]))

    return {
        "amplification": sum(counts["load"][inside]) / max(1, sum(counts["wanted"][inside])),
        "success": success(inside),
        "success after": success(after),
        "late": counts["late"],
        "no thread": counts["no thread"],
    }


if __name__ == "__main__":
    logging.getLogger("requests_smithy_retry").setLevel(logging.CRITICAL)  # each giving up would be a line
    logging.getLogger("urllib3").setLevel(logging.CRITICAL)
    print(json.dumps(run(Episode(**json.loads(sys.argv[1])))))
