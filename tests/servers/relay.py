"""A relay of bytes between a client and a real server, which resets connections, or forgets those that lay idle."""

from __future__ import annotations

import random
import selectors
import socket
import struct
import threading
import time
from contextlib import suppress

RESET = struct.pack("ii", 1, 0)


class Relay:
    """Passes bytes on, each connection in a thread.

    :param port: of the server.
    :param lasts: the most bytes of the answers that a connection brings before it is reset; drawn for each, from 0.
    :param forgets: seconds of idleness after which nothing is passed on any more, and nobody is told.
    """

    def __init__(self, port: int, *, lasts: int | None = None, forgets: float | None = None, seed: int = 1) -> None:
        self._port, self._lasts, self._forgets = port, lasts, forgets
        self._draw = random.Random(seed)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.resets = self.forgotten = 0

    def __enter__(self) -> Relay:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listening.accept()[0]
                lasts = None if self._lasts is None else self._draw.randrange(self._lasts)
                threading.Thread(target=self._serve, args=(client, lasts), daemon=True).start()

    def _serve(self, client: socket.socket, lasts: int | None) -> None:
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", self._port)) as server:
            self._pass(client, server, lasts)

    def _pass(self, client: socket.socket, server: socket.socket, lasts: int | None) -> None:
        used, is_forgotten = time.monotonic(), False
        with selectors.DefaultSelector() as waiting:
            waiting.register(client, selectors.EVENT_READ, server)
            waiting.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in waiting.select():
                    data = key.fileobj.recv(65_536)  # type: ignore[union-attr]
                    if is_forgotten or (self._forgets is not None and time.monotonic() - used > self._forgets):
                        self.forgotten += not is_forgotten
                        is_forgotten = True
                        if not data and key.fileobj is client:
                            return
                        if not data:
                            waiting.unregister(server)
                        continue
                    used = time.monotonic()
                    if key.fileobj is server and lasts is not None and len(data) > lasts:
                        client.sendall(data[:lasts])
                        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                        self.resets += 1
                        return
                    if key.fileobj is server and lasts is not None:
                        lasts -= len(data)
                    if not data:
                        return
                    key.data.sendall(data)
