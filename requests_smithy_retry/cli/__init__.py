"""The command line. :func:`main` imports the libraries of the extra ``cli`` only when called."""

from __future__ import annotations

import sys

from ..features.everywhere.run import run as run_program

TYPE_CHECKING = False  # as in typing; see run.py
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    import click

PROGRAM = "requests-smithy-retry"

EXTRA = frozenset({"click", "rich"})


HELP = f"""\
usage: {PROGRAM} COMMAND ...

The retry layer for requests.

commands:
  run      Run an unchanged program with retries: run --help
  config   Show the policy of an adapter made here, with its sources and its worst case.
  explain  Explain the decision on one outcome.

config and explain need click and rich: {{python}} -m pip install click rich
"""
"""Shown if click is not installed; click itself shows more."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line; exit with 0, 1 if a command found a problem, or 2 for bad usage or without the extra."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["run"]:
        sys.exit(run_program(given[1:]))  # needs no extra
    try:
        group = commands()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRA:
            raise
        if not given or {"-h", "--help"}.intersection(given):
            sys.stdout.write(HELP.format(python=sys.executable))
            sys.exit(0 if given else 2)
        sys.stderr.write(
            f"{PROGRAM}: the command line needs {missing!r}, which is not installed; "
            f"install it with: {sys.executable} -m pip install click rich\n"
        )
        sys.exit(2)
    group.main(given, prog_name=PROGRAM)


def commands() -> click.Group:
    import click

    from .. import __version__
    from .subcommands import config, explain

    # Only for the help: main itself carries it out.
    run = click.Command("run", help="Run an unchanged program with retries.", params=[click.Argument(["program"])])
    epilog = f"To run an unchanged program with retries: {PROGRAM} run app.py"
    group = click.Group(PROGRAM, [config, explain, run], help="The retry layer for requests.", epilog=epilog)
    return click.version_option(__version__, prog_name=PROGRAM)(group)
