"""The processes that a program under ``run`` starts, and what they add to its closing line (contract 10.5).

The program's own process makes a folder before it starts the first one. Each of the others writes one file there, again
and again, because it may end at any moment.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as in typing; see run.py
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

REPORT_INTERVAL = 0.25
"""Seconds between two reports of first-try successes; a process reports everything else at once."""


class ProgramProcesses:
    """The processes of one program."""

    def __init__(self) -> None:
        self.main_process: int = 0
        """The id of the program's own process; 0: nothing is counted."""
        self.folder: str = ""
        """Empty until a process is started."""
        self.on_fork: Callable[[], None] | None = None
        """Called in a forked process, which counts from 0."""

    def start_counting(self) -> None:
        """Make this the program's own process."""
        is_first = not self.main_process
        self.main_process, self.folder = os.getpid(), ""
        if is_first and hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self.make_folder, after_in_child=self._after_fork)

    def make_folder(self) -> str:
        """Return the folder; the program's own process makes it."""
        if self.main_process == os.getpid() and not self.folder:
            import tempfile

            self.folder = tempfile.mkdtemp(prefix="requests-smithy-retry-")
        return self.folder

    def join(self, folder: str) -> None:
        """Make this a process that the program started."""
        self.main_process, self.folder = -1, folder

    @property
    def is_child(self) -> bool:
        return self.folder != "" and self.main_process != os.getpid()

    def _after_fork(self) -> None:  # pragma: no cover - runs in the child, whose end by os._exit leaves no measurement
        if self.is_child and self.on_fork is not None:
            self.on_fork()

    def call_at_end(self, function: Callable[[], None]) -> None:
        """Call a function when this process ends, unless it is killed."""
        import sys

        # A forked process calls what is registered with atexit when it exits. One of multiprocessing does not.
        util: Any = sys.modules.get("multiprocessing.util")
        if util is not None:
            util.Finalize(None, function, exitpriority=-1)

    def write_report(self, report: Any) -> None:
        """Write the report of this process."""
        import json

        path = os.path.join(self.folder, str(os.getpid()))
        try:
            with open(f"{path}.new", "w", encoding="utf-8") as file:
                json.dump(report, file)
            os.replace(f"{path}.new", path)
        except OSError:  # the program's own process has ended
            pass

    def read_reports(self) -> Iterator[Any]:
        """Yield the reports of the others; remove the folder."""
        folder, self.folder = self.folder, ""
        if not folder:
            return
        import json
        import shutil

        for name in sorted(os.listdir(folder)):
            if name.isdigit():
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    yield json.load(file)
        shutil.rmtree(folder, ignore_errors=True)


PROCESSES = ProgramProcesses()
