"""The blocks of the benchmarks page, from what `python -m benchmarks` left in benchmarks/results."""

from __future__ import annotations

import collections
import json
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from .benchmark_markdown import details, spread, table
from .benchmark_not_best import not_best
from .benchmark_results import HARM, MISSING, OURS, PARTS, late, load, result, worst


def machine() -> str:
    """Describe the machine that measured, with the date and the duration."""
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
    return details("The machines", *lines)


def overhead() -> str:
    """Tabulate the cost of a first-try success."""
    found = result("overhead")
    if found is None:
        return MISSING
    rows = []
    what = found.get("what", {})
    for name, counts in found["counts"].items():
        cells = [spread(counts[kind], "{:+g}") for kind in ("bytecodes", "python_calls", "c_calls")]
        cpu = found.get("cpu", {}).get(name)
        ratio = "" if cpu is None else spread(cpu["ratio"], "{:.3f}", "q1", "q3")
        rows.append([f"`{name}`", what.get(name, ""), *cells, ratio])
    head = ["", "", "bytecodes", "Python calls", "C calls", "CPU time, ratio to plain (quartiles)"]
    return f"{overhead_sentence()}\n\n{details('Each client: bytecodes, calls, CPU time', table(head, rows))}"


def threads() -> str:
    """Throughput beside plain, for numbers of threads."""
    found = (result("overhead") or {}).get("throughput")
    if found is None:
        return MISSING
    names = next(iter(found.values()))
    rows = [[f"`{name}`", *(spread(each[name]["ratio"], "{:.2f}") for each in found.values())] for name in names]
    rows.append(["plain, calls a second", *(f"{each['plain']['absolute']['median']:,.0f}" for each in found.values())])
    threads = [f"{number} {'thread' if number == '1' else 'threads'}" for number in found]
    return details("Calls per second of threads that share a session", table(["", *threads], rows))


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
    return details("The same as a table", table(["fault", "at best", *clients], rows))


def _cell(outcomes: Sequence[str]) -> str:
    outcome = worst(outcomes)
    often = collections.Counter(outcomes)[outcome]
    text = outcome if often == len(outcomes) else f"{outcome} {often} of {len(outcomes)}"
    return f"**{text}**" if outcome in HARM else text


def fault_setups() -> str:
    """Tabulate the set-up of each client of the fault table."""
    found = result("faults")
    if found is None:
        return MISSING
    return details("How each client was set up", table(["client", "set up as"], found["setup"].items()))


def outages() -> str:
    """Success, attempts, peak, lateness, threads and latency, for real clients."""
    found = result("outages")
    if found is None:
        return MISSING
    troubles = found["troubles"]
    names = list(troubles)
    rows = list(troubles[names[0]])
    what: tuple[tuple[str, Callable[[str, str], str]], ...] = (
        ("success while it lasts, %", lambda name, row: spread(troubles[name][row]["success"], "{:.0f}")),
        ("attempts per operation while it lasts", lambda name, row: _attempts(troubles[name][row], row, name)),
        ("most requests of a second in the first 5 s after it, over what the service can do", _of(found, "peak", 2)),
        ("seconds late: recovery later than without retries", lambda name, row: late(found, name, row)),
        ("threads held while it lasts, mean", _of(found, "held", 0)),
    )
    tables = [
        table(
            [title, *names],
            [[row, *(cell(name, row) if row in troubles[name] else "-" for name in names)] for row in rows],
        )
        for title, cell in what
    ]
    health = table(["median latency in health, ms", ""], [[row, f"{1000 * latency(found, row):.1f}"] for row in rows])
    more = details("Attempts, peaks, recovery, threads, latency, validity", *tables[1:], health, _validity(found))
    return f"{tables[0]}\n\n{more}"


def _of(found: dict[str, Any], key: str, digits: int) -> Callable[[str, str], str]:
    return lambda name, row: spread(found["troubles"][name][row][key], f"{{:.{digits}f}}")


def _attempts(figures: dict[str, Any], row: str, trouble: str) -> str:
    """With the bound, for those who have the default's bucket, where nearly all retries are in vain."""
    text = spread(figures["amplification"], "{:.2f}")
    is_bound = row.startswith(("default", "patient")) and not trouble.startswith(PAYING)
    return f"{text}; {figures['bound']['median']:.2f}" if is_bound else text


PAYING = ("errors", "1 of 4")
"""Troubles in which retries pay, so that the default allows more of them."""


def latency(found: dict[str, Any], row: str) -> float:
    """The median of all episodes."""
    return statistics.median(each[row]["latency"]["median"] for each in found["troubles"].values() if row in each)


def _validity(found: dict[str, Any]) -> str:
    cells = [(trouble, row, each) for trouble, rows in found["troubles"].items() for row, each in rows.items()]
    late = max(each["late"] for _, _, each in cells)
    rounds = found["rounds"]
    text = "One round." if rounds == 1 else f"Median and extremes of {rounds} interleaved rounds."
    text += (
        f" The load generator was late by {1000 * late:.0f} ms at most (99th of a hundred operations, worst episode)."
    )
    if invalid := [f"{row} in {trouble}" for trouble, row, each in cells if not each["valid"]]:
        text += f" **Invalid, the load generator was late:** {', '.join(invalid)}."
    short = [(f"{row} in {trouble}", each["no thread"]) for trouble, row, each in cells if each["no thread"] > 0.005]
    if short:
        turned = ", ".join(f"{100 * part:.0f} % of {name}" for name, part in short)
        text += f" Operations that were turned away because all {found['setting']['threads']} threads waited: {turned}."
    return text


def picture() -> str:
    """The figures of the picture's run."""
    found = result("picture")
    if found is None:
        return MISSING
    rows = [
        [
            name,
            f"`{found['setup'][name]}`",
            f"{line['figures']['amplification']:.2f}",
            f"{line['figures']['success']:.0f} %",
            f"{line['figures']['success after']:.0f} %" + ("" if line["valid"] else " (invalid: late)"),
        ]
        for name, line in found["lines"].items()
    ]
    after = found["setting"]["after"]
    head = ["", "", "attempts per operation", "success in the outage", f"success in the {after:g} s after it"]
    return table(head, rows)


def outage_caption() -> str:
    """The picture's figures in a sentence, for the README."""
    found = result("picture")
    if found is None:
        return MISSING
    named = {
        "urllib3 Retry": "urllib3's `Retry`",
        "tenacity": "tenacity",
        "stamina": "stamina",
        "AWS 2.1": '`RetryAdapter(retry_spec="2.1")`',
        "default": "`RetryAdapter()`",
        "no retry": "no retries",
    }
    said = "; ".join(f"{words} {_said(found['lines'][name]['figures'])}" for name, words in named.items())
    after = found["setting"]["after"]
    return f"Requests per operation while the service was down, and success in the {after:g} s after it: {said}."


def outage_success() -> str:
    """Return the cost of a short restart, in a sentence for the README."""
    found = (result("outages") or {}).get("troubles", {}).get("restart, 3 s")
    if found is None:
        return MISSING
    good = {name: f"{each['success']['median']:.0f} %" for name, each in found.items()}
    return (
        f"Of a restart of three seconds, in which connections are refused, `RetryAdapter()` brings {good['default']} "
        f"of the operations through; urllib3's `Retry` {good['urllib3 Retry']}, stamina {good['stamina']}, tenacity "
        f"{good['tenacity']}."
    )


def _said(figures: dict[str, float]) -> str:
    return f"{figures['amplification']:.2f} and {figures['success after']:.0f} %"


def overhead_sentence() -> str:
    """State the cost of a first-try success, in a sentence for the README."""
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
    return details("Every policy, in five kinds of trouble", table(["", *scenarios], rows))


def _simulated(figures: dict[str, float | None]) -> str:
    text = f"{figures['amplification']:.2f}, {figures['success inside']:.1f} %"
    return text if figures["recovery"] is None else f"{text}, {figures['recovery']:.0f} s"


def adaptive() -> str:
    """Adaptive mode beside botocore's limiter."""
    found = result("adaptive")
    if found is None:
        return MISSING
    rows = [[name, f"{row['throttled']:.1%}", f"{row['used']:.1%}"] for name, row in found.items()]
    return table(["", "attempts that were throttled", "used of the allowed rate"], rows)


def addresses() -> str:
    """Tabulate names with sick addresses."""
    found = result("addresses")
    if found is None:
        return MISSING
    rows = found["rows"]
    clients = [name for name, cell in rows[0].items() if isinstance(cell, dict)]
    usual = {row["addresses"]: row for row in rows if not row["sick"]}

    def added(row: dict[str, Any], name: str, key: str) -> str:
        return f"{(row[name][key] - usual[row['addresses']][name][key]) * 1e3:+.0f}"

    sick = [row for row in rows if row["sick"]]
    captions = {
        row_id: f"{row['method']}, {row['sick']} of {row['addresses']} {row['kind']}" for row_id, row in enumerate(sick)
    }
    success = [[captions[at], *(f"{row[name]['success']:.0%}" for name in clients)] for at, row in enumerate(sick)]
    times = [
        [
            captions[at],
            *(added(row, name, "first") for name in clients),
            added(row, OURS, "later"),
            f"{row[OURS]['hits']:.1f}",
        ]
        for at, row in enumerate(sick)
    ]
    crowd = [[kind, f"{part:.2%}"] for kind, part in found["clients"].items()]
    costs = [[count, spread(cost, "{:.3f}", "q1", "q3")] for count, cost in found["new connection"].items()]
    first = [f"first, {name}" for name in clients]
    last = ["later, ours", "requests to a sick address in a long session, ours"]
    whole = ", ".join(f"{name} in {sum(row[name]['success'] == 1 for row in sick)}" for name in clients)
    return "\n\n".join(
        (
            f"Every operation succeeds, of {len(sick)} cases: {whole}.",
            details(
                "Each case: success and latency; 200 clients; the cost",
                table(["operations that succeed", *clients], success),
                table(["p99 over the healthy case, ms", *first, *last], times),
                table(["200 clients, one sick address of four", "operations that succeed"], crowd),
                table(["addresses of the name", "CPU time over a new connection, ratio to plain (quartiles)"], costs),
            ),
        )
    )


def rate_limits() -> str:
    """Tabulate the clients that share one key: refused, used, and the slowest operations, by the kind of limit."""
    found = result("rate-limits")
    if found is None:
        return MISSING
    tables = []
    for size, cells in found["cells"].items():
        kinds = list(next(iter(cells.values())))
        rows = [[name, *(_limited(row[kind]) for kind in kinds)] for name, row in cells.items()]
        tables.append(f"**{size} threads**\n\n" + table(["", *kinds], rows))
    held = [[name, f"{1000 * seconds:.0f} ms"] for name, seconds in found.get("held back", {}).items()]
    if held:
        tables.append("**After one refusal, the last request of the others arrives**\n\n" + table(["", "after"], held))
    crowd = next(iter(found["cells"].values()))
    refused = {name: sorted(100 * each["refused"] for each in row.values()) for name, row in crowd.items()}
    said = "; ".join(f"{name} {least:.0f} to {most:.0f} %" for name, (least, *_, most) in refused.items())
    return f"Refused, of all requests: {said}.\n\n{details('Each kind of limit, and one thread alone', *tables)}"


def _limited(figures: dict[str, float]) -> str:
    refused, used = f"{figures['refused']:.1%}", f"{figures['used']:.0%}"
    return f"{refused}, {used}, {figures['p99']:.1f}, {figures['least share']:.0%}"


def deadlines() -> str:
    """Tabulate the lateness of operations, for each kind of stall."""
    found = result("deadlines")
    if found is None:
        return MISSING
    rows = []
    for name, row in found["as it is"].items():
        pairs = (row, found["busy"][name])
        rows.append(
            [name, *(f"{1000 * each[key]:.0f}" for each in pairs for key in ("median", "longest")), row["ended"]]
        )
    head = ["late, ms", "median", "longest of the rounds", "busy: median", "busy: longest", "ended by"]
    latest = [1000 * max(row["longest"] for row in found[how].values()) for how in ("as it is", "busy")]
    said = f"The latest of {found['rounds']} rounds: {latest[0]:.0f} ms, and {latest[1]:.0f} ms on the busy machine."
    negative = "A negative number: it ended before its deadline."
    return f"{said}\n\n{details('Each kind of stall', table(head, rows), negative)}"


def footprint() -> str:
    """Tabulate the cost of importing, of a scope, and of many origins to a send."""
    found = result("footprint")
    if found is None:
        return MISSING
    imported, scope, origins = (found[part] for part in ("import", "scope", "origins"))
    titles = {"package": "the package", "mounted": "and the first `mount`"}
    names = [name.removesuffix("_modules") for name in imported if name.endswith("_modules")]
    added = [
        [titles.get(each, f"`{each}`"), spread(imported[f"{each}_ms"], "{:.1f}"), str(imported[f"{each}_modules"])]
        for each in names
    ]
    runs = {"run_requests_ms": "`run`, of a program with `requests`", "run_nothing_ms": "`run`, of one without"}
    added += [[title, f"{imported[name]:.1f}", ""] for name, title in runs.items() if name in imported]
    modes = [name.removesuffix("_known_bytecodes") for name in origins if name.endswith("_known_bytecodes")]
    held = [[f"`{each}`", *(f"{scope[f'{each}{kind}_bytes']:,}" for kind in ("", "_retried"))] for each in modes]
    sends = [
        [
            f"`{each}`",
            *(f"+{origins[f'{each}_{kind}_bytecodes']:,}" for kind in ("known", "new", "full", "full_most")),
            spread(origins[f"{each}_cpu_ratio"], "{:.2f}"),
        ]
        for each in modes
    ]
    plain = f"added to the {imported['requests_ms']['median']:.0f} ms of `requests`, ms"
    return f"{table(['import', plain, 'modules'], added)}\n\n" + details(
        "Memory of a scope, and sends to many origins",
        table(["bytes of a scope", "after successes", "after a retry as well"], held),
        table(
            ["added to a send to a", "known origin", "new one", "new one, slots taken", "at most", "CPU, ratio"], sends
        ),
    )


def downloads() -> str:
    """Tabulate downloads that break off: over a link that is cut, and at random."""
    found = result("downloads")
    if found is None:
        return MISSING
    rows = []
    for name, each in found["cut"].items():
        tally = found["sockets"][name]
        count = tally["downloads"]
        shares = [f"{100 * tally.get(outcome, 0) / count:.1f} %" for outcome in ("right", "error", "wrong bytes")]
        rows.append([name, found["what"][name], each["outcome"], f"{each['sent']:.2f}", *shares, f"{count:,}"])
    head = ["", "", f"{found['size']:,} MiB, cut every 10", "sent", "right", "error", "wrong bytes", "of"]
    tally, cpu = found["simulated"], found["cost"]
    left = tally.get("leak", 0) + found["sockets"]["ours"].get("leak", 0)
    wrong = tally.get("wrong bytes", 0)
    simulated = (
        f"In the simulated transport, of {tally['downloads']:,} downloads with ours {tally['right']:,} ended with the "
        f"right bytes, {tally['error']:,} with an error, {wrong:,} with wrong bytes; {left:,} left a connection open."
    )
    cost = f"CPU time of a GET of 1 MiB in ms, medians: {cpu['bare']:.2f} as it is, {cpu['ETag']:.2f} with an `ETag`."
    whole = ", ".join(name for name, each in found["cut"].items() if each["outcome"] == "right")
    said = "; ".join(f"{row[0]} {row[4]} right, {row[6]} wrong bytes" for row in rows)
    return (
        f"Over the link that is cut, the file arrives with: {whole}. At random: {said}.\n\n"
        f"{details('Each client, simulated downloads, and the cost', table(head, rows), simulated, cost)}"
    )


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
    "addresses": addresses,
    "rate-limits": rate_limits,
    "deadlines": deadlines,
    "footprint": footprint,
    "downloads": downloads,
    "outage-caption": outage_caption,
    "outage-success": outage_success,
    "overhead-sentence": overhead_sentence,
}
"""By name of the block."""
README = ("outage-caption", "outage-success", "overhead-sentence")
"""Those that are not on the page, but in the README."""
