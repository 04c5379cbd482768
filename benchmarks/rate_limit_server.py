"""The server that rate limits are played on: four kinds, each announced in a dialect.

Four kinds of limit, each in a dialect: a fixed window of the clock (`X-RateLimit-*`, the reset in epoch seconds), a
sliding window (`RateLimit` of the IETF draft), a token bucket (OpenAI's durations) and a number of requests at a time
(GitHub's 403 with `Retry-After`, and what is left). Windows last one second, so resets have fractions. An answer takes
5 ms, a refusal no time.

When its standard input closes it prints what it saw, as one JSON list of `[seconds, let through, client]`, and ends.
The path names the client. Only requests without a body are understood.
"""

from __future__ import annotations

import heapq
import json
import sys
import time
from collections import deque
from typing import Any

from .loopback import pieces, send

SERVICE = 0.005
"""Seconds that an answer takes."""
WINDOW = 1.0
WHOLE_SECONDS = "Retry-After: 1\r\n"
"""Rounded up, as most servers write it, and as urllib3 alone can read it."""


class Limit:
    """What the kinds have in common: nothing happens when an answer goes out."""

    def ended(self) -> None:
        """An answer went out."""


class FixedWindow(Limit):
    """So many requests in each window of the clock."""

    def __init__(self, limit: int) -> None:
        self.limit, self.used, self.ends = limit, 0, 0.0

    def ask(self, now: float) -> bool:
        """Let one through, or not."""
        if now >= self.ends:
            self.used, self.ends = 0, (now // WINDOW + 1) * WINDOW
        granted = self.used < self.limit
        self.used += granted
        return granted

    def headers(self, now: float, *, ok: bool) -> str:
        """As `X-RateLimit-*`."""
        reset = time.time() + self.ends - now
        return (
            f"X-RateLimit-Limit: {self.limit}\r\nX-RateLimit-Remaining: {self.limit - self.used}\r\n"
            f"X-RateLimit-Reset: {reset:.4f}\r\n" + ("" if ok else WHOLE_SECONDS)
        )


class SlidingWindow(Limit):
    """So many requests in any second."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.passed: deque[float] = deque()

    def ask(self, now: float) -> bool:
        """Let one through, or not."""
        while self.passed and self.passed[0] <= now - WINDOW:
            self.passed.popleft()
        if len(self.passed) >= self.limit:
            return False
        self.passed.append(now)
        return True

    def headers(self, now: float, *, ok: bool) -> str:
        """As the draft of the IETF; the reset is when the oldest request leaves the window."""
        oldest = self.passed[0] + WINDOW - now if self.passed else WINDOW
        left = self.limit - len(self.passed)
        return (
            f'RateLimit-Policy: "default";q={self.limit};w={WINDOW:g}\r\n'
            f'RateLimit: "default";r={left};t={oldest:.4f}\r\n' + ("" if ok else WHOLE_SECONDS)
        )


class TokenBucket(Limit):
    """A limiter that allows a burst of half a second's requests, and ``limit`` tokens a second."""

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, limit / 2
        self.tokens, self.at = self.size, 0.0

    def ask(self, now: float) -> bool:
        """Let one through, or not."""
        self.tokens, self.at = min(self.size, self.tokens + (now - self.at) * self.limit / WINDOW), now
        granted = self.tokens >= 1
        self.tokens -= granted
        return granted

    def headers(self, now: float, *, ok: bool) -> str:  # noqa: ARG002
        """As OpenAI: the reset is when the bucket is full."""
        full = (self.size - self.tokens) / self.limit * WINDOW
        return (
            f"x-ratelimit-limit-requests: {self.size:g}\r\nx-ratelimit-remaining-requests: {int(self.tokens)}\r\n"
            f"x-ratelimit-reset-requests: {1000 * full:.1f}ms\r\n"
            + ("" if ok else f"retry-after-ms: {1000 * (1 - self.tokens) / self.limit:.0f}\r\n")
        )


class AtATime(Limit):
    """So many requests at the same time, chosen so that the same number goes through each second."""

    def __init__(self, limit: int) -> None:
        self.limit, self.under_way = max(1, round(limit * SERVICE)), 0

    def ask(self, now: float) -> bool:  # noqa: ARG002
        """Let one through, or not."""
        granted = self.under_way < self.limit
        self.under_way += granted
        return granted

    def ended(self) -> None:
        """An answer went out."""
        self.under_way -= 1

    def headers(self, now: float, *, ok: bool) -> str:  # noqa: ARG002
        """As GitHub's secondary limit."""
        return f"X-RateLimit-Remaining: {self.limit - self.under_way}\r\n" + ("" if ok else WHOLE_SECONDS)


KINDS = {
    "fixed window": FixedWindow,
    "sliding window": SlidingWindow,
    "token bucket": TokenBucket,
    "at a time": AtATime,
}
REFUSAL = {"at a time": "403 Forbidden"}


def serve(kind: str, limit: int) -> None:
    """Answer until standard input closes."""
    limiter = KINDS[kind](limit)
    refusal = REFUSAL.get(kind, "429 Too Many Requests")
    seen: list[tuple[float, bool, str]] = []
    due: list[tuple[float, int, Any, bytes]] = []
    for connection, data in pieces(lambda: max(0.0, due[0][0] - time.monotonic()) if due else None):
        if data:  # a request's head, which comes in one piece
            now = time.monotonic()
            ok = limiter.ask(now)
            seen.append((now, ok, data.split(b" ", 2)[1].decode()))
            answer = _answer("200 OK" if ok else refusal, limiter.headers(now, ok=ok))
            heapq.heappush(due, (now + SERVICE * ok, len(seen), connection, answer))
        while due and due[0][0] <= time.monotonic():
            _, _, client, answer = heapq.heappop(due)
            if b" 200 " in answer[:16]:
                limiter.ended()
            send(client, answer)
    print(json.dumps(seen))


def _answer(status: str, headers: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: 2\r\n{headers}\r\nok".encode()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
