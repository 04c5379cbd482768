"""Downloads that break off: who ends with the right bytes, and how many were sent for that.

    python -m pip install -r benchmarks/requirements.txt
    python benchmarks/downloads.py [--quick] [--json FILE] [--simulated N] [--sockets N] [--peers N] [--size MIB]

1. `cut`: a file over a link that is cut every 10 MiB, by each client. Whether its SHA-256 is right, how many
   bytes the server sent for each byte of it, and the seconds.
2. `sockets`: random downloads on real sockets, plain and over TLS where `trustme` is installed, from the worlds of
   `download_world.py`: cuts anywhere, resets, stalls, changed and weak ETags, wrong ranges, 200, 416, redirects,
   multipart, chunks, gzip, HTTP/1.0.
3. `simulated`: many more of them in a simulated transport, ours alone.
4. `cost`: the CPU time of 1 MiB with an ETag beside none.

Exit status 1: ours had wrong bytes, or left something open.
"""

from __future__ import annotations

import collections
import contextlib
import gc
import hashlib
import os
import re
import shutil
import socket
import ssl
import statistics
import struct
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import command
import urllib3
from download_clients import CLIENTS
from download_world import FAILED, LEAK, RIGHT, WRONG, World, many
from machine import forget_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MIB = 1 << 20
CUT = 10 * MIB
RESET = struct.pack("ii", 1, 0)


class Server:
    """A server in a thread; each connection is served once, in a thread of its own.

    :param serve: is given the connection and the head of the request.
    """

    def __init__(self, serve: Callable[[Any, str], None], context: ssl.SSLContext | None = None) -> None:
        self._serve, self._context = serve, context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of its file."""
        return f"{'http' if self._context is None else 'https'}://127.0.0.1:{self.port}/file"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: Any) -> None:
        with contextlib.suppress(OSError), contextlib.closing(connection):
            connection.settimeout(5)
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                part = connection.recv(4096)
                if not part:
                    return
                head += part
            with contextlib.closing(connection):
                self._serve(connection, head.decode("latin-1"))

    def close(self) -> None:
        """Accept no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


class CutLink:
    """A server of one long file whose every answer is cut after 10 MiB."""

    def __init__(self, size: int) -> None:
        self._pattern = os.urandom(MIB)
        self.size, self.sent = size, 0
        digest = hashlib.sha256()
        for _ in range(size // MIB):
            digest.update(self._pattern)
        self.digest = digest.hexdigest()

    def __call__(self, connection: Any, head: str) -> None:
        """Answer one request, and cut the answer."""
        asked = re.search(r"^range: bytes=(\d+)-", head, re.IGNORECASE | re.MULTILINE)
        first = 0 if asked is None else int(asked[1])
        lines = [f"HTTP/1.1 {200 if asked is None else 206} X", 'ETag: "v1"', f"Content-Length: {self.size - first}"]
        if asked is not None:
            lines.append(f"Content-Range: bytes {first}-{self.size - 1}/{self.size}")
        connection.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode())
        end = min(self.size, first + CUT)
        while first < end:
            start = first % MIB
            part = self._pattern[start : min(MIB, start + 65_536, start + end - first)]
            connection.sendall(part)
            first += len(part)
            self.sent += len(part)


def cut(name: str, size: int) -> dict[str, Any]:
    """Download a file over the link that is cut."""
    link = CutLink(size)
    server = Server(link)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "file").open("wb+") as file:
        try:
            CLIENTS[name](server.url, file)
        except Exception as error:
            ending = type(error).__name__
        else:
            file.flush()
            with open(file.name, "rb") as written:
                ending = RIGHT if _sha(written) == link.digest else WRONG
    server.close()
    return {"outcome": ending, "sent": round(link.sent / size, 4), "seconds": round(time.monotonic() - began, 1)}


def _sha(file: Any) -> str:
    digest = hashlib.sha256()
    for part in iter(lambda: file.read(MIB), b""):
        digest.update(part)
    return digest.hexdigest()


def contexts() -> ssl.SSLContext | None:
    """A server's TLS context, trusted by this process; None without `trustme`."""
    try:
        import trustme
    except ImportError:
        return None
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    file = Path(tempfile.mkdtemp()) / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    os.environ["REQUESTS_CA_BUNDLE"] = os.environ["CURL_CA_BUNDLE"] = str(file)
    import requests

    requests.adapters.DEFAULT_CA_BUNDLE_PATH = str(file)
    if hasattr(requests.adapters, "_preloaded_ssl_context"):
        requests.adapters._preloaded_ssl_context = None
    return context


def on_sockets(name: str, seed: int, context: ssl.SSLContext | None) -> str:
    """One random download on real sockets; its outcome."""
    world = World(seed)
    world.first, world.last, world.way, world.status = 0, None, "iter_content", 200
    lock = threading.Lock()

    def serve(connection: Any, head: str) -> None:
        with lock:
            data, end = world.answer(head)
        connection.sendall(data)
        if end == "stall":
            with contextlib.suppress(OSError):
                connection.settimeout(2)
                connection.recv(1)  # until the client gives up
        elif end == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        elif isinstance(connection, ssl.SSLSocket):
            with contextlib.suppress(OSError):
                connection.unwrap()

    server = Server(serve, context if seed % 4 == 0 else None)
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "file").open("wb+") as file:
        try:
            CLIENTS[name](server.url, file)
        except Exception:
            outcome = FAILED
        else:
            file.flush()
            got = Path(file.name).read_bytes()
            outcome = RIGHT if got in [version.plain for version in world.versions] else WRONG
    if name == "ours" and len(_ours_open(server.port)) > 0:
        outcome = LEAK
    server.close()
    return outcome


def _ours_open(port: int) -> list[str]:
    """The client's ends of connections to a port that are still open in this process."""
    found = []
    for item in gc.get_objects():
        if isinstance(item, socket.socket) and item.fileno() >= 0:
            with contextlib.suppress(OSError):
                if item.getpeername()[1] == port:
                    found.append(repr(item))
    return found


def cost(rounds: int) -> dict[str, float]:
    """CPU milliseconds of a GET of 1 MiB, bare and with an ETag. Medians."""
    from download_clients import _session

    from requests_smithy_retry import RetryAdapter

    body = os.urandom(MIB)
    extra = {"bare": "", "ETag": 'ETag: "v1"\r\n'}

    def serve(connection: Any, head: str) -> None:
        with contextlib.suppress(OSError):
            while head:
                more = extra[head.split(" ")[1].strip("/")]
                connection.sendall(f"HTTP/1.1 200 OK\r\n{more}Content-Length: {MIB}\r\n\r\n".encode() + body)
                head = connection.recv(4096).decode("latin-1")

    server = Server(serve)
    times: dict[str, list[float]] = collections.defaultdict(list)
    with _session(RetryAdapter()) as session:
        for _ in range(rounds):
            for kind in extra:
                began = time.thread_time()
                session.get(server.url.replace("/file", f"/{kind}")).content  # noqa: B018
                times[kind].append(time.thread_time() - began)
    server.close()
    return {kind: round(1000 * statistics.median(each), 3) for kind, each in times.items()}


def _names() -> Iterator[str]:
    for name in CLIENTS:
        if name.startswith("curl") and shutil.which("curl") is None:
            continue
        yield name


def main() -> int:
    """Measure, print, and write what was asked for."""
    parser = command.parser(__doc__, "64 MiB, and few random downloads")
    parser.add_argument("--simulated", type=int, metavar="N", help="random downloads in a simulated transport")
    parser.add_argument("--sockets", type=int, metavar="N", help="of ours, on real sockets")
    parser.add_argument("--peers", type=int, metavar="N", help="of each other client, on real sockets")
    parser.add_argument("--size", type=int, metavar="MIB", help="of the file over the link that is cut")
    options = parser.parse_args()
    forget_settings()
    urllib3.disable_warnings()
    usual = (1000, 100, 30, 64) if options.quick else (100_000, 2000, 300, 1024)
    given = (options.simulated, options.sockets, options.peers, options.size)
    simulated, sockets, peers, size = (own if own is not None else most for own, most in zip(given, usual, strict=True))
    result: dict[str, Any] = {"size": size, "what": {name: CLIENTS[name].__doc__ for name in _names()}}
    pool = ProcessPoolExecutor(1)  # it computes while the others wait for their sockets
    in_simulation = pool.submit(many, range(simulated))
    result["cost"] = cost(15 if options.quick else 101)
    print(f"cost  {result['cost']}", flush=True)
    result["cut"] = {name: cut(name, size * MIB) for name in _names()}
    for name, each in result["cut"].items():
        print(f"cut  {name:24} {each}", flush=True)
    context = contexts()
    result["sockets"] = {}
    for name in _names():
        count = sockets if name == "ours" else peers
        outcomes = collections.Counter(on_sockets(name, seed, context) for seed in range(count))
        result["sockets"][name] = {"downloads": count, **outcomes}
        print(f"sockets  {name:24} {result['sockets'][name]}", flush=True)
    result["simulated"] = {"downloads": simulated, **in_simulation.result()}
    pool.shutdown()
    print(f"simulated  {result['simulated']}")
    command.write(result, options.json)
    bad = [each for each in (result["sockets"]["ours"], result["simulated"]) if each.get(WRONG) or each.get(LEAK)]
    return int(bool(bad) or result["cut"]["ours"]["outcome"] != RIGHT)


if __name__ == "__main__":
    raise SystemExit(main())
