"""The proof that announced limits are kept and used, and slow nobody who fits in them.

    python -m benchmarks.rate_limits [--quick] [--json FILE]

A server allows so many requests in each window and says so, in four forms of headers. Each line has what is wanted and
what was got. Threads ask again as soon as they have their answer. Of eight processes the first window is left out:
nobody knows of a limit before its first answer. Ten minutes; `--quick` leaves out the windows of a minute.

Exit status 1: something wanted was missed.
"""

from __future__ import annotations

import heapq
import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from . import command
from .command import Line
from .loopback import pieces, send, start_server

FORMS = ("epoch", "ietf", "delta", "bare")
FAR = 0.05
"""Seconds that an answer takes from far away."""
Seen = list[tuple[float, bool]]


def headers(form: str, limit: int, left: int, end: float, gap: float) -> dict[str, Any]:
    """Return what a server writes of a window; epochs are rounded up, and the seconds of the IETF to the nearest."""
    if form == "ietf":
        return {"RateLimit-Policy": f'"w";q={limit};w=60', "RateLimit": f'"w";r={left};t={max(1, round(gap))}'}
    told = {"X-RateLimit-Limit": limit, "X-RateLimit-Remaining": left}
    if form == "exact":
        return {**told, "X-RateLimit-Reset-After": f"{gap:.3f}"}
    return {**told, "X-RateLimit-Reset": int(gap + 0.999) if form == "delta" else int(end + 0.999)}


def serve(form: str, limit: int, window: float, service: float, used: int) -> None:
    """Answer until standard input closes, then print `[seconds, let through]` of each request.

    :param form: of the headers; "silent": there are none, and request number ``limit`` alone is refused, for a second.
    :param service: the seconds that an answer takes; a refusal takes none.
    :param used: the requests of the first window that others have had.
    """
    seen: Seen = []
    due: list[Any] = []
    born, number = float(int(time.time())), 0
    for connection, data in pieces(lambda: max(0.0, due[0][0] - time.time()) if due else None):
        if data:  # a request's head, which comes in one piece
            now = time.time()
            if (now - born) // window != number:
                number, used = int((now - born) // window), 0
            ok = len(seen) != limit if form == "silent" else used < limit
            used += ok
            seen.append((now - born, ok))
            end = born + (number + 1) * window
            told = {} if form == "silent" else headers(form, limit, limit - used, end, end - now)
            if not ok and form not in ("bare", "exact"):
                told["Retry-After"] = 1 if form == "silent" else max(1, round(end - now))
            lines = "".join(f"{name}: {value}\r\n" for name, value in told.items())
            status = "200 OK" if ok else "429 Too Many Requests"
            answer = f"HTTP/1.1 {status}\r\nContent-Length: 2\r\n{lines}\r\nok".encode()
            heapq.heappush(due, (now + service * ok, len(seen), connection, answer))
        while due and due[0][0] <= time.time():
            send(*heapq.heappop(due)[2:])
    print(json.dumps(seen))


def adapter_of(name: str, threads: int) -> Any:
    """Return a plain adapter, or ours without an option."""
    from requests_smithy_retry import RetryAdapter

    return HTTPAdapter(pool_maxsize=threads) if name == "plain" else RetryAdapter(pool_maxsize=threads)


def crowd(threads: int, adapter: Any, work: Callable[[requests.Session, int], object]) -> float:
    """Run threads to their end, each with a session of its own; return how long that took."""
    began = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda number: work(command.session_of(adapter), number), range(threads)))
    return time.monotonic() - began


def asks(name: str, url: str, threads: int, seconds: float, pause: float, together: Any = None) -> float:
    """Ask until the time is over; return how long the longest call took."""
    adapter, took = adapter_of(name, threads), [0.0]
    if together is not None:
        together.wait(60)
    until = time.monotonic() + seconds

    def work(session: requests.Session, _: int) -> None:
        while (began := time.monotonic()) < until:
            session.get(url, timeout=20)
            took.append(time.monotonic() - began)
            time.sleep(pause)

    crowd(threads, adapter, work)
    return max(took)


class Run:
    """So many processes and threads that ask against one limit for so many seconds."""

    def __init__(
        self, form: str, limit: int, window: float, seconds: float, threads: int = 1, many: int = 1, service: float = 0
    ) -> None:
        self.limit, self.window, self.threads, self.many = limit, window, threads, many
        self.server, self.url = start_server("rate_limits", form, str(limit), str(window), str(service), "0")
        context = multiprocessing.get_context("fork")
        self.queue, together = context.Queue(), context.Barrier(many)
        for _ in range(many):
            arguments = "ours", self.url, threads, seconds, 0, together
            context.Process(target=lambda *told: self.queue.put(asks(*told)), args=arguments, daemon=True).start()

    def end(self) -> tuple[float, float, float, float]:
        """Return what was used of whole windows and refused there, refusals for each thread and window, the longest."""
        longest = max(self.queue.get(timeout=300) for _ in range(self.many))
        seen: Seen = json.loads(self.server.communicate(timeout=30)[0])
        numbers = [int(when // self.window) for when, _ in seen]
        first, last = numbers[0] + 1, numbers[-1]
        whole = [ok for number, (_, ok) in zip(numbers, seen, strict=True) if first <= number < last]
        refused = sum(not ok for _, ok in seen) / (self.threads * (last - first + 2))
        return sum(whole) / (self.limit * (last - first)), 1 - sum(whole) / len(whole), refused, longest


def windows(window: float, many: float, threads: int) -> Line:
    """One process, each form beside the others."""
    runs = [Run(form, 50, window, many * window, threads) for form in FORMS]
    used, _, refused, _ = zip(*(run.end() for run in runs), strict=True)
    got, what = f"{min(used):.0%}; {max(refused):.2f}", f"windows of {window:g} s, {threads} in one process: used; "
    fine = min(used) >= 0.95 and max(refused) <= 1
    return Line(what + "refused for each thread and window", "95 % or more; 1 or less", got, fine)


def batch(part: float, rounds: int) -> Line:
    """All that is left at a part of the limit that others have used, against plain requests, from far away."""
    took: dict[str, list[float]] = {"plain": [], "ours": []}
    left = round(400 * (1 - part))
    for name in [*took] * rounds:
        server, url = start_server("rate_limits", "epoch", "400", "3600", str(FAR), str(400 - left))

        def work(session: requests.Session, number: int, url: str = url) -> None:
            for _ in range(number, left, 16):
                assert session.get(url, timeout=20).status_code == 200

        took[name].append(crowd(16, adapter_of(name, 16), work))
        server.communicate(timeout=30)
    ratio = min(took["ours"]) / min(took["plain"])
    return Line(f"all that is left, {part:.0%} used: time over plain", "1.05 or less", f"{ratio:.2f}", ratio <= 1.05)


def one_refusal() -> Line:
    """Eight threads with pauses: the rate in the two seconds after the hint's end, over that in those before it."""
    server, url = start_server("rate_limits", "silent", "300", "3600", "0", "0")
    asks("ours", url, 8, 10, 0.1)
    seen: Seen = json.loads(server.communicate(timeout=30)[0])
    refused = next(when for when, ok in seen if not ok)
    before, after = (sum(start <= when - refused < start + 2 for when, _ in seen) for start in (-2, 1))
    fine = after >= 0.9 * before
    return Line("the rate after one refusal, of that before it", "90 % or more", f"{after / before:.0%}", fine)


def small() -> Line:
    """Five in two seconds, of which another client takes what it gets: the longest call."""
    run = Run("exact", 5, 2.0, 20)
    asks("plain", run.url, 1, 22, 0.15)
    longest = run.end()[-1]
    return Line("5 in 2 s that others use: the longest call", "4 s or less", f"{longest:.1f} s", longest <= 4)


def processes(limit: int, form: str, seconds: float) -> Line:
    """Eight processes of sixteen threads."""
    used, refused, *_ = Run(form, limit, 1.0, seconds, 16, 8, 0.005).end()
    fine, what = used >= 0.9 and refused <= 0.1, f"8 processes of 16 threads, {limit} a second, {form}: used; refused"
    return Line(what, "90 % or more; 10 % or less", f"{used:.0%}; {refused:.1%}", fine)


def main() -> int:
    """Run, print, and write what was asked for."""
    options = command.parser(__doc__, "no windows of a minute, and each run once: two minutes").parse_args()
    sizes = [(1.0, 6.0), (2.0, 4.0), *([] if options.quick else [(60.0, 3.0)])]
    steps: list[Callable[[], Line]] = [
        *(lambda size=size, threads=threads: windows(*size, threads) for size in sizes for threads in (1, 16)),  # type: ignore[misc]
        *(lambda part=part: batch(part, 1 if options.quick else 5) for part in (0.0, 0.5, 0.75)),  # type: ignore[misc]
        *(one_refusal, small),
        *(lambda one=one: processes(*one, 6 if options.quick else 14) for one in ((100, "delta"), (400, "epoch"))),  # type: ignore[misc]
    ]
    lines = []
    for step in steps:
        lines.append(line := step())
        print(f"{'' if line.fine else 'MISSED '}{line.what}: {line.got} (wanted: {line.wanted})", flush=True)
    command.write({"lines": [line._asdict() for line in lines]}, options.json)
    return int(not all(line.fine for line in lines))


if __name__ == "__main__":
    if len(sys.argv) > 5:
        kind, most, length, takes, had = sys.argv[1:]
        serve(kind, int(most), float(length), float(takes), int(had))
    else:
        raise SystemExit(main())
