"""The demo, which a newcomer runs first: plain requests, urllib3's Retry and RetryAdapter under the same failures.

    python3 dev.py demo [--quick] [--json FILE]

One operation of each client meets each fault of the fault table, on real sockets; then ten adapters of each client call
a service that restarts, and one that is asked for three times as much for a while. That takes less than half a minute.
Exit status 1: RetryAdapter took a wrong body, or had a request applied twice, where a careful client would not.
"""

from __future__ import annotations

import time
from typing import Any

from . import command, fault_table
from .faults import FAULTS, TWICE, WRONG
from .outage_client import TROUBLES, Episode, figures
from .outage_loopback import play

OURS = "RetryAdapter()"
CLIENTS = {"requests": "requests", "urllib3's Retry(2)": "urllib3, any method", OURS: "ours"}
"""The clients that meet the faults, as the fault table calls them."""
POLICIES = {"requests": "no retry", "urllib3's Retry(2)": "urllib3 Retry", OURS: "default"}
"""The same that meet outages, as those call them."""
FIRST = OURS, "urllib3's Retry(2)", "requests"
"""The order in which sentences name them."""
BOUND = 5.0
"""Seconds after which an operation counts as hanging."""
SHORT = {"before": 2.0, "lasts": 3.0, "after": 5.0}
"""Seconds of an outage, and before and after it."""
NOTE = (
    "With operation_timeout RetryAdapter() ends a body that drips, and with an idempotency key it sends a POST again. "
    "What no client can know: that a body without a length was cut, or has another one than its head says."
)
QUICK = "503 once", "body cut", "POST applied, then a reset"
SHOWN = {
    "success": "begun meanwhile: success, %",
    "success after": "begun afterwards: success, %",
    "amplification": "requests per operation, meanwhile",
    "peak": "most requests in a second, of what it can do",
}


def meet_faults(faults: list[str]) -> dict[str, dict[str, str]]:
    """Return each client's outcome for each fault."""
    cells = fault_table.measure(faults, list(CLIENTS.values()), rounds=1, bound=BOUND)
    return {
        fault: {name: fault_table.shown(row[client]["outcomes"]) for name, client in CLIENTS.items()}
        for fault, row in cells.items()
    }


def meet_outages(**seconds: float) -> dict[str, dict[str, dict[str, float]]]:
    """Return each client's figures in each trouble."""
    episodes = {
        (trouble, name): Episode(policy, trouble, threads=200, **seconds)  # type: ignore[arg-type]
        for trouble in ("restart, 3 s", "load x3")
        for name, policy in POLICIES.items()
    }
    found: dict[str, dict[str, dict[str, float]]] = {}
    for ((trouble, name), episode), counts in zip(episodes.items(), play([*episodes.values()], 6), strict=True):
        found.setdefault(trouble, {})[name] = figures(episode, counts)
    return found


def harm(outcomes: dict[str, dict[str, str]], client: str) -> list[str]:
    """Return the faults in which a client harmed somebody, without need."""
    return [
        fault for fault, row in outcomes.items() if row[client] in (TWICE, WRONG) and row[client] != FAULTS[fault].best
    ]


def sentences(outcomes: dict[str, dict[str, str]], outages: dict[str, dict[str, dict[str, float]]]) -> list[str]:
    """Return the result, a sentence for the faults and for each trouble, which says where plain requests did better."""
    ended = [
        f"{name} {sum(row[name] == FAULTS[fault].best for fault, row in outcomes.items())} "
        f"(with {len(harm(outcomes, name))} wrong bodies or repetitions)"
        for name in FIRST
    ]
    said = [f"Of {len(outcomes)} faults, so many ended as well as can be: {', '.join(ended)}."]
    for trouble, found in outages.items():
        through = [
            f"{name} {found[name]['success']:.0f} %, with {found[name]['amplification']:.2f} requests each"
            for name in FIRST
        ]
        better = [
            f"{SHOWN[key]} {found['requests'][key]:.0f} over {found[OURS][key]:.0f}"
            for key in ("success", "success after")
            if found["requests"][key] > found[OURS][key]
        ]
        worse = f"; plain requests did better ({', '.join(better)})" if better else ""
        said.append(f"{trouble.capitalize()}, calls that came through: {'; '.join(through)}{worse}.")
    return said


def main(arguments: list[str] | None = None) -> int:
    """Run, print, and write what was asked for."""
    options = command.parser(__doc__, "three faults, outages of a second").parse_args(arguments)
    command.forget_settings()
    began = time.monotonic()
    print("Half a minute ...", flush=True)
    outcomes = meet_faults([*QUICK] if options.quick else [*FAULTS])
    outages = meet_outages(**(dict.fromkeys(SHORT, 1.0) if options.quick else SHORT))
    print("", *sentences(outcomes, outages), "", sep="\n")
    print(command.table(["the server's fault", *CLIENTS], [[fault, *row.values()] for fault, row in outcomes.items()]))
    for name in CLIENTS:
        print(f"Harm without need, {name}: {', '.join(harm(outcomes, name)) or 'none'}")
    print(NOTE)
    for trouble, found in outages.items():
        load = f"{TROUBLES[trouble].part:.0%} of what it can do"
        lines = [[title, *(f"{each[name]:.2f}" for each in found.values())] for name, title in SHOWN.items()]
        print("", command.table([f"{trouble}, asked for {load}", *found], lines), sep="\n")
    print(f"\n{time.monotonic() - began:.0f} s")
    result: dict[str, Any] = {"faults": outcomes, "outages": outages}
    command.write(result, options.json)
    return int(bool(harm(outcomes, OURS)))


if __name__ == "__main__":
    raise SystemExit(main())
