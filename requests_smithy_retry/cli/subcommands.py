"""The commands ``config`` and ``explain``.

``config`` shows the policy of an adapter made here, with its sources and its worst case. ``explain`` shows the decision
on one outcome, by running an adapter without sockets.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import dataclasses
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import requests
import requests.exceptions
import urllib3.exceptions
from requests import PreparedRequest

from ..classifiers.actions import RetryForbidden, RetryIndicated
from ..config.report import WorstCase, as_table, waits_for_service
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


class UsageError(Exception):
    """The arguments of a command ask for something that does not exist."""


def config(given: argparse.Namespace) -> str:
    """Show the options that were set, the source of each value, and the worst case."""
    aws = [] if given.aws_config is None else [f"aws_config={given.aws_config}"]
    resolved = config_of([*given.options, *aws])
    return as_json_text(resolved) if given.json else as_text(resolved, show_all=given.all)


def as_text(resolved: RetryConfig, *, show_all: bool) -> str:
    worst = resolved.worst_case()
    rows = [
        *((words, _amount(worst, name)) for name, words in LINES.items()),
        ("longest wait for a service that is down", _queue_text(resolved)),
        ("most failed retries of all operations on a service", _in_vain_text(worst)),
    ]
    return "\n".join([resolved.explain(all=show_all), "", "worst case of one operation", as_table(*rows)])


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
    given = dict(map(option_of, options))
    return resolve(RetryConfig().replace_from(dict.fromkeys(given, COMMAND_LINE), **given))


def option_of(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    name = name.strip().lower()
    if equals == "":
        raise UsageError(f"{text!r}: OPTION=VALUE is allowed, with one of {', '.join(VARIABLES.values())}")
    if name not in OPTIONS:
        raise UsageError(unknown_option(name))
    if OPTIONS[name].not_from_environment and name != "trust_env":
        raise UsageError(f"the option {name!r} can only be set in code")
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
    """Return the step of an attempt that fails with an exception of this name; ``UsageError`` if there is none."""
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
            raise UsageError(f"an exception {kind.__name__!r} cannot be made without its cause")
    raise UsageError(f"requests, urllib3 and Python have no exception {name!r}")


def _history(step: Any, request: PreparedRequest, config: RetryConfig, random: float) -> RetryHistory:
    """Run the operation with a constant random number: 0 gives the shortest delays, 1 the longest."""
    if not config.enabled:
        raise UsageError("retries are switched off (enabled=False), so nothing is decided")
    # The random numbers of the backoff are set below, and a hint's spread is reported beside the delays.
    own = config.replace(timeout=None, raise_on_status=False, listeners=(), jitter=Jitter.NONE.value)
    if hasattr(own.quota, "without_secrets"):
        own = own.replace(quota="payoff")  # Redis is not asked; an operation alone has the same retries here
    # Without a success, a service is tried as long as patience lasts: fewer than a hundred times.
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


def explain(given: argparse.Namespace) -> str:
    """Show the decision on an outcome: votes, verdict, whether the request is sent again and why, and the delays.

    Nothing is sent.
    """
    if (given.status is None) == (given.error is None):
        raise UsageError("one of --status and --error is needed")
    request = requests.Request(given.method.upper(), URL, headers=dict(given.request_header)).prepare()
    if given.error is not None:
        outcome: Any = failing(given.error, unwritten=given.unwritten)
    else:
        outcome = ScriptedReply(given.status, dict(given.header), given.body.read_bytes() if given.body else b"")
    answer = explain_outcome(outcome, request, config_of(given.options))
    return json.dumps(answer, indent=2) if given.json else "\n".join(lines_of(answer))


def lines_of(answer: dict[str, Any]) -> Iterator[str]:
    if answer["votes"]:
        yield "votes, in the order of asking"
        votes = [(vote["classifier"], vote["verdict"]) for vote in answer["votes"]]
        yield f"{as_table(('classifier', 'says'), *votes)}\n"
    yield f"verdict: {answer['verdict']}"
    yield f"sent again: {'yes' if answer['is_retried'] else 'no'}"
    if answer["delays"]:
        yield "\ndelays"
        delays = [(str(each["retry"]), f"{each['least']:.3g} s", f"{each['most']:.3g} s") for each in answer["delays"]]
        yield f"{as_table(('retry', 'at least', 'at most'), *delays)}\n"
    if answer["is_spread"]:
        yield "a wait that the server asks for: up to a tenth more, at most 5 s, at random"
    if answer["then"]:
        yield f"then: {answer['then']}"
    yield f"if every attempt ends so: {answer['why']}"


def header_of(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"{line!r}: 'Name: value' is allowed")
    return name.strip(), value.strip()


def status_of(text: str) -> int:
    if not text.isdecimal() or not 100 <= int(text) <= 599:
        raise argparse.ArgumentTypeError(f"{text!r}: a status from 100 to 599 is allowed")
    return int(text)


def parser_of_config() -> argparse.ArgumentParser:
    parser = _parser(config)
    parser.add_argument("--all", action="store_true", help="Show every option, not only those that were set.")
    parser.add_argument("--aws-config", metavar="PROFILE", nargs="?", const="true", help="Also read the AWS settings.")
    return parser


def parser_of_explain() -> argparse.ArgumentParser:
    parser = _parser(explain)
    named = parser.add_argument
    named("--status", type=status_of, help="The response's status.")
    named("--error", metavar="NAME", help="An exception instead, of requests, urllib3 or Python: ReadTimeout.")
    named("--method", default="GET", help="The request's method (default: GET).")
    repeated: Any = {"type": header_of, "action": "append", "default": [], "metavar": "'NAME: VALUE'"}
    named("--header", **repeated, help="A header of the response. Repeatable.")
    named("--body", type=Path, metavar="FILE", help="A file with the response's body.")
    named("--request-header", **repeated, help="A header of the request. Repeatable.")
    named("--unwritten", action="store_true", help="No byte of the request was written when the exception came.")
    return parser


PARSERS = {"config": parser_of_config, "explain": parser_of_explain}


def _parser(command: Callable[[argparse.Namespace], str]) -> argparse.ArgumentParser:
    name = f"requests-smithy-retry {command.__name__}"
    parser = argparse.ArgumentParser(name, description=command.__doc__, allow_abbrev=False)
    parser.add_argument("options", nargs="*", metavar="OPTION=VALUE", help="As given in code: max_attempts=5.")
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    parser.set_defaults(command=command)
    return parser


def carry_out(command: str, arguments: Sequence[str]) -> NoReturn:
    """Print the answer of a command, and exit with 0; with 2 for bad usage or a bad value."""
    parser = PARSERS[command]()
    given = parser.parse_intermixed_args(arguments)
    try:
        answer = given.command(given)
    except (UsageError, RetryConfigError, OSError) as refusal:
        parser.error(str(refusal))
    sys.stdout.write(f"{answer}\n")
    sys.exit(0)
