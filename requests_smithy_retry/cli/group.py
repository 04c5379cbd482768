"""The group of commands, each of which is imported on use. To add a command, add a line to :data:`COMMANDS`."""

from __future__ import annotations

import contextlib
import errno
import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

import click

from ..version import __version__

COMMANDS = {
    "config": "requests_smithy_retry.cli.config_command:config",
    "explain": "requests_smithy_retry.cli.explain_command:explain",
}
"""The place of each command, as ``module:name``."""

PROGRAM = "requests-smithy-retry"

UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""The errors of writing to a full or broken disk."""

RUN = click.Command("run", help="Run an unchanged program with retries.", params=[click.Argument(["program"])])
"""The line of the help on ``run``, which needs no extra, so that ``main`` carries it out itself."""


class LazyGroup(click.Group):
    """A group that imports a command on use."""

    def __init__(self, places: Mapping[str, str]) -> None:
        epilog = f"To run an unchanged program with retries: {PROGRAM} run app.py"
        super().__init__(PROGRAM, help="The retry layer for requests.", epilog=epilog)
        self.places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*self.places, "run"])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "run":
            return RUN
        if cmd_name not in self.places:
            return None
        module, _, name = self.places[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command


def run(arguments: Sequence[str], commands: Mapping[str, str] = COMMANDS) -> NoReturn:
    """Run one command."""
    group = click.version_option(__version__, prog_name=PROGRAM)(LazyGroup(commands))
    try:
        group.main(list(arguments), prog_name=PROGRAM)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        sys.stderr.write(f"{PROGRAM}: the output cannot be written: {error.strerror}\n")
        if sys.stdout is sys.__stdout__ and sys.stdout is not None:
            with contextlib.suppress(OSError):
                sys.stdout.close()  # or Python would write the rest when it ends, and fail again
        sys.exit(1)
