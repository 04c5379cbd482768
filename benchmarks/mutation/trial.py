"""Run tests against mutants, each in a child process: killed, survived or timed out.

The tests are collected once; then a child is forked for each mutant, in which the mutated text is put into the module
(``transplant.py``). What survives that is tried with the module imported anew, by a child of a process that has
imported everything but the package. Quick tests come first. Hypothesis draws the same examples in each child, and keeps
nothing.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import NoReturn

import pytest
from transplant import transplant

PACKAGE = "requests_smithy_retry"
PRELOADED = (
    *("hypothesis", "responses", "requests_toolbelt", "werkzeug.serving", "click", "rich.table"),
    *("asyncio", "email", "http.server", "multiprocessing.pool", "sqlite3", "xml.etree.ElementTree"),
)
MEMORY = 4 << 30
"""Bytes that a child may take: a mutant may build a list without end."""
SLOW = 0.4
"""A test that takes this many seconds is left to the wide set."""
LIMIT = 300.0
"""Seconds that tests may take without any change."""
OPTIONS = (
    *("-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:faulthandler"),
    *("-p", "no:unraisableexception", "-p", "no:threadexception"),  # they collect garbage at the end, which takes long
    "--assert=plain",  # rewriting assertions takes its own way to the files, also to those of the package's plugin
)


def preload() -> Path:
    """Import what all tests need, so that children find it there; what they compile is compiled once.

    :returns: a folder for the time of this process.
    """
    folder = tempfile.mkdtemp(prefix="mutation-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    sys.dont_write_bytecode, sys.pycache_prefix = False, folder
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if any(name.split(".")[0] == PACKAGE for name in sys.modules):
        raise RuntimeError("the package was imported before the mutant could be")
    return Path(folder)


class Trial:
    """Tests to be run against mutants of one module.

    :param name: of the module.
    :param tests: as pytest takes them.
    :param folder: for files that are needed meanwhile.
    :param real_time: run also the tests that wait for real.
    :param long: run also those that take long.
    :param wide: the same, and be content with what putting the text into the module shows.
    """

    def __init__(
        self,
        name: str,
        tests: Sequence[str],
        folder: Path,
        *,
        real_time: bool = False,
        long: bool = False,
        wide: bool = False,
    ) -> None:
        self.name = name
        self.arguments = [*OPTIONS, *(() if real_time else ("-m", "not real_time")), *tests]
        self.said = folder / "said.json"
        self.wide = wide
        self.long = wide or long
        self.usual = LIMIT
        self.slow: list[str] = []

    def outcomes(self, sources: Sequence[str]) -> list[str]:
        """Run the tests against each mutant: ``"killed"``, ``"survived"`` or ``"timed out"``.

        :param sources: of the mutants.
        :raises SystemExit: if they fail without any change.
        """
        for _ in range(3):  # a busy machine may fail a test on threads
            self.said.write_text("null")
            _watched(lambda: _pytest(self.arguments, _Judge(self, sources)), LIMIT + len(sources) * LIMIT)
            said = json.loads(self.said.read_text())
            if said is not None:
                break
        else:
            raise SystemExit(f"{self.name}: the tests fail without any change: {' '.join(self.arguments)}")
        self.usual, self.slow, outcomes = said["usual"], said["slow"], said["outcomes"]
        for number, outcome in enumerate(outcomes):
            if outcome == "survived" and not self.wide:
                outcomes[number] = self._anew(sources[number])
        return outcomes

    def _anew(self, source: str) -> str:
        """Run the tests with the module imported anew."""

        def body() -> int:
            _put_in(self.name, source)
            return _pytest([*self.arguments, *(f"--deselect={test}" for test in self.slow)], _SameDraws())

        return _watched(body, 2 * self.usual + 5)


class _SameDraws:
    """A pytest plugin: hypothesis draws the same each time and keeps nothing."""

    def pytest_sessionstart(self) -> None:
        """Before any test is imported, after conftest.py."""
        from hypothesis import Phase, settings

        settings.register_profile(
            "mutation", settings.default, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
        )
        settings.load_profile("mutation")


class _Judge(_SameDraws):
    """A pytest plugin: runs the tests that were collected once as they are, and then in a child for each mutant."""

    def __init__(self, trial: Trial, sources: Sequence[str]) -> None:
        self._trial, self._sources = trial, sources
        self._durations: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of how long a test took."""
        self._durations[report.nodeid] = self._durations.get(report.nodeid, 0.0) + report.duration

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of pytest's own loop."""
        items = session.items

        def unchanged() -> int:
            code = _run(session, items)
            self._trial.said.write_text(json.dumps(self._durations))
            return code

        if _watched(unchanged, LIMIT) != "survived":
            self._trial.said.write_text("null")
            return True
        took = json.loads(self._trial.said.read_text())
        items.sort(key=lambda item: took.get(item.nodeid, 0.0))
        slow = [] if self._trial.long else [item.nodeid for item in items if took.get(item.nodeid, 0.0) >= SLOW]
        items = [item for item in items if item.nodeid not in slow]
        usual = sum(took.get(item.nodeid, 0.0) for item in items)
        module = importlib.import_module(self._trial.name)

        def changed(source: str) -> int:
            transplant(module, source)
            return _run(session, items)

        gc.collect()
        gc.freeze()  # children need not look through what is there already
        outcomes = [_watched(lambda: changed(source), 2 * usual + 5) for source in self._sources]  # noqa: B023
        self._trial.said.write_text(json.dumps({"usual": usual, "slow": slow, "outcomes": outcomes}))
        return True


def _run(session: pytest.Session, items: Sequence[pytest.Item]) -> int:
    """Run collected tests up to the first failure."""
    for number, item in enumerate(items):
        following = items[number + 1] if number + 1 < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return 1
    return 0


def _pytest(arguments: list[str], plugin: object) -> int:
    sys.path.insert(0, str(Path.cwd()))
    code = pytest.main(arguments, plugins=[plugin])
    return 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else int(code)  # no test is left that could notice anything


def _put_in(name: str, source: str) -> None:
    """Have a module made from another text than its file's, in this process."""
    usual = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        return compile(source, self.path, "exec") if fullname == name else usual(self, fullname)

    SourceFileLoader.get_code = get_code


def _watched(body: Callable[[], int], seconds: float) -> str:
    """Run something in a child that ends with its exit code.

    :param seconds: the longest that it may take; half of it on the processor.
    """
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _child(body, seconds)
    while time.monotonic() < begun + seconds:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return "timed out" if code == -signal.SIGXCPU else "killed" if code else "survived"
        time.sleep(0.002)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "timed out"


def _child(body: Callable[[], int], seconds: float) -> NoReturn:
    code = 99
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        # A loop without end is told by the processor time that it takes, which a busy machine does not change.
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds / 2) + 1, int(seconds) + 1))
        if "MUTATION_SHOW" not in os.environ:
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
        code = body()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)
