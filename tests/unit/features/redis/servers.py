"""Servers of Redis or Valkey on free loopback ports, a proxy that spoils their answers, and a client without one."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from requests_smithy_retry.clock import SYSTEM_CLOCK

INSTALL = Path(__file__).with_name("install_redis.sh")
PROGRAMS = [name for name in ("redis-server", "valkey-server") if shutil.which(name)] or ["redis-server"]


def need_server() -> None:
    """Skip the test where there is no server and no way to install one."""
    if shutil.which(PROGRAMS[0]) is None and subprocess.run([str(INSTALL)], capture_output=True).returncode:
        pytest.skip("neither redis-server nor valkey-server is on the PATH, and install_redis.sh installed none")


def becomes(condition: Callable[[], object]) -> bool:
    """Return True if a condition comes true within a minute."""
    for _ in range(6000):
        if condition():
            return True
        SYSTEM_CLOCK.sleep(0.01)
    return False


def free_port(distance: int = 0) -> int:
    """A free loopback port; the one at that distance is free as well."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as probe, socket.socket() as other:
            try:
                probe.bind(("127.0.0.1", port))
                if distance:
                    other.bind(("127.0.0.1", port + distance))
            except OSError:
                continue
            return port


class RedisServer:
    """A server that nothing else uses; ended by its own process handle."""

    def __init__(self, *options: str, port: int | None = None, program: str = PROGRAMS[0]) -> None:
        need_server()
        self.port = free_port() if port is None else port
        common = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self.start_command = [program, *common, *options]
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.process = subprocess.Popen(self.start_command, stdout=subprocess.PIPE, text=True, bufsize=1)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if "eady to accept" in line:
                break
        else:
            raise AssertionError("the server did not start")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def url(self, query: str = "") -> str:
        """Return the server's URL."""
        return f"redis://127.0.0.1:{self.port}/0{query}"

    def command(self, *words: str):
        """Have it execute a command."""
        import redis

        with redis.Redis(port=self.port, decode_responses=True) as client:
            return client.execute_command(*words)

    def kill(self) -> None:
        """End it without a word."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


class RedisCluster:
    """Three masters that share the slots."""

    SLOTS = 16_384

    def __init__(self) -> None:
        self.nodes: list[RedisServer] = []
        self.folder = tempfile.mkdtemp(prefix="redis-cluster-")
        try:
            self._start()
        except BaseException:
            self.kill()
            raise

    def _start(self) -> None:
        for number in range(3):
            # A node's bus listens 10,000 ports further.
            options = ("--cluster-enabled", "yes", "--cluster-config-file", f"{number}.conf", "--dir", self.folder)
            self.nodes.append(RedisServer(*options, "--cluster-node-timeout", "1000", port=free_port(10_000)))
        for number, node in enumerate(self.nodes):
            first, last = (self.SLOTS * part // 3 for part in (number, number + 1))
            node.command("CLUSTER", "SET-CONFIG-EPOCH", str(number + 1))
            node.command("CLUSTER", "ADDSLOTS", *map(str, range(first, last)))
        for node in self.nodes[1:]:
            self.nodes[0].command("CLUSTER", "MEET", "127.0.0.1", str(node.port))
        for _ in range(1200):
            if all("cluster_state:ok" in self.info(node) for node in self.nodes):
                return
            SYSTEM_CLOCK.sleep(0.05)
        raise AssertionError("the cluster did not come up")

    def info(self, node: RedisServer) -> str:
        """A node's view of the cluster."""
        found = node.command("CLUSTER", "INFO")
        return found if isinstance(found, str) else "".join(f"{key}:{value}\n" for key, value in found.items())

    def kill(self) -> None:
        """End all nodes."""
        for node in self.nodes:
            node.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Dictionary:
    """A client of redis-py whose server is a dictionary, for tests of time and of threads."""

    def __init__(self) -> None:
        self.levels: dict[str, float] = {}
        self.runs: list[list[tuple[float, float]]] = []
        """What each exchange gave back and took."""
        self.gate: Callable[[], object] = lambda: None
        """Called before each answer: waits, or raises."""

    def execute_command(self, *words: object) -> None:
        """Refuse what goes to the server by itself."""
        raise AssertionError("all commands go through a pipeline")

    def pipeline(self, transaction: bool) -> Pipeline:
        """Gather commands."""
        assert not transaction
        return Pipeline(self)


class Pipeline:
    """The commands of one exchange."""

    def __init__(self, client: Dictionary) -> None:
        self.client = client
        self.commands: list[tuple[str, float, float, float]] = []

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *_: object) -> None: ...

    def execute_command(self, name: str, script: str, keys: int, key: str, *amounts: str | int) -> None:
        """Note a run of the script."""
        assert ("EVAL", 1) == (name, keys)
        capacity, give, take, _ = map(float, amounts)
        self.commands.append((key, capacity, give, take))

    def execute(self) -> list[list[object]]:
        """Run the script, as it is said in Lua, for each."""
        self.client.runs.append([command[2:] for command in self.commands])
        self.client.gate()
        answers = []
        for key, capacity, give, take in self.commands:
            level = min(capacity, self.client.levels.get(key, capacity) + give)
            granted = level >= take
            self.client.levels[key] = level - take if granted else level
            answers.append([int(granted), repr(self.client.levels[key]).encode()])
        return answers
