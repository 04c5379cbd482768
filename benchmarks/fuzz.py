"""Feed mutated heads, hints and bodies to a client, and look for anything else than a requests exception.

    python benchmarks/fuzz.py [--seconds N] [--seed N]

Each round takes a well-formed answer, mutates it at random (bytes flipped, cut, doubled, swapped for tokens that
parsers dislike), sends it over a real socket on loopback to a session with all defaults and a deadline, and closes. The
pure parser of server hints gets the same tokens. Printed: rounds, what came of them, and each finding with the bytes
that led to it. Exit status 1: something else than a response or a requests exception came, or a round took too long.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import logging
import math
import random
import socket
import sys
import threading
import time
import warnings
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import requests
from requests.structures import CaseInsensitiveDict

from requests_smithy_retry import RetryAdapter
from requests_smithy_retry.pacing.server_hints import read_hint

DEADLINE = 0.5
SLOW = DEADLINE + 0.3
TOKENS = [
    b"-1", b"0", b"1e309", b"nan", b"9" * 4000, b"\xff", b"\x00", b"\r\n", b"\n\n", b"\r", b":", b" ", b"\t", b"",
    b"Sun, 06 Nov 1994 08:49:37 GMT", b"Sunday, 06-Nov-94 08:49:37 GMT", b"Fri, 31 Feb 9999 99:99:99 GMT", b"soon",
    b"HTTP/1.1", b"HTTP/9.9", b"HTTP/1.1 100 \r\n\r\n", b"HTTP/1.1 103 x\r\n\r\n", b"101", b"999", b"\xe2\x80\x8b",
    b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip, deflate\r\n",
    b"Set-Cookie: a=b; expires=Fri, 99 Zzz 99999\r\n", b"Location: http://[::1\r\n", b"ffffffffffffffffff",
    b"<!DOCTYPE x [<!ENTITY y SYSTEM 'file:///'>]>", b'{"__type":' * 2000, b"[" * 5000, b"<a>" * 3000,
]  # fmt: skip
STATUSES = [200, 204, 206, 304, 400, 404, 408, 425, 429, 500, 503]
HINTS = [b"Retry-After", b"retry-after-ms", b"x-amz-retry-after", b"x-amzn-errortype", b"Date"]
BODIES = [
    b"", b"hello", json.dumps({"__type": "a#ThrottlingException:http://x", "message": "m"}).encode(),
    b"<Response><Errors><Error><Code>SlowDown</Code></Error></Errors></Response>",
]  # fmt: skip


class Server(threading.Thread):
    """Answers each connection with the bytes that are set, and closes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        self.answer = b""

    def run(self) -> None:
        """Serve until the listener is closed."""
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with sock:
                try:
                    sock.recv(65536)
                    sock.sendall(self.answer)
                    sock.shutdown(socket.SHUT_WR)
                except OSError:
                    continue


def answer(draw: random.Random) -> bytes:
    """A well-formed answer."""
    body = draw.choice(BODIES)
    names = draw.sample(HINTS, draw.randrange(3))
    lines = [name + b": " + draw.choice([b"0", *TOKENS]).replace(b"\r\n", b"") for name in names]
    coding = draw.choice([b"", b"gzip", b"deflate"])
    if coding:
        body = gzip.compress(body) if coding == b"gzip" else zlib.compress(body)
        lines.append(b"Content-Encoding: " + coding)
    framing = draw.choice(["length", "chunked", "close"])
    if framing == "length":
        lines.append(b"Content-Length: %d" % len(body))
    if framing == "chunked":
        lines.append(b"Transfer-Encoding: chunked")
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    return b"HTTP/1.1 %d X\r\n" % draw.choice(STATUSES) + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


def mutated(data: bytes, draw: random.Random) -> bytes:
    """The bytes, damaged in a few places."""
    result = bytearray(data)
    for _ in range(draw.randrange(5)):
        at = draw.randrange(len(result) + 1)
        kind = draw.randrange(5)
        if kind == 0 and at < len(result):
            result[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del result[at : at + draw.randrange(1, 20)]
        elif kind == 2:
            result[at:at] = draw.choice(TOKENS)
        elif kind == 3:
            result[at : at + draw.randrange(1, 10)] = draw.choice(TOKENS)
        else:
            result[at:at] = result[at : at + draw.randrange(1, 40)]
    return bytes(result)


def hints(draw: random.Random) -> str | None:
    """Return the fault in the hint that was parsed from some nonsense, or None."""
    headers = CaseInsensitiveDict(
        {name.decode(): mutated(draw.choice(TOKENS), draw).decode("latin-1") for name in HINTS}
    )
    try:
        hint = read_hint(headers, wall=1e9)
    except Exception as error:
        return f"read_hint raised {error!r} for {dict(headers)!r:.500}"
    good = hint is None or (math.isfinite(hint.seconds) and hint.seconds >= 0)
    return None if good else f"read_hint gave {hint} for {dict(headers)!r:.500}"


def ask(url: str, adapter: RetryAdapter) -> tuple[str, float]:
    """Return the outcome of a request, in a word, and the seconds that it took."""
    began = time.monotonic()
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", adapter)
        try:
            result = f"{session.get(url, allow_redirects=False).status_code // 100}xx"
        except requests.RequestException as error:
            result = type(error).__name__
    return result, time.monotonic() - began


def main() -> int:
    """Fuzz for a while and print what was found."""
    parser = argparse.ArgumentParser(description="Look for input that raises anything else than requests exceptions.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    draw, seen, findings = random.Random(seed), collections.Counter[str](), set[str]()
    logging.disable()
    warnings.simplefilter("ignore")
    server = Server()
    server.start()
    adapter = RetryAdapter(max_attempts=2, operation_timeout=DEADLINE, initial_backoff=0, throttling_backoff=0)
    until, rounds = time.monotonic() + options.seconds, 0
    while time.monotonic() < until:
        rounds += 1
        server.answer = mutated(answer(draw), draw)
        try:
            result, took = ask(server.url, adapter)
            seen[result] += 1
            # Asked once more, because a busy machine is slow, too, but not twice at the same bytes.
            if took > SLOW and ask(server.url, adapter)[1] > SLOW:
                findings.add(f"took {took:.2f} s: {server.answer!r:.1000}")
        except Exception as error:
            findings.add(f"{error!r:.200} for {server.answer!r:.1000}")
        if (wrong := hints(draw)) is not None:
            findings.add(wrong)
    server.listener.close()
    print(f"seed {seed}: {rounds} rounds; " + ", ".join(f"{name} {count}" for name, count in seen.most_common()))
    for finding in sorted(findings):
        print(f"\n{finding}")
    return int(bool(findings))


if __name__ == "__main__":
    raise SystemExit(main())
