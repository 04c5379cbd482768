"""Processes that were told the same: when each of a thousand comes back after ``Retry-After: 60``."""

from __future__ import annotations

import random
from collections import Counter

from requests import PreparedRequest, Request

from requests_smithy_retry.testing import FakeClock, ScriptedReply, scripted

from ..command import Line

HINT, MOST_LATER = 60.0, 5


def measure(quick: bool) -> list[Line]:
    """Of a hint, and of a limit that begins anew; in each process one thread."""
    random.seed(34)
    number = 100 if quick else 1000
    request: PreparedRequest = Request("GET", "https://api.example.com/").prepare()
    told = {
        "a hint": ScriptedReply(429, {"Retry-After": "60"}),
        "a limit": ScriptedReply(200, {"RateLimit-Limit": "9", "RateLimit-Remaining": "0", "RateLimit-Reset": "60"}),
    }
    lines = []
    for what, reply in told.items():
        moments = []
        for _ in range(number):
            clock = FakeClock()
            adapter = scripted(reply, 200, jitter="full", clock=clock)
            for _ in range(2 - (reply.status == 429)):
                adapter.send(request)
            moments.append(sum(clock.sleeps))
        fullest, share = max(Counter(map(int, moments)).values()), number / MOST_LATER
        early = sum(moment < HINT for moment in moments)
        lines += [
            Line(f"{what}: early, of {number}", "0", str(early), early == 0),
            Line(f"{what}: in the fullest second", f"<= {3 * share:g}", str(fullest), fullest <= 3 * share),
            Line(f"{what}: the last one after, s", f"<= {HINT + MOST_LATER:g}", f"{max(moments):.2f}"),
        ]
    return lines
