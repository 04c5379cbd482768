"""The compared clients, and the jobs that a process of its own does for each.

A job tells its events as tuples. Of the workload: at the begin of an operation the hash of its upload, and at its end
the seconds, the status (None after an exception) and the hash of the body. Of a scene: at the end of each operation its
number, its success and the seconds.
"""

from __future__ import annotations

import io
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter

from .plan import Operation, digest, make_plan

TIMEOUT = (2.0, 0.5)
"""Connect and read timeout of every client, in seconds."""

Tell = Callable[[tuple[Any, ...]], None]
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
        partial(HTTPAdapter, max_retries=Retry(total, **options)),
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


def work(tell: Tell, client: Client, url: str, seed: int, operations: int, first: int) -> None:
    """Make the operations of a plan from the first one on, one after the other, in one session."""
    random.seed(seed)  # the adapter's jitter
    with client.session() as session:
        for operation in make_plan(seed, operations)[first:]:
            tell((digest(operation.upload()),))
            started = time.monotonic()
            end = _call(session, url, operation)
            tell((time.monotonic() - started, *end))


def _call(session: requests.Session, url: str, operation: Operation) -> tuple[int | None, str]:
    method = operation.fault.method
    # A key makes a POST safe to send again; the other methods are idempotent.
    headers = {"Idempotency-Key": f"demo-{operation.number}"} if method == "POST" else {}
    try:
        response = session.request(
            method, url + operation.path, data=_body(operation), headers=headers, timeout=TIMEOUT
        )
    except requests.RequestException:
        return None, ""
    return response.status_code, digest(response.content)


def _body(operation: Operation) -> Any:
    body = operation.upload()
    if operation.fault.upload == "generator":
        return (body[start : start + 4096] for start in range(0, len(body), 4096))
    if operation.fault.upload == "file":
        file = io.BytesIO(b"---" + body)
        file.seek(3)
        return file
    return body or None


def play(tell: Tell, client: Client, url: str, rate: float, count: int, users: int) -> None:
    """Begin ``rate`` operations a second, each in a thread of its own, however the earlier ones end."""
    sessions = [client.session() for _ in range(users)]

    def call(number: int) -> None:
        began = time.monotonic()
        try:
            is_done = sessions[number % users].get(f"{url}/{number}", timeout=TIMEOUT).status_code == 200
        except requests.RequestException:
            is_done = False
        tell((number, is_done, time.monotonic() - began))

    began = time.monotonic()
    with ThreadPoolExecutor(count) as threads:
        for number in range(count):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            threads.submit(call, number)
