"""The service of one client: the answers that its vendor documents, one fault, and a ledger of what was applied."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from fnmatch import fnmatchcase
from typing import Any

from tests.faults import Behaviour, CloseAfterRequest, CutBody, CutHead, MissingLastChunk, Reply, ResetAfterRequest
from tests.faults import RecordedRequest as Request

from .rows import DATA, LIMIT, SAFE

JSON = {"Content-Type": "application/json"}
NOT_NOW = b'{"message": "not now"}'
PLACES = re.compile(r"\{(now|md5|md5 hex|sha1|sha1 hex|sha256 hex|received|echo [\w-]+)\}")
REDIRECT, REFUSED, LIMITED = "redirect", "refused", "429, Retry-After"


def _broken(way: Callable[[Reply], Behaviour]) -> Callable[[Reply], Behaviour]:
    return lambda reply: way(reply) if reply.body and reply.status != 204 else CutHead(reply, 9)


FAULTS: dict[str, tuple[bool, Callable[[Reply], Behaviour]]] = {
    "503": (False, lambda reply: Reply(503, JSON, NOT_NOW)),
    "503, Retry-After": (False, lambda reply: Reply(503, {**JSON, "Retry-After": "1"}, NOT_NOW)),
    LIMITED: (False, lambda reply: Reply(429, {**JSON, "Retry-After": "1"}, NOT_NOW)),
    "500": (True, lambda reply: Reply(500, JSON, NOT_NOW)),
    "reset": (True, lambda reply: ResetAfterRequest()),
    "closed unanswered": (False, lambda reply: CloseAfterRequest()),
    "closed in the body": (True, _broken(CutBody)),
    "no last chunk": (True, _broken(MissingLastChunk)),
    "slow first byte": (True, lambda reply: replace(reply, delay=LIMIT + 1)),
    REFUSED: (False, lambda reply: reply),
    REDIRECT: (False, lambda reply: reply),
}
"""By name: whether the request was applied by then, and what becomes of its answer; the child makes ``refused``."""


class Service:
    """Answers one call of a client, of `rows.toml`, and makes one fault."""

    def __init__(self, row: dict[str, Any]) -> None:
        self._row, self._lock = row, threading.Lock()
        self.url = "https://" + row["host"]
        self.begin(0)

    def begin(self, call: int, fault: str = "", at: int = 0, *, at_once: bool = False) -> None:
        """Serve one call, with a fault at a request; ``at_once`` answers long polls at once."""
        self._answers = [*self._row["call"][call]["answer"], *self._row.get("answer", ())]
        self._fault, self._at = fault, at
        self._patience = 0 if at_once else 1
        self.trace: list[str] = []
        self.safe: list[bool] = []
        self.applied = Counter[str]()
        self.unknown: list[str] = []
        self._known: set[str | int] = set()
        self._received = "0"

    def __call__(self, request: Request) -> Behaviour:
        """Answer, or make the fault."""
        with self._lock:
            is_hit = self._fault not in ("", REFUSED) and len(self.trace) == self._at
            self.trace.append(request.method)
            answer = next((each for each in self._answers if _fits(each, request)), None)
            self.safe.append(request.method in SAFE and "again" not in (answer or {}))
            if answer is None:
                self.unknown.append(f"{request.method} {request.target}")
                return Reply(404, JSON, b'{"message": "no such path"}')
            reply = self._reply(answer, request)
            if not is_hit or FAULTS[self._fault][0]:
                reply = self._apply(answer, request, reply)
        return self._troubled(request, reply) if is_hit else reply

    def _apply(self, answer: dict[str, Any], request: Request, reply: Reply) -> Reply:
        key = request.header("Idempotency-Key") or (id(answer) if "again" in answer and self._patience else None)
        if key in self._known:
            again = answer.get("again")
            return Reply(again["status"], JSON, again["body"].encode()) if again else reply
        self._known |= {key} if key else set()
        if sent := re.match(r"bytes \d+-(\d+)/", request.header("Content-Range") or ""):
            self._received = sent[1]
            reply = self._reply(answer, request)
        if request.method not in SAFE and not answer.get("repeatable"):
            self.applied[f"{request.method} {request.path}"] += 1
        return reply

    def _troubled(self, request: Request, reply: Reply) -> Behaviour:
        if self._fault == REDIRECT:
            sign = "&" if "?" in request.target else "?"
            return Reply(307, {"Location": f"https://{request.header('Host')}{request.target}{sign}moved=1"})
        if self._fault == LIMITED and "refusal" in self._row:
            refusal = self._row["refusal"]
            return Reply(refusal.get("status", 429), {**JSON, **refusal["headers"]}, refusal["body"].encode())
        return FAULTS[self._fault][1](reply)

    def _reply(self, answer: dict[str, Any], request: Request) -> Reply:
        status, text, headers = answer.get("status", 200), answer.get("body", ""), dict(self._row.get("headers", {}))
        body = DATA if text == "DATA" else text.replace("URL", self.url).encode()
        stored = body if request.method in ("GET", "HEAD") else request.body

        def value(place: re.Match[str]) -> str:
            name, _, shape = place[1].partition(" ")
            if name == "echo":
                return request.header(shape) or ""
            if name in ("now", "received"):
                return formatdate(usegmt=True) if name == "now" else self._received
            digest = hashlib.new(name, stored)
            return digest.hexdigest() if shape else base64.b64encode(digest.digest()).decode()

        headers |= answer.get("headers", {})
        headers = {name: PLACES.sub(value, each).replace("URL", self.url) for name, each in headers.items()}
        body = PLACES.sub(value, body.decode()).encode()
        if answer.get("gzip") and "gzip" in (request.header("Accept-Encoding") or ""):
            body, headers["Content-Encoding"] = gzip.compress(body, mtime=0), "gzip"
        asked = re.match(r"bytes=(\d+)-(\d*)", request.header("Range") or request.header("x-ms-range") or "")
        is_same = (request.header("If-Range") or headers.get("ETag")) == headers.get("ETag")
        if asked and is_same and status == 200 and headers.get("Accept-Ranges") == "bytes" and request.method == "GET":
            first, last = int(asked[1]), min(int(asked[2] or len(body)), len(body) - 1)
            is_there, part = first <= last, f"{first}-{last}" if first <= last else "*"
            headers["Content-Range"] = f"bytes {part}/{len(body)}"
            status, body = (206, body[first : last + 1]) if is_there else (416, b"")
        is_chunked = headers.pop("Transfer-Encoding", "") == "chunked"
        delay = answer.get("delay", 0.0) * self._patience
        return Reply(status, headers, body, "chunked" if is_chunked else "length", delay)


def _fits(answer: dict[str, Any], request: Request) -> bool:
    return (
        fnmatchcase(f"{request.method} {request.path}", answer["request"])
        and answer.get("query", "") in request.target
        and all(fnmatchcase(request.header(name) or "", text) for name, text in answer.get("when", {}).items())
    )
