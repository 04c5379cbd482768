"""What a request that succeeds at once costs: CPU and wall time, paired with a plain adapter, beside other libraries.

    python -m benchmarks.overhead [--quick] [--rounds 30] [--json FILE] [--only NAME]

In this one process, against a keep-alive server in another one on loopback, over the whole of a call with its body
read. A pair is one call of a subject and one of a plain `HTTPAdapter` next to it, in turns which comes first. A round
is so many pairs of each subject, and its figure is the quotient of their medians. The table has the medians of the
rounds and their quartiles. CPU time is that of the calling thread. `control` is a second plain adapter: the noise. What
both of a pair ask for is in `ASKS`: with *new* the connection is closed between calls, which is not timed. Then eight
threads on one adapter, paired in turns of so many calls of each, with the CPU time of the whole process; the CPU time
that a process takes to load each library, above requests; and the memory of sessions that have an adapter each.

Not measured: failures, TLS, proxies.
"""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import requests
from requests.adapters import HTTPAdapter
from requests.exceptions import RequestException
from urllib3.util.retry import Retry

from . import command
from .loopback import loopback

ROUNDS, PAIRS = 30, 40
SESSIONS = 1000
THREADS = 8
Get = Callable[..., requests.Response]


class Ask(NamedTuple):
    """What both calls of a pair ask for."""

    kind: str = "items"
    """The answer: the first part of the path, as :mod:`.loopback` knows it."""
    given: Mapping[str, Any] = MappingProxyType({"method": "GET"})
    """The arguments of ``session.request``."""
    share: float = 1.0
    """The part of the pairs that are made, because one takes so long."""
    is_new: bool = False
    """A new connection is made each time."""


def _is_error(document: Any) -> bool:
    """Return True for a JSON body that tells of an error."""
    return bool(document["status"] != "ok")


def _tenacity(get: Get, *, sees_json: bool = False) -> Get:
    from tenacity import retry, retry_if_exception_type, retry_if_result, stop_after_attempt, wait_random_exponential

    wait, errors = wait_random_exponential(multiplier=0.05, max=20), retry_if_exception_type(RequestException)
    judged: Any = errors | retry_if_result(lambda response: _is_error(response.json())) if sees_json else errors
    wrapped: Get = retry(stop=stop_after_attempt(3), wait=wait, retry=judged, reraise=True)(get)
    return wrapped


def _stamina(get: Get) -> Get:
    import stamina

    return stamina.retry(on=RequestException, attempts=3)(get)


def _backoff(get: Get, *, sees_json: bool = False) -> Get:
    import backoff

    if sees_json:
        get = backoff.on_predicate(backoff.expo, lambda response: _is_error(response.json()), max_tries=3)(get)
    return backoff.on_exception(backoff.expo, RequestException, max_tries=3)(get)


def _botocore(get: Get) -> Get:
    """Tell botocore's own standard retry handler of each response, where its endpoint and its client do."""
    from botocore.endpoint import Endpoint
    from botocore.hooks import HierarchicalEmitter
    from botocore.model import ServiceId
    from botocore.retries.standard import register_retry_handler

    emitter = HierarchicalEmitter()
    service = SimpleNamespace(service_id=ServiceId("demo"), service_name="demo")
    operation = SimpleNamespace(name="GetThing", service_model=service, error_shapes=[])
    register_retry_handler(SimpleNamespace(meta=SimpleNamespace(service_model=service, events=emitter)))
    needs_retry = Endpoint("http://127.0.0.1", "demo", emitter, http_session=object())._needs_retry

    def got(**given: Any) -> requests.Response:
        request = {"context": {"retries": {"attempt": 1}}}
        response = get(**given)
        parsed = {"ResponseMetadata": {"HTTPStatusCode": response.status_code}}
        assert not needs_retry(1, operation, request, (response, parsed))
        told = {"http_response": response, "parsed": parsed, "model": operation, "context": request["context"]}
        emitter.emit("after-call.demo.GetThing", **told)
        return response

    return got


def _ours(**options: Any) -> HTTPAdapter:
    from requests_smithy_retry import RetryAdapter

    return RetryAdapter(**options)


def _heard() -> HTTPAdapter:
    from requests_smithy_retry import RetryListener

    class Hears(RetryListener):
        """Hears of every event and does nothing; a method that is not overridden is not called."""

        def before_attempt(self, event: Any) -> None: ...

        def after_attempt(self, event: Any) -> None: ...

        def succeeded(self, event: Any) -> None: ...

    return _ours(listeners=[Hears()])


def _together() -> HTTPAdapter:
    from prometheus_client import CollectorRegistry

    from requests_smithy_retry.prometheus import PrometheusListener

    return _ours(
        scope=lambda request: "service",
        listeners=[PrometheusListener(registry=CollectorRegistry())],
        operation_timeout=30,
        deadline_header="X-Request-Deadline",
    )


def _judging() -> HTTPAdapter:
    from requests_smithy_retry import ErrorInBodyClassifier

    return _ours(classifiers=[ErrorInBodyClassifier(_is_error, "status")])


ADAPTERS: dict[str, tuple[str, Callable[[], HTTPAdapter]]] = {
    "plain": ("HTTPAdapter()", HTTPAdapter),
    "control": ("HTTPAdapter() once more: the noise", HTTPAdapter),
    "urllib3": (
        "HTTPAdapter(max_retries=Retry(3, ...))",
        lambda: HTTPAdapter(max_retries=Retry(3, status_forcelist=[503], backoff_factor=0.1)),
    ),
    "ours": ("RetryAdapter()", _ours),
    "ours, listener": ("RetryAdapter(listeners=[...]), one that hears each attempt", _heard),
    "ours, operation_timeout": ("RetryAdapter(operation_timeout=30)", lambda: _ours(operation_timeout=30)),
    "ours, adaptive": ('RetryAdapter(mode="adaptive")', lambda: _ours(mode="adaptive")),
    "ours, together": ("scope, prometheus and a deadline header together", _together),
    "ours, ErrorInBodyClassifier": ("ErrorInBodyClassifier, which parses each body", _judging),
}
WRAPPERS: dict[str, tuple[str, Callable[[Get], Get]]] = {
    "backoff": ("@backoff.on_exception(expo, max_tries=3)", _backoff),
    "botocore": ("its standard retry handler, fed with each success", _botocore),
    "tenacity": ("@tenacity.retry(stop, wait_random_exponential)", _tenacity),
    "stamina": ("@stamina.retry(attempts=3)", _stamina),
    "tenacity, retry_if_result": ("and retry_if_result, which parses each body", partial(_tenacity, sees_json=True)),
    "backoff, on_predicate": ("and on_predicate, which parses each body", partial(_backoff, sees_json=True)),
}
HOOK = {"method": "GET", "hooks": {"response": lambda response, **_: response.raise_for_status()}}
STREAM = {"method": "GET", "stream": True}
UPLOAD = {"method": "POST", "data": bytes(20_000_000)}
ASKS = {
    "": Ask(),
    "new": Ask(is_new=True),
    "JSON, 2 kB": Ask("2000-0-"),
    **{
        f"hook, {name}, {size}": Ask(f"{count}-{framing}", HOOK, share)
        for name, framing in (("gzip", "0-gzip"), ("sized", "0-"), ("chunks", "400-"))
        for size, count, share in (("2 kB", 2000, 1.0), ("64 KiB", 2**16, 0.5), ("1 MiB", 2**20, 0.2))
    },
    "stream, ETag, chunks of 400 B": Ask("1000000-400-etag", STREAM, 0.2),
    "stream, ETag, chunks of 64 KiB": Ask("1000000-65536-etag", STREAM, 0.2),
    "upload, 20 MB": Ask("items", UPLOAD, 0.2),
}
JUDGES = ["ours, ErrorInBodyClassifier", "tenacity, retry_if_result", "backoff, on_predicate"]
OTHERS = {
    "": [name for name in (*ADAPTERS, *WRAPPERS) if name not in ("plain", *JUDGES)],
    "new": ["control", "urllib3", "ours", "ours, operation_timeout"],
    "JSON, 2 kB": JUDGES,
    "upload, 20 MB": ["control", "stamina", "ours, operation_timeout"],
}
"""Who asks; else it is urllib3's ``Retry`` and ours."""
ROWS = {f"{who}, {ask}".removesuffix(", "): (who, ask) for ask in ASKS for who in OTHERS.get(ask, ["urllib3", "ours"])}
"""By name of a row: who asks, and what."""


class Subject:
    """Who asks for something, over a session of its own."""

    def __init__(self, who: str, ask: Ask) -> None:
        self.ask = ask
        self.adapter = ADAPTERS[who][1]() if who in ADAPTERS else HTTPAdapter()
        self.session = command.session_of(self.adapter)
        self.get: Get = WRAPPERS[who][1](self.session.request) if who in WRAPPERS else self.session.request

    def call(self, url: str) -> None:
        """Make one whole call."""
        response = self.get(url=url, **self.ask.given)
        if "stream" in self.ask.given:
            for _ in response.iter_content(8192):
                pass

    def forget_connection(self) -> None:
        """Have the next call make a new connection."""
        pools: Any = self.adapter.poolmanager.pools
        for key in pools.keys():  # noqa: SIM118 - not a dict
            pool = pools[key].pool
            pool.get_nowait().close()
            pool.put_nowait(None)


def paired(subject: Subject, plain: Subject, origin: str, pairs: int) -> tuple[float, float]:
    """Return the quotients of the medians of CPU and of wall time of so many pairs of calls."""
    spent: dict[Subject, list[tuple[float, float]]] = {subject: [], plain: []}
    gc.collect()
    gc.disable()
    try:
        for number in range(max(2, round(pairs * subject.ask.share))):
            for one in (subject, plain) if number % 2 else (plain, subject):
                place = f"{origin}/{subject.ask.kind}/{number}"
                cpu, wall = time.thread_time(), time.perf_counter()
                one.call(place)
                spent[one].append((time.thread_time() - cpu, time.perf_counter() - wall))
                if subject.ask.is_new:
                    one.forget_connection()
    finally:
        gc.enable()
    own, usual = ([median(times) for times in zip(*spent[one], strict=True)] for one in (subject, plain))
    return own[0] / usual[0], own[1] / usual[1]


def measure(names: Iterable[str], rounds: int, pairs: int) -> dict[str, Any]:
    """Measure the rows, in rounds that visit each of them; one whose subject cannot be made is left out."""
    rows = {}
    for name in names:
        who, asked = ROWS[name]
        with contextlib.suppress(ImportError):
            rows[name] = Subject(who, ASKS[asked]), Subject("plain", ASKS[asked])
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in rows}
    with loopback() as origin:
        for subject, plain in rows.values():
            paired(subject, plain, origin, pairs)  # opens connections, fills caches
        for _ in range(rounds):
            for name, (subject, plain) in rows.items():
                found[name].append(paired(subject, plain, origin, pairs))
    for subject, plain in rows.values():
        subject.session.close()
        plain.session.close()
    spreads = {name: [command.spread(each) for each in zip(*values, strict=True)] for name, values in found.items()}
    return {name: {"cpu": cpu, "wall": wall} for name, (cpu, wall) in spreads.items()}


def has_gil() -> bool:
    """Return False on a free-threaded build that runs without the GIL."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def in_threads(pool: Executor, who: Subject, origin: str, calls: int) -> tuple[float, float]:
    """Return the CPU time of the process, and the wall time, of so many calls by each of the threads."""
    sessions = [command.session_of(who.adapter) for _ in range(THREADS)]

    def work(session: requests.Session) -> None:
        for number in range(calls):
            session.get(f"{origin}/items/{number}")

    cpu, wall = time.process_time(), time.perf_counter()
    for _ in pool.map(work, sessions):
        pass
    return time.process_time() - cpu, time.perf_counter() - wall


def threads(rounds: int, calls: int) -> dict[str, dict[str, Any]]:
    """Measure threads on one adapter beside as many on a plain one; return quotients, and plain calls in a second."""
    found: dict[str, list[tuple[float, float]]] = {"control": [], "ours": [], "ours, operation_timeout": []}
    plain, subjects, rates = Subject("plain", ASKS[""]), {name: Subject(name, ASKS[""]) for name in found}, []
    with loopback() as origin, ThreadPoolExecutor(THREADS) as pool:
        for each in (plain, *subjects.values()):
            in_threads(pool, each, origin, calls)  # opens connections, fills caches
        for number in range(rounds):
            for name, subject in subjects.items():
                order = (subject, plain) if number % 2 else (plain, subject)
                took = {one: in_threads(pool, one, origin, calls) for one in order}
                (cpu, wall), (cpu_of_plain, wall_of_plain) = took[subject], took[plain]
                found[name].append((cpu / cpu_of_plain, wall / wall_of_plain))
                rates.append(THREADS * calls / wall_of_plain)
    spreads = {name: [command.spread(each) for each in zip(*values, strict=True)] for name, values in found.items()}
    ratios = {name: {"cpu": cpu, "wall": wall} for name, (cpu, wall) in spreads.items()}
    return {"has_gil": has_gil(), "ratios": ratios, "calls a second": command.spread(rates)}


def memory(sessions: int) -> dict[str, float]:
    """Return the KiB of a session with an adapter of its own that made a call and has no connection, of so many."""
    found = {}
    with loopback() as origin:
        for who in ("plain", "ours", "ours, operation_timeout"):
            kept = []
            for number in range(sessions + 1):
                if number == 1:  # the first one loads modules and fills caches
                    gc.collect()
                    tracemalloc.start()
                kept.append(Subject(who, ASKS[""]))
                kept[-1].call(f"{origin}/items/1")
                kept[-1].forget_connection()
            gc.collect()
            found[who] = round(tracemalloc.get_traced_memory()[0] / sessions / 1024, 1)
            tracemalloc.stop()
    return found


PROGRAMS = {
    "ours, the first mount": "from requests_smithy_retry import mount; mount(requests.Session())",
    **{f"{name}, import": f"import {name}" for name in ("tenacity", "stamina", "backoff")},
}


def loading(rounds: int) -> dict[str, float]:
    """Return the milliseconds of CPU time that a process takes to load each library, after requests."""
    found = {}
    # With compiled files, as installed packages have them, whatever the caller's environment says.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])
    for name, program in PROGRAMS.items():
        code = (
            "import requests, time\nrequests.Session()\nbegan = time.process_time()\n"
            f"{program}\nprint(time.process_time() - began)"
        )
        ran = [
            subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
            for _ in range(rounds)
        ]
        if all(each.returncode == 0 for each in ran):
            found[name] = round(1000 * median(float(each.stdout) for each in ran), 1)
    return found


def main() -> int:
    """Measure, print, and write what was asked for."""
    parser = command.parser(__doc__, "three rounds of few pairs, some seconds: no figures")
    parser.add_argument("--only", action="append", choices=ROWS, metavar="NAME", help="a row; repeatable")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds (%(default)s)")
    options = parser.parse_args()
    command.forget_settings()
    rounds = 3 if options.quick else options.rounds
    found = measure(options.only or ROWS, rounds, 5 if options.quick else PAIRS)
    shown = [
        [name, *("{median:.3f} ({q1:.3f} to {q3:.3f})".format(**each[kind]) for kind in ("cpu", "wall"))]
        for name, each in found.items()
    ]
    print(command.table(["beside a plain HTTPAdapter", "CPU time (quartiles)", "wall time"], shown))
    side_by_side = threads(rounds, 5 if options.quick else 100)
    told = [
        f"{name} {each['cpu']['median']:.3f} and {each['wall']['median']:.3f}"
        for name, each in side_by_side["ratios"].items()
    ]
    gil = "with" if has_gil() else "without"
    print(
        f"\n{THREADS} threads on one adapter, {gil} the GIL, CPU and wall time: {', '.join(told)}; "
        f"{side_by_side['calls a second']['median']:.0f} plain calls a second"
    )
    loaded, held = loading(1 if options.quick else 15), memory(50 if options.quick else SESSIONS)
    print("loading, ms of CPU time: " + ", ".join(f"{name} {took:.0f}" for name, took in loaded.items()))
    print("memory of a session, KiB: " + ", ".join(f"{name} {size:.1f}" for name, size in held.items()))
    what = {name: (ADAPTERS.get(name) or WRAPPERS[name])[0] for name in {ROWS[row][0]: None for row in found}}
    result = {
        "what": what,
        "rounds": rounds,
        "ratios": found,
        "threads": side_by_side,
        "loading": loaded,
        "memory": held,
    }
    command.write(result, options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
