"""The command: ``python3 dev.py demo``, or ``python -m benchmarks.demo`` where the package is installed.

A server on loopback produces faults on real sockets. The same operations go through plain requests, urllib3's Retry and
RetryAdapter, each in a process of its own: first each fault by itself, then a server that restarts and one that is
overloaded. It takes less than 30 seconds, on a busy machine a minute at most. The exit status is 0 if RetryAdapter
finished all of its operations without a wrong body; otherwise 1.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib import metadata
from typing import Any

from .clients import CLIENTS, CROWD_CLIENTS
from .contest import Setting, contend, crowd
from .plan import FEWEST
from .report import column, show

MOST = 150
"""The most operations that fit into the time limit."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do a run, print its report, and return the exit status."""
    parser = argparse.ArgumentParser("python -m benchmarks.demo", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else")
    parser.add_argument(
        "--operations", type=operations, default=Setting.operations, help="for each client (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=Setting.seed, help="of the order and the bodies (%(default)s)")
    given = parser.parse_args(arguments)
    if not given.json:
        print(f"{given.operations} operations for each client, and two scenes: less than 30 seconds ...", flush=True)
    document = run(Setting(seed=given.seed, operations=given.operations))
    print(json.dumps(document, indent=2) if given.json else "\n".join(show(document)))
    return 0 if document["ok"] else 1


def operations(text: str) -> int:
    """Read the number of operations.

    :raises argparse.ArgumentTypeError: if it is out of range.
    """
    if not (text.isdecimal() and FEWEST <= int(text) <= MOST):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {FEWEST} to {MOST}")
    return int(text)


def run(setting: Setting) -> dict[str, Any]:
    """Do a run, with real sockets and real child processes, and return the document that ``--json`` prints."""
    started = time.monotonic()
    with ThreadPoolExecutor(max(1, len(setting.scenes)) * len(CROWD_CLIENTS)) as threads:
        results = threads.map(contend, CLIENTS, [setting] * len(CLIENTS))
        columns = [column(*each) for each in zip(CLIENTS, results, strict=True)]
        meetings = [
            (scene, threads.map(crowd, CROWD_CLIENTS, [scene] * len(CROWD_CLIENTS))) for scene in setting.scenes
        ]
        scenes = {scene.name: {**asdict(scene), "clients": list(crowds)} for scene, crowds in meetings}
    packages = ("requests", "urllib3", "requests-smithy-retry")
    return {
        "seed": setting.seed,
        "operations": setting.operations,
        "patience": setting.patience,
        "seconds": round(time.monotonic() - started, 3),
        "versions": {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}},
        "clients": columns,
        "scenes": scenes,
        "ok": not (columns[-1]["wrong"] or columns[-1]["missing"]),
    }


if __name__ == "__main__":
    raise SystemExit(main())
