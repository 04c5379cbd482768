"""The command line. :func:`main` imports the libraries of the extra ``cli`` only when called."""

from __future__ import annotations

import sys

from ..features.everywhere.run import run as run_program

TYPE_CHECKING = False  # as in typing; see run.py
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

EXTRA = frozenset({"click", "rich"})
"""The libraries of the extra ``cli``."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, as ``requests-smithy-retry`` and ``python -m requests_smithy_retry`` do.

    :raises SystemExit: always: 0 on success, 1 if a command found a problem, 2 for bad usage or without the extra.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["run"]:
        sys.exit(run_program(given[1:]))  # needs no extra
    try:
        from .group import run

        run(given)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRA:
            raise
    sys.stderr.write(
        f"requests-smithy-retry: the command line needs {missing!r}, which is not installed; "
        f'install it with: {sys.executable} -m pip install "requests-smithy-retry[cli]"\n'
    )
    sys.exit(2)
