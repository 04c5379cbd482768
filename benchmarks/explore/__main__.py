"""The proof that nothing is left, late, lost or sent twice: random runs of the real adapter in a simulated world.

    python -m benchmarks.explore --operations 1000000 --seed 7 [--run N]

Prints what the runs met and how many operations a second that were. A run that violates an invariant is shrunk and
printed as a test; exit status 1. ``--run N`` repeats one run of a seed. ``--sweep 1`` breaks answers at each byte and
interrupts operations at each statement, which is a fixed set. ``--replay`` runs plans from the standard input.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from . import loop
from .plans import Op, Plan, Try, draw
from .shrink import as_test, shrunk

MOST = 5
"""Violations after which it stops."""
HELD = 40
"""Runs between two collections of garbage."""


def drawn(seed: str) -> Iterator[tuple[str, Plan]]:
    """Yield the runs of a seed, each with its name."""
    for number in itertools.count():
        yield f"--seed {seed} --run {number}", draw(Random(f"{seed}/{number}"))


ANSWERS = (
    Try(),
    Try(framing="chunked"),
    Try(framing="close", coding="gzip"),
    Try(coding="gzip", interim=1),
    Try(status=503, headers=(("Retry-After", "1"),)),
    Try(status=429, framing="chunked"),
)
SCRIPTS: tuple[tuple[Try, ...], ...] = (
    (),
    (Try(status=503),),
    (Try(status=404),),
    (Try(status=429, size=700, framing="chunked"),),
    (Try(fault="reset"),),
    (Try(fault="end", at=190),),
    (Try(connect="lost"),),
    (Try(status=503), Try(status=503, size=700, framing="chunked")),
)
RESTS: tuple[tuple[Try, ...], ...] = tuple(
    (Try(framing=framing, fault=fault, at=250), Try(ranges=ranges, version=version))
    for framing in ("length", "chunked")
    for fault in ("end", "reset")
    for ranges in ("half", "blind", "ignored", "wrong")
    for version in (0, 1)
)
"""Bodies that break off, and what becomes of the question for their rest."""
LONG: tuple[tuple[Try, ...], ...] = tuple(
    (Try(status=429, size=70_000, fault=fault, at=at, seconds=seconds),)
    for fault, seconds in (("stall", 0.09), ("drip", 1.7))
    for at in range(63_000, 70_000, 500)
)
"""Errors whose bodies are too long, or come too slowly, to be read for the sake of their connection."""
SETTINGS: tuple[tuple[tuple[str, object], ...], ...] = (
    (),
    (("operation_timeout", 10.0), ("pool_block", True), ("pool_maxsize", 1)),
    (("mode", "adaptive"), ("listeners", "heard"), ("quota", "bucket")),
    (("quota", "waiting"),),
)


RACES: tuple[dict[str, Any], ...] = (
    {"addresses": (2, 1, 1)},
    {"addresses": (2, 1, 1), "refusing": ((0, 0),)},
    {"addresses": (4, 1, 1), "dead": ((0, 0), (0, 1)), "refusing": ((0, 2),)},
)
"""Servers with several addresses, some of which do not answer."""


def swept(every: int = 1) -> Iterator[tuple[str, Plan]]:
    """Yield the fixed set: answers broken at each byte, operations interrupted at each statement.

    :param every: how many bytes or statements to go on.
    """
    for answer in ANSWERS:
        for at in range(0, 330, every):
            for fault in ("end", "reset", "stall"):
                met = replace(answer, fault=fault, at=at, seconds=40.0)
                ops = (Op(tries=(met,)), Op(method="POST", body="bytes", length=60, tries=(met,)))
                yield f"--sweep: {met}", Plan(ops=ops)
    for script in RESTS:
        yield (
            f"--sweep: {script}",
            Plan(ops=(Op(answer=300, tries=script), Op(answer=300, tries=script, stream="read"))),
        )
    for fault in ("end", "reset"):
        met = Try(framing="chunked", fault=fault, at=5_000)  # within the second chunk
        yield f"--sweep: {met}", Plan(ops=(Op(answer=9_000, tries=(met,)),))
    for script in LONG:
        yield f"--sweep: {script}", Plan(ops=(Op(tries=script),), options=(("max_backoff", 0.0), ("retry_spec", "2.1")))
    for number, script in enumerate(SCRIPTS):
        for options in SETTINGS:
            for kind in ("stop", "limit")[: 2 - bool(number)]:
                yield from _interrupted(Op(tries=script), kind, every, options=options)
    for race in RACES:
        for options in SETTINGS[:2]:
            yield from _interrupted(Op(), "stop", every, options=options, **race)


def _interrupted(op: Op, kind: str, every: int, **world: Any) -> Iterator[tuple[str, Plan]]:
    """Yield plans of one operation, interrupted at each statement."""
    step, before = 0, -1
    while loop.done[f"interrupted: {kind}"] > before:  # else it has fewer statements
        step, before = step + every, loop.done[f"interrupted: {kind}"]
        yield f"--sweep: step {step}", Plan(ops=(replace(op, interrupt=(step, kind)),), **world)


def explore(
    runs: Iterator[tuple[str, Plan]], operations: int, most: int, until: float
) -> list[tuple[str, Plan, list[str]]]:
    """Run until so many operations were made; return what was violated, one violation of each kind."""
    failed: list[tuple[str, Plan, list[str]]] = []
    for count, (name, plan) in enumerate(runs):
        if loop.done["operations"] >= operations or time.monotonic() > until:
            break
        found = loop.run(plan)
        if found:
            print(f"# {name} violates: {'; '.join(found[:3])}", flush=True)
            failed.append((name, plan, found))
            if len(failed) >= most:
                break
        if count % HELD == 0:
            gc.collect()
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=10_000)
    parser.add_argument("--seed", default="7")
    parser.add_argument("--run", type=int, help="repeat one run")
    parser.add_argument("--sweep", type=int, metavar="N", help="the fixed set: each N-th byte and statement")
    parser.add_argument("--replay", action="store_true")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long")
    parser.add_argument("--first", action="store_true", help="stop at the first violation, and shrink nothing")
    arguments = parser.parse_args()
    if arguments.replay:
        names = {"Plan": Plan, "Op": Op, "Try": Try}
        found = [each for line in sys.stdin for each in loop.run(eval(line, {**names, "__builtins__": {}}))]
        print(json.dumps(found))
        return bool(found)
    runs = swept(arguments.sweep) if arguments.sweep else drawn(arguments.seed)
    if arguments.run is not None:
        runs = (item for number, item in zip(range(arguments.run + 1), runs, strict=False) if number == arguments.run)
    gc.collect()
    gc.freeze()
    began, spent = time.monotonic(), time.process_time()
    is_bounded = arguments.run is None and not arguments.sweep
    most, until = (1 if arguments.first else MOST), began + arguments.seconds
    failed = explore(runs, arguments.operations if is_bounded else sys.maxsize, most, until)
    seconds, spent = time.monotonic() - began, time.process_time() - spent
    count = loop.done["operations"]
    print(f"{count:,} operations in {seconds:,.0f} s ({spent:,.0f} s of a processor): {count / seconds:,.0f} a second")
    print(", ".join(f"{name}: {number:,}" for name, number in loop.done.most_common()), flush=True)
    for name, plan, found in failed:
        if arguments.first:
            continue
        smaller, why = shrunk(plan, loop.run)
        print("", as_test(smaller, why or found, name), sep="\n", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
