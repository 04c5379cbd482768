"""The policy's decision on one outcome, found by running an adapter without sockets and without sleeping."""

from __future__ import annotations

import builtins
import contextlib
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import requests.exceptions
import urllib3.exceptions
from requests import PreparedRequest

from ..classifiers.actions import RetryForbidden, RetryIndicated
from ..config.retry_config import RetryConfig
from ..errors import StopReason
from ..observing.history import AttemptRecord, RetryHistory, retry_history
from ..testing.scripted import ScriptedAdapter, ScriptedReply, scripted
from ..wire import this_thread

URL = "https://example.invalid/"

NEVER_WRITTEN = frozenset(
    {"ConnectTimeout", "ConnectTimeoutError", "ConnectionRefusedError", "NameResolutionError", "NewConnectionError"}
)
"""The exceptions raised before a connection is made. On a real connection, the adapter sees what was written."""


MOST_UNCOUNTED = 100
"""More attempts than an operation can make while no operation succeeds and only its first attempt counts."""


@dataclass(frozen=True)
class Question:
    """One outcome of one request."""

    status: int | None = None
    error: str | None = None
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    request_headers: tuple[tuple[str, str], ...] = ()
    unwritten: bool = False

    def step(self, request: PreparedRequest) -> ScriptedReply | Exception:  # noqa: ARG002
        if self.error is None:
            return ScriptedReply(self.status or 200, dict(self.headers), self.body)
        this_thread.connecting = self.unwritten or self.error.rpartition(".")[2] in NEVER_WRITTEN
        return exception_named(self.error)


@dataclass(frozen=True)
class Explanation:
    """The answer to a :class:`Question`.

    :param votes: the verdict of each classifier, in the order of asking.
    :param verdict: the verdict of all together.
    :param is_retried: True if another attempt is made.
    :param why: the end of the operation, in one sentence.
    :param delays: the shortest and the longest wait before each retry that the quota pays for, in seconds.
    :param then: a sentence on an operation that finds the quota empty; an empty text if none does, or nothing follows.
    """

    votes: tuple[tuple[str, str], ...]
    verdict: str
    is_retried: bool
    why: str
    delays: tuple[tuple[float, float], ...]
    then: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "votes": [{"classifier": name, "verdict": verdict} for name, verdict in self.votes],
            "verdict": self.verdict,
            "is_retried": self.is_retried,
            "why": self.why,
            "delays": [
                {"retry": number, "least": least, "most": most}
                for number, (least, most) in enumerate(self.delays, start=1)
            ],
            "then": self.then,
        }


def explain_outcome(question: Question, config: RetryConfig) -> Explanation:
    """Explain the decision if every attempt ends with this outcome.

    :param config: the policy. A shared quota is replaced by a bucket of the same size.
    :raises LookupError: for an unknown exception.
    """
    least, most = (_history(question, config, random) for random in (0.0, 1.0))
    first = most.to_dict()["attempts"][0]
    paid = zip(_paid(least), _paid(most), strict=False)  # with longer delays the outage may be too old for the last
    delays = [(quick.delay, slow.delay) for quick, slow in paid]
    return Explanation(
        votes=tuple((vote["classifier"], vote["verdict"]) for vote in first["votes"]),
        verdict=_verdict(most),
        is_retried=len(most.attempts) > 1,
        why=most.sentence,
        delays=tuple(delays),
        then=_then(config) if _waits(least) else "",
    )


def _paid(history: RetryHistory) -> list[AttemptRecord]:
    """Return the retries before the operation waits for its service."""
    return list(itertools.takewhile(lambda attempt: not attempt.line_why, history.attempts[1:]))


def _waits(history: RetryHistory) -> bool:
    return history.line_wait > 0 or len(_paid(history)) < len(history.attempts) - 1


def _then(config: RetryConfig) -> str:
    limit = config.operation_timeout
    until = f"the outage is {config.patience:g} s old" if limit is None else f"the deadline of {limit:g} s is over"
    return f"the quota is empty; waits until another request succeeds, and asks by itself now and then, until {until}"


def exception_named(name: str) -> Exception:
    """Make an exception of this name, as requests would raise it."""
    for module in (requests.exceptions, urllib3.exceptions, builtins):
        kind = getattr(module, name.rpartition(".")[2], None)
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning):
            return _sample(kind)
    raise LookupError(f"requests, urllib3 and Python have no exception {name!r}")


def read_body(path: str | None) -> bytes:
    return b"" if path is None else Path(path).read_bytes()


def _sample(kind: type[Exception]) -> Exception:
    several: tuple[tuple[Any, ...], ...] = (("failed",), (None, "failed"), (None, URL, "failed"))
    for arguments in several:
        with contextlib.suppress(TypeError):
            return kind(*arguments)
    raise LookupError(f"an exception {kind.__name__!r} cannot be made without its cause")


def _history(question: Question, config: RetryConfig, random: float) -> RetryHistory:
    """Run the operation with a constant random number: 0 gives the shortest delays, 1 the longest."""
    quota_url = None if config.quota_url is None else "memory://"
    own = config.replace(quota_url=quota_url, timeout=None, raise_on_status=False, listeners=())
    steps = [question.step] * (own.max_attempts + MOST_UNCOUNTED)
    adapter: ScriptedAdapter = scripted(*steps, config=own, trust_env=False)
    strategy: Any = adapter.strategy
    for backoff in (strategy.backoff_strategy, strategy.throttling_backoff_strategy):
        backoff.random = lambda: random
    request = requests.Request(question.method, URL, headers=dict(question.request_headers)).prepare()
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
