"""Mutation testing of the modules that decide: ``python benchmarks/mutation [--module backoff]``.

Each small change to a module (``mutants.py``) is tried against the tests that ``modules.toml`` names for it, and with
``--wide`` what survives them against all tests. What survives is printed, with the counts. A survivor is a gap in the
tests, or code that is not needed, or no change of behaviour; a person has to tell which. Nothing is kept.

Needs ``benchmarks/mutation/requirements.txt`` and the test extra, Python 3.11, and a system that forks. One child
process at a time, each with a time limit.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomllib
import trial
from mutants import mutants

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OUTCOMES = ("killed", "timed out", "survived")


def main(arguments: Sequence[str]) -> int:
    """Try the mutants of the modules that are asked for, and print what survived.

    :returns: the exit status, 0: survivors are for a person to judge.
    """
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__.partition("\n")[0])
    parser.add_argument("--module", action="append", help="such as backoff or strategies/simple; by default all")
    parser.add_argument("--wide", action="store_true", help="try survivors against all tests: minutes for each")
    options = parser.parse_args(arguments)
    settings = tomllib.loads((HERE / "modules.toml").read_text("utf-8"))
    unknown = set(options.module or ()) - set(settings["modules"])
    if unknown:
        parser.error(f"not in modules.toml: {', '.join(sorted(unknown))}")
    folder = trial.preload()
    total: Counter[str] = Counter()
    for module in options.module or settings["modules"]:
        total += run(module, settings, folder, wide=options.wide)
    print(f"all: {told(total)}")
    return 0


def run(module: str, settings: dict[str, Any], folder: Path, *, wide: bool) -> Counter[str]:
    """Try one module's mutants, and print its counts and what survived.

    :param wide: try what survives the module's own tests against all tests.
    :returns: the number of mutants that came to each end.
    :raises SystemExit: if its tests fail as it is.
    """
    tried = list(mutants((ROOT / trial.PACKAGE / f"{module}.py").read_text("utf-8")))
    name = f"{trial.PACKAGE}.{module.removesuffix('/__init__').replace('/', '.')}"
    extra = settings["modules"][module]
    also, kinds = extra.get("also", []), {kind: extra.get(kind, False) for kind in ("real_time", "long")}
    narrow = trial.Trial(name, tests_of(module, also), folder, **kinds)
    outcomes = narrow.outcomes([mutant.source for mutant in tried])
    left = [number for number, outcome in enumerate(outcomes) if outcome == "survived"]
    if left and wide:
        everything = trial.Trial(name, settings["wide"]["tests"], folder, wide=True)
        for number, outcome in zip(left, everything.outcomes([tried[n].source for n in left]), strict=True):
            outcomes[number] = outcome
    counts = Counter(outcomes)
    print(f"{module}: {told(counts)}", flush=True)
    for mutant, outcome in zip(tried, outcomes, strict=True):
        if outcome == "survived":
            print(f"  {module}.py:{mutant.line}\n    - {mutant.was}\n    + {mutant.now}", flush=True)
    return counts


def told(counts: Counter[str]) -> str:
    """Counts in words, with the share of changes that the tests noticed."""
    number = counts.total()
    noticed = (number - counts["survived"]) / number if number else 1.0
    ends = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES)
    return f"{number} changes, {ends}; {noticed:.1%} noticed"


def tests_of(module: str, also: list[str]) -> list[str]:
    """Return the tests of a module's room, and what else is named for it."""
    room = Path("tests", "unit", module.rpartition("/")[0] or "top").as_posix()
    return [*([room] if (ROOT / room).exists() else []), *also]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
