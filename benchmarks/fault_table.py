"""The proof that faults end well, beside other clients: one operation for each fault of a server and each client.

    python -m benchmarks.fault_table [--quick] [--json FILE] [--fault NAME] [--client NAME] [--rounds 3]

Each cell is one operation against a server of its own on loopback, which fails once (or as its name says) and is well
from then on. It is judged from what both ends say:

- `intact`: the client was told that it went well, and both ends have the same bytes, applied once;
- `error`: the client was told that it did not, by a status from 400 on or an exception;
- `wrong body`: one end accepted other bytes than the other end had;
- `applied twice`: the server acted on a POST more than once;
- `hang`: nothing was told within 8 s.

`BEST` of a fault is what a careful client can come to. The worst of all rounds is shown. About a minute.
"""

from __future__ import annotations

import collections
import io
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from requests_smithy_retry.testing import Behaviour, FaultServer, RecordedRequest, Reply, refusing_port

from . import command
from .fault_clients import CLIENTS
from .faults import DOWN, ERROR, FAULTS, HANG, IDLE, INTACT, OUTCOMES, TWICE, UPLOAD, WRONG, Fault

BOUND, AT_ONCE, ROUNDS = 8.0, 16, 3


class Script:
    """The server's side of one cell, and what it acted on."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._turns, self._began = 0, 0.0
        self._lock = threading.Lock()
        self.accepted: list[bytes] = []

    def __call__(self, request: RecordedRequest) -> Behaviour:
        """Fail, or act."""
        first = self._fault.first
        with self._lock:
            turn, self._turns = self._turns, self._turns + 1
            self._began = self._began or request.arrived
            is_failure = turn < len(first) or self._fault.always or request.arrived < self._began + self._fault.lasts
            if self._fault.applied or not is_failure:
                self.accepted.append(request.body)
        return first[min(turn, len(first) - 1)] if is_failure else Reply(body=self._fault.answer)


def judge(fault: Fault, told: tuple[int, bytes] | None, accepted: Sequence[bytes]) -> str:
    """Return the verdict on a client's outcome.

    :param told: status and body that the client was told of; None where it raised.
    :param accepted: the uploads that the server acted on.
    """
    sent = UPLOAD if fault.upload else b""
    if any(body != sent for body in accepted):
        return WRONG
    if fault.method == "POST" and len(accepted) > 1:
        return TWICE
    if told is None or told[0] >= 400:
        return ERROR
    return INTACT if told[1] == fault.answer else WRONG


def _upload(kind: str) -> Any:
    if kind == "generator":
        return (UPLOAD[start : start + 512] for start in range(0, len(UPLOAD), 512))
    return {"": None, "bytes": UPLOAD, "file": io.BytesIO(UPLOAD)}[kind]


def cell(fault: Fault, make: Callable[[str], Any], bound: float = BOUND) -> tuple[str, str, float]:
    """One operation: its outcome, the status or the exception's name, and the seconds it took."""
    script = Script(fault)
    if fault.down:
        with refusing_port() as port:
            pass  # it was free, so it will be in a second
        server = None
    else:
        server = FaultServer(script)
        port = server.port
    told: list[Any] = []

    def operate() -> None:
        try:
            call = make(f"http://127.0.0.1:{port}")
            if fault.warm:
                call(fault.method, "/a", None)
                time.sleep(IDLE)
            told.append(call(fault.method, "/a", _upload(fault.upload)))
        except Exception as error:  # whatever a client raises is what is looked for
            told.append(error)

    started = time.monotonic()
    thread = threading.Thread(target=operate, daemon=True)  # one that hangs is left behind
    thread.start()
    try:
        if server is None:
            time.sleep(DOWN)
            server = FaultServer(script, port=port)
        thread.join(max(0.0, started + bound - time.monotonic()))
        seconds, accepted, answers = time.monotonic() - started, list(script.accepted), list(told)
    finally:
        if server is not None:
            server.close()
    if not answers:
        return HANG, "", seconds
    answer = answers[0]
    if isinstance(answer, Exception):
        return judge(fault, None, accepted), type(answer).__name__, seconds
    return judge(fault, answer, accepted), str(answer[0]), seconds


def measure(faults: Sequence[str], clients: Sequence[str], rounds: int, bound: float = BOUND) -> dict[str, Any]:
    """Every cell, some at a time; by fault and client."""
    jobs = [
        (fault, client)
        for _ in range(rounds)
        for fault in faults
        for client in clients
        if client not in FAULTS[fault].without
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(lambda job: cell(FAULTS[job[0]], CLIENTS[job[1]], bound), jobs))
    cells: dict[str, dict[str, Any]] = {fault: {} for fault in faults}
    for (fault, client), (outcome, detail, seconds) in zip(jobs, found, strict=True):
        row = cells[fault].setdefault(client, {"outcomes": [], "details": [], "seconds": 0.0})
        row["outcomes"].append(outcome)
        row["details"].append(detail)
        row["seconds"] = max(row["seconds"], seconds)
    return cells


def shown(outcomes: Sequence[str]) -> str:
    """The worst outcome; how often, where it is not always."""
    counts = collections.Counter(outcomes)
    worst = max(counts, key=OUTCOMES.index)
    return worst if len(counts) == 1 else f"{worst} {counts[worst]} of {len(outcomes)}"


def text(cells: dict[str, Any]) -> str:
    """A line per fault and client."""
    lines = []
    for fault, row in cells.items():
        lines.append(f"{fault} (at best {FAULTS[fault].best})")
        lines += [
            f"    {client:20} {shown(each['outcomes']):20} {', '.join(sorted(set(each['details']))):24} "
            f"{each['seconds']:.1f} s"
            for client, each in row.items()
        ]
    return "\n".join(lines)


def main() -> int:
    """Measure, print, and write what was asked for."""
    parser = command.parser(__doc__, "one round; some seconds less")
    parser.add_argument("--fault", action="append", choices=FAULTS, metavar="NAME", help="repeatable; default: all")
    parser.add_argument("--client", action="append", choices=CLIENTS, metavar="NAME", help="repeatable; default: all")
    parser.add_argument("--rounds", type=int, help=f"how often each cell is run ({ROUNDS})")
    options = parser.parse_args()
    command.forget_settings()
    for name in ("requests_smithy_retry", "urllib3", "backoff", "stamina"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    began = time.monotonic()
    cells = measure(options.fault or list(FAULTS), options.client or list(CLIENTS), rounds)
    print(text(cells))
    print(f"\n{time.monotonic() - began:.1f} s")
    kept = {fault: {client: each["outcomes"] for client, each in row.items()} for fault, row in cells.items()}
    best = {fault: FAULTS[fault].best for fault in cells}
    command.write({"best": best, "outcomes": kept}, options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
