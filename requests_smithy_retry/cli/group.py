"""The group of commands. Each command has files of its own, which are imported when it is asked for.

To add a command, add a line to :data:`COMMANDS`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import NoReturn

import click

from ..version import __version__

COMMANDS = {
    "config": "requests_smithy_retry.cli.config_command:config",
    "demo": "requests_smithy_retry.cli.demo.command:demo",
    "explain": "requests_smithy_retry.cli.explain_command:explain",
    "try": "requests_smithy_retry.cli.try_command:try_url",
}
"""Where each command is, as ``module:name``."""

PROGRAM = "requests-smithy-retry"

EPILOG = f"Retries for a program as it is: {PROGRAM} run app.py"


class LazyGroup(click.Group):
    """A group that imports a command when it is asked for.

    :param places: where each command is, as ``module:name``.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        super().__init__(PROGRAM, help="The retry layer for requests.", epilog=EPILOG)
        self.places = places

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Name the commands, in the order of the alphabet."""
        return sorted(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command; None when there is none of that name."""
        if cmd_name not in self.places:
            return None
        module, _, name = self.places[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command


def run(arguments: Sequence[str], commands: Mapping[str, str] = COMMANDS) -> NoReturn:
    """Run one command.

    :param arguments: without the program's name.
    :param commands: where each command is.
    :raises SystemExit: always, with the exit status.
    """
    group = click.version_option(__version__, prog_name=PROGRAM)(LazyGroup(commands))
    group.main(list(arguments), prog_name=PROGRAM)
