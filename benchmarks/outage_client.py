"""What both outage scripts run: one policy through one trouble on sockets, by many threads.

A process of its own (`outage_loopback.py` and `outage_picture.py` start it), given an `Episode` as JSON; it prints what
came of it as JSON. Operations are wanted at times that are drawn beforehand, the same for every policy, and given to
any thread that is free, by lot. Threads that share a client share its adapter; each has a session of its own.

Its figures hold only if it kept up itself. `late` says when operations begun that a free thread waited for: the 99th of
a hundred. Above `MOST_LATE` the episode is invalid. `no thread` is the part of the operations for which none was free:
they are turned away, and count as failed.
"""

from __future__ import annotations

import http.client
import json
import logging
import queue
import random
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import requests

from .loopback import start_server
from .outage_policies import POLICIES, Get

TIMEOUT, MOST_LATE, PATIENCE = 1.0, 0.1, 3.0
"""Seconds: of an attempt; see above; in which operations that are under way at the end may succeed."""


class Trouble(NamedTuple):
    """A kind of trouble of the service.

    :param command: what the server is told.
    :param lasts: seconds.
    :param after: seconds that are looked at after it.
    :param part: operations that are wanted a second, as a part of what the service can do.
    :param times: what they are multiplied with while it lasts.
    """

    command: str
    lasts: float
    after: float
    part: float = 0.7
    times: float = 1.0


TROUBLES = {
    "restart, 3 s": Trouble("refuse", 3.0, 8.0),
    "hole, 10 s": Trouble("hole", 10.0, 15.0),
    "hole, 30 s": Trouble("hole", 30.0, 20.0),
    "hole, 10 s, load 85 %": Trouble("hole", 10.0, 15.0, part=0.85),
    "brownout": Trouble("brownout 0.5", 10.0, 10.0),
    "load x3": Trouble("well", 10.0, 10.0, times=3.0),
    "errors 10 %": Trouble("errors 0.1", 10.0, 2.0),
    "errors 30 %": Trouble("errors 0.3", 10.0, 2.0),
    "1 of 4 dead": Trouble("dead 0.25", 10.0, 3.0),
}


@dataclass(frozen=True)
class Episode:
    """One run of the clients; durations in seconds.

    :param policy: one of `POLICIES`.
    :param trouble: one of `TROUBLES`, which say what is not said here.
    :param before: seconds of health before it.
    :param threads: all of them together.
    :param clients: adapters that the threads share.
    :param load: operations a second, all threads together.
    :param rate: requests that the server can serve in a second.
    """

    policy: str
    trouble: str
    before: float = 6.0
    lasts: float = 0.0
    after: float = 0.0
    threads: int = 400
    clients: int = 10
    load: float = 0.0
    rate: float = 50.0
    seed: int = 1

    def __post_init__(self) -> None:
        trouble = TROUBLES[self.trouble]
        usual = {"lasts": trouble.lasts, "after": trouble.after, "load": trouble.part * self.rate}
        for name, value in usual.items():
            object.__setattr__(self, name, getattr(self, name) or value)

    @property
    def end(self) -> float:
        """Seconds from the first operation to the last."""
        return self.before + self.lasts + self.after

    def is_in_trouble(self, at: float) -> bool:
        """True if the trouble lasts at that second."""
        return self.before <= at < self.before + self.lasts


def arrivals(episode: Episode) -> list[float]:
    """When operations are wanted: a Poisson process, with three times the load where that is the trouble."""
    draw, times, at = random.Random(episode.seed), [], 0.0
    more = TROUBLES[episode.trouble].times
    while True:
        at += draw.expovariate(3 * episode.load)
        if at >= episode.end:
            return times
        if draw.random() < (more if episode.is_in_trouble(at) else 1) / 3:
            times.append(at)


class Done(NamedTuple):
    """One operation, in seconds of the episode."""

    wanted: float
    begun: float
    ended: float
    is_good: bool


class _Load:
    """The threads, and what they note down."""

    def __init__(self, episode: Episode, origin: str) -> None:
        self.episode, self.url = episode, origin + "/"
        self.lot = random.Random(episode.seed)
        self.lock = threading.Lock()
        self.idle: list[queue.SimpleQueue[float]] = [queue.SimpleQueue() for _ in range(episode.threads)]
        self.begun: dict[float, float] = {}  # wanted at: begun at
        self.done: list[Done] = []
        self.unserved = 0  # wanted when no thread was free
        pool = -(-episode.threads // episode.clients)
        clients = [POLICIES[episode.policy](pool) for _ in range(episode.clients)]
        for number, wanted in enumerate(tuple(self.idle)):
            get = clients[number % episode.clients]()
            threading.Thread(target=self._work, args=(get, wanted), daemon=True).start()

    def _work(self, get: Get, wanted: queue.SimpleQueue[float]) -> None:
        while True:
            at = wanted.get()
            begun = time.time() - self.start
            self.begun[at] = begun
            try:
                is_good = get(self.url, timeout=TIMEOUT).status_code == 200
            except requests.RequestException:
                is_good = False
            self.done.append(Done(at, begun, time.time() - self.start, is_good))
            with self.lock:
                self.idle.append(wanted)

    def _give(self, at: float) -> None:
        with self.lock:
            if not self.idle:
                self.unserved += 1
                return
            chosen = self.lot.randrange(len(self.idle))
            self.idle[chosen], self.idle[-1] = self.idle[-1], self.idle[chosen]
            wanted = self.idle.pop()
        wanted.put(at)

    def run(self, times: list[float]) -> None:
        """Want each operation at its time; then wait for those under way, for some seconds."""
        self.start = time.time()
        for at in times:
            time.sleep(max(0.0, self.start + at - time.time()))
            self._give(at)
        until = time.time() + PATIENCE
        while len(self.done) + self.unserved < len(times) and time.time() < until:
            time.sleep(0.05)


def note_attempts() -> list[float]:
    """A list that each attempt of this process adds its time to, also one whose connection is refused."""
    sent: list[float] = []
    putrequest = http.client.HTTPConnection.putrequest

    def noting(*args: Any, **options: Any) -> None:
        sent.append(time.time())
        putrequest(*args, **options)

    http.client.HTTPConnection.putrequest = noting
    return sent


def run(episode: Episode) -> dict[str, Any]:
    """Return the counts per second, and how well the load generator kept up."""
    times, sent = arrivals(episode), note_attempts()
    server, origin = start_server("outage_server", str(episode.rate))
    try:
        load = _Load(episode, origin)
        threading.Thread(target=_command, args=(server.stdin, time.time(), episode), daemon=True).start()
        load.run(times)
        done, begun = list(load.done), dict(load.begun)
        seen = json.loads(server.communicate(timeout=5)[0])
    finally:
        if server.poll() is None:
            server.kill()
            server.wait(5)
    late = sorted(started - at for at, started in begun.items())
    return {
        **per_second(episode, times, begun, done, [at - load.start for at in sent], [at - load.start for at in seen]),
        "late": round(late[int(0.99 * (len(late) - 1))], 4),
        "no thread": round(load.unserved / len(times), 4),
    }


def _command(pipe: Any, start: float, episode: Episode) -> None:
    begin = episode.before
    for at, line in ((begin, TROUBLES[episode.trouble].command), (begin + episode.lasts, "well")):
        time.sleep(max(0.0, start + at - time.time()))
        pipe.write(line + "\n")
        pipe.flush()


def per_second(
    episode: Episode,
    times: list[float],
    begun: dict[float, float],
    done: list[Done],
    sent: list[float],
    seen: list[float],
) -> dict[str, list[int]]:
    """Return the counts of each second; successes by when they were wanted, goodput by when they came."""
    seconds = int(episode.end)
    return {
        "sent": histogram(sent, seconds),
        "load": histogram(seen, seconds),
        "wanted": histogram(times, seconds),
        "begun": histogram(begun.values(), seconds),
        "successes": histogram([each.wanted for each in done if each.is_good], seconds),
        "goodput": histogram([each.ended for each in done if each.is_good], seconds),
    }


def histogram(times: Iterable[float], seconds: int) -> list[int]:
    """Count the times that fall into each second."""
    counts = [0] * seconds
    for at in times:
        if 0 <= at < seconds:
            counts[int(at)] += 1
    return counts


def figures(episode: Episode, counts: dict[str, Any]) -> dict[str, float]:
    """Return the figures of an episode: in percent, attempts, parts of the service's capacity, and seconds."""
    begin, end = int(episode.before), int(episode.before + episode.lasts)
    inside, after = slice(begin, end), slice(end, None)

    def success(part: slice) -> float:
        return 100 * sum(counts["successes"][part]) / max(1, sum(counts["wanted"][part]))

    return {
        "amplification": sum(counts["sent"][inside]) / max(1, sum(counts["begun"][inside])),
        "success": success(inside),
        "success after": success(after),
        "peak": max(counts["load"][end : end + 5], default=0) / episode.rate,
        "recovery": recovery(counts, end),
        **{name: counts[name] for name in ("late", "no thread")},
    }


def recovery(counts: dict[str, Any], end: int) -> float:
    """Seconds from the end of the trouble to that of the last one of whose operations more than a tenth fail."""
    pairs = enumerate(zip(counts["wanted"][end:], counts["successes"][end:], strict=True), 1)
    return max((second for second, (wanted, good) in pairs if wanted - good > 0.1 * wanted), default=0)


if __name__ == "__main__":
    for name in ("requests_smithy_retry", "urllib3", "stamina"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # each giving up would be a line
    print(json.dumps(run(Episode(**json.loads(sys.argv[1])))))
