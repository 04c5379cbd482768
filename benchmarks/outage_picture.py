"""The run behind the README's picture: 30 seconds in which a service answers nothing, before, during and after.

    python -m pip install -r benchmarks/requirements.txt
    python benchmarks/outage_picture.py [--quick] [--json FILE]

One episode per line of the picture (`outage_client.py`): 400 threads, in ten clients of 40 or in 400 clients of one, 70
operations a second, a service that can do 100, a time-out of half a second. A policy without a quota has nothing that
threads share, so it is played once. Three episodes run at the same time. About two and a half minutes. `plots.py` draws
it.
"""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from typing import Any

import command
from outage_client import MOST_LATE, POLICIES, TIMEOUT, Episode, figures
from outage_loopback import play

LINES = {
    "no retry": ("no retry", 10),
    "urllib3 Retry": ("urllib3 Retry", 10),
    "standard": ("standard", 10),
    "payoff": ("payoff", 10),
    "standard, 400 clients": ("standard", 400),
    "payoff, 400 clients": ("payoff", 400),
}
"""By name: the policy, and how many adapters the threads share."""
WHOLE = Episode("", "time-out", before=10.0, lasts=30.0, after=30.0)
QUICK = replace(WHOLE, before=1.0, lasts=1.0, after=1.0, threads=100)
AT_ONCE = 3


def measure(setting: Episode) -> dict[str, Any]:
    """Every line's counts per second, and its figures."""
    episodes = [replace(setting, policy=policy, clients=clients) for policy, clients in LINES.values()]
    played = play(episodes, AT_ONCE)
    lines = {
        name: {**counts, "figures": figures(episode, counts), "valid": counts["late"] <= MOST_LATE}
        for name, episode, counts in zip(LINES, episodes, played, strict=True)
    }
    return {
        "setting": {**asdict(setting), "timeout": TIMEOUT},
        "setup": {name: POLICIES[policy][0] for name, (policy, _) in LINES.items()},
        "lines": lines,
    }


def main() -> int:
    """Play, print, and write what was asked for. Exit status 1: an episode is invalid."""
    parser = command.parser(__doc__, "an outage of a second: some seconds")
    options = parser.parse_args()
    began = time.monotonic()
    result = measure(QUICK if options.quick else WHOLE)
    for name, line in result["lines"].items():
        validity = "" if line["valid"] else "   invalid: the load generator was late"
        told = ", ".join(f"{what} {value:.2f}" for what, value in line["figures"].items())
        print(f"{name:22} {told}{validity}")
    print(f"\n{time.monotonic() - began:.1f} s")
    command.write(result, options.json)
    return int(not all(line["valid"] for line in result["lines"].values()))


if __name__ == "__main__":
    raise SystemExit(main())
