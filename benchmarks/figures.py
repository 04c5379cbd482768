"""The figures of the design page: how far one retry travels, how large the house is, and what a request costs.

    python -m benchmarks.figures [--quick] [--json FILE]

One retry is a 503 and then a 200 by `RetryAdapter()`, warm, over loopback; eight threads that wait are refused until
the bucket is empty, and go on when a success releases them. A *file* is one of the package whose code ran, a *call* any
call of a function of it, a *move* one into another file; that a generator goes on is neither. Of the threads, the files
are those of all, moves and calls those of the one that made most. Sizes are lines, empty ones and comments included;
the lines without features leave out what the table of `docs/explanation/design.md` names. A test file reaches inside if
it names a module of the package that is not one of `PUBLIC`. CPU time is what `benchmarks.overhead` measures, that of
loading what a fresh process takes beyond importing `requests`.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any

import requests_smithy_retry
from requests_smithy_retry import RetryAdapter
from requests_smithy_retry.testing import FaultServer, Reply

from . import command, overhead

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(requests_smithy_retry.__file__).parent
PUBLIC = frozenset({"testing", "policy", "smithy", "features.redis", "otel", "prometheus"})
"""The modules from which programs import, beside the package itself."""
FEATURES = re.compile(r"^\| (`[^|]*) \|", re.MULTILINE)
THREADS, RETRIES = 8, 2
"""The threads that wait, and the retries that the bucket pays for before."""
IMPORTS = re.compile(r"^\s*(?:from|import) requests_smithy_retry\.([\w.]+)", re.MULTILINE)
PAIRED = ("control", "ours", "ours, listener", "ours, operation_timeout", "control, new", "ours, new")


class Walk:
    """Follows the calls into the files of the package."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.generators: set[FrameType] = set()
        self.calls = self.moves = 0

    def follow(self, walk: Callable[[], object]) -> dict[str, int]:
        """Run a function, and return what was counted."""
        sys.setprofile(self._note)
        try:
            walk()
        finally:
            sys.setprofile(None)
        return {"files": len(self.files), "moves": self.moves, "calls": self.calls}

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_code.co_filename
        if event != "call" or frame in self.generators or not self._is_ours(frame):
            return
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            self.generators.add(frame)
        self.files.add(name)
        self.calls += 1
        caller = frame.f_back
        while caller is not None and not self._is_ours(caller):
            caller = caller.f_back
        self.moves += caller is not None and caller.f_code.co_filename != name

    def _is_ours(self, frame: FrameType) -> bool:
        return frame.f_code.co_filename.startswith(str(PACKAGE))


def one_retry(walk: Walk) -> dict[str, int]:
    """Return files, moves and calls of one retry."""
    with FaultServer([Reply(503), Reply(200)] * 3) as server, command.session_of(RetryAdapter()) as session:
        for _ in range(2):  # so that nothing is imported on the way, and the connection is there
            session.get(server.url)
        return walk.follow(lambda: session.get(server.url))


def eight_that_wait(walks: list[Walk]) -> dict[str, int]:
    """Return files, moves and calls of threads that wait for a service that is down."""
    replies = [Reply(200), *[Reply(503)] * (THREADS + RETRIES), *[Reply(200)] * THREADS]
    with FaultServer(replies) as server, command.session_of(RetryAdapter()) as session:
        session.get(server.url)
        threads = [Thread(target=walk.follow, args=(partial(session.get, server.url),)) for walk in walks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    longest = max(walks, key=lambda walk: walk.moves)
    return {"files": len(files_of(walks)), "moves": longest.moves, "calls": longest.calls}


def files_of(walks: list[Walk]) -> set[str]:
    """Return the files of several walks."""
    return {file for walk in walks for file in walk.files}


def ways() -> dict[str, Any]:
    """Return what both ways take, and the files of the two together."""
    retry, walks = Walk(), [Walk() for _ in range(THREADS)]
    found = {"one retry": one_retry(retry), "eight that wait": eight_that_wait(walks)}
    return {**found, "files of both": len(files_of([retry, *walks]))}


def _lines(files: list[Path]) -> int:
    return sum(file.read_bytes().count(b"\n") for file in files)


def features(root: Path = ROOT) -> set[Path]:
    """Return the modules of the features that the design page lists."""
    page = (root / "docs/explanation/design.md").read_text(encoding="utf-8")
    table = page.partition("## The features")[2].partition("\n## ")[0]
    places = [root / PACKAGE.name / name for cell in FEATURES.findall(table) for name in re.findall(r"`([^`]+)`", cell)]
    return {file for place in places for file in (place.with_suffix(".py"), *place.rglob("*.py")) if file.exists()}


def sizes(root: Path = ROOT) -> dict[str, Any]:
    """Return the lines of the package, its modules, names and options, and the lines of tests and of benchmarks."""
    from requests_smithy_retry.config.retry_config import OPTIONS

    package, tests, own = (sorted((root / name).rglob("*.py")) for name in (PACKAGE.name, "tests", "benchmarks"))
    cases = [file for file in tests if file.name.startswith("test_")]
    inside = [file for file in cases if reached(file.read_text(encoding="utf-8"))]
    return {
        "package, lines": _lines(package),
        "package, modules": len(package),
        "without features, lines": _lines([file for file in package if file not in features(root)]),
        "names at the top level": len(requests_smithy_retry.__all__),
        "options": len(OPTIONS),
        "tests, lines": _lines(tests),
        "test files": len(cases),
        "of them reach inside, %": round(100 * len(inside) / len(cases)),
        "benchmarks, lines": _lines(own),
    }


def reached(text: str) -> set[str]:
    """Return the modules that a file imports and that are not public."""
    return set(IMPORTS.findall(text)) - PUBLIC


def main() -> int:
    """Count, measure, print, and write what was asked for."""
    options = command.parser(__doc__, "three rounds: no figures of time").parse_args()
    command.forget_settings()
    rounds = 3 if options.quick else 40
    ratios = overhead.measure(PAIRED, rounds, overhead.PAIRS)
    found = {
        **ways(),
        "sizes": sizes(),
        "import and first mount, ms": overhead.loading(rounds)["ours, the first mount"],
        "CPU over plain": {name: each["cpu"] for name, each in ratios.items()},
    }
    for name, value in found.items():
        print(f"{name}: {value}")
    command.write(found, options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
