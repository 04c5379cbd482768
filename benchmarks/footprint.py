"""The footprint of the package: time to import it, memory of a scope, and the effect of many origins on a send.

    python -m pip install -r benchmarks/requirements.txt
    python benchmarks/footprint.py [--quick] [--json FILE]

Measured:

1. import: CPU time above `import requests`, each in a process of its own, the subjects by turns: of
   `import requests_smithy_retry`, and of that and the first `mount`, which loads what the package hands on
   lazily; peers beside them; what `run` adds to a program, with requests and without. Which modules are the
   heaviest, by `python -X importtime`;
2. scope: the bytes that tracemalloc sees for each of 1,000 origins, after enough successes that a scope's records
   are at their longest, with and without a retry before;
3. origins: counted bytecodes that a send adds to a plain adapter, to an origin that was seen before, to a new
   one, and to a new one while all 1,024 slots are taken (the median and the dearest of 80 newcomers); C calls
   likewise; and the CPU time of 10,000 origins, one send each, as a ratio to a plain adapter's.

The transport is a fake without sockets, so that what is added shows: a real `session.get` executes about
31,000 bytecodes, this one about 1,700. Not measured: anything on a wire, threads, resident memory. Counts and bytes
are the same on every machine with the same Python; times are not. Where a limit does not hold, `over_limit` says so.
"""

from __future__ import annotations

from typing import Any

import command
import import_cost
import scope_cost
from machine import describe, forget_settings


def broken_limits(result: dict[str, Any]) -> list[str]:
    """Where a limit does not hold, in words."""
    broken: list[str] = []
    for name, limit in import_cost.LIMITS_MS.items():
        figure = result["import"][f"{name}_ms"]
        took = figure["median"] if isinstance(figure, dict) else figure
        if took > limit:
            broken.append(f"{name} takes {took} ms, {limit:g} allowed")
    for name, value in result["scope"].items():
        if name.endswith("_bytes") and not name.startswith("limit") and value > scope_cost.LIMIT_BYTES:
            broken.append(f"{name} is {value}")
    return broken


def main() -> int:
    """Measure, print, and write what was asked for."""
    parser = command.parser(__doc__, "fewer rounds and no CPU ratios, some seconds")
    arguments = parser.parse_args()
    forget_settings()
    result = {
        "machine": describe(),
        "import": import_cost.import_times(1 if arguments.quick else 21),
        "scope": scope_cost.scope_memory(50 if arguments.quick else 1000),
        "origins": scope_cost.origins(0 if arguments.quick else 5),
    }
    for part, figures in result.items():
        print(part)
        for name, value in figures.items():
            print(f"  {name:32} {value}")
    result["scope"]["over_limit"] = "; ".join(broken_limits(result)) or "nothing"
    print(f"over the limit: {result['scope']['over_limit']}")
    command.write(result, arguments.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
