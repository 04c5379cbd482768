"""The measures of what people ask for, with one command.

    python -m benchmarks.asked [--quick] [--json FILE] [PART ...]

Each line has what is wanted and what was got. Exit status 1: something wanted was missed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from .. import command
from ..command import Line
from . import chain, lid, spread, workers

PARTS: dict[str, Callable[[bool], list[Line]]] = {
    "lid": lid.measure,
    "spread": spread.measure,
    "workers": workers.measure,
    "chain": chain.measure,
}
"""By name; given True, a part measures less."""


def main() -> int:
    parser = command.parser(__doc__, "a tenth of the work")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    given = parser.parse_args()
    found: dict[str, list[Line]] = {}
    for name in given.parts or PARTS:
        found[name] = PARTS[name](given.quick)
        rows = [(line.what, line.wanted, line.got, "" if line.fine else "MISSED") for line in found[name]]
        print(command.table((name, "wanted", "got", ""), rows), end="\n\n", flush=True)
    command.write({name: [line._asdict() for line in lines] for name, lines in found.items()}, given.json)
    return int(any(not line.fine for lines in found.values() for line in lines))


if __name__ == "__main__":
    sys.exit(main())
