"""The delay with which a deadline ends an operation, for each kind of stall, on real sockets on loopback.

    python benchmarks/deadline_overshoot.py [--deadline SECONDS] [--rounds N] [--only PART] [--quick] [--json FILE]

Each stall runs with `operation_timeout` set and neither a timeout nor a retry that could end it by itself: first as
the machine is, then beside a process for each processor that does nothing but compute. Printed: the median and the
longest overshoot of the rounds, in milliseconds, what ended the operation, and whether a thread or a socket was left.
Exit status 1: an overshoot of 50 ms or more, an end that is no requests timeout, or something left.
Needs trustme, PySocks, and Linux for the count of sockets.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import ssl
import statistics
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import command
import requests
import trustme

from requests_smithy_retry import RetryAdapter
from tests.faults import Drip, FaultProxy, FaultServer, Forward, Interim, Reply, Stall, StopReading, hanging_port

LIMIT = 0.05
UPLOAD = 64 << 20

Stalled = Callable[[requests.Session], Any]


def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """For a server on loopback, and for a client that trusts it."""
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return server, client


@contextlib.contextmanager
def served(behaviour: Any, tls: bool = False, **request: Any) -> Iterator[Stalled]:
    """A server that misbehaves, and a call of it."""
    method = "POST" if "data" in request else "GET"
    with FaultServer(behaviour, tls=contexts()[0] if tls else None) as server:
        yield lambda session: session.request(method, server.url, verify=False, **request)


@contextlib.contextmanager
def proxied(script: Any, target: Any, tls: bool) -> Iterator[Stalled]:
    """A target behind a proxy, by a tunnel where the target speaks TLS."""
    with FaultServer(target, tls=contexts()[0] if tls else None) as server, FaultProxy(script) as proxy:
        proxies = {"http": proxy.url, "https": proxy.url}
        yield lambda session: session.get(server.url, proxies=proxies, verify=False)


@contextlib.contextmanager
def tls_within_tls(script: Any, target: Any) -> Iterator[Stalled]:
    """A target that speaks TLS, behind a proxy that does, too."""
    server_side = contexts()[0]
    with FaultServer(target, tls=server_side) as server, FaultProxy(script, tls=server_side) as proxy:
        yield lambda session: session.get(server.url, proxies={"https": proxy.url}, verify=False)


@contextlib.contextmanager
def silent_resolver(proxy: bool) -> Iterator[Stalled]:
    """A resolver that does not answer: for the target's name, or for that of a SOCKS proxy."""
    answers, real = threading.Event(), socket.getaddrinfo

    def silent(host: Any, *rest: Any, **more: Any) -> Any:
        if host == "silent.test":
            answers.wait(60)
        return real("127.0.0.1" if host == "silent.test" else host, *rest, **more)

    socket.getaddrinfo = silent
    proxies = {"http": "socks5h://silent.test:9"} if proxy else None
    url = "http://127.0.0.1:9/" if proxy else "http://silent.test:9/"
    try:
        yield lambda session: session.get(url, proxies=proxies)
    finally:
        socket.getaddrinfo = real
        answers.set()
        for thread in threading.enumerate():
            if thread.name == "resolves silent.test":
                thread.join(10)


@contextlib.contextmanager
def dripping_socks() -> Iterator[Stalled]:
    """A SOCKS proxy each of whose bytes comes in time."""
    answer = b"\5\0\5\0\0\3\xff" + bytes(257)

    def serve() -> None:
        with listener, listener.accept()[0] as client, contextlib.suppress(OSError):
            for byte in answer:
                client.sendall(bytes([byte]))
                time.sleep(0.05)

    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve)
    thread.start()
    proxies = {"http": f"socks5h://127.0.0.1:{listener.getsockname()[1]}"}
    try:
        yield lambda session: session.get("http://127.0.0.1:9/", proxies=proxies)
    finally:
        thread.join()


@contextlib.contextmanager
def full_backlog() -> Iterator[Stalled]:
    """A port that neither accepts nor refuses."""
    with hanging_port() as port:
        yield lambda session: session.get(f"http://127.0.0.1:{port}/")


@contextlib.contextmanager
def dead_addresses() -> Iterator[Stalled]:
    """A name that stands for five addresses, none of which answers."""
    with hanging_port() as port:
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))] * 5
        real = socket.getaddrinfo

        def several(host: Any, *rest: Any, **more: Any) -> Any:
            return found if host == "several.test" else real(host, *rest, **more)

        socket.getaddrinfo = several
        try:
            yield lambda session: session.get(f"http://several.test:{port}/")
        finally:
            socket.getaddrinfo = real


@contextlib.contextmanager
def busy_pool() -> Iterator[Stalled]:
    """A pool of one connection, which is in use."""
    with FaultServer() as server:

        def call(session: requests.Session) -> Any:
            with session.get(server.url, stream=True):
                session.get(server.url)

        yield call


@contextlib.contextmanager
def early_hint() -> Iterator[Stalled]:
    """A server that wants to be asked again much later: the wait is not begun."""
    from tests.faults import try_later

    with FaultServer(try_later(503, 60)) as server:
        yield lambda session: session.get(server.url).raise_for_status()


@contextlib.contextmanager
def empty_quota() -> Iterator[Stalled]:
    """A bucket whose tokens others hold and may return at any time, so that the wait begins and is cut off."""
    from requests_smithy_retry import TokenBucket

    with FaultServer(Reply(503)) as server:

        def call(session: requests.Session) -> Any:
            bucket = TokenBucket(14, on_empty="wait")
            bucket.acquire(14)
            with _remounted(session, server.url, quota=bucket):
                session.get(server.url).raise_for_status()

        yield call


@contextlib.contextmanager
def slow_limiter() -> Iterator[Stalled]:
    """A rate limiter that was throttled: its permit would come much later, so the wait for it is not begun."""
    with FaultServer(Reply(429)) as server:

        def call(session: requests.Session) -> Any:
            with _remounted(session, server.url, mode="adaptive", throttling_backoff=0.0):
                session.get(server.url).raise_for_status()

        yield call


@contextlib.contextmanager
def _remounted(session: requests.Session, url: str, **options: Any) -> Iterator[None]:
    usual: Any = session.get_adapter(url)
    session.mount(url, RetryAdapter(operation_timeout=usual.retry_config.operation_timeout, **options))
    try:
        yield
    finally:
        session.adapters.pop(url).close()


UNSENT = ("backoff", "quota wait", "permit wait")
"""The stalls that end between attempts, so that the last answer is handed on."""


@contextlib.contextmanager
def sleep() -> Iterator[Stalled]:
    """No stall: a sleep of the same length, which is as late as the machine is busy."""

    def call(session: requests.Session) -> None:
        adapter: Any = session.get_adapter("http://")
        time.sleep(adapter.retry_config.operation_timeout)
        raise requests.exceptions.ReadTimeout

    yield call


STALLS: dict[str, Callable[[], Any]] = {
    "a sleep, to compare with": sleep,
    "name resolution": lambda: silent_resolver(proxy=False),
    "connect, full backlog": full_backlog,
    "connect, five dead addresses": dead_addresses,
    "TLS handshake stalls": lambda: served(Stall("accept"), tls=True),
    "upload stalls, plain": lambda: served(StopReading(), data=bytes(UPLOAD)),
    "upload stalls, TLS": lambda: served(StopReading(), tls=True, data=bytes(UPLOAD)),
    "upload stalls, chunked": lambda: served(StopReading(), data=_parts()),
    "no answer": lambda: served(Stall("status")),
    "100 Continue drips": lambda: served(Interim((100,), 10_000, 0.05)),
    "head drips": lambda: served(Drip("head", 0.05)),
    "head drips, TLS": lambda: served(Drip("head", 0.05), tls=True),
    "body stalls": lambda: served(Stall("body")),
    "body drips": lambda: served(Drip("body", 0.05)),
    "body drips, TLS": lambda: served(Drip("body", 0.05), tls=True),
    "body drips, HTTP proxy": lambda: proxied((), Drip("body", 0.05), tls=False),
    "body drips, CONNECT tunnel": lambda: proxied((), Drip("body", 0.05), tls=True),
    "proxy's answer to CONNECT drips": lambda: proxied(Drip("head", 0.05), (), tls=True),
    "TLS stalls within a tunnel": lambda: proxied((), Stall("accept"), tls=True),
    "name of a SOCKS proxy": lambda: silent_resolver(proxy=True),
    "SOCKS handshake drips": dripping_socks,
    "TLS within TLS: handshake stalls": lambda: tls_within_tls((), Stall("accept")),
    "TLS within TLS: handshake drips": lambda: tls_within_tls(Forward(drip=0.05), ()),
    "TLS within TLS: head drips": lambda: tls_within_tls((), Drip("head", 0.05)),
    "TLS within TLS: body drips": lambda: tls_within_tls((), Drip("body", 0.05)),
    "pool wait": busy_pool,
    "backoff": early_hint,
    "quota wait": empty_quota,
    "permit wait": slow_limiter,
}


def _parts() -> Iterator[bytes]:
    return itertools.repeat(bytes(65_536), UPLOAD // 65_536)


def measure(stall: Callable[[], Any], deadline: float) -> tuple[float, str, str]:
    """Overshoot in seconds (negative: it ended sooner), what ended it, and what was left."""
    sockets, threads = _sockets(), threading.active_count()
    with stall() as call, requests.Session() as session:
        session.mount("http://", _adapter(deadline))
        session.mount("https://", _adapter(deadline))
        began = time.monotonic()
        more = threading.active_count()
        try:
            call(session)
            ended = "no exception"
        except requests.exceptions.RequestException as error:
            ended = type(error).__name__
        took = time.monotonic() - began
        assert threading.active_count() <= more + 2, "a thread of ours"
    left = [f"{_sockets() - sockets} sockets"] * (_sockets() > sockets)
    left += [f"{threading.active_count() - threads} threads"] * (threading.active_count() > threads)
    return took - deadline, ended, ", ".join(left) or "nothing"


def _adapter(deadline: float) -> RetryAdapter:
    return RetryAdapter(operation_timeout=deadline, max_attempts=3, pool_block=True, pool_maxsize=1)


def _sockets() -> int:
    count = 0
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # it was closed since
            count += str(path.readlink()).startswith("socket:")
    return count


def measure_all(names: list[str], deadline: float, rounds: int) -> dict[str, dict[str, Any]]:
    """Measure each stall, and print it."""
    found = {}
    print(f"{'stall':34}{'median':>12}{'longest':>12}  {'ended by':22}left")
    for name in names:
        results = [measure(STALLS[name], deadline) for _ in range(rounds)]
        worst, ended, left = max(results)
        middle = statistics.median(late for late, *_ in results)
        good = worst < LIMIT and left == "nothing"
        good &= ended == "HTTPError" if name in UNSENT else ended in ("ConnectTimeout", "ReadTimeout")
        print(
            f"{name:34}{middle * 1000:9.1f} ms{worst * 1000:9.1f} ms  {ended:22}{left}{'' if good else '   <--'}",
            flush=True,
        )
        found[name] = {
            "median": round(middle, 5),
            "longest": round(worst, 5),
            "ended": ended,
            "left": left,
            "good": good,
        }
    return found


@contextlib.contextmanager
def busy_machine() -> Iterator[None]:
    """Beside a process for each processor that does nothing but compute."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main() -> int:
    """Measure, print, and write what was asked for."""
    parser = command.parser(__doc__, "one round")
    parser.add_argument("--deadline", type=float, default=0.3, metavar="SECONDS")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--only", default="", metavar="PART", help="only stalls whose name has this in it")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import logging

    logging.disable()
    names = [name for name in STALLS if options.only in name]
    rounds = 1 if options.quick else options.rounds
    result: dict[str, Any] = {"deadline": options.deadline, "rounds": rounds, "limit": LIMIT}
    result["as it is"] = measure_all(names, options.deadline, rounds)
    print("\nbeside a process for each processor that computes")
    with busy_machine():
        result["busy"] = measure_all(names, options.deadline, rounds)
    command.write(result, options.json)
    return int(not all(row["good"] for part in ("as it is", "busy") for row in result[part].values()))


if __name__ == "__main__":
    raise SystemExit(main())
