"""The command line."""

from __future__ import annotations

import sys

from ..features.everywhere.run import run as run_program

TYPE_CHECKING = False  # as in typing; see run.py
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

PROGRAM = "requests-smithy-retry"

HELP = f"""\
usage: {PROGRAM} COMMAND ...

The retry layer for requests.

commands:
  config   Show the policy of an adapter made here, with its sources and its
           worst case.
  explain  Explain the decision on one outcome.
  run      Run an unchanged program with retries: run --help

options:
  --help     Show this, or after a command its own help.
  --version  Show the version.
"""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line; exit with 0, or 2 for bad usage. For ``run``, the program may exit with another status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    command = given[0] if given else ""
    if command == "run":
        sys.exit(run_program(given[1:]))
    if command in ("config", "explain"):
        from .subcommands import carry_out

        carry_out(command, given[1:])
    if command == "--version":
        from .. import __version__

        sys.stdout.write(f"{PROGRAM}, version {__version__}\n")
    elif command in ("", "-h", "--help"):
        sys.stdout.write(HELP)
    else:
        sys.stderr.write(f"{HELP}\n{PROGRAM}: error: No such command {command!r}\n")
        sys.exit(2)
    sys.exit(0 if given else 2)
