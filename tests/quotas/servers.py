"""A real redis-server on a free loopback port, and a proxy before it that spoils its answers."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import threading
from pathlib import Path

from requests_smithy_retry.clock import SYSTEM_CLOCK

INSTALL = Path(__file__).with_name("install_redis.sh")


class RedisServer:
    """A redis-server that nothing else uses; ended by its own process handle."""

    def __init__(self, *options: str) -> None:
        subprocess.run([str(INSTALL)], check=True, stdout=subprocess.DEVNULL)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.options = options
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        common = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(
            ["redis-server", *common, *self.options], stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if "eady to accept" in line:
                break
        else:
            raise AssertionError("redis-server did not start")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def url(self, query: str = "") -> str:
        """Its URL."""
        return f"redis://127.0.0.1:{self.port}/0{query}"

    def client(self):
        """A client of redis-py, to look and to meddle."""
        import redis

        return redis.Redis(port=self.port, decode_responses=True)

    def command(self, *words: str):
        """Have it execute a command."""
        with self.client() as client:
            return client.execute_command(*words)

    def pause(self) -> None:
        """Stop it where it is; connections stay open."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it without a word."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


class SpoilingProxy:
    """Passes everything on; with ``answer`` set, the client gets that in place of the server's answers.

    ``drip`` sends it byte by byte, so many seconds apart; ``silent`` sends nothing.
    """

    def __init__(self, port: int) -> None:
        self.upstream = port
        self.answer: bytes | None = None
        self.drip = 0.0
        self.connections = 0
        self.sockets: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, query: str = "") -> str:
        """Its URL."""
        return f"redis://127.0.0.1:{self.port}/0{query}"

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            server = socket.create_connection(("127.0.0.1", self.upstream))
            self.sockets += [client, server]
            threading.Thread(target=self._relay, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._relay, args=(server, client, True), daemon=True).start()

    def _relay(self, source: socket.socket, target: socket.socket, spoils: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not spoils or self.answer is None:
                    target.sendall(data)
                elif not self.drip:
                    target.sendall(self.answer)
                else:
                    for byte in self.answer:
                        target.sendall(bytes([byte]))
                        SYSTEM_CLOCK.sleep(self.drip)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def hang_up(self) -> None:
        """Close every connection."""
        sockets, self.sockets = self.sockets, []
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def close(self) -> None:
        """End it."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.hang_up()
