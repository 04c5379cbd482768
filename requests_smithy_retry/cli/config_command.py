"""``requests-smithy-retry config``: the policy of an adapter made here, its sources, and what it can cost."""

from __future__ import annotations

import dataclasses
import json

import click

from ..config import RetryConfig
from ..config_report import as_table
from ..environment import VARIABLES
from ..errors import RetryConfigError
from ..text_values import parse_text
from ..worst_case import WorstCase

LINES = {
    "attempts": "most attempts",
    "backoff": "longest backoff in all, without a server's hints",
    "sleep": "longest sleep in all, with a server's hints",
    "wall_time": "longest wall time",
}
"""The worst case in words."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--aws-config", metavar="PROFILE", is_flag=False, flag_value="true", help="Also go by the AWS settings.")
@click.argument("options", nargs=-1, metavar="[OPTION=VALUE]...")
def config(as_json: bool, aws_config: str | None, options: tuple[str, ...]) -> None:
    """Show the effective policy, the source of every value, and the worst case.

    Each OPTION=VALUE stands for an option given in code, for instance max_attempts=5.
    """
    if aws_config is not None:
        options = (*options, f"aws_config={aws_config}")
    try:
        resolved = RetryConfig.from_environment(**dict(map(option_of, options)))
    except RetryConfigError as refusal:
        raise click.UsageError(str(refusal)) from None
    click.echo(as_json_text(resolved) if as_json else as_text(resolved))


def as_text(resolved: RetryConfig) -> str:
    """The policy and its worst case as tables."""
    worst = resolved.worst_case()
    width = max(map(len, LINES.values()))
    lines = [f"{words:<{width}}  {_amount(worst, name)}" for name, words in LINES.items()]
    return "\n".join([as_table(resolved.settings()), "", "worst case of one operation", *lines])


def as_json_text(resolved: RetryConfig) -> str:
    """The policy and its worst case as JSON; null stands for no bound."""
    options = {item.name: {"value": item.plain, "source": item.source} for item in resolved.settings()}
    return json.dumps({"options": options, "worst_case": dataclasses.asdict(resolved.worst_case())}, indent=2)


def _amount(worst: WorstCase, name: str) -> str:
    value = getattr(worst, name)
    if value is None:
        return "no bound; operation_timeout sets one"
    return str(value) if name == "attempts" else f"{value:g} s"


def option_of(text: str) -> tuple[str, object]:
    """The name and the value in ``OPTION=VALUE``.

    :raises click.BadParameter: for what is none.
    """
    name, equals, value = text.partition("=")
    name = name.strip().lower()
    variable = f"SMITHY_RETRY_{name.upper()}"
    if equals == "" or (variable not in VARIABLES and name != "trust_env"):
        raise click.BadParameter(f"{text!r}: OPTION=VALUE is allowed, with one of {', '.join(VARIABLES.values())}")
    return name, parse_text(name, value, "the command line")
