"""``requests-smithy-retry explain``: the decision on one outcome, found by running an adapter without sockets."""

from __future__ import annotations

import builtins
import contextlib
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import requests
import requests.exceptions
import urllib3.exceptions
from requests import PreparedRequest
from rich.console import Console
from rich.table import Table

from ..classifiers.actions import RetryForbidden, RetryIndicated
from ..config.retry_config import RetryConfig
from ..core.backoff import Jitter
from ..core.line import ATTEMPTS
from ..core.server_hints import MILLISECOND_HEADERS
from ..errors import RetryConfigError, StopReason
from ..observing.history import AttemptRecord, RetryHistory, retry_history
from ..testing.scripted import ScriptedReply, scripted
from ..wire.state import this_thread
from .config_command import config_of

URL = "https://example.invalid/"

NEVER_WRITTEN = frozenset(
    {"ConnectTimeout", "ConnectTimeoutError", "ConnectionRefusedError", "NameResolutionError", "NewConnectionError"}
)
"""The exceptions raised before a connection is made. On a real connection, the adapter sees what was written."""


def explain_outcome(outcome: Any, request: PreparedRequest, config: RetryConfig) -> dict[str, Any]:
    """Explain the decision if every attempt ends with this step of a script, as plain values for JSON."""
    least, most = (_history(outcome, request, config, random) for random in (0.0, 1.0))
    quick = _paid(least)
    then = ""
    if least.line_wait or len(quick) < len(least.attempts) - 1:
        limit = config.operation_timeout
        is_cut = limit is not None and limit <= config.patience
        until = f"the deadline of {limit:g} s is over" if is_cut else f"the outage is {config.patience:g} s old"
        then = (
            f"the budget is empty; waits until another request succeeds, and asks by itself now and then, until {until}"
        )
    return {
        "votes": most.to_dict()["attempts"][0]["votes"],
        "verdict": _verdict(most),
        "is_retried": len(most.attempts) > 1,
        "why": most.sentence,
        "delays": [
            {"retry": number, "least": shortest.delay, "most": longest.delay}
            # With longer delays the outage may be too old for the last.
            for number, (shortest, longest) in enumerate(zip(quick, _paid(most), strict=False), start=1)
        ],
        "then": then,
        "is_spread": _is_spread(config, most),
    }


def _is_spread(config: RetryConfig, history: RetryHistory) -> bool:
    if config.jitter == Jitter.NONE.value or config.pacing == "off":
        return False
    return any(attempt.delay_source in (*MILLISECOND_HEADERS, "retry-after") for attempt in _paid(history))


def _paid(history: RetryHistory) -> list[AttemptRecord]:
    return list(itertools.takewhile(lambda attempt: not attempt.line_why, history.attempts[1:]))


def failing(name: str, *, unwritten: bool) -> Callable[[PreparedRequest], Exception]:
    """Return the step of an attempt that fails with an exception of this name; ``LookupError``: there is none."""
    exception_named(name)

    def step(request: PreparedRequest) -> Exception:
        this_thread.connecting = unwritten or name.rpartition(".")[2] in NEVER_WRITTEN
        return exception_named(name)

    return step


def exception_named(name: str) -> Exception:
    for module in (requests.exceptions, urllib3.exceptions, builtins):
        kind: Any = getattr(module, name.rpartition(".")[2], None)
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning):
            for arguments in (("failed",), (None, "failed"), (None, URL, "failed")):
                with contextlib.suppress(TypeError):
                    return kind(*arguments)
            raise LookupError(f"an exception {kind.__name__!r} cannot be made without its cause")
    raise LookupError(f"requests, urllib3 and Python have no exception {name!r}")


def _history(step: Any, request: PreparedRequest, config: RetryConfig, random: float) -> RetryHistory:
    """Run the operation with a constant random number: 0 gives the shortest delays, 1 the longest."""
    # The random numbers of the backoff are set below, and a hint's spread is told beside the delays.
    own = config.replace(timeout=None, raise_on_status=False, listeners=(), jitter=Jitter.NONE.value)
    if hasattr(own.quota, "without_secrets"):
        own = own.replace(quota="payoff")  # nothing is asked of Redis; an operation alone has the same retries here
    # While nobody succeeds, a service is asked for as long as there is patience; never a hundred times.
    adapter = scripted(*[step] * ((own.most_attempts or ATTEMPTS) + 100), config=own, trust_env=False)
    strategy: Any = adapter.strategy
    for backoff in (strategy.policy.transient, strategy.policy.throttling):
        backoff.random = lambda: random
        if config.backoff is None:
            backoff.jitter_type = Jitter(config.jitter)
    try:
        outcome: Any = adapter.send(request)
    except Exception as error:
        outcome = error
    history = retry_history(outcome)
    if history is None:
        raise LookupError("retries are switched off (enabled=False), so nothing is decided")
    return history


def _verdict(history: RetryHistory) -> str:
    if history.stop_reason is StopReason.REQUEST_FAULT:
        return "the request itself is at fault; nothing is classified"
    for vote in reversed(history.attempts[0].votes):
        if isinstance(vote.action, RetryForbidden):
            return "forbidden"
        if isinstance(vote.action, RetryIndicated):
            return vote.action.reason.kind.value
    return "success" if history.stop_reason is StopReason.SUCCESS else "no action indicated"


def header_of(_context: Any, _parameter: Any, lines: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
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
    request = requests.Request(method.upper(), URL, headers=dict(request_header)).prepare()
    content = b"" if body is None else Path(body).read_bytes()
    try:
        outcome = (
            ScriptedReply(status or 0, dict(headers), content) if error is None else failing(error, unwritten=unwritten)
        )
        config = config_of(options)
        answer = explain_outcome(outcome, request, config)
    except (LookupError, RetryConfigError) as refusal:
        raise click.UsageError(str(refusal)) from None
    if as_json:
        click.echo(json.dumps(answer, indent=2))
    else:
        show(answer, Console())


def show(answer: dict[str, Any], console: Console) -> None:
    if answer["votes"]:
        votes = Table("classifier", "says", title="votes, in the order of asking", title_justify="left")
        for vote in answer["votes"]:
            votes.add_row(vote["classifier"], vote["verdict"])
        console.print(votes)
    console.print(f"verdict: {answer['verdict']}", highlight=False)
    console.print(f"sent again: {'yes' if answer['is_retried'] else 'no'}", highlight=False)
    if answer["delays"]:
        delays = Table("retry", "at least", "at most", title="delays", title_justify="left")
        for wait in answer["delays"]:
            delays.add_row(str(wait["retry"]), f"{wait['least']:.3g} s", f"{wait['most']:.3g} s")
        console.print(delays)
    if answer["is_spread"]:
        console.print("a wait that the server asks for: up to a tenth more, at most 5 s, at random", highlight=False)
    if answer["then"]:
        console.print(f"then: {answer['then']}", highlight=False)
    console.print(f"if every attempt ends so: {answer['why']}", highlight=False)
