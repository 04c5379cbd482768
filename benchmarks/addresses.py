"""The proof that a dead address of a name costs next to nothing: who notices it, and what it costs.

    python -m benchmarks.addresses [--quick] [--json FILE]

A patched resolver gives a name N loopback addresses, the sick ones first; where several are well, the last one is ::1.
The sick ones are black holes (a full backlog), refuse, reset, answer 503, or accept and stay silent. Each client makes
fresh sessions of a first and a later request, the later one over a new connection, and one long session over kept
connections. Besides: POSTs, and 200 clients with one dead address of four. Servers are a process of their own. Three
minutes or so; exit status 1 if an operation of ours fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import multiprocessing
import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from requests_smithy_retry import RetryAdapter

from . import command

TIMEOUT = 0.4
"""Seconds for connecting, and for each read; the same for all clients."""
LONGEST_WAIT = 0.2
"""Seconds; the longest wait before a retry, the same for all clients."""
HEALTHY = "healthy"
KINDS = ("black hole", "refusing", "reset", "503", "silent")
SHAPES = ((2, 1), (4, 1), (4, 3), (8, 1), (8, 7))
"""Addresses, and how many of them are sick."""
SLOW = ("black hole", "silent")
"""Kinds that cost waiting: more of their sessions run side by side."""
CLIENTS = 200
REPLY = b"HTTP/1.1 %s\r\nContent-Length: 2\r\n\r\nok"
RESET = struct.pack("ii", 1, 0)


async def _serve(kind: str, counter: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            counter.value += 1
            if b"ontent-Length: 1" in head:
                await reader.readexactly(1)
            if kind == "silent":
                await reader.read()
            elif kind == "reset":
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            else:
                writer.write(REPLY % (b"200 OK" if kind == HEALTHY else b"503 Service Unavailable"))
                await writer.drain()
                continue
            break
    writer.close()


def _servers(counters: dict[str, Any], ready: Any) -> None:
    """Run in a process of its own: one listener for each kind that accepts, on every address of 127/8 and on ::1."""

    async def run() -> None:
        ports = {}
        for kind, counter in counters.items():
            serve = functools.partial(_serve, kind, counter)
            server = await asyncio.start_server(serve, "0.0.0.0", 0, backlog=512)
            ports[kind] = server.sockets[0].getsockname()[1]
        with contextlib.suppress(OSError):
            await asyncio.start_server(functools.partial(_serve, HEALTHY, counters[HEALTHY]), "::1", ports[HEALTHY])
        ready.put(ports)
        await asyncio.Event().wait()

    asyncio.run(run())


class Scene:
    """The servers, and the resolver that knows the name of the scenario."""

    def __init__(self, ports: dict[str, int], counters: dict[str, Any]) -> None:
        self.ports = ports
        self.counters = counters
        self.found: list[Any] = []
        self._real = socket.getaddrinfo

    def set(self, kind: str, count: int, sick: int) -> None:
        """Have the name stand for a number of addresses, of which the first ones are sick."""
        self.found = [_info(f"127.0.0.{number + 2}", self.ports[kind]) for number in range(sick)]
        self.found += [_info(f"127.0.1.{number + 2}", self.ports[HEALTHY]) for number in range(count - sick)]
        if count - sick > 1 and _has_v6(self.ports[HEALTHY]):
            self.found[-1] = _info("::1", self.ports[HEALTHY])

    def resolve(self, host: str, *rest: Any, **more: Any) -> Any:
        """Resolve, in place of ``getaddrinfo``."""
        if not host.startswith("name"):
            return self._real(host, *rest, **more)
        # A name that begins with "names" has its addresses in another order for each who asks, as of many resolvers.
        return random.sample(self.found, len(self.found)) if host.startswith("names") else self.found

    def hits(self, kind: str) -> int:
        """Return the requests that servers of a kind got so far."""
        return self.counters[kind].value if kind in self.counters else 0


def _info(host: str, port: int) -> Any:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return family, socket.SOCK_STREAM, 6, "", (host, port, 0, 0) if ":" in host else (host, port)


@functools.cache
def _has_v6(port: int) -> bool:
    try:
        socket.create_connection(("::1", port), 1).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def scene() -> Iterator[Scene]:
    """Start the servers, fill a backlog, reserve a port, and patch the resolver."""
    context = multiprocessing.get_context("fork")
    counters = {kind: context.Value("q", 0, lock=False) for kind in (HEALTHY, "reset", "503", "silent")}
    ready = context.Queue()
    process = context.Process(target=_servers, args=(counters, ready), daemon=True)
    process.start()
    with contextlib.ExitStack() as stack:
        stack.callback(process.terminate)
        ports = ready.get(timeout=30)
        refusing = stack.enter_context(socket.socket())
        refusing.bind(("0.0.0.0", 0))
        hole = stack.enter_context(socket.socket())
        hole.bind(("0.0.0.0", 0))
        hole.listen(0)
        for _ in range(8):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", hole.getsockname()[1]))
        ports |= {"refusing": refusing.getsockname()[1], "black hole": hole.getsockname()[1]}
        real, made = socket.getaddrinfo, Scene(ports, counters)
        made.set(HEALTHY, 2, 1)  # asks ::1 once
        socket.getaddrinfo = made.resolve
        stack.callback(setattr, socket, "getaddrinfo", real)
        yield made


class Client(NamedTuple):
    """A client to compare: what makes an adapter with the given number of attempts, and what wraps its call."""

    adapter: Callable[[int], HTTPAdapter]
    wrap: Callable[[Callable[..., Any], int], Callable[..., Any]] = lambda call, _: call

    def session(self, attempts: int) -> requests.Session:
        return command.session_of(self.adapter(attempts))


def _plain(_: int) -> HTTPAdapter:
    return HTTPAdapter()


def _urllib3(attempts: int) -> HTTPAdapter:
    retry = Retry(attempts - 1, backoff_factor=0.025, backoff_max=LONGEST_WAIT, status_forcelist=[503])
    return HTTPAdapter(max_retries=retry)


def _ours(attempts: int) -> HTTPAdapter:
    # The others have no quota either.
    return RetryAdapter(max_attempts=attempts, max_backoff=LONGEST_WAIT, quota=None)


def _tenacious(call: Callable[..., Any], attempts: int) -> Callable[..., Any]:
    import tenacity

    def checked(*args: Any, **kwargs: Any) -> Any:
        response = call(*args, **kwargs)
        response.raise_for_status()
        return response

    wait = tenacity.wait_random_exponential(0.05, max=LONGEST_WAIT)
    return tenacity.retry(stop=tenacity.stop_after_attempt(attempts), wait=wait, reraise=True)(checked)


OURS = "ours"
PEERS = {
    "plain": Client(_plain),
    "urllib3": Client(_urllib3),
    "tenacity": Client(_plain, _tenacious),
    OURS: Client(_ours),
}


def request(client: Client, session: requests.Session, attempts: int, method: str, host: str) -> tuple[bool, float]:
    """Return whether an operation succeeded, and its seconds."""
    began = time.perf_counter()
    try:
        call = client.wrap(session.request, attempts)
        good = call(method, f"http://{host}/", timeout=TIMEOUT, data=b"x" if method == "POST" else None).ok
    except requests.RequestException:
        good = False
    return good, time.perf_counter() - began


def measure(
    stage: Scene, client: Client, kind: str, shape: tuple[int, int], *, fresh: int, long: int, method: str = "GET"
) -> dict[str, Any]:
    """Return one cell: the part of operations that succeed, the times of first and later ones, and the worst hits."""
    count, sick = shape
    attempts = max(3, count)
    stage.set(kind, count, sick)
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(client.session(attempts)) for _ in range(fresh)]

        def ask(session: requests.Session) -> tuple[bool, float]:
            return request(client, session, attempts, method, "name.test")

        def again(session: requests.Session) -> tuple[bool, float]:
            session.get_adapter("http://").poolmanager.clear()  # over a new connection
            return ask(session)

        mine = client is PEERS[OURS]
        with ThreadPoolExecutor(10 if kind in SLOW or not mine else 1) as pool:
            first = list(pool.map(ask, sessions))
            later = list(map(again, sessions) if mine else pool.map(again, sessions))
    before = stage.hits(kind)
    with client.session(attempts) as session:
        lasting = [request(client, session, attempts, method, "name.test") for _ in range(long)]
    ended = [good for good, _ in (*first, *later, *lasting)]
    return {
        "success": sum(ended) / len(ended),
        "first": percentile([seconds for _, seconds in first], 0.99),
        "later": percentile([seconds for _, seconds in (*later, *lasting[1:])], 0.99),
        "hits": 0 if not long or kind == HEALTHY or not sick else (stage.hits(kind) - before) / sick,
    }


def percentile(values: list[float], part: float) -> float:
    """Return the value that so large a part of all is not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def crowd(stage: Scene, kind: str, clients: int, each: int) -> float:
    """Return the part of operations that succeed, of many clients with all defaults, one address of four being sick."""
    stage.set(kind, 4, 1)
    good: list[bool] = []

    def work(_: int) -> None:
        with command.session_of(RetryAdapter()) as session:
            good.extend(request(PEERS[OURS], session, 3, "GET", "names.test")[0] for _ in range(each))

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(work, range(clients)))
    return sum(good) / len(good)


def run(*, quick: bool) -> dict[str, Any]:
    """Measure everything."""
    shapes, kinds = (SHAPES[:1], KINDS) if quick else (SHAPES, KINDS)
    rows: list[dict[str, Any]] = []
    with scene() as stage:
        for method, kind, shape in [
            *(("GET", HEALTHY, (count, 0)) for count in sorted({count for count, _ in shapes})),
            *(("GET", kind, shape) for kind in kinds for shape in shapes),
            *(("POST", kind, shapes[-1]) for kind in ("black hole", "refusing")),
        ]:
            row: dict[str, Any] = {"method": method, "kind": kind, "addresses": shape[0], "sick": shape[1]}
            for name, client in PEERS.items():
                mine = name == OURS
                fresh, long = (3, 5 * mine) if quick else (100, 100) if mine else (10, 0)
                if kind in ("reset", "503", "silent") and shape[1] > 1 and mine:
                    fresh = min(fresh, 30)  # each of them waits several times
                try:
                    row[name] = measure(stage, client, kind, shape, fresh=fresh, long=long, method=method)
                except ImportError:
                    row[name] = None
            rows.append(row)
            _tell(row)
        crowds = {kind: crowd(stage, kind, 10 if quick else CLIENTS, 5) for kind in kinds}
        print("200 clients, one sick address of four:", {kind: f"{part:.2%}" for kind, part in crowds.items()})
    return {"rows": rows, "clients": crowds}


def _tell(row: dict[str, Any]) -> None:
    cells = [
        "n/a"
        if row[name] is None
        else f"{row[name]['success']:5.0%} {row[name]['first'] * 1e3:6.0f} {row[name]['later'] * 1e3:6.1f} ms "
        f"{row[name]['hits']:5.1f}"
        for name in PEERS
    ]
    print(f"{row['method']:4} {row['sick']} of {row['addresses']} {row['kind']:<10} | {' | '.join(cells)}", flush=True)


def main() -> int:
    """Run, print, and write what was asked for."""
    options = command.parser(__doc__, "a few seconds: too few for figures").parse_args()
    command.forget_settings()
    began = time.monotonic()
    result = run(quick=options.quick)
    command.write(result, options.json)
    print(f"{time.monotonic() - began:.0f} s")
    return int(not options.quick and any(row[OURS]["success"] < 1 for row in result["rows"]))


if __name__ == "__main__":
    raise SystemExit(main())
