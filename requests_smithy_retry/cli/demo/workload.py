"""The client side of the workload, run by ``python -m`` in a child process.

It writes a JSON object per line to its standard output: ``{"begin": number, "sent": hash}`` and
``{"end": number, "seconds": ..., "status": ..., "body": hash, "error": name}``. It ends when its standard input ends,
so that it never outlives its parent, however long a client sleeps.
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
    """One of the compared clients.

    :param name: the name of its column.
    :param setup: the code that makes it.
    :param adapter: makes its adapter.
    """

    name: str
    setup: str
    adapter: Callable[[], HTTPAdapter]


def _urllib3(total: int) -> Client:
    return Client(
        f"urllib3 Retry({total})",
        f"HTTPAdapter(max_retries=Retry({total}, backoff_factor=0.25, status_forcelist=[429, 500, 502, 503, 504], "
        "allowed_methods=None))",
        lambda: HTTPAdapter(
            max_retries=Retry(
                total, backoff_factor=0.25, status_forcelist=[429, 500, 502, 503, 504], allowed_methods=None
            )
        ),
    )


PLAIN = Client("requests", "requests.Session()", HTTPAdapter)
AS_OFTEN = _urllib3(2)
"""It has three attempts, as ours. urllib3 needs ``allowed_methods=None`` to retry a POST."""
AS_LONG = _urllib3(5)
"""It goes on for about as long as ours waits for a service that is down: 7.5 s, and time-outs."""
OURS = Client("RetryAdapter", "RetryAdapter()", RetryAdapter)

CLIENTS = (PLAIN, AS_OFTEN, OURS)
"""The clients that meet every fault, ours last."""
CROWD_CLIENTS = (PLAIN, AS_OFTEN, AS_LONG, OURS)
"""The clients that meet a server in trouble, ours last."""


def client_named(name: str) -> Client:
    """Return the client of this name."""
    return next(client for client in CROWD_CLIENTS if client.name == name)


@dataclass(frozen=True)
class Assignment:
    """The task of a child.

    :param client: the name of one of :data:`CLIENTS`.
    :param url: the URL of its server.
    :param seed: the seed of the plan.
    :param operations: the number of operations in the plan.
    :param first: the number of the first operation to make.
    """

    client: str
    url: str
    seed: int
    operations: int
    first: int = 0

    def to_json(self) -> str:
        """Return the child's argument."""
        return json.dumps(asdict(self))


def work(assignment: Assignment, tell: Callable[[dict[str, Any]], None], clock: Clock = SYSTEM_CLOCK) -> None:
    """Make the operations, one after the other, in one session.

    :param tell: called with each event.
    """
    random.seed(assignment.seed)  # the adapter's jitter
    client = client_named(assignment.client)
    with requests.Session() as session:
        session.trust_env = False  # no proxy of the environment between the two ends
        session.mount("http://", client.adapter())
        for operation in make_plan(assignment.seed, assignment.operations)[assignment.first :]:
            tell({"begin": operation.number, "sent": digest(operation.upload())})
            started = clock.now()
            end = _call(session, assignment.url, operation)
            tell({"end": operation.number, "seconds": clock.now() - started, **end})


def _call(session: requests.Session, url: str, operation: Operation) -> dict[str, Any]:
    with tempfile.TemporaryFile() as file:
        # A key makes a POST safe to send again; the other methods are idempotent.
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

    :param descriptor: the descriptor of the standard input, whose other end the parent holds.
    :param exit_now: ends the process.
    """

    def wait() -> None:
        # Not through sys.stdin: a daemon thread inside its buffer breaks the interpreter's shutdown.
        while os.read(descriptor, 1):
            pass
        exit_now(1)

    thread = threading.Thread(target=wait, name="end-with-parent", daemon=True)
    thread.start()
    return thread


def main(
    arguments: Sequence[str], stdin: int, stdout: IO[str], exit_now: Callable[[int], object] = os._exit
) -> threading.Thread:
    """Do the task in the one argument.

    :param stdin: the descriptor of the standard input.
    :param stdout: the stream of the events.
    :param exit_now: ends the process.
    :returns: the thread that reads the standard input.
    """
    watcher = end_with(stdin, exit_now)

    def tell(event: dict[str, Any]) -> None:
        stdout.write(json.dumps(event) + "\n")
        stdout.flush()

    work(Assignment(**json.loads(arguments[0])), tell)
    return watcher


if __name__ == "__main__":  # pragma: no cover - runs in the child, where nothing is measured
    main(sys.argv[1:], sys.stdin.fileno(), sys.stdout)
