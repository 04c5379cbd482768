"""The table of SDKs, against answers as their vendors document them: plain, with `mount`, and under `run`.

    python -m benchmarks.sdks [--row NAME]... [--python PYTHON] [--jobs 3] [--only faults|times|drift] [--json FILE]

`rows.toml` has the clients, their calls, and the answers of each with the document they are from. Each runs in a child
process against a server on loopback, with TLS, at the vendor's own name. Each request of each call meets eleven faults
once; a ledger counts what was applied. Then all calls are made without trouble, and CPU times are paired with plain.
PYTHON is an interpreter with the clients; those that it does not have are left out. ``drift`` makes the calls without
trouble, and keeps nothing: it fails where a newer client asks for something else.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import ssl
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

import trustme

from benchmarks.command import describe, forget_settings
from tests.faults import FaultServer

from .rows import rows
from .service import FAULTS, LIMITED, REDIRECT, REFUSED, Service

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "benchmarks" / "results" / "vendors.json"
WAYS = ("plain", "mount", "run")
ROUNDS, BLOCK = 7, 0.06
"""Rounds of the CPU times, and the seconds that a call takes in each."""
Calls = list[dict[str, Any]]


@dataclass
class Child:
    """A client in one way, and its service."""

    process: subprocess.Popen[str]
    service: Service

    def ask(self, **what: Any) -> Any:
        """Tell the child what to do, and return what it tells."""
        print(json.dumps(what), file=self.process.stdin, flush=True)
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline() or '{"ended": "hang", "says": "it ended", "told": null}')

    def call(self, call: int, fault: str = "", at: int = 0, *, here: bool = False) -> dict[str, Any]:
        """Make a call, and return what the client and the service tell of it."""
        one = self.service
        one.begin(call, fault, at)
        told: dict[str, Any] = self.ask(call=call, here=here, refused=int(fault == REFUSED))
        seen = {"trace": one.trace, "safe": one.safe, "applied": dict(one.applied), "unknown": one.unknown}
        return {**told, **seen}

    def time(self, call: int, times: int) -> float:
        """Make a call so often; return the CPU time."""
        self.service.begin(call, at_once=True)
        return float(self.ask(call=call, times=times))


@contextlib.contextmanager
def child(row: dict[str, Any], way: str, python: str) -> Iterator[Child]:
    """Serve a client, and start it."""
    service, authority = Service(row), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(row["host"], *row.get("hosts", ())).configure_cert(context)
    with tempfile.TemporaryDirectory() as folder, FaultServer(service, tls=context) as server:
        bundle = Path(folder) / "ca.pem"
        authority.cert_pem.write_to_path(bundle)
        trusted = dict.fromkeys(("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE"), str(bundle))
        run = ["-m", "requests_smithy_retry", "run", "--mounted=" + row.get("mounted", "plain")] if way == "run" else []
        own = [f"{__package__}.child", row["name"], "mount" if way == "mount" else "plain", str(server.port)]
        process = subprocess.Popen(
            [python, *run, "-m", *own],
            cwd=folder,
            env={**os.environ, **trusted, "PYTHONPATH": str(ROOT), "HOME": folder},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            yield Child(process, service)
        finally:
            process.kill()
            process.communicate()


def faults(row: dict[str, Any], way: str, python: str, *, only_well: bool = False) -> Calls:
    """Make each call without trouble, and have each of its requests meet each fault."""
    found = []
    with child(row, way, python) as one:
        for number, call in enumerate(row["call"]):
            well = one.call(number, here=True)
            places = range(len(well["trace"]) if well["ended"] == "right" and not only_well else 0)
            cells = {
                fault: [verdict(one.call(number, fault, at), well, fault, at) for at in places[:limit]]
                for fault, limit in {**dict.fromkeys(FAULTS), REFUSED: 1}.items()
            }
            found.append({"does": call["does"], "well": well, "cells": cells})
    return found


def verdict(found: dict[str, Any], well: dict[str, Any], fault: str, at: int) -> str:
    """Return what became of a call that met a fault.

    ``careful`` is an error where nobody can know if the request was applied, or where its vendor answers a second one
    otherwise, or a redirect that the client does not follow; ``missed`` is one that a repetition could have spared.
    """
    if any(count > well["applied"].get(request, 0) for request, count in found["applied"].items()):
        return "twice"
    if found["ended"] == "right":
        return "right" if found["told"] == well["told"] else "wrong"
    could_repeat = fault != REDIRECT and (well["safe"][at] or fault in (LIMITED, REFUSED))
    return "hang" if found["ended"] == "hang" else "missed" if could_repeat else "careful"


def times(row: dict[str, Any], python: str) -> dict[str, float]:
    """Return the CPU time of all calls without trouble, as a multiple of plain: the median of paired rounds."""
    with contextlib.ExitStack() as stack:
        ones = {way: stack.enter_context(child(row, way, python)) for way in WAYS}
        calls = range(len(row["call"]))
        for one in ones.values():
            for call in calls:
                one.time(call, 2)
        counts = [max(1, round(BLOCK / max(ones["plain"].time(call, 2) / 2, 1e-4))) for call in calls]
        ratios: dict[str, list[float]] = {way: [] for way in WAYS[1:]}
        for turn in range(ROUNDS):
            took = dict.fromkeys(WAYS, 0.0)
            for call, count in enumerate(counts):
                for way in WAYS if turn % 2 else WAYS[::-1]:
                    took[way] += ones[way].time(call, count)
            for way, each in ratios.items():
                each.append(took[way] / took["plain"])
    return {way: round(median(each), 3) for way, each in ratios.items()}


def broken(name: str, found: dict[str, Calls]) -> list[str]:
    """Say what is wrong: without trouble, or worse than plain."""
    told = []
    for way, calls in found.items():
        for plain, each in zip(found["plain"], calls, strict=True):
            where, well = f"{name}, {each['does']}, {way}", each["well"]
            if well["ended"] != "right" or well["unknown"]:
                told.append(f"{where}: without trouble: {well['says']} {well['unknown']}")
            elif (well["told"], well["trace"]) != (plain["well"]["told"], plain["well"]["trace"]):
                told.append(f"{where}: without trouble it differs from plain")
            for fault, verdicts in each["cells"].items() if way != "plain" else ():
                for at, (ours, theirs) in enumerate(zip(verdicts, plain["cells"][fault], strict=False)):
                    if ours != theirs and (ours in ("wrong", "hang", "twice") or (ours, theirs) == ("missed", "right")):
                        told.append(f"{where}: {fault} at request {at + 1}: {ours}, plain {theirs}")
    return told


def summary(row: dict[str, Any], found: dict[str, Calls]) -> dict[str, Any]:
    """Return what is kept of a client: the numbers of its verdicts, and which of ours are not right."""
    every = [(way, call) for way, calls in found.items() for call in calls]
    cells = [(way, call["does"], *cell) for way, call in every for cell in call["cells"].items()]
    return {
        "calls": len(row["call"]),
        "from memory": sum(call.get("memory", False) for call in row["call"]),
        "requests": sum(len(call["well"]["trace"]) for call in found["plain"]),
        "verdicts": {way: Counter(one for each in cells if each[0] == way for one in each[3]) for way in found},
        "others": [
            f"{does}, {way}: {fault}: {' '.join(each)}"
            for way, does, fault, each in cells
            if {*each} - {"right"} and way != "plain"
        ],
    }


def installed(python: str, names: Sequence[str]) -> dict[str, str]:
    """Return the versions of those distributions that a Python has."""
    code = (
        "import json, sys\nfrom importlib import metadata\n"
        "had = {each.metadata['Name'].lower().replace('_', '-'): each.version for each in metadata.distributions()}\n"
        "print(json.dumps({name: had[name.lower()] for name in sys.argv[1:] if name.lower() in had}))"
    )
    return dict(json.loads(subprocess.run([python, "-c", code, *names], check=True, capture_output=True).stdout))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and keep the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--row", action="append", metavar="NAME", help="repeatable; others stay as they are")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the clients")
    parser.add_argument("--jobs", type=int, default=3, help="children at a time, for the faults")
    parser.add_argument("--only", choices=("faults", "times", "drift"))
    parser.add_argument("--json", type=Path, default=RESULT, help="the file of the figures")
    options = parser.parse_args(arguments)
    forget_settings()
    every = rows()
    packages = {name: row.get("package", name) for name, row in every.items()}
    versions = installed(options.python, [*packages.values()])
    chosen = [name for name in options.row or every if packages[name] in versions]
    kept: dict[str, Any] = json.loads(options.json.read_text())["result"] if options.json.exists() else {}
    bad: list[str] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        asked = [(name, way) for name in chosen for way in WAYS if options.only != "times"]
        drifts = options.only == "drift"
        jobs = {key: pool.submit(faults, every[key[0]], key[1], options.python, only_well=drifts) for key in asked}
        for name in dict.fromkeys(name for name, _ in asked):
            found = {way: jobs[name, way].result() for way in WAYS}
            bad += broken(name, found)
            if drifts:
                continue
            was = kept.get(name, {})
            kept[name] = {**was, "version": versions[packages[name]], **summary(every[name], found)}
            print(name, *(f"{way} {dict(each)}" for way, each in kept[name]["verdicts"].items()), sep="; ", flush=True)
    for name in chosen if options.only in (None, "times") else ():
        kept.setdefault(name, {})["cpu"] = times(every[name], options.python)
        print(name, kept[name]["cpu"], flush=True)
    print(*bad, sep="\n")
    if drifts:
        print(f"{len(chosen)} clients of {len(every)}")
        return 1 if bad else 0
    document = {"command": "python -m benchmarks.sdks", "date": datetime.now(timezone.utc).date().isoformat()}
    head = json.dumps({**document, "machine": describe()}, indent=1).removesuffix("\n}")
    lines = [f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in every if name in kept]
    options.json.write_text(head + ',\n "result": {\n  ' + ",\n  ".join(lines) + "\n }\n}\n", encoding="utf-8")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
