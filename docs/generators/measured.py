"""What pages print of the figures in benchmarks/results, which `python -m benchmarks` leaves there."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .reference_tables import table

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
PARTS = ("overhead", "faults", "addresses", "rate-limits", "outages", "picture", "waiting")
OUTCOMES = ("intact", "error", "applied twice", "wrong body", "hang")
"""Of the fault table, from the best to the worst."""
HARM = OUTCOMES[2:]
OWN = ("ours", "default", "patient", "AWS")
"""The beginnings of the names of our own rows."""
NAMES = {
    "default": "`RetryAdapter()`",
    "ours": "`RetryAdapter()`",
    "ours, time limits": "with time limits",
    "patient": "with `patience=30`",
    "tenacity, retry_if_result": "tenacity's `retry_if_result`",
    "backoff, on_predicate": "backoff's `on_predicate`",
    "urllib3 Retry": "urllib3's `Retry`",
    "urllib3": "urllib3's `Retry`",
    "AWS 2.1": '`RetryAdapter(retry_spec="2.1")`',
    "no retry": "no retries",
    "requests": "no retries",
    "plain": "no retries",
}
"""How a row is called in prose, where its own name does not say it."""
PEERS = ("urllib3", "backoff", "botocore", "tenacity", "stamina")
DEAREST = ("ours, ErrorInBodyClassifier", "JSON, 2 kB")
WEAK = (
    "200 clients, hole for 10 s, 90 % load",
    "1,000 clients, spike for 10 s, 70 % load",
    "1,000 clients of one thread with a queue, hole for 10 s, 70 % load",
)
"""The rows of the simulation in which waiting is worst."""
COSTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("kept connection, no option", "ours", "", PEERS),
    ("a listener", "ours, listener", "", ()),
    ("`operation_timeout`", "ours, operation_timeout", "", ()),
    ('`mode="adaptive"`', "ours, adaptive", "", ()),
    ("`scope`, prometheus, `operation_timeout`, `deadline_header`", "ours, together", "", ()),
    ("`ErrorInBodyClassifier`, JSON of 2 kB", *DEAREST, ("tenacity, retry_if_result", "backoff, on_predicate")),
    ("a response hook; gzip, sized, chunks; 2 kB to 1 MiB", "ours", "hook", ("urllib3",)),
    ("`stream=True`, strong ETag, chunks of 400 bytes", "ours", "stream, ETag, chunks of 400 B", ("urllib3",)),
    ("the same, chunks of 64 KiB", "ours", "stream, ETag, chunks of 64 KiB", ("urllib3",)),
    ("upload of 20 MB, `operation_timeout`", "ours, operation_timeout", "upload, 20 MB", ("stamina",)),
    ("new connection", "ours", "new", ("urllib3",)),
)
"""The rows of the table of costs: what is measured, and the names of the rows and of what they ask for."""

WEB = {"in it": "ok in it, %", "else": "ok before and after, %", "p99": "p99, s", "requests": "upstream requests"}
"""The columns of the table of the web service, each with its title."""


def document(name: str) -> dict[str, Any]:
    """Return one part's document."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def result(name: str) -> Any:
    """Return the result of one part."""
    return document(name)["result"]


def named(name: str) -> str:
    return NAMES.get(name, name)


def worst(outcomes: list[str]) -> str:
    """The worst outcome of a cell's rounds."""
    return max(outcomes, key=OUTCOMES.index)


def _ratio(who: str, ask: str) -> str:
    """The quotient of CPU times, or the least and the most of those of several answers."""
    name = f"{who}, {ask}" if ask else who
    rows = result("overhead")["ratios"].items()
    found = {f"{row['cpu']['median']:.2f}" for key, row in rows if key == name or (ask and key.startswith(f"{name}, "))}
    return " to ".join(sorted({min(found), max(found)}))


def _ratios(ask: str, *names: str) -> str:
    found = sorted((_ratio(name, ask), name) for name in names)
    return ", ".join(f"{named(name)} {ratio}" for ratio, name in found)


def overhead_sentence() -> str:
    """State the cost of a first-try success, for the README."""
    return (
        f"A request that succeeds at once takes {_ratio('ours', '')} times the CPU time of a plain `HTTPAdapter`, on "
        f"loopback over a kept connection; {_ratio('ours, operation_timeout', '')} with `operation_timeout`, "
        f"{_ratio('ours', 'new')} over a new connection, {_ratio(*DEAREST)} with an `ErrorInBodyClassifier`. "
        f"Others: {_ratios('', *PEERS)}."
    )


def overhead_table() -> str:
    """Tabulate the cost of requests that succeed at once, beside that of peers which do the same."""
    found = result("overhead")
    rows = [(what, _ratio(own, ask), _ratios(ask, *peers)) for what, own, ask, peers in COSTS]
    for what, kind, own in (("loading", "loading", "ours, the first mount"), ("memory of a session", "memory", "ours")):
        others = ", ".join(f"{name} {value:.0f}" for name, value in found[kind].items() if not name.startswith("ours"))
        rows.append((f"{what}, {'KiB' if kind == 'memory' else 'ms'}", f"{found[kind][own]:.0f}", others))
    return table(("CPU time over that of a plain `HTTPAdapter`", "`RetryAdapter`", "others"), rows)


def outage_caption() -> str:
    """The picture's figures in two sentences, for the README."""
    found = result("picture")
    figures = {name: line["figures"] for name, line in found["lines"].items()}
    cost = {name: f"{named(name)} {each['amplification']:.2f}" for name, each in figures.items()}
    good = {name: f"{named(name)} {each['success after']:.0f} %" for name, each in figures.items()}
    others = ("urllib3 Retry", "tenacity", "stamina", "AWS 2.1", "no retry")
    return (
        f"While the service is down, an operation sends {figures['default']['amplification']:.2f} requests with "
        f"{named('default')} ({', '.join(cost[name] for name in others)}). In the {found['setting']['after']:g} s "
        f"after it, {figures['default']['success after']:.0f} % of the operations succeed "
        f"({', '.join(good[name] for name in others)})."
    )


def outage_success() -> str:
    """Return the cost of a short restart, in a sentence for the README."""
    found = result("outages")["restart, 3 s"]
    good = {name: f"{each['success']:.0f} %" for name, each in found.items()}
    return (
        f"During a restart of three seconds, in which connections are refused, {good['default']} of the operations "
        f"succeed with `RetryAdapter()`, {good['urllib3 Retry']} with urllib3's `Retry`, {good['stamina']} with "
        f"stamina and {good['tenacity']} with tenacity."
    )


def _faults() -> str:
    found = result("faults")
    clients = Counter[str]()
    harm, asked = Counter[str](), Counter[str]()
    for fault, row in found["outcomes"].items():
        for client, outcomes in row.items():
            outcome = worst(outcomes)
            asked[client] += 1
            clients[client] += outcome == found["best"][fault]
            harm[client] += outcome in HARM and outcome != found["best"][fault]
    said = [f"{named(name)} {clients[name]} of {asked[name]}, {harm[name]}" for name in asked if name != "requests"]
    return "; ".join(said)


def _limits() -> str:
    lines = result("rate-limits")["lines"]
    return f"{sum(line['fine'] for line in lines)} of {len(lines)}"


def _addresses() -> str:
    rows = [row for row in result("addresses")["rows"] if row["sick"]]
    clients = [name for name, cell in rows[0].items() if isinstance(cell, dict)]
    return (
        ", ".join(f"{named(name)} {sum(row[name]['success'] == 1 for row in rows)}" for name in clients)
        + f" of {len(rows)}"
    )


def _restart() -> str:
    rows = result("outages")["restart, 3 s"]
    shown = [name for name in rows if name != "no retry" and "clients" not in name]
    return ", ".join(f"{named(name)} {rows[name]['success']:.0f}" for name in shown)


def _picture() -> str:
    lines = result("picture")["lines"]
    said = []
    for name, line in lines.items():
        told = line["figures"]
        said.append(f"{named(name)} {told['amplification']:.2f}, {told['success after']:.0f}")
    return "; ".join(said)


def _seeded() -> str:
    found = result("seeded")
    by = Counter(row["by"][0] for row in found if row["by"])
    return f"{by.total()} of {len(found)}: " + ", ".join(f"{count} by `{check}`" for check, count in by.most_common())


ROWS: tuple[tuple[str, Callable[[], str], str], ...] = (
    ("twenty faults: ended as well as can be, did harm", _faults, "fault_table"),
    ("a restart of 3 s: success, %", _restart, "outage_loopback"),
    ("silence for 10 s: requests per operation, success in the 30 s after it, %", _picture, "outage_picture"),
    ("names with sick addresses: cases in which all succeed", _addresses, "addresses"),
    ("announced rate limits: bounds that are kept", _limits, "rate_limits"),
    ("bugs put into a copy, and found by the checks", _seeded, "seeded"),
)


def results_table() -> str:
    """Tabulate the results that matter, and how to get each."""
    return table(("measured", "result", "by"), [(what, make(), f"`benchmarks.{by}`") for what, make, by in ROWS])


def machine() -> str:
    """Say on which machines it was measured, and when."""
    found = [document(name) for name in PARTS]
    kinds = {key: {str(each["machine"][key]) for each in found} for key in ("processor", "cores", "system", "python")}
    words = {key: " or ".join(sorted(values)) for key, values in kinds.items()}
    days = sorted(each["date"] for each in found)
    return "{processor}, {cores} cores, {system}, {python}; ".format(**words) + f"{days[0]} to {days[-1]}."


def not_best() -> str:
    """Tabulate results in which another client did better, by five points or more where they are percentages."""
    rows = [*_safer(), *_outlived()]
    return table(("measured", "another client", "`RetryAdapter()`"), rows)


def _safer() -> Iterator[tuple[str, str, str]]:
    for fault, row in result("faults")["outcomes"].items():
        outcomes = {name: OUTCOMES.index(worst(each)) for name, each in row.items()}
        better = [name for name, each in outcomes.items() if each < outcomes["ours"]]
        if better:
            yield fault, f"{OUTCOMES[min(outcomes.values())]} with {', '.join(better)}", OUTCOMES[outcomes["ours"]]


def _outlived() -> Iterator[tuple[str, str, str]]:
    for trouble, rows in result("outages").items():
        for key, words in (("success", "while it lasts"), ("success after", "after it")):
            best = max((name for name in rows if not name.startswith(OWN)), key=lambda name: rows[name][key])
            behind = []
            for mine in ("default", "default, 400 clients"):
                if mine in rows and rows[mine][key] < rows[best][key] - 5:
                    of = mine.removeprefix("default").removeprefix(", ")
                    behind.append(f"{rows[mine][key]:.0f} %" + (f" ({of})" if of else ""))
            if behind:
                yield f"{trouble}: success {words}", f"{rows[best][key]:.0f} % with {best}", ", ".join(behind)


def web_service() -> str:
    """Tabulate what the users of a web service see in an outage."""
    rows = []
    for way, by in result("web-service").items():
        cells = (" / ".join(f"{by[fault][name]:g}" for fault in ("503", "silence")) for name in WEB)
        rows.append((way, *cells))
    return table(("an outage by 503 / by silence", *WEB.values()), rows)


def fan_out() -> str:
    """State what comes of threads that send one request each over a restart: the worst of all sizes and lengths."""
    head, *rows = result("outages-fan-out")["fan-out"]
    said = []
    for name, *cells in list(zip(head, *rows, strict=True))[1:3]:
        success, medians, sent = (
            [float(number) for text in texts for number in re.findall(r"[\d.]+", text)]
            for texts in zip(*(text.split("; ") for text in cells), strict=True)
        )
        found = f"{min(success):.0f} % succeed, half of them within {max(medians):.1f} s after the service is back"
        said.append(f"With {name}, {found}, and each sends at most {max(sent):.1f} requests.")
    sizes = f"{rows[0][0]} to {rows[-1][0]} threads"
    return f"{sizes} make one call each during a restart of 1 to 4.8 s. {' '.join(said)}"


def weak_corners() -> str:
    """Where waiting is worst, as the simulation says."""
    head, *rows = result("waiting")["weak"]
    return table(tuple(head), [tuple(row) for row in rows if row[0] in WEAK])


BLOCKS: dict[str, Callable[[], str]] = {
    "web-service": web_service,
    "overhead-sentence": overhead_sentence,
    "overhead": overhead_table,
    "outage-caption": outage_caption,
    "outage-success": outage_success,
    "results": results_table,
    "not-best": not_best,
    "machine": machine,
    "fan-out": fan_out,
    "weak-corners": weak_corners,
}
"""By name of the block."""
