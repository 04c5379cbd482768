"""The commands ``config`` and ``explain``.

``config`` shows the policy of an adapter made here, with its sources and its worst case. ``explain`` shows the decision
on one outcome, by running an adapter without sockets.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import itertools
import json
from collections.abc import Callable, Iterable
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
from ..config.report import WorstCase, as_table, is_set, waits_for_service
from ..config.retry_config import COMMAND_LINE, OPTIONS, RetryConfig, unknown_option
from ..config.sources import VARIABLES, parse_text, resolve
from ..core.backoff import Jitter
from ..core.server_hints import MILLISECOND_HEADERS
from ..core.wait_queue import ATTEMPTS, Bounds
from ..errors import RetryConfigError, StopReason
from ..observing.history import AttemptRecord, RetryHistory, retry_history
from ..testing.scripted import ScriptedReply, scripted
from ..wire.state import this_thread

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
        ("longest wait for a service that is down", _queue_text(resolved)),
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
    worst = {**dataclasses.asdict(bounds), "in_vain": in_vain, "line_wait": longest_queue_wait(resolved)}
    return json.dumps({"options": options, "worst_case": worst}, indent=2)


def longest_queue_wait(resolved: RetryConfig) -> float:
    """Return the most seconds for which one operation waits for a service that is down, in all its waits together."""
    bounds = Bounds(resolved.most_attempts, resolved.patience, resolved.operation_timeout)
    return bounds.in_all(0.0) if resolved.enabled and waits_for_service(resolved) else 0.0


def _queue_text(resolved: RetryConfig) -> str:
    seconds = longest_queue_wait(resolved)
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
    if not config.enabled:
        raise LookupError("retries are switched off (enabled=False), so nothing is decided")
    # The random numbers of the backoff are set below, and a hint's spread is told beside the delays.
    own = config.replace(timeout=None, raise_on_status=False, listeners=(), jitter=Jitter.NONE.value)
    if hasattr(own.quota, "without_secrets"):
        own = own.replace(quota="payoff")  # nothing is asked of Redis; an operation alone has the same retries here
    # Without a success, a service is asked as long as patience lasts: less than a hundred times.
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
    assert history is not None
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
