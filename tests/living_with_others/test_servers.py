"""The claims of docs/howto/compose.md and web-service.md, in processes of their own.

gevent patches the whole process, gunicorn and Celery are programs: nothing of them may happen in the tests' process.
"""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from tests.faults import Behaviour, FaultServer, RecordedRequest, Reply, Stall
from tests.unit.features.redis.servers import RedisServer

pytestmark = [pytest.mark.once, pytest.mark.real_time]

ROOT = Path(__file__).resolve().parents[2]
GEVENT_WORKERS = ["--worker-class", "gevent", "app:app"]
PAGES = [ROOT / "docs" / "howto" / name for name in ("compose.md", "web-service.md")]


def block_with(text: str) -> str:
    """The Python block of the pages that has this text."""
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    blocks = re.findall(r"^```python\n(.*?)^```$", pages, re.DOTALL | re.MULTILINE)
    (found,) = [block for block in blocks if text in block]
    return found


def run(*command: str, cwd: Path, **environment: str) -> str:
    """Run a Python program in a process of its own, and return its output."""
    whole = [sys.executable, *command]
    done = subprocess.run(whole, cwd=cwd, env=environ(**environment), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    said = r"(requests-smithy-retry: (1 of 1 adapter had retries|\d+ operations: .*)\n)*"  # by `run`, at the end
    assert re.fullmatch(said, done.stderr), done.stderr
    return done.stdout


def environ(**more: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore::DeprecationWarning", **more}


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, str]:
    """A server's context, and the file of the authority that a client must trust."""
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return context, str(tmp_path / "ca.pem")


class TestGevent:
    @pytest.fixture(autouse=True)
    def _gevent(self) -> None:
        pytest.importorskip("gevent")

    def test_the_pages_block(self, tmp_path, tls):
        """The page's code runs unchanged except for the address; each greenlet's request is retried."""
        context, authority = tls
        with FaultServer([Reply(503)] * 3, tls=context) as server:
            program = block_with("gevent.spawn").replace("https://api.example.com", server.url)
            program += "\nprint([job.value for job in jobs])\n"
            assert "[200, 200, 200]\n" == run("-c", program, cwd=tmp_path, REQUESTS_CA_BUNDLE=authority)
            assert 6 == len(server.requests)

    def test_waits_yield_and_bounds_hold(self, tmp_path):
        """Forty greenlets wait as long as one, for a backoff and for a quota; time-outs end a stall and a wait."""
        program = """
from gevent import monkey; monkey.patch_all()
import gevent, requests, sys, time
from requests_smithy_retry import TokenBucket, mount, retry_history, retry_options

def together(session, path):
    begun = time.monotonic()
    jobs = [gevent.spawn(session.get, f"{sys.argv[1]}/{path}/{number}") for number in range(40)]
    gevent.joinall(jobs)
    return [job.value.status_code for job in jobs], time.monotonic() - begun

statuses, took = together(mount(requests.Session()), "hint")
assert statuses == [200] * 40 and 1 <= took < 30, (statuses, took)
bucket = TokenBucket(14, on_empty="wait", refill_rate=280)
statuses, took = together(mount(requests.Session(), quota=bucket, backoff=0), "quota")
assert statuses == [200] * 40 and took < 30, (statuses, took)  # with on_empty="fail", 39 of them were 503

def options(number):
    with retry_options(max_attempts=number):
        gevent.sleep(0.01)
        answer = mount(requests.Session(), backoff=0).get(f"{sys.argv[1]}/down")
        return len(retry_history(answer).attempts)
jobs = [gevent.spawn(options, number) for number in (1, 2, 3)]
gevent.joinall(jobs)
assert [job.value for job in jobs] == [1, 2, 3]

begun = time.monotonic()
for bound, limit in (({"operation_timeout": 0.3}, 90), ({}, 0.3)):
    try:
        with gevent.Timeout(limit):
            mount(requests.Session(), **bound).get(f"{sys.argv[1]}/stall")
    except (requests.Timeout, gevent.Timeout) as error:
        print(isinstance(error, gevent.Timeout))
try:
    with gevent.Timeout(0.2):
        mount(requests.Session()).get(f"{sys.argv[1]}/minute")
except gevent.Timeout:
    print(True)
assert time.monotonic() - begun < 100
"""
        failed = set()

        def once(request: RecordedRequest) -> Behaviour:
            kind = request.path.split("/")[1]
            if kind in ("hint", "quota") and request.path in failed:
                return Reply(200)
            failed.add(request.path)
            hints = {"hint": {"retry-after-ms": "1000"}, "quota": {}, "down": {}, "minute": {"Retry-After": "60"}}
            return Stall() if kind == "stall" else Reply(503, hints[kind])

        with FaultServer(once) as server:
            assert "False\nTrue\nTrue\n" == run("-c", program, server.url, cwd=tmp_path)
            assert 2 * 80 + 6 <= len(server.requests) <= 2 * 80 + 9

    def test_run_beneath_its_own_launcher(self, tmp_path, tls):
        """A program that is not changed has both: it is patched, and it retries."""
        context, authority = tls
        (tmp_path / "app.py").write_text("import requests, sys; print(requests.get(sys.argv[1]).status_code)")
        with FaultServer([Reply(503)], tls=context) as server:
            launcher = ["-m", "gevent.monkey", "--module", "requests_smithy_retry", "run", "app.py", server.url]
            assert "200\n" == run(*launcher, cwd=tmp_path, REQUESTS_CA_BUNDLE=authority)

    def test_gunicorn_with_gevent_workers(self, tmp_path, tls):
        """With the page's configuration file, a preloaded application's HTTPS works and is retried."""
        pytest.importorskip("gunicorn")
        context, authority = tls
        (tmp_path / "gunicorn.conf.py").write_text(block_with("# gunicorn.conf.py, for"))
        with FaultServer([Reply(503), Reply(body=b"{}")], tls=context) as server:
            application = block_with("app = Flask(").replace("https://api.example.com", server.url)
            (tmp_path / "app.py").write_text(application)
            gunicorn = subprocess.Popen(
                [sys.executable, "-m", "gunicorn", "--preload", "--bind", "127.0.0.1:0", *GEVENT_WORKERS],
                cwd=tmp_path,
                env=environ(REQUESTS_CA_BUNDLE=authority),
                stderr=subprocess.PIPE,
                text=True,
            )
            try:
                assert gunicorn.stderr is not None
                listening = (re.search(r"Listening at: (http://[\d.:]+)", line) for line in gunicorn.stderr)
                address = next(found[1] for found in listening if found)
                assert {} == requests.get(f"{address}/things", timeout=300).json()
            finally:
                gunicorn.send_signal(signal.SIGTERM)
                said = gunicorn.communicate(timeout=300)[1]
            assert ("Warning" in said, 2) == (False, len(server.requests))


@pytest.mark.skipif(sys.platform == "win32", reason="gunicorn needs fork")
def test_a_worker_of_gunicorn_stops_in_the_middle_of_a_wait(tmp_path):
    """With the page's hook, SIGTERM ends the wait for a service that is down, and the view answers 503."""
    pytest.importorskip("gunicorn")
    (tmp_path / "gunicorn.conf.py").write_text(block_with("def post_worker_init"))
    with FaultServer(default=Reply(503)) as server:
        application = block_with("app = Flask(").replace("https://api.example.com", server.url)
        application += block_with("def bounded").partition("assert ")[0]
        application = re.sub(r"(?<=patience=)0|(?<=timeout=)1\.5|1\.8", "100", application)
        application = application.replace("basicConfig(", "basicConfig(level=logging.INFO, ")
        (tmp_path / "app.py").write_text(application)
        command = "-m gunicorn --preload --threads 4 --bind 127.0.0.1:0 --graceful-timeout 60 app:app"
        gunicorn = subprocess.Popen(
            [sys.executable, *command.split()], cwd=tmp_path, env=environ(), stderr=subprocess.PIPE, text=True
        )
        assert gunicorn.stderr is not None
        try:
            listening = (re.search(r"Listening at: (http://[\d.:]+)", line) for line in gunicorn.stderr)
            address = next(found[1] for found in listening if found)
            with ThreadPoolExecutor() as pool:
                answer = pool.submit(requests.get, f"{address}/things", timeout=300)
                while not any(" waits for " in line for line in gunicorn.stderr):
                    pass
                gunicorn.send_signal(signal.SIGTERM)
                begun = time.monotonic()
                assert 503 == answer.result().status_code
        finally:
            gunicorn.send_signal(signal.SIGTERM)
            gunicorn.communicate(timeout=300)
        assert time.monotonic() - begun < 40


TASKS = """
import os
import requests
from celery import Celery
from celery.exceptions import SoftTimeLimitExceeded
from requests_smithy_retry import mount, retry_history, retry_options

app = Celery("tasks", broker=os.environ["BROKER"], backend=os.environ["BROKER"])
session = mount(requests.Session(), quota=500, backoff=0.01)

@app.task(bind=True, soft_time_limit=20)
def fetch(self, url):
    with retry_options(deadline=self.soft_time_limit - 19):
        try:
            return retry_history(session.get(url)).sentence
        except requests.RequestException as error:
            return type(error).__name__

@app.task(soft_time_limit=1)
def soft(url):
    try:
        return session.get(url).status_code
    except SoftTimeLimitExceeded as error:
        return type(error).__name__

@app.task(autoretry_for=(requests.RequestException,), max_retries=2, default_retry_delay=0)
def again(url):
    with retry_options(patience=0):
        session.get(url).raise_for_status()
"""

CALLS = """
import json, sys, worker_tasks
def result(task, path):
    try:
        return getattr(worker_tasks, task).delay(sys.argv[1] + path).get(timeout=100)
    except Exception as error:
        return type(error).__name__
calls = [("fetch", "/once"), ("fetch", "/stall"), ("soft", "/body"), ("again", "/down")]
print(json.dumps([result(*call) for call in calls]))
"""


class TestCelery:
    @pytest.fixture
    def broker(self, tmp_path: Path) -> Iterator[str]:
        """The broker of a prefork worker that is under way in the folder."""
        pytest.importorskip("celery")
        (tmp_path / "worker_tasks.py").write_text(TASKS)
        redis = RedisServer()
        options = "--pool prefork --concurrency 1 --without-gossip --without-mingle --without-heartbeat"
        worker = subprocess.Popen(
            [sys.executable, *f"-m celery -A worker_tasks worker {options} --loglevel CRITICAL".split()],
            cwd=tmp_path,
            env=environ(BROKER=redis.url()),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield redis.url()
        finally:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
            redis.kill()

    def test_in_a_worker(self, broker, tmp_path):
        """In a worker the adapter retries, keeps a deadline and passes the soft limit on; a task's retries multiply."""
        once, always = iter([Reply(503)]), {"/stall": Stall(), "/body": Stall("body"), "/down": Reply(503)}
        with FaultServer(lambda request: always.get(request.path) or next(once, Reply())) as server:
            answers = json.loads(run("-c", CALLS, server.url, cwd=tmp_path, BROKER=broker))
            counts = Counter(request.path for request in server.requests)
        assert ["succeeded at attempt 2", "ReadTimeout", "SoftTimeLimitExceeded", "HTTPError"] == answers
        assert {"/once": 2, "/stall": 1, "/body": 1, "/down": 9} == counts
