"""What a request that succeeds at once costs: CPU and wall time, paired with a plain adapter, beside other libraries.

    python -m benchmarks.overhead [--quick] [--rounds 60] [--json FILE] [--only NAME]

In this one process, against a keep-alive server in another one on loopback, over the whole of `session.get(url)` with
its body read. A pair is one call of a subject and one of a plain `HTTPAdapter` next to it, in turns which comes first.
A round is so many pairs of each subject, and its figure is the quotient of their medians. The table has the medians of
the rounds and their quartiles. CPU time is that of the calling thread. `control` is a second plain adapter: the noise.
With *new* the connection is closed between calls, which is not timed. Then the CPU time that a process takes to load
each library, above requests.

Not measured: failures, memory, other methods than GET, TLS, proxies, threads.
"""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests.exceptions import RequestException
from urllib3.util.retry import Retry

from . import command
from .loopback import loopback

ROUNDS, PAIRS = 60, 40
Get = Callable[[str], requests.Response]


def _tenacity(get: Get) -> Get:
    from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential

    wait, errors = wait_random_exponential(multiplier=0.05, max=20), retry_if_exception_type(RequestException)
    wrapped: Get = retry(stop=stop_after_attempt(3), wait=wait, retry=errors, reraise=True)(get)
    return wrapped


def _stamina(get: Get) -> Get:
    import stamina

    return stamina.retry(on=RequestException, attempts=3)(get)


def _backoff(get: Get) -> Get:
    import backoff

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

    def got(url: str) -> requests.Response:
        request = {"context": {"retries": {"attempt": 1}}}
        response = get(url)
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
}
WRAPPERS: dict[str, tuple[str, Callable[[Get], Get]]] = {
    "backoff": ("@backoff.on_exception(expo, max_tries=3)", _backoff),
    "botocore": ("its standard retry handler, fed with each success", _botocore),
    "tenacity": ("@tenacity.retry(stop, wait_random_exponential)", _tenacity),
    "stamina": ("@stamina.retry(attempts=3)", _stamina),
}
NEW = {f"{name}, new": name for name in ("control", "urllib3", "ours", "ours, operation_timeout")}
"""The subjects whose connection is a new one each time, and what they are else."""
NAMES = (*[name for name in ADAPTERS if name != "plain"], *WRAPPERS, *NEW)


class Subject:
    """One row: a callable that makes one whole `session.get(url)`, over a session of its own."""

    def __init__(self, name: str) -> None:
        self.is_new = name in NEW
        kind = NEW.get(name, name)
        self.adapter = ADAPTERS[kind][1]() if kind in ADAPTERS else HTTPAdapter()
        self.session = requests.Session()
        self.session.mount("http://", self.adapter)
        self.get: Get = WRAPPERS[kind][1](self.session.get) if kind in WRAPPERS else self.session.get

    def forget_connection(self) -> None:
        """Have the next call make a new connection."""
        pools: Any = self.adapter.poolmanager.pools
        for key in pools.keys():  # noqa: SIM118 - not a dict
            pool = pools[key].pool
            pool.get_nowait().close()
            pool.put_nowait(None)


def paired(subject: Subject, plain: Subject, url: str, pairs: int) -> tuple[float, float]:
    """Return the quotients of the medians of CPU and of wall time of so many pairs of calls."""
    spent: dict[Subject, list[tuple[float, float]]] = {subject: [], plain: []}
    gc.collect()
    gc.disable()
    try:
        for number in range(pairs):
            for one in (subject, plain) if number % 2 else (plain, subject):
                place = f"{url}/items/{number}"
                cpu, wall = time.thread_time(), time.perf_counter()
                one.get(place)
                spent[one].append((time.thread_time() - cpu, time.perf_counter() - wall))
                if subject.is_new:
                    one.forget_connection()
    finally:
        gc.enable()
    own, usual = ([median(times) for times in zip(*spent[one], strict=True)] for one in (subject, plain))
    return own[0] / usual[0], own[1] / usual[1]


def measure(names: Sequence[str], rounds: int, pairs: int) -> dict[str, Any]:
    """Measure the subjects, in rounds that visit each of them; one that cannot be made is left out."""
    subjects = {}
    for name in names:
        with contextlib.suppress(ImportError):
            subjects[name] = Subject(name)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in subjects}
    plain = Subject("plain")
    with loopback() as origin:
        for subject in subjects.values():
            paired(subject, plain, origin, pairs)  # opens connections, fills caches
        for _ in range(rounds):
            for name, subject in subjects.items():
                found[name].append(paired(subject, plain, origin, pairs))
    for subject in (plain, *subjects.values()):
        subject.session.close()
    spreads = {name: [command.spread(each) for each in zip(*values, strict=True)] for name, values in found.items()}
    return {name: {"cpu": cpu, "wall": wall} for name, (cpu, wall) in spreads.items()}


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
    parser = command.parser(__doc__, "three rounds, some seconds: no figures")
    parser.add_argument("--only", action="append", choices=NAMES, metavar="NAME", help=f"repeatable: {NAMES}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds (%(default)s)")
    options = parser.parse_args()
    command.forget_settings()
    rounds = 3 if options.quick else options.rounds
    found = measure(options.only or NAMES, rounds, PAIRS)
    rows = [
        [name, *("{median:.3f} ({q1:.3f} to {q3:.3f})".format(**each[kind]) for kind in ("cpu", "wall"))]
        for name, each in found.items()
    ]
    print(command.table(["beside a plain HTTPAdapter", "CPU time (quartiles)", "wall time"], rows))
    loaded = loading(3 if options.quick else 15)
    print("\nloading, ms of CPU time: " + ", ".join(f"{name} {took:.0f}" for name, took in loaded.items()))
    what = {name: (ADAPTERS.get(name) or WRAPPERS[name])[0] for name in found if name not in NEW}
    command.write({"what": what, "rounds": rounds, "ratios": found, "loading": loaded}, options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
