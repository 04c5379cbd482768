"""The proof that no POST is applied twice: a server counts how often it applied each of thousands of failing ones.

A ledger server writes down each request that it acts on, and then fails in one of many ways; the client retries. Run
``python -m benchmarks.ledger 20000`` for as many; the tests run fewer.
"""

from __future__ import annotations

import collections
import random
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import requests

from requests_smithy_retry import mount
from requests_smithy_retry.testing import FakeClock
from tests.faults import (
    BadStatusLine,
    CloseAfterRequest,
    CutBody,
    CutHead,
    FaultProxy,
    FaultServer,
    Forward,
    MissingLastChunk,
    Reply,
    ResetAfterRequest,
    ResetBeforeRequest,
)

AFTER_APPLYING = [
    ResetAfterRequest(),
    CloseAfterRequest(),
    CutHead(Reply(body=b"done")),
    CutBody(Reply(body=b"done and done")),
    MissingLastChunk(Reply(body=b"done and done")),
    BadStatusLine(b"SSH-2.0-OpenSSH_9.6"),
    *(Reply(status) for status in (200, 500, 502, 503, 504)),
]
"""The ways in which the server goes on after it acted on a request."""
REFUSED = [Reply(status) for status in (429, 408, 425)]
"""The answers that it gives instead of acting."""
PROXY_FAULTS = [ResetAfterRequest(), CloseAfterRequest(), Reply(502), Reply(504), BadStatusLine(b"nonsense")]


@dataclass
class Ledger:
    """The fate of each request.

    :param applied: the number of times that the server acted on it, by its name.
    :param seen: the number of times that it came to the server.
    :param refused: the names of those that the server refused at first.
    :param ended: the status or the exception that the client got.
    """

    applied: collections.Counter[str] = field(default_factory=collections.Counter)
    seen: collections.Counter[str] = field(default_factory=collections.Counter)
    refused: set[str] = field(default_factory=set)
    ended: dict[str, Any] = field(default_factory=dict)


def run(count: int, *, through_proxy: bool = False, seed: int = 1, **headers: str) -> Ledger:
    """Send ``count`` faulted POSTs, and tell what became of them.

    :param through_proxy: by way of a proxy that has faults of its own.
    :param headers: of every request, with ``_`` for ``-``.
    """
    ledger, draw, lock = Ledger(), random.Random(seed), threading.Lock()

    def answer(request: Any) -> Any:
        name = request.body.decode()
        with lock:
            ledger.seen[name] += 1
            if ledger.seen[name] == 1 and draw.random() < 0.2:
                ledger.refused.add(name)
                return draw.choice(REFUSED)
            ledger.applied[name] += 1
            return Reply(body=b"fine") if name in ledger.refused else draw.choice(AFTER_APPLYING)

    def relay(request: Any) -> Any:
        with lock:
            return draw.choice(PROXY_FAULTS) if draw.random() < 0.5 else Forward()

    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    with FaultServer(answer) as server, FaultProxy(relay if through_proxy else ()) as proxy:
        session = mount(requests.Session(), quota=None, max_attempts=4, clock=FakeClock())
        session.trust_env = False
        session.proxies = {"http": proxy.url} if through_proxy else {}
        with session:
            for number in range(count):
                name = f"operation {number}"
                try:
                    ledger.ended[name] = session.post(server.url, data=name, headers=sent, timeout=10).status_code
                except requests.RequestException as error:
                    ledger.ended[name] = type(error).__name__
    return ledger


def unread(count: int) -> collections.Counter[str]:
    """As :func:`run`, with connections that are reset before the request is read: nothing may be applied twice."""
    script = [step for _ in range(count) for step in (ResetBeforeRequest(), Reply(body=b"fine"))]
    applied: collections.Counter[str] = collections.Counter()
    with FaultServer(script) as server, mount(requests.Session(), quota=None, clock=FakeClock()) as session:
        session.trust_env = False
        for number in range(count):
            try:
                session.post(server.url, data=str(number), headers={"Connection": "close"}, timeout=10)
            except requests.RequestException:  # noqa: PERF203
                continue
        applied.update(request.body.decode() for request in server.requests if request.body_complete)
    return applied


if __name__ == "__main__":
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    for proxied in (False, True):
        result = run(total, through_proxy=proxied)
        print(
            f"{'through a proxy' if proxied else 'directly'}: {total} POSTs, {sum(result.seen.values())} requests came,"
        )
        print(f"  applied at most {max(result.applied.values())} time(s) each; {len(result.refused)} refused at first,")
        print(f"  of which {sum(result.ended[name] == 200 for name in result.refused)} ended well")
        print(f"  endings: {dict(collections.Counter(map(str, result.ended.values())))}")
