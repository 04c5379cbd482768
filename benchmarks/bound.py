"""The proof of the bound on retries in vain: every answer of a server, every interleaving, random games.

    python -m benchmarks.bound [--quick] [--kind NAME] [--what games] [--games 1000000] [--processes 1] [--json FILE]

The bound is the one that `RetryConfig.worst_case()` prints. The quotas are the real ones; `bound_world.py` stops them
at each step where another thread could come between. The search goes through every state that a server can bring about
by its answers (success, failure, throttling); `SEARCHES` says how far. Equal states are looked at once, with the least
that the bound still allows. Capacities are small, so that a dozen answers empty the buckets. The games are longer, with
one to six operations at a time: servers that answer by lot, and one that fails until the bucket is empty and then
succeeds, which is the worst that is known. Exit status 1: the bound was broken; the choices that broke it are printed.
About an hour; `--quick` takes some seconds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, NamedTuple

from requests_smithy_retry import RetryConfig, TokenBucket
from requests_smithy_retry.core.retry_budget import RetryBudget
from requests_smithy_retry.core.scope import quotas_of
from requests_smithy_retry.core.wait_queue import MOST_CREDIT, Bounds
from requests_smithy_retry.features.redis import RedisQuota

from . import command
from .bound_world import ANSWERS, REASONS, Rules, Stepping, SteppingClock, World, inner


class ModelQuota(RedisQuota):
    """The real quota of several processes, on a Redis that is a dictionary, without wire and thread.

    :param levels: the tokens of each bucket.
    """

    def __init__(self, levels: dict[str, float], capacity: float) -> None:
        super().__init__("redis://model", capacity=capacity)
        self.levels = levels

    def run(self, scope: str, give: float, take: float, deadline: float | None = None) -> tuple[bool, float]:
        level = min(self.capacity, self.levels.get(scope, self.capacity) + give)
        granted = level >= take
        self.levels[scope] = level - take if granted else level
        return granted, self.levels[scope]


GAMES = 1_000_000
SMALL, SMALL_2_0 = 28, 20
"""Tokens of a priced bucket, so that a dozen answers empty it."""
KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "default, patience of 30 s": {"patience": 30},
    "default, a deadline of 3 s": {"operation_timeout": 3},
    "default, patience=0": {"patience": 0},
    "default, 5 attempts": {"max_attempts": 5},
    "standard 2.1": {"quota": SMALL},
    "standard 2.0": {"quota": SMALL_2_0, "retry_spec": "2.0"},
    "adaptive 2.1": {"quota": SMALL, "mode": "adaptive"},
    "2.1, refilled": {"quota": TokenBucket(SMALL, refill_rate=2)},
    "2.1, refilled and waited for": {"quota": TokenBucket(SMALL, refill_rate=2, on_empty="wait")},
    "redis, 2 processes": {"quota": ModelQuota({}, SMALL)},
}
"""By name, the options that are checked."""


def rules_of(name: str) -> Rules:
    """Return the rules of a kind, with the bound that its configuration prints."""
    config = RetryConfig(trust_env=False, **KINDS[name])
    bound = config.worst_case().in_vain
    assert bound is not None
    is_shared = isinstance(config.quota, ModelQuota)
    make = partial(_shared if is_shared else _own, config)
    if is_shared:
        # The server is never away, so no other bucket stands in for half of that; each process asks for its line.
        given = (bound.per_success - MOST_CREDIT) / 2
        bound = bound._replace(
            at_first=bound.at_first / 2, per_success=given + MOST_CREDIT, per_second=2 * bound.per_second
        )
    price = 1.0 if config.effective_quota == "payoff" else min(map(config.numbers.price_of, REASONS.values()))
    return Rules(make, Bounds(config.most_attempts, config.patience, config.operation_timeout), price, bound)


def _own(config: RetryConfig, clock: SteppingClock) -> tuple[Any, ...]:
    """The quota of one scope of one process, as a strategy makes it; a bucket that was given is made anew."""
    given = config.quota
    if isinstance(given, TokenBucket):
        options = {"refill_rate": given.refill_rate, "on_empty": given.on_empty, "clock": clock}
        config = config.replace(quota=TokenBucket(given.capacity, **options))
    return (_stepping(quotas_of(config, clock)("scope", clock.time)),)


def _stepping(quota: Any) -> Any:
    quota.bucket = Stepping(quota.bucket)
    return quota


def _shared(config: RetryConfig, clock: SteppingClock) -> tuple[Any, ...]:
    """The quotas of two processes on one bucket, as a strategy would make them."""
    levels: dict[str, float] = {}
    price_of = config.numbers.price_of
    buckets = [ModelQuota(levels, SMALL)("scope") for _ in range(2)]
    return tuple(_stepping(RetryBudget(bucket, clock.time, price_of=price_of)) for bucket in buckets)


class Found(NamedTuple):
    """The result of a search or of games: how much was looked at, and the least that the bound still allowed."""

    states: int
    steps: int
    slack: float
    broken_by: tuple[tuple[int, str], ...] | None = None


Choices = tuple[tuple[int, str], ...]


class Extent(NamedTuple):
    """The depth of a search.

    :param places: operations at a time.
    :param answers: the most answers.
    :param ticks: the most waits that end because time passes.
    """

    places: int
    answers: int
    ticks: int


SEARCHES = {
    "two at a time, no time passes": Extent(2, 12, 0),
    "two at a time": Extent(2, 6, 2),
    "one at a time": Extent(1, 12, 3),
}


def replayed(rules: Rules, places: int, choices: Choices) -> World:
    """A world in which all of that has happened."""
    world = World(rules, places)
    for choice in choices:
        world.step(choice)
    return world


def search(rules: Rules, extent: Extent) -> Found:
    """Go through every state that so many answers can bring about, those with fewer answers first."""
    places, depth, ticks = extent
    layers: list[list[tuple[Choices, World | None]]] = [[] for _ in range(depth + 1)]
    layers[0].append(((), None))
    seen: dict[Any, float] = {}
    steps, least = 0, float("inf")
    for answers, layer in enumerate(layers):
        while layer:
            choices, left = layer.pop()
            world = replayed(rules, places, choices) if left is None else left
            ticked = sum(number < 0 for number, _ in choices)
            allowed = [
                (number, what)
                for number, what in world.choices()
                if (answers < depth or what not in ANSWERS) and (ticked < ticks or number >= 0)
            ]
            for choice in allowed:
                child = world if choice == allowed[-1] else replayed(rules, places, choices)
                child.step(choice)
                steps += 1
                slack = min(child.slack, child.slack_of_questions)
                least, way = min(least, slack), (*choices, choice)
                if slack < -TINY:
                    return Found(len(seen), steps, slack, way)
                state, is_answer = hash((child.state(), ticked + (choice[0] < 0))), choice[1] in ANSWERS
                is_new = child.slack < seen.get(state, float("inf"))
                if is_new:
                    seen[state] = child.slack
                    # Replayed when its turn comes, unless that is at once.
                    layers[answers + is_answer].append((way, None if is_answer else child))
                if is_answer or not is_new:
                    child.close()
            if not allowed:
                world.close()
    return Found(len(seen), steps, least)


TINY = 1e-9


def play(rules: Rules, seeds: range) -> Found:
    """Play one game for each seed."""
    steps, least = 0, float("inf")
    for seed in seeds:
        random = Random(seed)
        world, way = World(rules, random.choice((1, 2, 2, 3, 6))), []
        lasts, answer = random.choice(LENGTHS), _server(random)
        impatient = random.choice((0.02, 0.2, 0.9))
        for _ in range(lasts):
            choice = random.choice(list(world.choices()))
            if choice[0] < 0 and random.random() > impatient:
                continue
            if random.random() < 0.01 * impatient:
                choice = (-1, repr(random.choice((0.3, 6.0, 301.0))))
            elif choice[0] >= 0 and world.operations[choice[0]].place == "answer":
                choice = (choice[0], answer(world, choice[0]))
            world.step(choice)
            way.append(choice)
            steps += 1
            slack = min(world.slack, world.slack_of_questions)
            least = min(least, slack)
            if slack < -TINY:
                return Found(len(seeds), steps, slack, tuple(way))
        world.close()
    return Found(len(seeds), steps, least)


LENGTHS = (20, 60, 60, 200)
"""Steps of a game, by lot."""


def _server(random: Random) -> Callable[[World, int], str]:
    """A server that answers by lot, or one that fails until the bucket is empty, and then succeeds."""
    throttles = random.choice((0.0, 0.0, 0.3, 1.0))
    failure = lambda: "throttling" if random.random() < throttles else "failure"  # noqa: E731
    if random.random() < 0.5:
        well = random.choice((0.0, 0.02, 0.1, 0.3, 0.5, 0.9))
        return lambda world, number: "success" if random.random() < well else failure()

    def draining(world: World, number: int) -> str:
        operation = world.operations[number]
        is_empty = inner(operation.quota.bucket).available < world.rules.price
        return "success" if is_empty and operation.attempts else failure()

    return draining


class Job(NamedTuple):
    """One search, or some games, of one kind."""

    kind: str
    what: str
    how: Extent | range


def check(job: Job) -> tuple[Job, Found, float]:
    """Do it, and say how long it took."""
    began, rules = time.perf_counter(), rules_of(job.kind)
    found = play(rules, job.how) if isinstance(job.how, range) else search(rules, job.how)
    return job, found, time.perf_counter() - began


def main(arguments: list[str] | None = None) -> int:
    """Check, print, and write what was asked for."""
    options = _options(arguments)
    searches = {"two at a time": Extent(2, 3, 1)} if options.quick else SEARCHES
    jobs = [Job(kind, what, searches[what]) for kind in options.kind for what in searches if options.what != "games"]
    each = -(-options.games // len(options.kind))
    jobs += [Job(kind, "games", range(each)) for kind in options.kind if options.what != "search"]
    results: dict[str, Any] = {kind: {} for kind in options.kind}
    with multiprocessing.Pool(options.processes) as pool:
        for job, found, seconds in pool.imap_unordered(check, jobs):
            results[job.kind][job.what] = {**found._asdict(), "seconds": round(seconds)}
            print(f"{job.kind}, {job.what}: {found.steps:,} steps, {seconds:.0f} s", flush=True)
            if found.broken_by is not None:
                print(f"  BROKEN by {found.broken_by}")
    print(f"\n{text(results)}")
    command.write({"bounds": {kind: rules_of(kind).bound for kind in results}, "kinds": results}, options.json)
    return int(any(each["broken_by"] is not None for kind in results.values() for each in kind.values()))


def text(results: dict[str, Any]) -> str:
    """A line for each kind and check."""
    rows = []
    for kind, checks in results.items():
        at_first, per_success, per_second = rules_of(kind).bound
        bound = f"{at_first:.3g} + {per_success:.3g} S + {per_second:.3g} t"
        for what, found in checks.items():
            verdict = "holds" if found["broken_by"] is None else "BROKEN"
            counts = [f"{found['states']:,}", f"{found['steps']:,}", f"{found['slack']:.3g}"]
            rows.append([kind, bound, what, *counts, verdict])
    return command.table(["quota", "", "", "states or games", "steps", "least slack", "bound"], rows)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = command.parser(__doc__, "few answers, 2,600 games: some seconds")
    parser.add_argument("--kind", action="append", choices=KINDS, metavar="NAME", help="repeatable; default: all")
    parser.add_argument("--what", choices=("search", "games"), help="one of the two; default: both")
    parser.add_argument("--games", type=int, help=f"random games of all kinds together ({GAMES:,})")
    parser.add_argument("--processes", type=int, default=1, help="how many processors are used (1)")
    options = parser.parse_args(arguments)
    options.kind = options.kind or list(KINDS)
    options.games = options.games or (2600 if options.quick else GAMES)
    return options


if __name__ == "__main__":
    raise SystemExit(main())
