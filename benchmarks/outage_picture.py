"""The run behind the README's picture: ten seconds in which a service answers nothing, before, during and after.

    python -m pip install -r benchmarks/requirements.txt
    python benchmarks/outage_picture.py [--quick] [--json FILE]

One episode per line of the picture (`outage_client.py`): ten clients of 40 threads, 35 operations a second, a service
that can do 50, a time-out of a second. All run at the same time. About one minute. `plots.py` draws it.
"""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from typing import Any

import command
from outage_client import MOST_LATE, POLICIES, TIMEOUT, Episode, figures
from outage_loopback import play_well

LINES = ("no retry", "urllib3 Retry", "tenacity", "stamina", "AWS 2.1", "default")
"""The policies: every contender, and ours without an option."""
WHOLE = Episode("no retry", "hole, 10 s", before=10.0, lasts=10.0, after=30.0)
QUICK = replace(WHOLE, before=1.0, lasts=2.0, after=1.0)


def measure(setting: Episode) -> dict[str, Any]:
    """Every line's counts per second, and its figures."""
    episodes = [replace(setting, policy=policy) for policy in LINES]
    played = play_well(episodes, len(LINES))
    lines = {
        episode.policy: {**counts, "figures": figures(episode, counts), "valid": counts["late"] <= MOST_LATE}
        for episode, counts in zip(episodes, played, strict=True)
    }
    return {
        "setting": {**asdict(setting), "timeout": TIMEOUT},
        "setup": {name: POLICIES[name][0] for name in LINES},
        "lines": lines,
    }


def main() -> int:
    """Play, print, and write what was asked for. Exit status 1: an episode is invalid."""
    parser = command.parser(__doc__, "an outage of two seconds: some seconds")
    options = parser.parse_args()
    began = time.monotonic()
    result = measure(QUICK if options.quick else WHOLE)
    for name, line in result["lines"].items():
        validity = "" if line["valid"] else "   invalid: the load generator was late"
        told = ", ".join(f"{what} {value:.2f}" for what, value in line["figures"].items())
        print(f"{name:14} {told}{validity}")
    print(f"\n{time.monotonic() - began:.1f} s")
    command.write(result, options.json)
    return int(not all(line["valid"] for line in result["lines"].values()))


if __name__ == "__main__":
    raise SystemExit(main())
