"""What emulates an SDK's service: answers by path, and one trouble at one of its requests."""

from __future__ import annotations

import contextlib
import json
import os
import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.faults import Behaviour, CutBody, FaultServer, RecordedRequest, Reply, ResetAfterRequest, Stall, try_later

from .rows import Row

JSON = (("Content-Type", "application/json"),)
NOT_NOW = b'{"message": "not now"}'
OUTAGE = "outage"
TROUBLES = ("503", "reset", "429", "cut", "silence")
NOT_APPLIED = ("", "503", "429", OUTAGE)
"""The troubles in which the service did not act on the request; without trouble it did once."""


class Service:
    """Answers a row's requests, acts once for each idempotency key, and makes trouble once (``outage``: always).

    :param trouble: one of :data:`TROUBLES`, :data:`OUTAGE`, or empty.
    :param at: the index of the first request that is troubled.
    """

    def __init__(self, row: Row, trouble: str = "", at: int = 0) -> None:
        self._row, self._trouble, self._at = row, trouble, at
        self._lock = threading.Lock()
        self.url = ""
        self.trace: list[tuple[str, str]] = []
        self.acted: list[tuple[str, str]] = []
        self.unknown: list[str] = []
        self._keys: set[str | None] = set()

    def __call__(self, request: RecordedRequest) -> Behaviour:
        """Answer, or make trouble."""
        key = (request.method, request.path)
        with self._lock:
            turn = len(self.trace)
            self.trace.append(key)
            is_known = self._knows(request.header("Idempotency-Key"))
            is_troubled = bool(self._trouble) and (turn == self._at or self._trouble == OUTAGE)
            if not is_known and (not is_troubled or self._trouble not in NOT_APPLIED):
                self.acted.append(key)
                self._keys.add(request.header("Idempotency-Key"))
        reply = self._answer(request)
        return self._troubled(reply) if is_troubled else reply

    def _knows(self, key: str | None) -> bool:
        return key is not None and key in self._keys

    def _answer(self, request: RecordedRequest) -> Reply:
        asked = f"{request.method} {request.path}"
        for pattern, answer in self._row.answers.items():
            if fnmatchcase(asked, pattern):
                return as_reply(answer, self.url)
        with self._lock:
            self.unknown.append(asked)
        return Reply(404, JSON, b'{"message": "no such path"}')

    def _troubled(self, reply: Reply) -> Behaviour:
        if self._trouble == "reset":
            return ResetAfterRequest()
        if self._trouble == "silence":
            return Stall(reply=reply)
        if self._trouble == "cut":
            return CutBody(reply) if reply.body else ResetAfterRequest()
        if self._trouble == "429":
            return replace(try_later(429, 1), headers=(*JSON, ("Retry-After", "1")), body=NOT_NOW)
        return Reply(503, JSON, NOT_NOW)


def as_reply(answer: Any, url: str) -> Reply:
    """Make a reply of an answer of a row."""
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, bytes):
        return Reply(200, (("Content-Type", "application/octet-stream"),), answer)
    if isinstance(answer, str):
        return Reply(200, (("Content-Type", "text/plain"),), answer.replace("URL", url).encode())
    return Reply(200, JSON, json.dumps(answer).replace("URL", url).encode())


def serving_context(folder: Path) -> ssl.SSLContext:
    """Make a certificate, make this process trust it, and return the server's side of TLS."""
    import trustme

    authority = trustme.CA()
    bundle = folder / "ca.pem"
    authority.cert_pem.write_to_path(bundle)
    for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE"):
        os.environ[name] = str(bundle)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    return context


@contextlib.contextmanager
def serve(service: Service, tls: ssl.SSLContext) -> Iterator[None]:
    """Run a service on loopback, and tell it its URL."""
    with contextlib.closing(FaultServer(service, tls=tls)) as server:
        service.url = f"https://localhost:{server.port}"
        yield
