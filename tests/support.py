"""Helpers for tests, beside the public kit: requests, sessions and exceptions to play."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import requests
import requests.exceptions
import urllib3.exceptions
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from requests_smithy_retry import RetryConfig, testing
from requests_smithy_retry.testing import FakeClock, ScriptedAdapter, ScriptedTransport
from requests_smithy_retry.testing import ScriptedReply as Reply
from requests_smithy_retry.testing import SentRequest as Sent
from requests_smithy_retry.testing.scripted import wire_bytes

__all__ = [
    "LEFT",
    "ROOT",
    "URL",
    "Chunks",
    "Guide",
    "Reply",
    "Rows",
    "ScriptedAdapter",
    "ScriptedTransport",
    "Sent",
    "before_each_sleep",
    "ended",
    "let_go",
    "pin_random",
    "pool_timeout",
    "prepare",
    "python",
    "read_timeout",
    "reset_error",
    "scripted",
    "send",
    "session_with",
    "wire_bytes",
]

ROOT = Path(__file__).resolve().parents[1]
URL = "https://api.example.com/things"


NOT_THE_DEFAULT = {"config", "quota", "retry_spec", "strategy"}
"""With one of them an adapter has another quota anyway."""


def scripted(*script: Any, **options: Any) -> ScriptedAdapter:
    """Make the kit's scripted adapter, but with the published bucket, which never makes an operation wait."""
    if NOT_THE_DEFAULT.isdisjoint(options):
        options["quota"] = 500
    return testing.scripted(*script, **options)


def let_go() -> None:
    """Collect what is dropped, where it is not gone at once, as references are not counted (PyPy; contract 11.5)."""
    if sys.implementation.name == "pypy":
        for _ in range(3):  # what a finalizer can reach outlives it
            gc.collect()


def prepare(method: str = "GET", url: str = URL, *, data: Any = None, headers: Any = None) -> PreparedRequest:
    """A prepared request."""
    return requests.Request(method, url, data=data, headers=headers).prepare()


def send(
    adapter: HTTPAdapter,
    method: str = "GET",
    url: str = URL,
    *,
    data: Any = None,
    headers: Any = None,
    **options: Any,
) -> Response:
    """Prepare a request and send it through the adapter."""
    return adapter.send(prepare(method, url, data=data, headers=headers), **options)


def ended(adapter: HTTPAdapter, method: str = "GET", **given: Any) -> Any:
    """Send, and return the response or the exception."""
    try:
        return send(adapter, method, **given)
    except requests.RequestException as error:
        return error


def config_of(**options: Any) -> RetryConfig:
    """A config; what is no option is set as a translation would."""
    inner = {name: options.pop(name) for name in ("rules", "strict_methods", "backoff_base") if name in options}
    return RetryConfig(**options).replace_from(dict.fromkeys(inner, "code"), **inner)


def session_with(adapter: HTTPAdapter) -> requests.Session:
    """A session with the adapter on both schemes, blind to the environment."""
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


def pin_random(strategy: Any, value: float) -> None:
    """Have the backoff draw this number each time."""
    for backoff in (strategy.policy.transient, strategy.policy.throttling):
        backoff.random = lambda: value


def before_each_sleep(clock: FakeClock, look: Callable[[float], object]) -> None:
    """Have a function called with the seconds of each sleep, just before it."""
    usual = clock.sleep

    def sleep(seconds: float) -> None:
        look(seconds)
        usual(seconds)

    clock.sleep = sleep  # type: ignore[method-assign]


def python(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run this interpreter in a folder, with the package of this checkout, and without measuring coverage."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environ}
    env.pop("COVERAGE_PROCESS_START", None)
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=600, check=False)


def reset_error() -> requests.exceptions.ConnectionError:
    """A connection that was reset after the request was written."""
    inner = urllib3.exceptions.ProtocolError("Connection aborted.", ConnectionResetError(104, "reset"))
    return requests.exceptions.ConnectionError(inner)


def read_timeout() -> requests.exceptions.ReadTimeout:
    """An answer that did not come in time."""
    return requests.exceptions.ReadTimeout(urllib3.exceptions.ReadTimeoutError(None, URL, "timed out"))  # type: ignore[arg-type]


def pool_timeout() -> requests.exceptions.ConnectionError:
    """No connection was free in time, so nothing was written."""
    return requests.exceptions.ConnectionError(urllib3.exceptions.EmptyPoolError(None, "full"))  # type: ignore[arg-type]


class Guide:
    """A strategy as in the Smithy guide, which knows only the attributes of errors; its tokens are its own.

    :param refusals: what it raises when asked for a retry, in turn; None: it gives one, KeyError: it raises what it was
        shown.
    :param first: what it raises in place of the first token, or the seconds that this one has to wait.
    """

    def __init__(self, *refusals: Exception | None, delay: Any = 0.0, first: Any = None) -> None:
        self.refusals = list(refusals)
        self.delay = delay
        self.first = first
        self.shown: list[Any] = []
        self.seen: list[Any] = []

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Any:
        if isinstance(self.first, Exception):
            raise self.first
        self.seen.append(token_scope)
        return SimpleNamespace(retry_count=0, retry_delay=self.first)

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Any) -> Any:
        self.shown.append(error)
        self.seen.append((error.is_retry_safe, getattr(error, "fault", None)))
        refusal = self.refusals.pop(0) if self.refusals else None
        if isinstance(refusal, KeyError):
            raise error
        if refusal is not None:
            raise refusal
        return SimpleNamespace(retry_count=token_to_renew.retry_count + 1, retry_delay=self.delay)

    def record_success(self, *, token: Any) -> None:
        self.seen.append(token.retry_count)

    def __repr__(self) -> str:
        return "<Guide>"


class Rows:
    """A class that many people write around a file: each iteration goes on where the one before stopped."""

    def __init__(self, *rows: bytes) -> None:
        self.source = iter(rows)

    def __iter__(self) -> Iterator[bytes]:
        yield from self.source


class Chunks(Rows):
    """A class that begins a new iteration each time, as it should."""

    def __init__(self, *rows: bytes) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[bytes]:
        yield from self.rows


LEFT = """\
import os, sys
from requests import Session
from requests.adapters import HTTPAdapter

session = Session()
for scheme in ("http://", "https://"):
    session.mount(scheme, HTTPAdapter(max_retries=2))
print("mounted", file=sys.stderr)
if sys.argv[1:] == ["fork"] and os.fork() == 0:
    sys.exit()
if sys.argv[1:] == ["close"]:
    sys.stderr.close()
if sys.argv[1:] == ["none"]:
    sys.stderr = None
"""
"""A program whose adapters have no retries of ours; as its argument says, it ends in some unusual way."""
