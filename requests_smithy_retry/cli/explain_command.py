"""``requests-smithy-retry explain``: the policy's decision on one outcome."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from ..config.retry_config import RetryConfig
from ..errors import RetryConfigError
from .config_command import option_of
from .explanation import Explanation, Question, exception_named, explain_outcome, read_body


def header_of(_context: Any, _parameter: Any, lines: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Split each header line into name and value."""
    for line in lines:
        if ":" not in line:
            raise click.BadParameter(f"{line!r}: 'Name: value' is allowed")
    return tuple((name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines))


@click.command()
@click.option("--status", type=click.IntRange(100, 599), help="The response's status.")
@click.option("--error", metavar="NAME", help="An exception instead, of requests, urllib3 or Python: ReadTimeout.")
@click.option("--method", default="GET", show_default=True, help="The request's method.")
@click.option("--header", "headers", multiple=True, callback=header_of, help="A header of the response. Repeatable.")
@click.option("--body", type=click.Path(exists=True, dir_okay=False), help="A file with the response's body.")
@click.option("--request-header", multiple=True, callback=header_of, help="A header of the request. Repeatable.")
@click.option("--unwritten", is_flag=True, help="No byte of the request was written when the exception came.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.argument("options", nargs=-1, metavar="[OPTION=VALUE]...")
def explain(
    status: int | None,
    error: str | None,
    method: str,
    headers: tuple[tuple[str, str], ...],
    body: str | None,
    request_header: tuple[tuple[str, str], ...],
    unwritten: bool,
    as_json: bool,
    options: tuple[str, ...],
) -> None:
    """Show the decision on an outcome: votes, verdict, whether the request is sent again and why, and the delays.

    Each OPTION=VALUE stands for an option given in code, for instance max_attempts=5. Nothing is sent.
    """
    if (status is None) == (error is None):
        raise click.UsageError("one of --status and --error is needed")
    question = Question(status, error, method.upper(), headers, read_body(body), request_header, unwritten)
    try:
        if error is not None:
            exception_named(error)
        answer = explain_outcome(question, RetryConfig.from_environment(**dict(map(option_of, options))))
    except (LookupError, RetryConfigError) as refusal:
        raise click.UsageError(str(refusal)) from None
    if as_json:
        click.echo(json.dumps(answer.to_dict(), indent=2))
    else:
        show(answer, Console())


def show(answer: Explanation, console: Console) -> None:
    """Print an explanation as tables."""
    if answer.votes:
        votes = Table("classifier", "says", title="votes, in the order of asking", title_justify="left")
        for name, verdict in answer.votes:
            votes.add_row(name, verdict)
        console.print(votes)
    console.print(f"verdict: {answer.verdict}", highlight=False)
    console.print(f"sent again: {'yes' if answer.is_retried else 'no'}", highlight=False)
    if answer.delays:
        delays = Table("retry", "at least", "at most", title="delays", title_justify="left")
        for number, (least, most) in enumerate(answer.delays, start=1):
            delays.add_row(str(number), f"{least:.3g} s", f"{most:.3g} s")
        console.print(delays)
    if answer.then:
        console.print(f"then: {answer.then}", highlight=False)
    console.print(f"if every attempt ends so: {answer.why}", highlight=False)
