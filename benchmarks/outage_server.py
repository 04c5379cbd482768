"""The server that outages are played on: it has them on command, in a process of its own.

It works off requests one after the other at a finite rate, as the simulation's queue does, and has two seconds' worth
of queue, twice the clients' time-out: what they have given up is done all the same; beyond it, 503. Its trouble is
chosen by lines on standard input: `well`, `refuse` (no connection is accepted, and those there are end), `hole` (no
answer), `dead P` (no answer with probability P), `errors P` (503 with probability P), `brownout P` (a part of its
rate). When standard input closes it prints, as JSON, when each request came, in seconds since the epoch, and ends. Only
requests without a body are understood.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
import time

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ERROR = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
LONGEST = 2.0
"""Seconds of work that may be queued."""


class Service:
    """The state of the service.

    :param rate: requests per second that it works off.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.trouble = ["well"]
        self.free_at = 0.0
        self.seen: list[float] = []
        self.port = 0
        self.listener: asyncio.Server | None = None
        self.connections: set[asyncio.StreamWriter] = set()

    async def open(self) -> None:
        """Listen, on the port that was the first."""
        if self.listener is None:
            self.listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=1024)
            self.port = self.listener.sockets[0].getsockname()[1]

    def shut(self) -> None:
        """Refuse new connections, and hang up on open ones."""
        if self.listener is not None:
            self.listener.close()
            self.listener = None
        for connection in self.connections:
            connection.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.add(writer)
        with contextlib.suppress(OSError):
            while await reader.read(65536):
                self._answer(writer)
        self.connections.discard(writer)
        writer.close()

    def _answer(self, writer: asyncio.StreamWriter) -> None:
        """One request came: decide what becomes of it, and when."""
        clock = asyncio.get_running_loop()
        now = clock.time()
        self.seen.append(time.time())
        kind, *numbers = self.trouble
        is_hit = bool(numbers) and random.random() < float(numbers[0])
        if kind == "hole" or (kind == "dead" and is_hit):
            return
        begin = max(now, self.free_at)
        if (kind == "errors" and is_hit) or begin - now > LONGEST:
            writer.write(ERROR)
            return
        self.free_at = begin + 1 / (self.rate * (float(numbers[0]) if kind == "brownout" else 1.0))
        clock.call_at(self.free_at, writer.write, OK)


async def serve(rate: float) -> None:
    """Answer until standard input closes."""
    service = Service(rate)
    await service.open()
    print(service.port, flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        service.trouble = line.split()
        if service.trouble == ["refuse"]:
            service.shut()
        else:
            await service.open()
    print(json.dumps(service.seen), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
