"""The compared clients, and the programs that a child process runs for each, by ``python -m``.

A child writes a JSON object per line to its standard output. Of the workload: ``{"begin": number, "sent": hash}`` and
``{"end": number, "seconds": ..., "status": ..., "body": hash, "error": name}``; of a scene, for each operation that
ended: ``{"at": seconds, "done": true, "seconds": ...}``. It ends when its standard input ends, so that it never
outlives its parent, however long a client sleeps.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from ...adapter import RetryAdapter
from ...clock import SYSTEM_CLOCK, Clock
from .plan import Operation, digest, make_plan

TIMEOUT = (2.0, 0.5)
"""Connect and read timeout of every client, in seconds."""

Tell = Callable[[dict[str, Any]], None]
"""A function that is called with each event."""


@dataclass(frozen=True)
class Client:
    """One of the compared clients."""

    name: str
    setup: str
    adapter: Callable[[], HTTPAdapter]

    def session(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False  # no proxy of the environment between the two ends
        session.mount("http://", self.adapter())
        return session


def _urllib3(total: int) -> Client:
    options: dict[str, Any] = {
        "backoff_factor": 0.25,
        "status_forcelist": [429, 500, 502, 503, 504],
        "allowed_methods": None,  # else it does not retry a POST
    }
    shown = ", ".join(f"{name}={value}" for name, value in options.items())
    return Client(
        f"urllib3 Retry({total})",
        f"HTTPAdapter(max_retries=Retry({total}, {shown}))",
        lambda: HTTPAdapter(max_retries=Retry(total, **options)),
    )


PLAIN = Client("requests", "requests.Session()", HTTPAdapter)
AS_OFTEN = _urllib3(2)
"""The client has three attempts, as ours."""
AS_LONG = _urllib3(5)
"""The client goes on for about as long as ours waits for a service that is down: 7.5 s, and time-outs."""
OURS = Client("RetryAdapter", "RetryAdapter()", RetryAdapter)
CLIENTS = (PLAIN, AS_OFTEN, OURS)
"""The clients that meet every fault, ours last."""
CROWD_CLIENTS = (PLAIN, AS_OFTEN, AS_LONG, OURS)
"""The clients that meet a server in trouble, ours last."""


def client_named(name: str) -> Client:
    return next(client for client in CROWD_CLIENTS if client.name == name)


def work(
    tell: Tell, client: str, url: str, *, seed: int, operations: int, first: int, clock: Clock = SYSTEM_CLOCK
) -> None:
    """Make the operations of a plan from the first one on, one after the other, in one session."""
    random.seed(seed)  # the adapter's jitter
    with client_named(client).session() as session:
        for operation in make_plan(seed, operations)[first:]:
            tell({"begin": operation.number, "sent": digest(operation.upload())})
            started = clock.now()
            end = _call(session, url, operation)
            tell({"end": operation.number, "seconds": clock.now() - started, **end})


def _call(session: requests.Session, url: str, operation: Operation) -> dict[str, Any]:
    method = operation.fault.method
    # A key makes a POST safe to send again; the other methods are idempotent.
    headers = {"Idempotency-Key": f"demo-{operation.number}"} if method == "POST" else {}
    with tempfile.TemporaryFile() as file:
        body = _body(operation, file)
        try:
            response = session.request(method, url + operation.path, data=body, headers=headers, timeout=TIMEOUT)
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


def play(
    tell: Tell, client: str, url: str, *, rate: float, count: int, users: int, clock: Clock = SYSTEM_CLOCK
) -> None:
    """Begin ``rate`` operations a second, each in a thread of its own, however the earlier ones end."""
    sessions = [client_named(client).session() for _ in range(users)]

    def call(number: int) -> None:
        began = clock.now()
        try:
            is_done = sessions[number % users].get(f"{url}/{number}", timeout=TIMEOUT).status_code == 200
        except requests.RequestException:
            is_done = False
        tell({"at": number / rate, "done": is_done, "seconds": clock.now() - began})

    began = clock.now()
    with ThreadPoolExecutor(count) as threads:
        for number in range(count):
            clock.sleep(max(0.0, began + number / rate - clock.now()))
            threads.submit(call, number)


def end_with(descriptor: int, exit_now: Callable[[int], object] = os._exit) -> threading.Thread:
    """End this process as soon as a pipe ends, even while the main thread sleeps."""

    def wait() -> None:
        # Not through sys.stdin: a daemon thread inside its buffer breaks the interpreter's shutdown.
        while os.read(descriptor, 1):
            pass
        exit_now(1)

    thread = threading.Thread(target=wait, name="end-with-parent", daemon=True)
    thread.start()
    return thread


def main(job: str, stdin: int, stdout: IO[str], exit_now: Callable[[int], object] = os._exit) -> threading.Thread:
    """Do a job: the arguments of :func:`work` or :func:`play`, as JSON. Return the reader of the standard input."""
    watcher = end_with(stdin, exit_now)
    lock = threading.Lock()

    def tell(event: dict[str, Any]) -> None:
        with lock:
            stdout.write(json.dumps(event) + "\n")
            stdout.flush()

    arguments = json.loads(job)
    (play if "rate" in arguments else work)(tell, **arguments)
    return watcher


if __name__ == "__main__":  # pragma: no cover - runs in the child, where nothing is measured
    main(sys.argv[1], sys.stdin.fileno(), sys.stdout)
