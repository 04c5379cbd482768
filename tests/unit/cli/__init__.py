"""The command, as whoever installs the package has it."""

from __future__ import annotations

import contextlib
import io
from importlib.metadata import entry_points
from typing import Any
from unittest import mock

main = next(iter(entry_points(group="console_scripts", name="requests-smithy-retry"))).load()


class Done:
    """What a command said, and its exit status."""

    def __init__(self, *arguments: str, **environ: str) -> None:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), mock.patch.dict("os.environ", environ):
            try:
                main(arguments)
            except SystemExit as ended:
                self.exit_code: Any = ended.code
        self.stdout, self.stderr = out.getvalue(), err.getvalue()
        self.output = self.stdout + self.stderr
