"""The client's side of the workload. It runs in a child process: this module is what ``python -m`` is given.

It tells on its standard output what it does, a JSON object a line: ``{"begin": number, "sent": hash}`` and
``{"end": number, "seconds": ..., "status": ..., "body": hash, "error": name}``. It ends when its standard input does,
so that it never outlives its parent, however long a client wants to sleep.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from ...adapter import RetryAdapter
from ...clock import SYSTEM_CLOCK, Clock
from .plan import Operation, digest, make_plan

TIMEOUT = (2.0, 0.5)
"""Connect and read timeout of every client, in seconds."""


@dataclass(frozen=True)
class Client:
    """One of those that are compared.

    :param name: its column.
    :param setup: how it is made, as one would write it.
    :param adapter: makes its adapter.
    """

    name: str
    setup: str
    adapter: Callable[[], HTTPAdapter]


CLIENTS = (
    Client("requests", "requests.Session()", HTTPAdapter),
    Client(
        "urllib3 Retry(3)",
        "HTTPAdapter(max_retries=Retry(3, backoff_factor=0.3, status_forcelist=[429, 500, 502, 503, 504], "
        "allowed_methods=None))",
        lambda: HTTPAdapter(
            max_retries=Retry(3, backoff_factor=0.3, status_forcelist=[429, 500, 502, 503, 504], allowed_methods=None)
        ),
    ),
    Client(
        "RetryAdapter",
        "RetryAdapter(max_attempts=16, max_backoff=1)",
        lambda: RetryAdapter(max_attempts=16, max_backoff=1),
    ),
)
"""Ours is the last. ``allowed_methods=None`` is what people need to have a POST retried."""


@dataclass(frozen=True)
class Assignment:
    """What a child is told to do.

    :param client: name of one of :data:`CLIENTS`.
    :param url: of its server.
    :param seed: of the plan.
    :param operations: how many the plan has.
    :param first: number of the operation to begin with.
    """

    client: str
    url: str
    seed: int
    operations: int
    first: int = 0

    def to_json(self) -> str:
        """The child's argument."""
        return json.dumps(asdict(self))


def work(assignment: Assignment, tell: Callable[[dict[str, Any]], None], clock: Clock = SYSTEM_CLOCK) -> None:
    """Do the operations, one after the other, in one session.

    :param tell: is given each event.
    """
    random.seed(assignment.seed)  # the adapter's jitter
    client = next(client for client in CLIENTS if client.name == assignment.client)
    with requests.Session() as session:
        session.trust_env = False  # a proxy of the environment would stand between the two ends
        session.mount("http://", client.adapter())
        for operation in make_plan(assignment.seed, assignment.operations)[assignment.first :]:
            tell({"begin": operation.number, "sent": digest(operation.upload())})
            started = clock.now()
            end = _call(session, assignment.url, operation)
            tell({"end": operation.number, "seconds": clock.now() - started, **end})


def _call(session: requests.Session, url: str, operation: Operation) -> dict[str, Any]:
    with tempfile.TemporaryFile() as file:
        # A key is what makes a POST safe to send again; the other methods are idempotent.
        headers = {"Idempotency-Key": f"demo-{operation.number}"} if operation.fault.method == "POST" else {}
        try:
            response = session.request(
                operation.fault.method,
                url + operation.path,
                data=_body(operation, file),
                headers=headers,
                timeout=TIMEOUT,
            )
        except requests.RequestException as error:
            return {"status": None, "body": None, "error": type(error).__name__}
        return {"status": response.status_code, "body": digest(response.content), "error": None}


def _body(operation: Operation, file: IO[bytes]) -> bytes | Iterator[bytes] | IO[bytes] | None:
    body = operation.upload()
    if operation.fault.upload == "generator":
        return (body[start : start + 4096] for start in range(0, len(body), 4096))
    if operation.fault.upload == "file":
        file.write(b"---" + body)
        file.seek(3)
        return file
    return body if operation.fault.upload else None


def end_with(descriptor: int, exit_now: Callable[[int], object] = os._exit) -> threading.Thread:
    """End this process as soon as a pipe ends, even while the main thread sleeps.

    :param descriptor: of the standard input, whose other end the parent holds.
    :param exit_now: ends the process.
    """

    def wait() -> None:
        # Not through sys.stdin: a daemon thread that is inside its buffer breaks the interpreter's own end.
        while os.read(descriptor, 1):
            pass
        exit_now(1)

    thread = threading.Thread(target=wait, name="end-with-parent", daemon=True)
    thread.start()
    return thread


def main(
    arguments: Sequence[str], stdin: int, stdout: IO[str], exit_now: Callable[[int], object] = os._exit
) -> threading.Thread:
    """Do what the one argument says.

    :param stdin: descriptor of the standard input.
    :param stdout: where the events go.
    :param exit_now: ends the process.
    :returns: what watches the standard input.
    """
    watcher = end_with(stdin, exit_now)

    def tell(event: dict[str, Any]) -> None:
        stdout.write(json.dumps(event) + "\n")
        stdout.flush()

    work(Assignment(**json.loads(arguments[0])), tell)
    return watcher


if __name__ == "__main__":  # pragma: no cover - runs in the child, where nothing is measured
    main(sys.argv[1:], sys.stdin.fileno(), sys.stdout)
