"""The blocks of the benchmarks page, from what `python -m benchmarks` left in benchmarks/results."""

from __future__ import annotations

import collections
import json
from collections.abc import Iterable, Sequence
from typing import Any

from benchmark_not_best import not_best
from benchmark_results import HARM, MISSING, PARTS, load, result, worst


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _spread(figures: dict[str, float], form: str, low: str = "min", high: str = "max") -> str:
    """The median, and the extremes where they differ from it."""
    middle, least, most = (form.format(figures[key]) for key in ("median", low, high))
    return middle if least == most else f"{middle} ({least} to {most})"


def machine() -> str:
    """Who measured, when, and how long it took."""
    documents = [document for name in PARTS if (document := load(name)) is not None]
    if not documents:
        return MISSING
    lines = []
    kinds = collections.defaultdict(list)
    for document in documents:
        kinds[json.dumps(document["machine"])].append(document)
    for text, each in kinds.items():
        found = json.loads(text)
        packages = ", ".join(f"{name} {version}" for name, version in found["packages"].items() if version)
        parts = ", ".join(f"`{document['command']}`" for document in each)
        days = " and ".join(sorted({document["date"] for document in each}))
        minutes = sum(document["seconds"] for document in each) / 60
        lines.append(
            f"{found['processor']}, {found['cores']} cores, {found['system']}, {found['python']}; {packages}. "
            f"Measured on {days}, in {minutes:.0f} minutes: {parts}."
        )
    return "\n\n".join(lines)


def overhead() -> str:
    """What a first-try success costs."""
    found = result("overhead")
    if found is None:
        return MISSING
    rows = []
    what = found.get("what", {})
    for name, counts in found["counts"].items():
        cells = [_spread(counts[kind], "{:+g}") for kind in ("bytecodes", "python_calls", "c_calls")]
        cpu = found.get("cpu", {}).get(name)
        ratio = "" if cpu is None else _spread(cpu["ratio"], "{:.3f}", "q1", "q3")
        rows.append([f"`{name}`", what.get(name, ""), *cells, ratio])
    head = ["", "", "bytecodes", "Python calls", "C calls", "CPU time, ratio to plain (quartiles)"]
    plain = found["counts"]["plain"]["bytecodes"]["absolute"]
    return f"{_table(head, rows)}\n\nPlain itself executes {plain:,.0f} bytecodes."


def threads() -> str:
    """Throughput beside plain, for numbers of threads."""
    found = (result("overhead") or {}).get("throughput")
    if found is None:
        return MISSING
    names = next(iter(found.values()))
    rows = [[f"`{name}`", *(_spread(each[name]["ratio"], "{:.2f}") for each in found.values())] for name in names]
    rows.append(["plain, calls a second", *(f"{each['plain']['absolute']['median']:,.0f}" for each in found.values())])
    return _table(["", *(f"{number} {'thread' if number == '1' else 'threads'}" for number in found)], rows)


def faults() -> str:
    """The fault table."""
    found = result("faults")
    if found is None:
        return MISSING
    clients = list(found["setup"])
    rows = []
    for fault, row in found["cells"].items():
        cells = [_cell(row[client]["outcomes"]) if client in row else "-" for client in clients]
        rows.append([fault, found["best"][fault], *cells])
    return _table(["fault", "at best", *clients], rows)


def _cell(outcomes: Sequence[str]) -> str:
    outcome = worst(outcomes)
    often = collections.Counter(outcomes)[outcome]
    text = outcome if often == len(outcomes) else f"{outcome} {often} of {len(outcomes)}"
    return f"**{text}**" if outcome in HARM else text


def fault_setups() -> str:
    """How each client of the fault table is set up."""
    found = result("faults")
    return MISSING if found is None else _table(["client", "set up as"], found["setup"].items())


def outages() -> str:
    """Attempts, success in the trouble and success after it, for real clients."""
    found = result("outages")
    if found is None:
        return MISSING
    what = (
        ("amplification", "{:.2f}", "attempts per operation"),
        ("success", "{:.0f}", "success while it lasts, %"),
        ("success after", "{:.0f}", "success in the {after:g} s after it, %"),
    )
    tables = []
    for key, form, title in what:
        rows = [
            [row, *(_spread(each[row][key], form) for each in found["troubles"].values())]
            for row in next(iter(found["troubles"].values()))
        ]
        tables.append(_table([title.format(**found["setting"]), *found["troubles"]], rows))
    return "\n\n".join([*tables, _validity(found)])


def _validity(found: dict[str, Any]) -> str:
    cells = [(trouble, row, each) for trouble, rows in found["troubles"].items() for row, each in rows.items()]
    late = max(each["late"] for _, _, each in cells)
    text = (
        f"Median and extremes of {found['rounds']} interleaved rounds. The load generator was late by "
        f"{1000 * late:.0f} ms at most (99th of a hundred operations, worst episode)."
    )
    if invalid := [f"{row} in {trouble}" for trouble, row, each in cells if not each["valid"]]:
        text += f" **Invalid, the load generator was late:** {', '.join(invalid)}."
    return text


def picture() -> str:
    """The figures of the picture's run."""
    found = result("picture")
    if found is None:
        return MISSING
    rows = [
        [
            name,
            f"{line['figures']['amplification']:.2f}",
            f"{line['figures']['success']:.1f} %",
            f"{line['figures']['success after']:.1f} %" + ("" if line["valid"] else " (invalid: late)"),
        ]
        for name, line in found["lines"].items()
    ]
    setting = found["setting"]
    return _table(
        ["", "attempts per operation", "success in the outage", f"success in the {setting['after']:g} s after it"], rows
    )


def outage_caption() -> str:
    """The picture's figures in two sentences, for the README."""
    found = result("picture")
    if found is None:
        return MISSING
    few, many, after = found["setting"]["clients"], found["setting"]["threads"], found["setting"]["after"]
    said = {name: _said(line["figures"]) for name, line in found["lines"].items()}
    return (
        f"Requests per operation while the service was down, and success in the {after:g} s after it: "
        f"urllib3's `Retry` {said['urllib3 Retry']}; `RetryAdapter()` {said['standard']} with {few} clients, "
        f"{said['standard, 400 clients']} with {many} clients of one thread each, which never spend their quota; "
        f'`RetryAdapter(quota="payoff")` {said["payoff, 400 clients"]} with these; no retries {said["no retry"]}.'
    )


def _said(figures: dict[str, float]) -> str:
    return f"{figures['amplification']:.2f} and {figures['success after']:.0f} %"


def overhead_sentence() -> str:
    """What a first-try success costs, in a sentence for the README."""
    found = result("overhead")
    if found is None:
        return MISSING
    added = {name: counts["bytecodes"]["median"] for name, counts in found["counts"].items()}
    peers = ", ".join(
        f"{name} {added[name]:,.0f}"
        for name in ("urllib3", "backoff", "botocore", "stamina", "tenacity", "retryhttp")
        if name in added
    )
    return (
        f"A first-try success executes {added['ours']:,.0f} bytecodes more than with a plain `HTTPAdapter`, where a "
        f"`session.get` as a whole executes {found['counts']['plain']['bytecodes']['absolute']:,.0f} ({peers})."
    )


def simulation() -> str:
    """Every policy in virtual time."""
    found = result("simulation")
    if found is None:
        return MISSING
    chosen = ("black hole", "spike x3", "throttling", "errors 10 %", "errors 30 %")
    scenarios = [name for name in chosen if name in found["scenarios"]]
    rows = [
        [policy, *(_simulated(found["scenarios"][name][policy]) for name in scenarios)]
        for policy in found["scenarios"][scenarios[0]]
    ]
    return _table(["", *scenarios], rows)


def _simulated(figures: dict[str, float | None]) -> str:
    text = f"{figures['amplification']:.2f}, {figures['success inside']:.1f} %"
    return text if figures["recovery"] is None else f"{text}, {figures['recovery']:.0f} s"


def adaptive() -> str:
    """Adaptive mode beside botocore's limiter."""
    found = result("adaptive")
    if found is None:
        return MISSING
    rows = [[name, f"{row['throttled']:.1%}", f"{row['used']:.1%}"] for name, row in found.items()]
    return _table(["", "attempts that were throttled", "used of the allowed rate"], rows)


def footprint() -> str:
    """What importing adds, what a scope costs, what many origins add to a send."""
    found = result("footprint")
    if found is None:
        return MISSING
    imported, scope, origins = (found[part] for part in ("import", "scope", "origins"))
    titles = {"package": "the package", "mounted": "and the first `mount`"}
    names = [name.removesuffix("_modules") for name in imported if name.endswith("_modules")]
    added = [
        [titles.get(each, f"`{each}`"), _spread(imported[f"{each}_ms"], "{:.1f}"), str(imported[f"{each}_modules"])]
        for each in names
    ]
    modes = [name.removesuffix("_known_bytecodes") for name in origins if name.endswith("_known_bytecodes")]
    held = [[f"`{each}`", *(f"{scope[f'{each}{kind}_bytes']:,}" for kind in ("", "_retried"))] for each in modes]
    sends = [
        [
            f"`{each}`",
            *(f"+{origins[f'{each}_{kind}_bytecodes']:,}" for kind in ("known", "new", "full", "full_most")),
            _spread(origins[f"{each}_cpu_ratio"], "{:.2f}"),
        ]
        for each in modes
    ]
    plain = f"added to the {imported['requests_ms']['median']:.0f} ms of `requests`, ms"
    tables = (
        _table(["import", plain, "modules"], added),
        _table(["bytes of a scope", "after successes", "after a retry as well"], held),
        _table(
            ["added to a send to a", "known origin", "new one", "new one, slots taken", "at most", "CPU, ratio"], sends
        ),
    )
    return "\n\n".join(tables)


BLOCKS = {
    "machine": machine,
    "not-best": not_best,
    "overhead": overhead,
    "threads": threads,
    "faults": faults,
    "fault-setups": fault_setups,
    "picture": picture,
    "outages": outages,
    "simulation": simulation,
    "adaptive": adaptive,
    "footprint": footprint,
    "outage-caption": outage_caption,
    "overhead-sentence": overhead_sentence,
}
"""By name of the block."""
README = ("outage-caption", "overhead-sentence")
"""Those that are not on the page, but in the README."""
