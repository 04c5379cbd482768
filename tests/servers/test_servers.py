"""What the servers of others do to a program with our adapter: no POST applied twice, none lost that was answered.

``tox -e servers`` runs the long form; the suite runs a short one of what is installed, and skips the rest.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from requests_smithy_retry import mount, retry_history
from tests.faults import FaultServer, Reply

from .programs import Apache, Azurite, Gunicorn, Haproxy, Moto, Nginx, Program, Squid
from .relay import Relay

pytestmark = [pytest.mark.once, pytest.mark.real_time, pytest.mark.untraced]

LOG = logging.getLogger("servers")
IS_LONG = os.environ.get("REAL_SERVERS") == "long"
THREADS = 40 if IS_LONG else 20
CONTENT = random.Random(1).randbytes(1 << 20) * 8
"""A file of 8 MiB."""


in_the_long_form = pytest.mark.skipif(not IS_LONG, reason="in the long form: tox -e servers")


def kinds(*short: object, long: tuple[object, ...] = ()) -> list[Any]:
    """The values of a parameter: those of the short form, and those of the long one alone."""
    return [*short, *(pytest.param(kind, marks=in_the_long_form) for kind in long)]


def posts_of(count: int) -> int:
    """The number of POSTs: all of them in the long form."""
    return count if IS_LONG else count // 100


def session_of(**options: object) -> requests.Session:
    """A session with our adapter, which a proxy of the environment does not see."""
    session = mount(requests.Session(), pool_maxsize=THREADS, **options)
    session.trust_env = False
    return session


class Ledger:
    """What became of each POST: its status, or the exception.

    :param path: before each name.
    """

    def __init__(self, url: str, session: requests.Session, path: str = "/") -> None:
        self.url, self.session, self.path = url, session, path
        self.ended: dict[str, int | str] = {}

    def post(self, name: str) -> None:
        """Post once."""
        try:
            answer = self.session.post(self.url + self.path + name, data=name, timeout=30)
            assert answer.status_code != 200 or answer.text == name
            self.ended[name] = answer.status_code
        except requests.RequestException as error:
            self.ended[name] = type(error).__name__

    def fill(self, count: int, pause: Callable[[], float] = lambda: 0.0) -> None:
        """Post so often from all threads."""

        def work(number: int) -> None:
            for name in range(number, count, THREADS):
                self.post(str(name))
                time.sleep(pause())

        threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(600)

    def check(self, applied: list[str], count: int) -> Counter[int | str]:
        """Check it against what was applied, and return how many ended in which way."""
        assert count == len(self.ended)
        counted = Counter(applied)
        assert [] == [name for name, times in counted.items() if times > 1]
        assert [] == [name for name, end in self.ended.items() if end == 200 and name not in counted]
        endings = Counter(self.ended.values())
        LOG.info("%d POSTs: %s, %d applied", count, dict(endings), len(counted))
        return endings


@contextmanager
def meanwhile(trouble: Callable[[], object], every: float = 0.0) -> Iterator[None]:
    """Make trouble in a thread: once, or every so many seconds."""
    is_over = threading.Event()

    def work() -> None:
        while not is_over.wait(every):
            trouble()
            if not every:
                break

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that workers of another user may enter."""
    for parent in (tmp_path, *tmp_path.parents[:3]):
        if parent.stat().st_uid == os.getuid() and parent != Path("/tmp"):
            parent.chmod(parent.stat().st_mode | 0o055)
    return tmp_path


def gunicorn(folder: Path, *options: str) -> Gunicorn:
    return Gunicorn(folder, "--worker-class", "gthread", "--workers", "2", "--threads", "30", *options)


@pytest.mark.parametrize("kind", kinds("nginx", "apache2", long=("haproxy", "gunicorn")))
def test_posts_at_the_servers_own_period(folder: Path, kind: str) -> None:
    """Connections that the server closes after a second, used after a second: no POST twice, none answered and lost."""
    count = posts_of(2500)
    with ExitStack() as running:
        origin = gunicorn(folder, *(("--keep-alive", "1") if kind == "gunicorn" else ()))
        running.enter_context(origin)
        forward = f"proxy_pass {origin.url}; proxy_next_upstream off;"
        front: Program = {
            "nginx": lambda: Nginx(folder, forward, keep=1),
            "haproxy": lambda: Haproxy(folder, origin.port, keep=1),
            "apache2": lambda: Apache(folder, f"ProxyPass / {origin.url}/", keep=1),
            "gunicorn": lambda: origin,
        }[kind]()
        if front is not origin:
            running.enter_context(front)
        ledger = Ledger(front.url, session_of())
        draw = random.Random(2)
        ledger.fill(count, lambda: 1 + draw.choice((-0.01, -0.002, 0, 0.002, 0.01, 0.05)))
        endings = ledger.check(origin.applied(), count)
    # Apache announces when it closes. The others close without a word, and a POST may be under way just then.
    assert endings[200] >= (0.998 if kind == "apache2" else 0.95) * count


@pytest.mark.parametrize("kind", ["--max-requests", "reload", "kill"])
def test_posts_while_workers_end(folder: Path, kind: str) -> None:
    """Gunicorn recycles, reloads or loses its workers under load: no POST twice, none answered and lost."""
    count = posts_of(10_000)
    options = ("--max-requests", "200", "--max-requests-jitter", "50") if kind == "--max-requests" else ()
    with gunicorn(folder, *options) as origin:
        ledger = Ledger(origin.url, session_of(), "/slow/")

        def trouble() -> None:
            if kind == "reload":
                origin.say(signal.SIGHUP)
            elif kind == "kill":
                assert origin.process is not None
                children = Path(f"/proc/{origin.process.pid}/task/{origin.process.pid}/children").read_text()
                for child in children.split()[:1]:
                    os.kill(int(child), signal.SIGKILL)

        with meanwhile(trouble, 1):
            ledger.fill(count)
        endings = ledger.check(origin.applied(), count)
    assert endings[200] >= (0.5 if kind == "kill" else 0.95) * count


@pytest.mark.parametrize("kind", kinds("nginx", long=("haproxy", "apache2")))
def test_posts_while_the_front_restarts(folder: Path, kind: str) -> None:
    """A proxy in front is stopped and started in the midst of answers: no POST twice, none answered and lost."""
    count = posts_of(5000)
    with ExitStack() as running:
        origin = gunicorn(folder)
        running.enter_context(origin)
        front: Program = {
            "nginx": lambda: Nginx(folder, f"proxy_pass {origin.url}; proxy_next_upstream off;"),
            "haproxy": lambda: Haproxy(folder, origin.port),
            "apache2": lambda: Apache(folder, f"ProxyPass / {origin.url}/"),
        }[kind]()
        running.enter_context(front)
        ledger = Ledger(front.url, session_of(), "/slow/")
        with meanwhile(lambda: front.restart(signal.SIGTERM, 0.5), 0.7):
            ledger.fill(count)
        endings = ledger.check(origin.applied(), count)
    assert endings[200] >= 0.5 * count


def test_posts_through_a_relay_that_resets(folder: Path) -> None:
    """Connections that are reset after so many bytes: no POST twice, none answered and lost."""
    count = posts_of(5000)
    with gunicorn(folder) as origin, Relay(origin.port, lasts=2000) as relay:
        ledger = Ledger(relay.url, session_of())
        ledger.fill(count)
        endings = ledger.check(origin.applied(), count)
        assert relay.resets > count / 40
    assert endings[200] >= 0.5 * count


def test_idle_connections_that_a_relay_forgets(folder: Path) -> None:
    """On a path that forgot an idle connection a GET times out, and goes again on a new one."""
    with gunicorn(folder, "--keep-alive", "30") as origin, Relay(origin.port, forgets=0.3) as relay:
        session = session_of(timeout=1)
        attempts = []
        for _ in range(2):
            attempts.append(len(retry_history(session.get(relay.url)).attempts))
            time.sleep(0.5)
        assert ([1, 2], 1) == (attempts, relay.forgotten)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", kinds("nginx", long=("apache2",)))
@pytest.mark.parametrize("down", kinds(0.1, long=(1.5, 3.0)))
def test_a_restart_in_the_midst_of_a_body(folder: Path, kind: str, stream: bool, down: float) -> None:
    """The file comes whole, though its server is killed in the midst of it and is back after up to three seconds."""
    files = folder / "files"
    files.mkdir()
    (files / "file").write_bytes(CONTENT)
    os.utime(files / "file", (0, 0))  # of a file that has just been written, Apache's ETag is weak
    server: Program = (
        Nginx(folder, f"root {files}; limit_rate 4m;") if kind == "nginx" else Apache(folder, _slow_files(files))
    )
    with server, session_of() as session:
        assert 200 == session.head(f"{server.url}/file").status_code

        def restart() -> None:
            time.sleep(0.4)
            server.restart(signal.SIGKILL, down)

        with meanwhile(restart):
            answer = session.get(f"{server.url}/file", stream=stream, timeout=10)
            got = b"".join(answer.iter_content(65_536))
        LOG.info("%d attempts", len(retry_history(answer).attempts))
        assert hashlib.sha256(CONTENT).digest() == hashlib.sha256(got).digest()


def _slow_files(files: Path) -> str:
    slow = "<Location />\nSetOutputFilter RATE_LIMIT\nSetEnv rate-limit 4096\nRequire all granted\n</Location>"
    return f"DocumentRoot {files}\n{slow}"


def test_a_file_through_a_relay_that_resets(folder: Path) -> None:
    """A file of 8 MiB comes whole through a path that resets each connection within 2 MiB."""
    files = folder / "files"
    files.mkdir()
    (files / "file").write_bytes(CONTENT)
    with Nginx(folder, f"root {files};") as server, Relay(server.port, lasts=2 << 20) as relay:
        for _ in range(10 if IS_LONG else 2):
            got = b"".join(session_of().get(f"{relay.url}/file", stream=True, timeout=10).iter_content(100_000))
            assert CONTENT == got
        assert relay.resets


def _digests(body: bytes) -> dict[str, str]:
    md5 = base64.b64encode(hashlib.md5(body).digest()).decode()
    sha = base64.b64encode(hashlib.sha256(body).digest()).decode()
    stored = {"Content-MD5": md5, "x-goog-hash": f"md5={md5}", "x-amz-checksum-sha256": sha}
    return {**stored, "Content-Digest": f"sha-256=:{sha}:", "Repr-Digest": f"sha-256=:{sha}:"}


@pytest.mark.parametrize("kind", ["nginx", "haproxy", "apache2"])
def test_a_proxy_codes_what_the_origin_digested(folder: Path, kind: str) -> None:
    """One request, and the body that plain requests reads, whatever digests come with it."""
    body = b"some text that can be made shorter. " * 2000

    def answer(_: object) -> Reply:
        return Reply(200, {"Content-Type": "text/plain", "ETag": '"strong"', **_digests(body)}, body)

    with FaultServer(answer) as origin:
        front: Program = {
            "nginx": lambda: Nginx(folder, f"proxy_pass {origin.url}; gzip on; gzip_proxied any; gzip_types *;"),
            "haproxy": lambda: Haproxy(
                folder, int(origin.url.rpartition(":")[2]), "  compression algo gzip\n  compression type text/plain"
            ),
            "apache2": lambda: Apache(folder, f"ProxyPass / {origin.url}/\nSetOutputFilter DEFLATE\n"),
        }[kind]()
        with front:
            for stream in (False, True):
                got = session_of().get(front.url, stream=stream, timeout=10)
                assert (body, "gzip") == (got.content, got.headers["Content-Encoding"])
        assert 2 == len(origin.requests)


SQUID_AUTH = """auth_param basic program {program} {passwords}
auth_param basic realm proxy
acl known proxy_auth REQUIRED
http_access allow known
http_access deny all"""


@pytest.mark.parametrize(("kind", "status"), [("deny", 403), ("auth", 407)])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_squid_refuses(folder: Path, kind: str, status: int, scheme: str) -> None:
    """A proxy's refusal is final: one request to it, with and without CONNECT, and no wait."""
    rules = "http_access deny all" if kind == "deny" else SQUID_AUTH.format(program="/bin/false", passwords="")
    with Squid(folder, rules) as proxy:
        session = session_of()
        session.proxies = {"http": proxy.url, "https": proxy.url}
        try:
            end: object = session.get(f"{scheme}://127.0.0.1:9/").status_code
        except requests.exceptions.ProxyError as error:
            end = len(retry_history(error).attempts)
        assert (status if scheme == "http" else 1) == end


def test_squid_lets_through(folder: Path) -> None:
    """POSTs through squid: none twice, none answered and lost, though it is restarted."""
    count = posts_of(2500)
    with gunicorn(folder) as origin, Squid(folder, "http_access allow all") as proxy:
        session = session_of()
        session.proxies = {"http": proxy.url}
        ledger = Ledger(origin.url, session, "/slow/")
        with meanwhile(lambda: proxy.restart(signal.SIGKILL, 0.3), 1.5):
            ledger.fill(count)
        endings = ledger.check(origin.applied(), count)
    assert endings[200] >= 0.5 * count


AZURE_KEY = (
    "AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/"
    "KBHBeksoGMGw==;DefaultEndpointsProtocol=http;BlobEndpoint="
)
"""The account that Azurite's documentation publishes for everybody."""


@in_the_long_form
def test_uploads_to_azurite(folder: Path) -> None:
    """The real SDK uploads and downloads with one request each, as plain, and through a restart of the service."""
    blob = pytest.importorskip("azure.storage.blob")
    transport = pytest.importorskip("azure.core.pipeline.transport")
    with Azurite(folder) as service, session_of(patience=40) as session:
        client = blob.BlobServiceClient.from_connection_string(
            f"{AZURE_KEY}{service.url}/devstoreaccount1",
            transport=transport.RequestsTransport(session=session, session_owner=False),
            retry_total=0,
        )
        container = client.create_container("things")
        container.upload_blob("a", CONTENT[:100_000])
        assert CONTENT[:100_000] == container.download_blob("a").readall()
        with meanwhile(lambda: service.restart(signal.SIGTERM, 0.5)):
            time.sleep(0.2)
            container.upload_blob("b", b"more", overwrite=True)
            assert b"more" == container.download_blob("b").readall()


@in_the_long_form
def test_presigned_urls_of_moto(folder: Path) -> None:
    """A presigned PUT and GET go through a restart of the service, which stands for S3."""
    boto3 = pytest.importorskip("boto3")
    with Moto(folder) as service, session_of() as session:
        keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
        s3 = boto3.client("s3", endpoint_url=service.url, **keys)
        s3.create_bucket(Bucket="things")
        put, get = (
            s3.generate_presigned_url(f"{verb}_object", {"Bucket": "things", "Key": "a"}) for verb in ("put", "get")
        )
        assert 200 == session.put(put, data=CONTENT[:100_000]).status_code
        assert CONTENT[:100_000] == session.get(get).content
