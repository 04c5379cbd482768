"""Runs programs until the time is over, and prints those that show a difference without a name."""

from __future__ import annotations

import argparse
import gc
import logging
import pprint
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from .compare import Player
from .programs import AREAS, Program, program
from .rules import Difference, check

SEED = 1
TRIES = 3
"""So often must a difference show itself: what a race decides shows the same now and then."""

SMALLER = 15.0
"""The most seconds in which a program is made smaller."""


def nothing(name: str) -> None:
    """Count nothing."""


def kind_of(found: list[Difference]) -> tuple[str, ...]:
    """Say roughly what differs: one cause is printed once, and not lost while a program is cut down."""
    first = found[0]
    sides = [side[2][-12:] if isinstance(side, tuple) and side[1] == "raises" else "" for side in first[1:]]
    return first.where, *sides


def confirmed(player: Player, made: Program, kind: tuple[str, ...] | None = None) -> list[Difference]:
    """Return what differs each time, and in this way."""
    found: list[Difference] = []
    usual, player.closes_within = player.closes_within, 1.0
    try:
        for _ in range(TRIES):
            found = check(player, made, nothing)
            if not found or kind not in (None, kind_of(found)):
                return []
    finally:
        player.closes_within = usual
    return found


def smallest(player: Player, made: Program, kind: tuple[str, ...], until: float) -> Program:
    """Leave out of a program all that it takes not to show the same, as far as that is done in time."""
    better = True
    while better:
        better = False
        for simpler in made.simpler():
            if time.monotonic() > until:
                return made
            if confirmed(player, simpler, kind):
                made, better = simpler, True
                break
    return made


def written(made: Program, found: list[Difference]) -> str:
    """Write a program that shows a difference, to be run where this repository is importable."""
    rows = [f"    {path!r}: ({', '.join(map(answer_source, answers))},)," for path, answers in made.script.items()]
    sides = [
        f"# {difference.where}\n#   plain: {str(difference.plain)[:300]}\n#   ours:  {str(difference.ours)[:300]}"
        for difference in found[:2]
    ]
    return "\n".join(
        [
            "from tests.differential.__main__ import show",
            "from tests.differential.server import Answer",
            "",
            "SCRIPT = {",
            *rows,
            "}",
            'PROGRAM = r"""',
            *made.lines,
            '"""',
            f"show({made.area!r}, SCRIPT, PROGRAM, ours={made.ours!r}, pool={made.pool!r})",
            *sides,
        ]
    )


def answer_source(answer: object) -> str:
    """Write an answer with what is not plain about it."""
    plain = vars(type(answer)())
    given = {name: value for name, value in vars(answer).items() if value != plain[name]}
    return f"Answer({', '.join(f'{name}={short(value)}' for name, value in given.items())})"


def short(value: object) -> str:
    """Write a value, a long and regular body as a product."""
    if isinstance(value, bytes):
        for size in range(1, 40):
            if len(value) > 80 and value == (value[:size] * (len(value) // size + 1))[: len(value)]:
                return f"({value[:size]!r} * {len(value) // size + 1})[:{len(value)}]"
    return repr(value)


def show(area: str, script: dict[str, tuple[object, ...]], text: str, *, ours: str, pool: str = "") -> None:
    """Run one program, print what differs, and end with 1 while something does."""
    player = Player()
    made = Program(area, script, tuple(text.strip().splitlines()), ours, pool)  # type: ignore[arg-type]
    found = confirmed(player, made)
    sys.stdout.write(pprint.pformat([each._asdict() for each in found], sort_dicts=False, width=120) + "\n")
    player.close()
    sys.exit(bool(found))


def fuzz(
    areas: list[str], seed: int, seconds: float, numbers: range, say: Callable[[str], None]
) -> dict[tuple[str, ...], str]:
    """Run programs of areas in turn, and return those that differ, one of each kind, as text."""
    logging.disable(logging.INFO)
    logging.getLogger("requests_smithy_retry").disabled = True
    gc.collect()
    gc.freeze()
    player, until, failed = Player(), time.monotonic() + seconds, {}
    named: Counter[str] = Counter()
    kinds: Counter[tuple[str, ...]] = Counter()
    for number in numbers:
        if time.monotonic() > until:
            break
        for area in areas:
            made = program(area, seed, number)
            if not check(player, made, lambda name: named.update([name])):
                continue
            found = confirmed(player, made)
            if not found:
                named["a race"] += 1
                continue
            line = made.lines[found[0].line][:30] if found[0].line is not None else ""
            kind = (area, *kind_of(found), line)
            kinds[kind] += 1
            if kinds[kind] > 1:
                continue
            made = smallest(player, made, kind_of(found), min(until, time.monotonic() + SMALLER))
            failed[kind] = f"# {area} {seed} {number}\n" + written(made, confirmed(player, made) or found)
            say(failed[kind] + "\n")
    took = seconds - max(until - time.monotonic(), 0)
    say(f"{player.exchanges} exchanges, {player.exchanges / max(took, 0.1):.0f} a second; by name: {dict(named)}")
    for kind, times in kinds.most_common():
        say(f"{times} times {kind}")
    player.close()
    gc.unfreeze()
    logging.getLogger("requests_smithy_retry").disabled = False
    logging.disable(logging.NOTSET)
    return failed


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--area", choices=AREAS, action="append")
    parser.add_argument("--number", type=int, help="of one program, which is run alone")
    parser.add_argument("--save", type=Path, help="a folder for the programs that show a difference")
    given = parser.parse_args()
    numbers = range(10**9) if given.number is None else range(given.number, given.number + 1)
    failed = fuzz(given.area or list(AREAS), given.seed, given.seconds, numbers, print)
    for at, text in enumerate(failed.values() if given.save else ()):
        (given.save / f"finding_{at}.py").write_text(text + "\n", encoding="utf-8")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
