"""The five journeys of the documentation, each run as it is printed against a real server that misbehaves."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import requests

from requests_smithy_retry import retry_options, retry_summary
from requests_smithy_retry.testing import Behaviour, CloseAfterRequest, CutBody, FaultServer, RecordedRequest, Reply
from tests.faults import Stall
from tests.project.test_docs import BLOCK, ROOT, blocks_of

pytestmark = pytest.mark.real_time

HOWTO = ROOT / "docs" / "howto"
LOGGER = logging.getLogger("requests_smithy_retry")
CODES = (409, b"LOCKED"), (409, b"GONE"), (429, b"QUOTA")
CSV = b"day,value\n1,2\n"
PAUSES = "[30, 60, 120, 300] + [600] * 48"
"""As the page of the nightly job has them."""


def all_blocks_of(page: str) -> list[str]:
    """Every block of a page, those that the tests of the pages do not run included."""
    return [match[2] for match in BLOCK.finditer((HOWTO / page).read_text(encoding="utf-8"))]


def run(blocks: list[str], server: FaultServer, **replaced: str) -> dict[str, Any]:
    """Run these blocks with the server in place of example.com; each text to be replaced must be in one of them."""
    space: dict[str, Any] = {"__name__": "journey"}
    assert [] == [old for old in replaced if not any(old in block for block in blocks)]
    for block in blocks:
        code = block.replace("https://api.example.com", server.url)
        for old, new in replaced.items():
            code = code.replace(old, new)
        exec(compile(code, "page", "exec"), space)
    return space


def run_job(server: FaultServer, files: int = 90, pauses: str = "[0]", **replaced: str) -> dict[str, Any]:
    """Run the page of the nightly job with so many files; ``status`` is that of its exit."""
    pytest.importorskip("pandas")
    changes = {"range(300)": f"range({files})", "sys.exit(": "status = int(", ", disable=None": "", PAUSES: pauses}
    return run(all_blocks_of("nightly-job.md"), server, **changes, **replaced)


class Files:
    """A server of CSV files with an announced limit; every seventh file is cut once, and every ninth answered 503."""

    def __init__(self, limit: int, window: float) -> None:
        self._lock = threading.Lock()
        self._limit, self._window = limit, window
        self._began, self._used = time.monotonic(), 0
        self.asked: Counter[str] = Counter()
        self.refused = 0

    def __call__(self, request: RecordedRequest) -> Behaviour:
        with self._lock:
            now = time.monotonic()
            if now - self._began >= self._window:
                self._began, self._used = now, 0
            left = self._began + self._window - now
            self._used += 1
            told = {"X-RateLimit-Limit": str(self._limit), "X-RateLimit-Reset-After": f"{left:.3f}"}
            told["X-RateLimit-Remaining"] = str(max(0, self._limit - self._used))
            if self._used > self._limit:
                self.refused += 1
                return Reply(429, told)
            self.asked[request.path] += 1
            number = int(request.path.strip("/").partition(".")[0])
            is_first = self.asked[request.path] == 1
        if is_first and number % 9 == 1:
            return Reply(503, told)
        if is_first and number % 7 == 2:
            return CutBody(Reply(200, told, CSV), at=5)
        return Reply(200, told, CSV)


@pytest.mark.once
def test_a_nightly_job_gets_every_file_into_pandas(capsys: pytest.CaptureFixture[str]) -> None:
    """Within an announced limit, with cut bodies and 503s: no file is lost, no request refused, one bar, one line."""
    files = Files(limit=40, window=1.0)
    with FaultServer(files) as server:
        space = run_job(server)
    out, err = capsys.readouterr()
    assert ({}, 90, 0, 0) == (space["lost"], len(space["frames"]), files.refused, space["status"])
    assert all(frame.shape == (1, 2) for frame in space["frames"].values())
    assert "90/90" in err
    assert "90 of 90 files, 22 of them with retries; 0 lost\n" == out
    assert 22 == sum(count - 1 for count in files.asked.values())


@pytest.mark.once
def test_a_nightly_job_has_a_second_round(capsys: pytest.CaptureFixture[str]) -> None:
    """It brings a file that three attempts did not get, though a limit refuses it then. One that is empty, not there,
    or makes the program raise what nobody expects, is not asked for again, and ends nothing.
    """
    asked: Counter[str] = Counter()
    changed, since = threading.Condition(), 0

    def answer(request: RecordedRequest) -> Behaviour:
        nonlocal since
        with changed:
            asked[request.path] += 1
            others = asked.total() - asked["/5.csv"]
            changed.notify_all()
            if request.path == "/5.csv" and asked[request.path] <= 3:
                # Of sixteen requests of seven threads, one begins and ends meanwhile: the attempt counts.
                since = others
                assert changed.wait_for(lambda: asked.total() - asked["/5.csv"] >= since + 16, timeout=20)
            elif others >= since + 20:  # enough are left for the next attempt
                assert changed.wait_for(lambda: others < since + 20 or asked["/5.csv"] >= 3, timeout=20)
        if request.path in ("/3.csv", "/7.csv"):
            return Reply(404) if request.path == "/3.csv" else Reply()
        if request.path == "/5.csv" and asked[request.path] <= 4:
            return Reply(503) if asked[request.path] <= 3 else Reply(429, {"Retry-After": "1"})
        return Reply(body=CSV)

    with FaultServer(answer) as server:
        space = run_job(server, **{"pd.read_csv(": "{}[0] if url.endswith('/8.csv') else pd.read_csv("})
    out, err = capsys.readouterr()
    assert (1, True) == (err.count("| 0/90 ["), "87/90" in err)
    assert {f"{server.url}/{number}.csv" for number in (3, 7, 8)} == set(space["lost"])
    assert [1, 5, 1, 1] == [asked[f"/{number}.csv"] for number in (3, 5, 7, 8)]
    first, *why = out.splitlines()
    assert "87 of 90 files, 1 of them with retries; 3 lost" == first
    assert [
        f"lost {server.url}/3.csv: ended at attempt 1 with 404: no classifier asked for a retry",
        f"lost {server.url}/7.csv: EmptyDataError('No columns to parse from file')",
        f"lost {server.url}/8.csv: KeyError(0)",
    ] == sorted(why)


@pytest.mark.once
def test_a_nightly_job_ends_when_its_time_is_up() -> None:
    """The threads of the pool honour the deadline of the block, with a server that never answers."""
    began = time.monotonic()
    with FaultServer(default=Reply(503, {"Retry-After": "60"})) as server:
        space = run_job(server, 9, pauses="[60]", **{"SECONDS = 3600": "SECONDS = 0.5"})
    assert time.monotonic() - began < 30
    assert (9, 1) == (len(space["lost"]), space["status"])


@pytest.mark.once
def test_a_nightly_job_goes_on_until_the_service_is_back(capsys: pytest.CaptureFixture[str]) -> None:
    """Rounds ask for the files that are lost, until each has come, and for none that has or is not there."""
    lock, refused, up = threading.Lock(), itertools.count(), []

    def answer(request: RecordedRequest) -> Behaviour:
        with lock:
            if next(refused) < 300:
                return Reply(503)
            up.append(request.path)
        return Reply(404) if request.path == "/77.csv" else Reply(body=CSV)

    with FaultServer(answer) as server:
        space = run_job(server, pauses="[0.1] * 50", **{"patience=60": "patience=0"})
    assert (89, 1) == (len(space["frames"]), space["status"])
    assert (90, 1) == (len(set(up)), up.count("/77.csv"))
    first, lost = capsys.readouterr().out.splitlines()
    assert "89 of 90 files, 89 of them with retries; 1 lost" == first
    assert lost == f"lost {server.url}/77.csv: ended at attempt 1 with 404: no classifier asked for a retry"


@pytest.mark.once
def test_a_nightly_job_ends_when_only_hopeless_files_are_left() -> None:
    """A round that brings nothing, although a file that has come can be fetched again, is the last one."""
    asked: Counter[str] = Counter()

    def answer(request: RecordedRequest) -> Behaviour:
        asked[request.path] += 1
        return Reply(503) if request.path == "/5.csv" else Reply(body=CSV)

    with FaultServer(answer) as server:
        space = run_job(server, pauses="[0] * 50", **{"patience=60": "patience=0"})
    assert (89, 1) == (len(space["frames"]), space["status"])
    hopeless = asked.pop("/5.csv")
    assert (91, True) == (asked.total(), hopeless < 50)


@pytest.mark.once
def test_a_nightly_job_asks_for_three_files_while_the_service_is_down() -> None:
    """They have come before; the lost ones are asked for when one of them comes again."""
    asked: Counter[str] = Counter()

    def answer(request: RecordedRequest) -> Behaviour:
        asked[request.path] += 1
        times = asked[request.path]
        is_down = times == 1 if request.path == "/5.csv" else 1 < times <= 6
        return Reply(503) if is_down else Reply(body=CSV)

    with FaultServer(answer) as server:
        space = run_job(server, pauses="[0] * 50", **{"patience=60": "max_attempts=1"})
    assert (90, {}, 2) == (len(space["frames"]), space["lost"], asked.pop("/5.csv"))
    assert (89 + 3 * 5 + 1, 7) == (asked.total(), max(asked.values()))


@pytest.mark.once
def test_a_nightly_job_takes_no_half_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    """A cut body without a length is fetched again, and is lost if it is always cut; a whole one needs no line feed."""
    asked: Counter[str] = Counter()
    lock = threading.Lock()

    def answer(request: RecordedRequest) -> Behaviour:
        with lock:
            asked[request.path] += 1
            count = asked[request.path]
        if request.path == "/45.csv" or (request.path == "/43.csv" and count == 1):
            return CutBody(Reply(body=CSV, framing="close"), at=len(CSV) - 2)
        if request.path == "/47.csv":
            return Reply(body=CSV.rstrip())
        return Reply(body=CSV, framing="close")

    with FaultServer(answer) as server:
        space = run_job(server, **{"patience=60": "patience=0"})
    assert all(frame.iat[0, 1] == 2 for frame in space["frames"].values())
    assert (2, 1) == (asked["/43.csv"], asked["/47.csv"])
    first, lost = capsys.readouterr().out.splitlines()
    assert "89 of 90 files, 1 of them with retries; 1 lost" == first
    assert lost.endswith("last answer: 200 (validate wants a retry)")


@pytest.mark.once
def test_a_nightly_job_ends_at_ctrl_c(tmp_path: Path) -> None:
    """Threads that wait for a server which is down let go, and what has not begun is not sent."""
    pytest.importorskip("pandas")
    with FaultServer(default=Reply(503)) as server:
        code = all_blocks_of("nightly-job.md")[0].replace("https://api.example.com", server.url)
        (tmp_path / "job.py").write_text(code)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "job.py"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True) as job:
            while len(server.requests) < 8 and job.poll() is None:
                time.sleep(0.05)
            job.send_signal(signal.SIGINT)
            began = time.monotonic()
            out, err = job.communicate(timeout=60)
        assert time.monotonic() - began < 20
        stopping, stopped, counted, *lost = out.splitlines()
        assert "stopping: requests in progress end first" == stopping
        assert re.fullmatch(r"stopped: \d+ files are missing", stopped)
        assert f"0 of 300 files, 0 of them with retries; {len(lost)} lost" == counted
        assert (130, False) == (job.returncode, "Traceback" in err)
        assert len(server.requests) < 100


def web_blocks() -> list[str]:
    """The blocks of the page of the web service, without what they assert about a mock."""
    pytest.importorskip("flask")
    return [re.sub(r"^assert .*", "", block, flags=re.MULTILINE) for block in blocks_of(HOWTO / "web-service.md")]


def test_a_payment_is_applied_once() -> None:
    """The upstream applies it and answers 504; the retry has the same key, which the page made from the order."""
    applied: Counter[str] = Counter()

    def upstream(request: RecordedRequest) -> Behaviour:
        key = request.header("Idempotency-Key") or ""
        applied[key] += 1
        return Reply(504) if applied[key] == 1 else Reply(body=b'{"status": "done"}')

    with FaultServer(upstream) as server:
        space = run(web_blocks()[:1], server)
        assert {"status": "done"} == space["app"].test_client().post("/orders/17/payment").json
    assert {'"order-17-0"': 2} == applied
    assert (1, 1, 0) == (lambda of: (of.retried, of.saved, of.lost))(retry_summary(space["session"]))


def test_a_view_has_one_bound_for_all_its_calls() -> None:
    """Two calls that fail slowly end by 1.8 s together, whatever a header asks for; less is granted."""

    def upstream(request: RecordedRequest) -> Behaviour:
        time.sleep(0.5)
        return Reply(503)

    with FaultServer(upstream) as server:
        space = run(web_blocks(), server)
        session, app = space["session"], space["app"]
        app.get("/both")(lambda: [session.get(f"{server.url}/{path}").text for path in ("users", "things")])
        for header, most in ("30", 2.4), ("0.2", 0.45):
            began = time.monotonic()
            answer = app.test_client().get("/both", headers={"X-Request-Deadline": header}, buffered=True)
            assert (503, True) == (answer.status_code, time.monotonic() - began < most)


def test_a_declined_card_is_the_payers() -> None:
    """It is neither retried nor taken for a fault of the upstream, and the next card has a key of its own."""
    with FaultServer([Reply(402), Reply(body=b"{}")]) as server:
        slow = {"operation_timeout=1.5": "operation_timeout=60", "attempt_timeout=0.6": "attempt_timeout=30"}
        client = run(web_blocks()[:1], server, **slow)["app"].test_client()
        assert [402, 200] == [client.post("/orders/17/payment").status_code for _ in range(2)]
    assert ['"order-17-0"', '"order-17-1"'] == [each.header("Idempotency-Key") for each in server.requests]


LIMIT, BACK_SOON = Reply(429, {"Retry-After": "7"}), Reply(503, {"Retry-After": "9"})


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ([Reply(body=b'{"a": 1}')], [(200, None)]),
        ([Reply(404)], [(502, None)]),
        ([Reply(body=b"<html>")], [(502, None)]),
        ([Reply(503)] * 3, [(503, "5")]),
        ([LIMIT], [(503, "7")]),
        ([BACK_SOON], [(503, "9")]),
        ([LIMIT, LIMIT], [(503, "7")] * 3),  # the third one is not sent
        ([BACK_SOON, BACK_SOON], [(503, "9")] * 3),
    ],
)
def test_a_view_answers_what_its_upstream_answers(
    script: list[Behaviour], expected: list[tuple[int, str | None]]
) -> None:
    """A limit, an outage and what is not sent are a 503, with the upstream's seconds; any other error is a 502."""
    with FaultServer(script) as server:
        space = run(web_blocks()[:1], server)
        answers = [space["app"].test_client().get("/things") for _ in expected]
        assert len(script) == len(server.requests)
    assert expected == [(answer.status_code, answer.headers.get("Retry-After")) for answer in answers]


@pytest.mark.parametrize(
    ("paths", "pacing", "sent"),
    [("aaaba", "announced", [1, 1, 0, 1, 0]), ("abacb", "announced", [1, 1, 1, 0, 0]), ("aaab", "off", [1, 1, 1, 1])],
)
def test_what_a_retry_after_holds_back(paths: str, pacing: str, sent: list[int]) -> None:
    """Two in a row to one path hold back that path, three to several the service; with ``pacing="off"`` none does."""
    with FaultServer(default=BACK_SOON) as server:
        space = run(web_blocks()[:1], server, **{"patience=0": f'patience=0, pacing="{pacing}"'})
        counts = []
        for path in paths:
            before = len(server.requests)
            with contextlib.suppress(requests.ConnectTimeout):
                space["session"].get(f"{server.url}/things/{path}")
            counts.append(len(server.requests) - before)
    assert sent == counts


def breaker_of(server: FaultServer) -> dict[str, Any]:
    """Run the web service's page, with short times, and the circuit breaker in front of it."""
    pytest.importorskip("circuitbreaker")
    app, breaker = (
        next(block for block in all_blocks_of("web-service.md") if word in block)
        for word in ("def things", "CircuitBreaker")
    )
    return run([app, breaker], server, **{"timeout=1.5": "timeout=0.3", "timeout=0.6": "timeout=0.12"})


@pytest.mark.parametrize(
    ("upstream", "seconds", "is_open"),
    [
        (Stall(), None, True),
        (CloseAfterRequest(), None, True),
        (Stall(), 0.05, False),  # callers with little time: the upstream's usual answer comes later
        (Stall(), 1e-9, False),  # nothing is sent
        (Reply(404), None, False),
    ],
)
def test_a_breaker_opens_in_an_outage_and_for_no_caller_with_little_time(
    upstream: Behaviour, seconds: float | None, *, is_open: bool
) -> None:
    """Five calls that give up open it; the view then answers 503 at once."""
    with FaultServer(default=upstream) as server:
        space = breaker_of(server)
        for _ in range(5):
            block = contextlib.nullcontext() if seconds is None else retry_options(deadline=seconds)
            with contextlib.suppress(requests.RequestException), block:
                space["send"]("GET", f"{server.url}/things")
        sent = len(server.requests)
        space["app"].add_url_rule("/guarded", view_func=lambda: space["send"]("GET", f"{server.url}/things").text)
        server.script([Reply(body=b"well")])
        answer = space["app"].test_client().get("/guarded")
        assert (answer.status_code, answer.headers.get("Retry-After")) == ((503, "2") if is_open else (200, None))
        assert sent + (not is_open) == len(server.requests)


def test_a_caller_with_little_time_does_not_close_a_breaker_again() -> None:
    """It is no success: the failures before it still count."""
    with FaultServer(default=CloseAfterRequest()) as server:
        space = breaker_of(server)
        for seconds in (9, 9, 9, 9, 1e-9, 9):
            with contextlib.suppress(requests.RequestException), retry_options(deadline=seconds):
                space["send"]("GET", f"{server.url}/things")
        sent = len(server.requests)
        with pytest.raises(space["CircuitBreakerError"]):
            space["send"]("GET", f"{server.url}/things")
        assert sent == len(server.requests)


METRICS = """
import os
from types import SimpleNamespace
{app}
{metrics}
app.test_client().get("/things")
{configuration}
child_exit(None, SimpleNamespace(pid=os.getpid()))
answer = app.test_client().get("/metrics")
print(answer.content_type)
print(answer.text)
"""


def test_the_metrics_of_all_workers_are_what_prometheus_reads(tmp_path: Path) -> None:
    """The view adds up what the directory holds, and says of which type it is; gunicorn's hook marks a worker dead."""
    pytest.importorskip("prometheus_client")
    app, metrics, configuration = (
        next(block for block in all_blocks_of("web-service.md") if word in block)
        for word in ("def things", "def metrics", "def child_exit")
    )
    code = METRICS.format(app=app, metrics=metrics, configuration=configuration)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    environment["SMITHY_RETRY_TELEMETRY"] = "prometheus"
    with FaultServer([Reply(503), Reply(body=b"{}")]) as server:
        code = code.replace("https://api.example.com", server.url)
        command = [sys.executable, "-c", code]
        said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=60).stdout
    content_type, text = said.split("\n", 1)
    assert content_type.startswith("text/plain; version=")
    assert re.search(r'requests_smithy_retry_retries_total{.*scope="[^"]*/things"} 1.0\n', text), text


def test_health_says_since_when_an_upstream_fails() -> None:
    """Of each service that the process has called: null after a success, then the time of the first failure."""
    with FaultServer([Reply(body=b"{}")], default=Reply(503)) as server:
        client = run(web_blocks()[:1], server)["app"].test_client()
        asked = [client.get("/health").json]
        before = datetime.now(timezone.utc)
        for _ in range(2):
            client.get("/things")
            asked.append(client.get("/health").json)
        after = datetime.now(timezone.utc)
    assert {} == asked[0]
    (scope,) = asked[1]
    assert scope.endswith("/things")
    assert asked[1][scope]["down_since"] is None
    slack = timedelta(milliseconds=50)  # of two clocks
    moments = [asked[2][scope]["down_since"], *(each[scope]["last_attempt"] for each in asked[1:])]
    assert all(before - slack <= datetime.fromisoformat(moment) <= after + slack for moment in moments)


def test_an_outage_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Of ten calls that give up, the first is logged at WARNING, and the others at INFO."""
    with FaultServer(default=Reply(503)) as server, caplog.at_level(logging.INFO, LOGGER.name):
        space = run(web_blocks()[:1], server)
        for _ in range(10):
            space["session"].get(server.url)
    levels = Counter(record.levelno for record in caplog.records if record.name == LOGGER.name)
    assert (1, True) == (levels[logging.WARNING], levels[logging.INFO] > 0)


def library(server: FaultServer) -> dict[str, Any]:
    """Run the first five blocks of the page, and return what they define: both clients and their parts."""
    return run(all_blocks_of("ship-it-in-your-library.md")[:5], server)


def client_of(server: FaultServer, **options: Any) -> Any:
    space = library(server)
    return space["Client"](space["Tokens"](lambda: ("secret", 60)), f"{server.url}/", **options)


def test_the_smallest_client_of_a_library_retries() -> None:
    """As its block says: with the defaults of the library, and the options of its user."""
    with FaultServer([Reply(503), Reply(body=b'{"name": "seven"}')], default=Reply(503)) as server:
        client = library(server)["SmallClient"](server.url, max_attempts=2, backoff=0)
        assert {"name": "seven"} == client.thing("7")
        with pytest.raises(requests.HTTPError):
            client.thing("7")
        assert 4 == len(server.requests)


def test_a_library_waits_for_what_its_service_calls_locked() -> None:
    """The classifier of the page reads the code in the body; what that calls final is the answer."""
    locked, gone, quota = (Reply(status, body=b'{"error": "%s"}' % code) for status, code in CODES)
    with FaultServer([locked, Reply(body=b'{"name": "seven"}'), gone, quota, locked, Reply(201), gone]) as server:
        client = client_of(server)
        assert {"name": "seven"} == client.thing("7")
        for _ in range(2):
            with pytest.raises(requests.HTTPError):
                client.thing("8")
        client.create({"name": "nine"})
        with pytest.raises(requests.HTTPError):
            client.create({"name": "nine"}, key="nine")
        assert 7 == len(server.requests)
    keys = [request.header("Idempotency-Key") for request in server.requests[4:]]
    assert keys[0] == keys[1] != keys[2] == '"nine"'


def test_a_library_renews_its_token_once_for_all_threads() -> None:
    """Eight threads get a 401 at once: one of them renews, and each call is answered. A new client asks for nothing."""
    old = threading.Barrier(8)
    answers = [Reply(503), *(Reply(body=b'{"access_token": "%s"}' % name) for name in (b"old", b"new"))]
    issuing = iter(answers)

    def service(request: RecordedRequest) -> Behaviour:
        if request.method == "POST":
            return next(issuing)
        if request.header("Authorization") == "Bearer old":
            old.wait(20)
            return Reply(401)
        return Reply(body=b'{"name": "seven"}')

    with FaultServer(service) as server:
        space = library(server)
        with space["Client"](space["Tokens"](space["Login"]("name", "password")), server.url) as client:
            assert [] == server.requests
            with ThreadPoolExecutor(8) as pool:
                assert [{"name": "seven"}] * 8 == list(pool.map(client.thing, ["7"] * 8))
    assert next(issuing, None) is None


def test_the_clients_of_an_account_share_its_token_while_it_lives() -> None:
    """It is fetched anew before a request once nine tenths of its life are over."""
    with FaultServer(default=Reply(body=b"{}")) as server:
        space = library(server)
        for seconds, fetched in ((3600, 1), (0, 2)):
            names = iter("ab")
            tokens = space["Tokens"](lambda names=names, seconds=seconds: (next(names), seconds))
            for _ in range(2):
                with space["Client"](tokens, server.url) as client:
                    client.thing("7")
            assert fetched == 2 - len(list(names))


class CountedLock:
    """A lock that tells how many threads have come to it."""

    def __init__(self) -> None:
        self.come, self._lock = threading.Semaphore(0), threading.Lock()

    def __enter__(self) -> None:
        self.come.release()
        self._lock.acquire()

    def __exit__(self, *failure: object) -> None:
        self._lock.release()


def test_a_token_that_cannot_be_fetched_fails_all_that_wait_for_it() -> None:
    """One fetch for all eight threads, and one error. The next call fetches again."""
    lock, fetches = CountedLock(), []

    def fetch() -> tuple[str, float]:
        fetches.append(1)
        if len(fetches) > 1:
            return "secret", 60
        for _ in range(8):
            assert lock.come.acquire(timeout=20)
        raise failure

    with FaultServer(default=Reply(400, body=b'{"error": "invalid_client"}')) as server:
        space = library(server)
        with pytest.raises(space["AcmeError"]) as caught:
            space["Login"]("name", "password")()
        failure = caught.value
        tokens = space["Tokens"](fetch)
        tokens.lock = lock
        with space["Client"](tokens, server.url) as client, ThreadPoolExecutor(8) as pool:
            errors = [future.exception() for future in [pool.submit(client.thing, "7") for _ in range(8)]]
        assert [1] == fetches
        assert 1 == len(server.requests)
        assert [failure] * 8 == errors
        assert ("invalid_client", "400 invalid_client") == (failure.code, str(failure))
        assert tokens.after("") == "Bearer secret"


def test_a_block_of_one_thread_does_not_end_the_fetch_of_a_token_for_all() -> None:
    """The fetch goes by no deadline, cancel or number of attempts of the call that happens to need it first."""
    token = Reply(body=b'{"access_token": "new", "expires_in": null}')
    with FaultServer([Reply(503), token]) as server:
        space = library(server)
        tokens, cancel = space["Tokens"](space["Login"]("name", "password")), threading.Event()
        cancel.set()
        with retry_options(deadline=0.001, cancel=cancel, max_attempts=1):
            assert "Bearer new" == tokens.after("")
        assert 2 == len(server.requests)
    with (
        FaultServer(default=Reply(body=b"{}")) as server,
        pytest.raises(requests.RequestException, match=r"^200 without a token$"),
    ):
        library(server)["Login"]("name", "password")()


def test_a_library_sends_through_the_adapter_of_its_user() -> None:
    """Each attempt goes through it; it stays open, and its session's credentials are not taken over."""
    sent: list[str | None] = []

    class Theirs(requests.adapters.HTTPAdapter):
        def send(self, request: requests.PreparedRequest, *args: Any, **how: Any) -> requests.Response:
            sent.append(request.url)
            return super().send(request, *args, **how)

    (over,) = (block for block in all_blocks_of("ship-it-in-your-library.md") if "def over" in block)
    (front,) = (block for block in all_blocks_of("compose.md") if "class RetriesInFront" in block)
    with FaultServer([Reply(503)], default=Reply(body=b"{}")) as server, requests.Session() as session:
        session.mount("http://", Theirs())
        session.auth, session.verify = ("name", "password"), False
        space = library(server)
        exec(front.partition("theirs, session =")[0], space)
        exec(over, space)
        made = space["over"](session, server.url, space["DEFAULTS"], backoff=0)
        made.auth = space["Tokens"](lambda: ("secret", 60))
        with made:
            assert {} == space["good"](made.get(server.url))
        assert [False, 2] == [made.verify, len(sent)]
        assert "Bearer secret" == server.requests[0].header("Authorization")
        assert session.get(server.url).ok


def test_a_forked_child_does_not_wait_for_the_token_that_its_parent_fetches() -> None:
    """It has a lock of its own: nobody in it would let go of the parent's."""
    with FaultServer() as server:
        tokens = library(server)["Tokens"](lambda: ("secret", 60))
        with tokens.lock, ThreadPoolExecutor(1) as pool:
            tokens.process = 0  # as in a child
            assert "Bearer secret" == pool.submit(tokens.after, "").result(timeout=20)


def test_a_library_finds_an_error_in_a_200() -> None:
    """``BUSY`` is waited for, and a POST sent again; a good answer that has the word elsewhere is one.

    What is still busy after the last attempt is an error to the program, too.
    """
    kind = {"Content-Type": "application/json"}
    busy, good = Reply(200, kind, b'{"error": "BUSY"}'), Reply(200, kind, b'{"name": "BUSY"}')
    with FaultServer([busy, good, busy, good]) as server:
        client = client_of(server, backoff=0)
        assert {"name": "BUSY"} == client.thing("7")
        client.create({"name": "nine"})
        assert ["GET", "GET", "POST", "POST"] == [request.method for request in server.requests]
        server.script([busy] * 20)
        with pytest.raises(requests.RequestException, match=r"^200 BUSY; gave up"), retry_options(max_attempts=2):
            client.create({"name": "nine"})


def test_a_library_saves_a_file_that_breaks_off(tmp_path: Path) -> None:
    """The file is whole, and only the rest was asked for again; a 404 is an error, and leaves no file.

    A 404 for a deletion whose answer was lost is none.
    """
    part = {"ETag": '"1"', "Content-Range": "bytes 5-9/10"}
    script = [
        CutBody(Reply(200, {"ETag": '"1"'}, b"0123456789"), at=5),
        Reply(206, part, b"56789"),
        Reply(404, body=b"no"),
        Reply(503),
        Reply(404),
        Reply(404, body=b'{"error": "GONE"}'),
    ]
    with FaultServer(script) as server:
        client = client_of(server)
        client.download("a", str(tmp_path / "a"))
        with pytest.raises(requests.HTTPError):
            client.download("b", str(tmp_path / "b"))
        client.delete("a")
        with pytest.raises(requests.HTTPError, match=r"^404 GONE$") as caught:
            client.delete("b")
    assert ("GONE", 404) == (caught.value.code, caught.value.response.status_code)
    assert (b"0123456789", False) == ((tmp_path / "a").read_bytes(), (tmp_path / "b").exists())
    assert "bytes=5-" == server.requests[1].header("Range")


def test_install_replaces_the_retry_of_an_old_program() -> None:
    """As the page shows it, in code."""
    with FaultServer([Reply(503), Reply(200)]) as server:
        space = run(all_blocks_of("run.md"), server, **{'"https://"': '"http://"'})
        assert 2 == len(server.requests)
    assert 1 == retry_summary(space["session"]).saved


OLD_PROGRAM = """
import requests, sys
from urllib3.util import Retry
session, retry = requests.Session(), Retry(5, status_forcelist=[503], raise_on_status=False)
session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retry))
for _ in range(30):
    session.get(sys.argv[1])
"""


@pytest.mark.parametrize(
    ("how", "least", "most"), [([], 180, 180), (["-m", "requests_smithy_retry", "run", "--mounted=replace"], 30, 60)]
)
def test_an_old_program_makes_a_third_of_its_requests_or_less_in_an_outage(
    how: list[str], least: int, most: int, tmp_path: Path
) -> None:
    """Unchanged, it makes 180; under `run` at most 60."""
    (tmp_path / "prog.py").write_text(OLD_PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SMITHY_RETRY_PATIENCE": "1"}
    with FaultServer([], default=Reply(503)) as server:
        subprocess.run([sys.executable, *how, "prog.py", server.url], cwd=tmp_path, env=environment, check=True)
    assert least <= len(server.requests) <= most
