"""The faults of `tests/data/faults.json`, served to clients in any language.

    python -m tests.faults.as_data [PORT]

`GET /NUMBER/ANY` (or another method, with a body for PUT and POST) meets fault NUMBER; ANY tells one try from
another, and its requests get one step after another. `GET /seen/NUMBER/ANY` answers with JSON: the seconds at which
its requests came.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "data" / "faults.json"
FAULTS: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))["faults"]
RESET = struct.pack("ii", 1, 0)


class Served:
    """A server of the table.

    :param port: 0: a free one.
    """

    def __init__(self, port: int = 0) -> None:
        self.seen: dict[str, list[float]] = defaultdict(list)
        self.over = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", port))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Served:
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def serve(self) -> None:
        """Accept until it is over."""
        with suppress(OSError):
            while True:
                connection = self._listening.accept()[0]
                threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as file, suppress(OSError):
            while self._exchange(connection, file):
                pass

    def _exchange(self, connection: socket.socket, file: Any) -> bool:
        """Meet one request; return if the connection is kept."""
        words, length = file.readline().split(), 0
        if not words:
            return False
        while line := file.readline().strip().lower():
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        path = words[1].decode()
        if path.startswith("/seen/"):
            told = json.dumps(self.seen[path.removeprefix("/seen")]).encode()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(told), told))
            return True
        steps = FAULTS[int(path.split("/")[1])]["steps"]
        step = steps[min(len(self.seen[path]), len(steps) - 1)]
        self.seen[path].append(time.monotonic())
        file.read({"half": length // 2, "head": 0}.get(step.get("reads", ""), length))
        connection.sendall(step["send"].encode())
        if step["then"] == "wait":
            self.over.wait(30)
        if step["then"] == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        return bool(step["then"] == "keep")


if __name__ == "__main__":
    served = Served(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    sys.stdout.write(f"{served.url}\n")
    sys.stdout.flush()
    served.serve()
