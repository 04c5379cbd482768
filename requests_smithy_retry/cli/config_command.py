"""``requests-smithy-retry config``: the policy of an adapter made here, its sources, and its worst case."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable

import click

from ..config.report import WorstCase, as_table, is_set, waits_for_service
from ..config.retry_config import COMMAND_LINE, OPTIONS, RetryConfig, unknown_option
from ..config.sources import VARIABLES, parse_text, resolve
from ..core.line import Terms
from ..errors import RetryConfigError

LINES = {
    "attempts": "most attempts",
    "backoff": "longest backoff in all, without a server's hints",
    "sleep": "longest sleep in all, with a server's hints",
    "wall_time": "longest time from the call to its end",
}


@click.command()
@click.option("--all", "show_all", is_flag=True, help="Show every option, not only those that were set.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--aws-config", metavar="PROFILE", is_flag=False, flag_value="true", help="Also read the AWS settings.")
@click.argument("options", nargs=-1, metavar="[OPTION=VALUE]...")
def config(show_all: bool, as_json: bool, aws_config: str | None, options: tuple[str, ...]) -> None:
    """Show the options that were set, the source of each value, and the worst case.

    JSON always has every option. Each OPTION=VALUE stands for an option given in code, for instance max_attempts=5.
    """
    if aws_config is not None:
        options = (*options, f"aws_config={aws_config}")
    resolved = config_of(options)
    click.echo(as_json_text(resolved) if as_json else as_text(resolved, show_all=show_all))


def as_text(resolved: RetryConfig, *, show_all: bool) -> str:
    settings = [item for item in resolved.settings() if show_all or is_set(item)]
    policy = as_table(settings) if settings else "every option has its default (--all shows them)"
    worst = resolved.worst_case()
    rows = [
        *((words, _amount(worst, name)) for name, words in LINES.items()),
        ("longest wait for a service that is down", _line_text(resolved)),
        ("most failed retries of all operations on a service", _in_vain_text(worst)),
    ]
    width = max(len(words) for words, _ in rows)
    lines = [f"{words:<{width}}  {value}" for words, value in rows]
    return "\n".join([policy, "", "worst case of one operation", *lines])


def as_json_text(resolved: RetryConfig) -> str:
    """Return the policy and its worst case as JSON; null means no bound."""
    options = {item.name: {"value": item.plain, "source": item.source} for item in resolved.settings()}
    bounds = resolved.worst_case()
    in_vain = None if bounds.in_vain is None else bounds.in_vain._asdict()
    worst = {**dataclasses.asdict(bounds), "in_vain": in_vain, "line_wait": longest_line_wait(resolved)}
    return json.dumps({"options": options, "worst_case": worst}, indent=2)


def longest_line_wait(resolved: RetryConfig) -> float:
    """Return the most seconds for which one operation waits for a service that is down, all such waits together."""
    terms = Terms(resolved.most_attempts, resolved.patience, resolved.operation_timeout)
    return terms.in_all(0.0) if waits_for_service(resolved) else 0.0


def _line_text(resolved: RetryConfig) -> str:
    seconds = longest_line_wait(resolved)
    if seconds <= resolved.patience:
        return _seconds(seconds)
    return f"{_seconds(seconds)}; none once it has been down for {resolved.patience:g} s"


def _in_vain_text(worst: WorstCase) -> str:
    if worst.in_vain is None:
        return "no bound; a quota sets one"
    at_first, per_success, per_second = worst.in_vain
    words = [_rounded(at_first), f"{_rounded(per_success)} more for each success" if per_success else ""]
    if per_second >= 1:
        words.append(f"{_rounded(per_second)} more a second")
    elif per_second:
        words.append(f"1 more every {_seconds(1 / per_second)}")
    return ", and ".join(filter(None, words))


def _amount(worst: WorstCase, name: str) -> str:
    value = getattr(worst, name)
    if value is None:
        return f"no bound; {'max_attempts' if name == 'attempts' else 'operation_timeout'} sets one"
    return str(value) if name == "attempts" else _seconds(value)


def _seconds(seconds: float) -> str:
    return f"{_rounded(seconds)} s"


def _rounded(number: float) -> str:
    return f"{round(number, 2):g}"


def config_of(options: Iterable[str]) -> RetryConfig:
    """Return the config of an adapter made here with these options, each as ``OPTION=VALUE``."""
    try:
        given = dict(map(option_of, options))
        return resolve(RetryConfig().replace_from(dict.fromkeys(given, COMMAND_LINE), **given))
    except RetryConfigError as refusal:
        raise click.UsageError(str(refusal)) from None


def option_of(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    name = name.strip().lower()
    if equals == "":
        raise click.BadParameter(f"{text!r}: OPTION=VALUE is allowed, with one of {', '.join(VARIABLES.values())}")
    if name not in OPTIONS:
        raise click.BadParameter(unknown_option(name))
    if OPTIONS[name].not_from_environment and name != "trust_env":
        raise click.BadParameter(f"the option {name!r} can only be set in code")
    return name, parse_text(name, value, COMMAND_LINE)
