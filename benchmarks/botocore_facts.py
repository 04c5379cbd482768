"""The behaviour of botocore's standard mode and of this library under the same faults, on real sockets.

    PYTHONPATH=. python benchmarks/botocore_facts.py --json benchmarks/results/botocore-facts.json

It needs botocore and trustme.

Both talk to a server on loopback that misbehaves by a script. Waits are written down and not made; jitter is seeded.
botocore runs as it is: its own endpoint, HTTP session, signer and parser, with credentials that mean nothing. What is
compared is how often a request is sent, what is sent at the last time, and what is waited;
docs/howto/move-from-botocore.md shows the figures. Nothing here depends on the speed of the machine.
"""

from __future__ import annotations

import argparse
import io
import random
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import botocore
import botocore.endpoint
import botocore.session
import command
import requests
import trustme
import urllib3
from botocore.config import Config

import requests_smithy_retry
from requests_smithy_retry import RetryAdapter
from requests_smithy_retry.testing import FakeClock
from tests.faults import CutBody, FaultServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

WHOLE = b"0123456789" * 10
SKIPPED = 40
"""Bytes of a file that were read before it is handed over as a body."""


def part_read() -> io.BytesIO:
    """A file whose beginning has been read already."""
    file = io.BytesIO(WHOLE)
    file.read(SKIPPED)
    return file


class Botocore:
    """One client of botocore, in standard mode with its defaults."""

    def __init__(self, url: str, service: str) -> None:
        self.sleeps: list[float] = []
        botocore.endpoint.time = SimpleNamespace(sleep=self.sleeps.append)
        self.client = botocore.session.Session().create_client(
            service,
            region_name="us-east-1",
            endpoint_url=url,
            aws_access_key_id="a",
            aws_secret_access_key="b",
            config=Config(retries={"mode": "standard"}, s3={"addressing_style": "path"}),
        )
        self.attempts = 0
        self.client.meta.events.register("before-send", self._count)

    def _count(self, **_: Any) -> None:
        self.attempts += 1

    def get(self) -> None:
        self.client.list_buckets()

    def put(self, body: Any) -> None:
        self.client.put_object(Bucket="b", Key="k", Body=body)

    def post(self) -> None:
        self.client.put_item(TableName="t", Item={"id": {"S": "1"}})


class Ours:
    """One session with our adapter and its defaults."""

    def __init__(self, url: str, service: str) -> None:  # noqa: ARG002
        self._clock = FakeClock()
        self._session = requests.Session()
        self._session.mount(url.partition(":")[0] + "://", RetryAdapter(clock=self._clock, trust_env=False))
        self._url = url
        self._history: Any = None

    @property
    def sleeps(self) -> list[float]:
        return self._clock.sleeps

    @property
    def attempts(self) -> int:
        return len(self._history.attempts)

    def _send(self, method: str, body: Any = None) -> None:
        try:
            outcome: Any = self._session.request(method, self._url, data=body)
        except requests.RequestException as error:
            self._history = requests_smithy_retry.retry_history(error)
            raise
        self._history = requests_smithy_retry.retry_history(outcome)
        outcome.raise_for_status()

    def get(self) -> None:
        self._send("GET")

    def put(self, body: Any) -> None:
        self._send("PUT", body)

    def post(self) -> None:
        self._send("POST", b"{}")


LISTING = Reply(200, {"Content-Type": "application/xml"}, b"<ListAllMyBucketsResult></ListAllMyBucketsResult>")
EMPTY_JSON = Reply(200, {"Content-Type": "application/x-amz-json-1.0"}, b"{}")
WELL = Reply(200, body=b"")

CASES: dict[str, tuple[str, list[Any], Callable[[Any], None]]] = {
    "GET, 503 twice": ("s3", [Reply(503), Reply(503), LISTING], lambda peer: peer.get()),
    "GET, 503 for ever": ("s3", [Reply(503)] * 9, lambda peer: peer.get()),
    "GET, 429 without a code": ("s3", [Reply(429), LISTING], lambda peer: peer.get()),
    "GET, 408": ("s3", [Reply(408), LISTING], lambda peer: peer.get()),
    "GET, 503 with Retry-After: 7": ("s3", [Reply(503, {"Retry-After": "7"}), LISTING], lambda peer: peer.get()),
    "GET, 503 with x-amz-retry-after: 2000": (
        "s3",
        [Reply(503, {"x-amz-retry-after": "2000"}), LISTING],
        lambda peer: peer.get(),
    ),
    "GET, answer cut": ("s3", [CutBody(LISTING), LISTING], lambda peer: peer.get()),
    "POST, 500": ("dynamodb", [Reply(500), EMPTY_JSON], lambda peer: peer.post()),
    "PUT of a file that was partly read, 503": ("s3", [Reply(503), WELL], lambda peer: peer.put(part_read())),
}
"""For each case: the service that botocore is asked for, the behaviours of the server, and the call."""


def run_case(peer: type, name: str, tls: ssl.SSLContext | None = None) -> dict[str, Any]:
    """One peer through one case."""
    random.seed(1)
    service, script, call = CASES[name] if tls is None else ("s3", [LISTING] * 9, lambda peer: peer.get())
    with FaultServer(script, tls=tls) as server:
        subject = peer(server.url, service)
        try:
            call(subject)
            ended = "done"
        except Exception as error:
            ended = type(error).__name__
        sent = [request.body for request in server.requests]
    waits = [round(seconds, 3) for seconds in subject.sleeps]
    found: dict[str, Any] = {"attempts": subject.attempts, "ended": ended, "longest wait": max(waits, default=0.0)}
    if "PUT" in name:
        found["bytes sent"] = [len(body) for body in sent]
        found["all the same"] = len(set(sent)) == 1
    return found


def main() -> None:
    """Run every case, print, and write what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    result: dict[str, Any] = {
        "versions": {module.__name__: module.__version__ for module in (botocore, requests, urllib3)},
        "cases": {},
    }
    for name, tls in [*((name, None) for name in CASES), ("GET, untrusted certificate", context)]:
        row = {peer.__name__.lower(): run_case(peer, name, tls) for peer in (Botocore, Ours)}
        result["cases"][name] = row
        print(name, *(f"  {peer}: {found}" for peer, found in row.items()), sep="\n")
    command.write(result, options.json)


if __name__ == "__main__":
    main()
