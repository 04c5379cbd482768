"""Mutation testing of the modules that decide: ``python benchmarks/mutation [--module backoff]``.

Each small change to a module (``mutants.py``) is tried against the tests that ``modules.toml`` names for it. What
survives them is explained in ``accepted.toml``; or else it is tried against the wide set, and if it survives that too,
the tests have a gap. The outcome is ``benchmarks/results/mutation.json``; with ``--module``, those modules' part of it.

Needs ``benchmarks/mutation/requirements.txt`` and the test extra, Python 3.11, and a system that forks. One child
process at a time, each with a time limit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomllib
import trial
from mutants import Mutant, mutants

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "mutation.json"


def main(arguments: Sequence[str]) -> int:
    """Try the mutants of the modules that are asked for.

    :returns: 1 if a survivor has no explanation, else 0.
    """
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__.partition("\n")[0])
    parser.add_argument("--module", action="append", help="such as backoff or strategies/simple; by default all")
    parser.add_argument(
        "--again", action="store_true", help="only what survived last time, where the module is as then"
    )
    parser.add_argument("--narrow", action="store_true", help="do not try survivors against the wide set")
    parser.add_argument("--show", action="store_true", help="print what survives without an explanation at once")
    options = parser.parse_args(arguments)
    settings, accepted = (tomllib.loads((HERE / name).read_text("utf-8")) for name in ("modules.toml", "accepted.toml"))
    unknown = set(options.module or ()) - set(settings["modules"])
    if unknown:
        parser.error(f"not in modules.toml: {', '.join(sorted(unknown))}")
    folder = trial.preload()
    gaps = 0
    for module in options.module or settings["modules"]:
        results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
        before = results.get(module) if options.again else None
        results[module] = run(module, settings, accepted.get(module, []), before, folder, options)
        RESULTS.parent.mkdir(exist_ok=True)
        ordered = {name: results[name] for name in settings["modules"] if name in results}
        RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", "utf-8")
        gaps += sum("why" not in survivor for survivor in results[module]["survivors"])
    return 1 if gaps else 0


def run(
    module: str,
    settings: dict[str, Any],
    accepted: list[dict[str, str]],
    before: dict[str, Any] | None,
    folder: Path,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Try one module's mutants.

    :param accepted: the explanations for it.
    :param before: the outcome of last time, if only what survived then is to be tried.
    :returns: its counts, and what survived.
    :raises SystemExit: if its tests fail as it is.
    """
    source = (ROOT / trial.PACKAGE / f"{module}.py").read_text("utf-8")
    fingerprint = hashlib.sha256(source.encode()).hexdigest()[:12]
    todo = list(mutants(source))
    counts = {"mutants": len(todo), "killed": 0, "timed out": 0, "survived": 0}
    if before is not None and (before["module"], before["mutants"]) == (fingerprint, len(todo)):
        old = {(item["was"], item["now"]) for item in before["survivors"]}
        todo = [mutant for mutant in todo if (mutant.was, mutant.now) in old]
        counts["timed out"] = before["timed out"]
        counts["killed"] = counts["mutants"] - counts["timed out"] - len(todo)
    name = f"{trial.PACKAGE}.{module.removesuffix('/__init__').replace('/', '.')}"
    extra = settings["modules"][module]
    also, kinds = extra.get("also", []), {kind: extra.get(kind, False) for kind in ("real_time", "long")}
    narrow = trial.Trial(name, tests_of(module, also), folder, **kinds)
    told = [described(module, mutant, accepted) for mutant in todo]
    outcomes = narrow.outcomes([mutant.source for mutant in todo], ["why" in each for each in told])
    open_ones = [n for n, outcome in enumerate(outcomes) if outcome == "survived" and "why" not in told[n]]
    if open_ones and not options.narrow:
        wide = trial.Trial(name, settings["wide"]["tests"], folder, wide=True)
        for n, outcome in zip(
            open_ones, wide.outcomes([todo[n].source for n in open_ones], [False] * len(open_ones)), strict=True
        ):
            outcomes[n] = outcome
    for outcome in outcomes:
        counts[outcome] += 1
    survivors = [each for each, outcome in zip(told, outcomes, strict=True) if outcome == "survived"]
    gaps = [each for each in survivors if "why" not in each]
    sums = ", ".join(f"{number} {what}" for what, number in counts.items())
    print(f"{module}: {sums}, {len(gaps)} of them without an explanation", flush=True)
    for gap in gaps if options.show else ():
        print(f"  {gap['where']}\n    - {gap['was']}\n    + {gap['now']}", flush=True)
    return {"module": fingerprint, **counts, "survivors": survivors}


def tests_of(module: str, also: list[str]) -> list[str]:
    """The test file that mirrors a module, and what else is named for it."""
    folder, _, last = module.rpartition("/")
    mirror = Path("tests", folder, f"test_{last}.py").as_posix()
    return [*([mirror] if (ROOT / mirror).exists() else []), *also]


def described(module: str, mutant: Mutant, accepted: list[dict[str, str]]) -> dict[str, Any]:
    """A mutant for the report, with its explanation if it has one."""
    told = {"where": f"{module}.py:{mutant.line}", "was": mutant.was, "now": mutant.now}
    for item in accepted:
        if item["was"] == mutant.was and item.get("now", mutant.now) == mutant.now:
            return {**told, "why": item["why"]}
    return told


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
