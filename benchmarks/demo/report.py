"""The verdict on each operation, from the reports of both ends, and the tables of their sums."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .clients import CROWD_CLIENTS, TIMEOUT, Client
from .plan import FAULTS, Operation, digest

EMPTY = digest(b"")
Values = dict[str, Any]
"""A part of the document that ``--json`` prints."""


class Verdict(enum.Enum):
    """The result of an operation in a word."""

    SUCCEEDED = "succeeded"
    """The client got a success, and both ends have the same bytes."""
    FAILED = "failed"
    """The client got a status of 400 or above, or an exception."""
    WRONG = "wrong"
    """One end accepted other bytes than the other end sent."""
    ASLEEP = "asleep"
    """The client did nothing for so long that it was ended."""
    MISSING = "missing"
    """The operation was not made."""


@dataclass(frozen=True)
class Result:
    """The result of an operation."""

    operation: Operation
    verdict: Verdict
    requests: int
    seconds: float = 0.0
    is_empty: bool = False


def judge(
    operation: Operation,
    sent: str,
    accepted: Sequence[str],
    requests: int,
    seconds: float,
    status: int | None = None,
    body: str = "",
    otherwise: Verdict = Verdict.FAILED,
) -> Result:
    """Judge an operation by the reports of both ends; ``otherwise`` is the verdict if it got no success."""
    went_well = status is not None and status < 400
    wrong = [each for each in accepted if each != sent]
    if went_well and body != digest(operation.download()):
        wrong.append(body)
    verdict = Verdict.WRONG if wrong else Verdict.SUCCEEDED if went_well else otherwise
    return Result(operation, verdict, requests, seconds, EMPTY in wrong)


def column(client: Client, results: Sequence[Result]) -> Values:
    """Return one client's column of the report, as plain values for JSON."""
    begun = [result.requests for result in results if result.verdict is not Verdict.MISSING]
    slowest = max(results, key=lambda result: result.seconds)
    return {
        "client": client.name,
        "setup": client.setup,
        "operations": len(results),
        **counts(results),
        "empty": sum(result.is_empty for result in results),
        "requests_per_operation": round(sum(begun) / len(begun), 3) if begun else 0.0,
        "most_requests": max(result.requests for result in results),
        "slowest": {
            "seconds": round(slowest.seconds, 3),
            "fault": slowest.operation.fault.name,
            "still_asleep": slowest.verdict is Verdict.ASLEEP,
        },
        "faults": {
            fault.name: counts(result for result in results if result.operation.fault is fault) for fault in FAULTS
        },
    }


def counts(results: Iterable[Result]) -> dict[str, int]:
    """Return the number of operations for each verdict."""
    verdicts = Counter(result.verdict for result in results)
    return {verdict.value: verdicts[verdict] for verdict in Verdict}


def sentences(document: Values) -> Iterator[str]:
    """Yield the result in a sentence for the faults and for each scene, which says where plain requests did better."""
    ours = document["clients"][-1]
    others = " and ".join(f"{each['client']} {each['succeeded']}" for each in document["clients"][:-1])
    yield (
        f"Of {document['operations']} operations, each under a fault, {ours['client']} finished {ours['succeeded']} "
        f"well, and had {ours['wrong']} wrong bodies; {others}."
    )
    for scene in document["scenes"].values():
        plain, *_, mine = scene["clients"]
        parts = {"begun meanwhile": "in_trouble", "before and after": "otherwise"}
        said = [
            f"{mine[f'{key}_done']} of {mine[key]} {when} (plain requests {plain[f'{key}_done']})"
            for when, key in parts.items()
        ]
        worse = [when for when, key in parts.items() if plain[f"{key}_done"] > mine[f"{key}_done"]]
        better = f": plain requests did better with those {' and those '.join(worse)}" if worse else ""
        yield f"{scene['label']}: {mine['client']} finished {' and '.join(said)}{better}."


def show(document: Values) -> Iterator[str]:
    """Yield the lines of the report."""
    columns = document["clients"]
    yield "\n" + "\n".join(sentences(document))
    yield "\nEach fault, and the operations that succeeded despite it:\n"
    names = [each["client"] for each in columns]
    yield from table(names, {fault.label: [cell(each["faults"][fault.name]) for each in columns] for fault in FAULTS})
    yield f"{document['operations']} operations for each client:\n"
    yield from table(names, main_rows(columns, document["patience"]))
    for scene in document["scenes"].values():
        usual = f"{scene['users']} clients make {scene['rate']:g} operations a second"
        yield f"{scene['label']}. {usual}; the server can do {scene['capacity']:g}.\n"
        names = [each["client"].removeprefix("urllib3 ") for each in scene["clients"]]
        yield from table(names, scene_rows(scene["clients"]))
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    yield f"Measured just now, in {document['seconds']:.0f} s: {versions}; seed {document['seed']}."
    yield f"Every call has timeout={TIMEOUT}. The adapters:"
    for client in CROWD_CLIENTS:
        yield f"  {client.name}: {client.setup}"
    yield (
        "Retry(2) makes as many attempts as RetryAdapter, of which those do not count that fail while nobody succeeds; "
        "Retry(5) goes on for about as long. A generator cannot be read twice: RetryAdapter sends it once and returns "
        "the 503."
    )


def main_rows(columns: Sequence[Values], patience: float) -> dict[str, list[str]]:
    """Return the rows of the main table."""
    rows = {
        "operations that succeeded": [f"{each['succeeded']}" for each in columns],
        "failed, and the caller was told": [f"{each['failed']}" for each in columns],
        "wrong or empty bodies": [
            f"{each['wrong']}" + (f" ({each['empty']} empty)" if each["empty"] else "") for each in columns
        ],
        f"still asleep after {patience:g} s": [f"{each['asleep']}" for each in columns],
        "requests per operation": [f"{each['requests_per_operation']:.2f}" for each in columns],
        "most for one operation": [f"{each['most_requests']}" for each in columns],
        "slowest operation": [
            ("> {seconds:.1f} s, asleep" if each["slowest"]["still_asleep"] else "{seconds:.1f} s").format(
                **each["slowest"]
            )
            for each in columns
        ],
    }
    if any(each["missing"] for each in columns):
        rows["not done"] = [f"{each['missing']}" for each in columns]
    return rows


def scene_rows(columns: Sequence[Values]) -> dict[str, list[str]]:
    """Return the rows of the table of a scene: the outcome, and the load on the server."""
    texts = {
        "done, begun meanwhile": "{in_trouble_done}/{in_trouble}",
        "done, before and after": "{otherwise_done}/{otherwise}",
        "last failure afterwards": "{well_after:.1f} s",
        "slowest operation": "{slowest:.1f} s",
        "requests per operation": "{requests_per_operation:.2f}",
        "most requests in a second": "{peak}",
    }
    return {label: [text.format(**each) for each in columns] for label, text in texts.items()}


def cell(numbers: dict[str, int]) -> str:
    """Return one client's result for one fault, such as ``3/4`` or ``0/4, 4 wrong``."""
    worse = [f"{numbers[name]} {name}" for name in ("wrong", "asleep") if numbers[name]]
    return ", ".join([f"{numbers['succeeded']}/{sum(numbers.values())}", *worse])


def table(names: Sequence[str], rows: dict[str, list[str]]) -> Iterator[str]:
    """Yield the lines of a table, with an empty line after it."""
    lines = [["", *names], *([label, *cells] for label, cells in rows.items())]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    for label, *cells in lines:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        yield "  " + "  ".join([label.ljust(widths[0]), *padded]).rstrip()
    yield ""
