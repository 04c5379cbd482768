"""What the policy makes of one outcome, found out by letting an adapter live through it without sockets or sleeping."""

from __future__ import annotations

import builtins
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import requests.exceptions
import urllib3.exceptions
from requests import PreparedRequest

from ..actions import RetryForbidden, RetryIndicated
from ..config import RetryConfig
from ..history import RetryHistory, retry_history
from ..stop_reason import StopReason
from ..testing.scripted import ScriptedAdapter, ScriptedReply, scripted
from ..wire import attempt

URL = "https://example.invalid/"

NEVER_WRITTEN = frozenset(
    {"ConnectTimeout", "ConnectTimeoutError", "ConnectionRefusedError", "NameResolutionError", "NewConnectionError"}
)
"""What is raised before a connection stands. On a real connection it is seen whether a byte was written."""


@dataclass(frozen=True)
class Question:
    """One outcome of one request.

    :param status: of the response; None: there is none.
    :param error: the name of an exception of requests, urllib3 or Python; None: there is a response.
    :param method: of the request.
    :param headers: of the response.
    :param body: of the response.
    :param request_headers: of the request.
    :param unwritten: no byte of the request was written when the exception came.
    """

    status: int | None = None
    error: str | None = None
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    request_headers: tuple[tuple[str, str], ...] = ()
    unwritten: bool = False

    def step(self, request: PreparedRequest) -> ScriptedReply | Exception:  # noqa: ARG002
        """What an attempt ends with."""
        if self.error is None:
            return ScriptedReply(self.status or 200, dict(self.headers), self.body)
        attempt.connecting = self.unwritten or self.error.rpartition(".")[2] in NEVER_WRITTEN
        return exception_named(self.error)


@dataclass(frozen=True)
class Explanation:
    """The answer.

    :param votes: what each classifier said, in the order of asking.
    :param verdict: what they said together.
    :param is_retried: whether another attempt is made.
    :param why: in one sentence, how it ends.
    :param delays: the least and the most that is waited before each retry, in seconds.
    """

    votes: tuple[tuple[str, str], ...]
    verdict: str
    is_retried: bool
    why: str
    delays: tuple[tuple[float, float], ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "votes": [{"classifier": name, "verdict": said} for name, said in self.votes],
            "verdict": self.verdict,
            "is_retried": self.is_retried,
            "why": self.why,
            "delays": [
                {"retry": number, "least": least, "most": most}
                for number, (least, most) in enumerate(self.delays, start=1)
            ],
        }


def explain_outcome(question: Question, config: RetryConfig) -> Explanation:
    """What becomes of an outcome, if every attempt ends with it.

    :param config: the policy. A shared quota is not touched: an own bucket of the same size stands in.
    :raises LookupError: for the name of no exception.
    """
    least, most = (_history(question, config, random) for random in (0.0, 1.0))
    first = most.to_dict()["attempts"][0]
    delays = [(quick.delay, slow.delay) for quick, slow in zip(least.attempts[1:], most.attempts[1:], strict=True)]
    return Explanation(
        votes=tuple((vote["classifier"], vote["verdict"]) for vote in first["votes"]),
        verdict=_verdict(most),
        is_retried=len(most.attempts) > 1,
        why=most.sentence,
        delays=tuple(delays),
    )


def exception_named(name: str) -> Exception:
    """An exception of this name, as requests would raise it.

    :raises LookupError: if requests, urllib3 and Python have none of this name.
    """
    for module in (requests.exceptions, urllib3.exceptions, builtins):
        kind = getattr(module, name.rpartition(".")[2], None)
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning):
            return _sample(kind)
    raise LookupError(f"requests, urllib3 and Python have no exception {name!r}")


def read_body(path: str | None) -> bytes:
    """The bytes of a file; none without a path."""
    return b"" if path is None else Path(path).read_bytes()


def _sample(kind: type[Exception]) -> Exception:
    several: tuple[tuple[Any, ...], ...] = (("failed",), (None, "failed"), (None, URL, "failed"))
    for arguments in several:
        with contextlib.suppress(TypeError):
            return kind(*arguments)
    raise LookupError(f"an exception {kind.__name__!r} cannot be made without its cause")


def _history(question: Question, config: RetryConfig, random: float) -> RetryHistory:
    """Live through it with a random number that is always the same: 0 gives the least delays, 1 the most."""
    own = config.replace(quota_url=None, timeout=None, raise_on_status=False, listeners=())
    adapter: ScriptedAdapter = scripted(*[question.step] * own.max_attempts, config=own, trust_env=False)
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
