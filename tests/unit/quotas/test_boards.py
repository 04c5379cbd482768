"""The boards in shared memory and on Redis (contract 7.4): who reads what, and what becomes of failures."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from requests_smithy_retry import RetryAdapter
from requests_smithy_retry.clock import SYSTEM_CLOCK
from requests_smithy_retry.pacing.gate import Lookout, Notice
from requests_smithy_retry.quotas.redis import RedisTokenBucket
from requests_smithy_retry.quotas.redis import board as redis_board
from requests_smithy_retry.quotas.shared_memory import SharedMemoryTokenBucket
from requests_smithy_retry.quotas.shared_memory import board as memory_board
from requests_smithy_retry.quotas.shared_memory.file import NOTICES, own_directory
from requests_smithy_retry.testing.clock import FakeClock

from .servers import RedisCluster, RedisServer

SCOPE = "https://api.example.com:443"
PATIENT = "?budget=60&connect_timeout=60"


def board_in(directory: Path, clock: Any = SYSTEM_CLOCK) -> Any:
    """A process's board in a memory of the test's own."""
    return SharedMemoryTokenBucket("test", directory=directory, clock=clock).board


def test_a_notice_is_read_by_others_of_the_memory(tmp_path: Path) -> None:
    """A notice holds until its end, with the header behind it; a scope without one is open."""
    clock = FakeClock()
    writer, reader = board_in(tmp_path, clock), board_in(tmp_path, clock)
    assert not reader.has_news()
    writer.post(SCOPE, 4.0, "retry-after")
    assert reader.has_news()
    assert Notice(clock.now() + 4.0, "retry-after") == reader.closed(SCOPE)
    assert reader.closed("https://other.example.com:443") is None
    clock.advance(4.0)
    assert not reader.has_news()
    assert reader.closed(SCOPE) is None


def test_one_who_comes_later_reads_the_last_notices(tmp_path: Path) -> None:
    """The ring keeps the newest notices; older ones are overwritten."""
    clock = FakeClock()
    writer = board_in(tmp_path, clock)
    for number in range(NOTICES + 3):
        writer.post(f"{number}", 4.0, "x" * 200)
    reader = board_in(tmp_path, clock)
    assert reader.has_news()
    assert [f"{number}" for number in range(3, NOTICES + 3)] == [
        f"{number}" for number in range(NOTICES + 3) if reader.closed(f"{number}")
    ]
    assert "x" * 88 == reader.closed("9").source


def test_a_notice_counts_once_its_number_is_the_newest(tmp_path: Path) -> None:
    """A writer that dies before that has posted nothing, and the next one writes over it."""
    clock = FakeClock()
    writer, reader = board_in(tmp_path, clock), board_in(tmp_path, clock)
    writer.post("a", 4.0, "")
    mapped = writer._file.memory
    memory_board._NUMBER.pack_into(mapped, memory_board.NOTICES_AT, 0)
    assert not reader.has_news()
    writer.post("b", 4.0, "")
    assert reader.has_news()
    assert (None, True) == (reader.closed("a"), reader.closed("b") is not None)


def test_a_notice_that_is_not_written_in_full_is_read_at_the_next_look(tmp_path: Path) -> None:
    """Its checksum tells; what an old one was overwritten with is passed over."""
    clock = FakeClock()
    writer, reader = board_in(tmp_path, clock), board_in(tmp_path, clock)
    writer.post("a", 4.0, "")
    mapped, at = writer._file.memory, memory_board._offset_of(1)
    kept = mapped[at + 30]
    mapped[at + 30] = kept ^ 1
    assert not reader.has_news()
    mapped[at + 30] = kept
    assert reader.has_news()
    for number in range(NOTICES):
        writer.post(f"{number}", 4.0, "")
    mapped[memory_board._offset_of(3)] ^= 1
    late = board_in(tmp_path, clock)
    assert late.has_news()
    assert (None, True) == (late.closed("1"), late.closed("63") is not None)


def test_who_cannot_have_the_memory_is_on_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a look nor a notice raises anything; afterwards all is as before."""
    clock = FakeClock()
    board = board_in(tmp_path, clock)
    with monkeypatch.context() as patch:
        patch.setattr(board._memory, "lock", lambda now: False)
        board.post(SCOPE, 4.0, "")
        board._file.close()
        assert not board.has_news()
    assert not board.has_news()
    board.post(SCOPE, 4.0, "")
    assert board.has_news()


def test_a_memory_that_was_removed_is_left_within_a_second(tmp_path: Path) -> None:
    """A process that only reads finds the new file, too."""
    clock = FakeClock()
    reader = board_in(tmp_path, clock)
    reader.has_news()
    (tmp_path / "test.quota").unlink()
    writer = board_in(tmp_path, clock)
    writer.post(SCOPE, 4.0, "")
    clock.advance(1.0)
    assert reader.has_news()


def test_a_forked_child_reads_anew(tmp_path: Path) -> None:
    """What its parent had read is forgotten, and read again."""
    board = board_in(tmp_path)
    board.post(SCOPE, 600.0, "")
    assert board.has_news()
    board.renew_lock()
    board._file.renew_lock()
    assert board.has_news()


class TestRedis:
    pytestmark = pytest.mark.real_time

    def test_a_notice_is_heard_by_all(self, redis_server: RedisServer) -> None:
        """A notice says for how long, so the clocks of two machines need not agree."""
        clock = FakeClock()
        clock.advance(5000.0)
        buckets = [
            RedisTokenBucket(redis_server.url(PATIENT)),
            RedisTokenBucket(redis_server.url(PATIENT), clock=clock),
        ]
        writer, reader = (bucket.board for bucket in buckets)
        wait_for(lambda: reader.has_news() or listeners(redis_server) == 1)
        writer.post(SCOPE, 400.0, "retry-after")
        wait_for(reader.has_news)
        until, source = reader.closed(SCOPE)
        assert 5000.0 < until <= 5400.0
        assert "retry-after" == source
        assert reader.closed("other") is None

    def test_one_who_comes_later_asks(self, redis_server: RedisServer) -> None:
        """Nothing is kept on the server: who has closed a gate says so again."""
        writer = RedisTokenBucket(redis_server.url(PATIENT))
        board = writer.board
        wait_for(lambda: board.has_news() or listeners(redis_server) == 1)
        board.post(SCOPE, 400.0, "retry-after")
        wait_for(board.has_news)
        reader = RedisTokenBucket(redis_server.url(PATIENT)).board
        wait_for(reader.has_news)
        assert "retry-after" == reader.closed(SCOPE).source

    def test_a_server_that_comes_back_is_listened_to(
        self, own_redis_server: RedisServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        """While it is away the process is on its own, which the log says once."""
        caplog.set_level(logging.WARNING, "requests_smithy_retry")
        url = own_redis_server.url("?retry_interval=0.01")
        reader, writer = RedisTokenBucket(url).board, RedisTokenBucket(url)
        board = writer.board
        wait_for(lambda: reader.has_news() or listeners(own_redis_server) == 1)
        own_redis_server.kill()
        wait_for(lambda: "closed gates are not shared" in caplog.text)
        board.post(SCOPE, 400.0, "")
        own_redis_server.start()
        wait_for(lambda: listeners(own_redis_server) == 1)
        assert 1 == caplog.text.count("closed gates are not shared")

        def told() -> bool:
            board.post(SCOPE, 400.0, "")
            return bool(reader.has_news())

        wait_for(told)

    @pytest.mark.parametrize(
        "text", ["", "?", "soon\nx\nscope", "nan\nx\nscope", "-1\nx\nscope", "1e9\nx\nscope", "4\nx", "4\nx\n"]
    )
    def test_what_is_no_notice_closes_nothing(self, text: str) -> None:
        """Whatever comes by the channel raises nothing."""
        board = RedisTokenBucket("redis://127.0.0.1:1/0", clock=FakeClock()).board
        board._listener._take("message", text.encode())
        board._listener._take("message", text)
        board._listener._take("pong", b"")
        assert {} == board._listener.notices

    def test_a_silent_server_is_asked_whether_it_is_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An answer will do; after two silences in a row the connection is made anew."""
        monkeypatch.setattr(redis_board, "SILENCE", 0.0)
        listener = redis_board.Listener(RedisTokenBucket("redis://127.0.0.1:1/0")._link)
        pong = {"type": "pong", "data": b""}
        client = ScriptedClient([None, pong, None, None])
        monkeypatch.setattr(listener.link, "connect", lambda: client)
        with pytest.raises(TimeoutError):
            listener._listen(threading.Event())
        assert (3 - 1, 2) == (client.pings, client.closed)

    def test_nobody_listens_where_no_thread_can_be_started(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """At exit there are no new threads; neither a look nor a notice raises."""
        board = RedisTokenBucket("redis://127.0.0.1:1/0").board

        def refuse(_: Any) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", refuse)
        assert not board.has_news()
        board.post(SCOPE, 4.0, "")

    def test_nothing_is_told_to_a_server_that_is_away(self) -> None:
        """While it is out it gets no messages, as it gets no questions."""
        bucket = RedisTokenBucket("redis://127.0.0.1:1/0", clock=FakeClock())
        for _ in range(3):
            bucket._link.outage.note_failure(0.0, "away")
        bucket.board.post(SCOPE, 4.0, "")
        assert {} == bucket._link._due

    def test_the_nodes_of_a_cluster_are_one_channel(self, redis_cluster: RedisCluster) -> None:
        """Who listens at one node hears of a gate that was told to another one."""
        writer, *readers = [RedisTokenBucket(node.url(PATIENT)).board for node in redis_cluster.nodes]
        wait_for(lambda: [reader.has_news() for reader in readers] and listeners(redis_cluster.nodes[1]))
        wait_for(lambda: listeners(redis_cluster.nodes[2]))
        writer.post(SCOPE, 400.0, "retry-after")
        wait_for(lambda: all(reader.has_news() for reader in readers))

    def test_what_nobody_reads_is_not_listened_to(self, redis_server: RedisServer) -> None:
        """The thread ends after the board is dropped."""
        board = RedisTokenBucket(redis_server.url(PATIENT)).board
        board.has_news()
        thread = board._listener.thread
        board._listener.close()
        wait_for(lambda: not thread.is_alive())


class ScriptedClient:
    """A client whose channel says what the test wants."""

    def __init__(self, script: list[Any]) -> None:
        self.script, self.pings, self.closed = script, 0, 0

    def pubsub(self) -> ScriptedClient:
        """Return the channel."""
        return self

    def subscribe(self, channel: str) -> None:
        """Listen."""

    def get_message(self, timeout: float) -> Any:
        """Return what comes next."""
        return self.script.pop(0)

    def ping(self) -> None:
        """Count."""
        self.pings += 1

    def close(self) -> None:
        """Count."""
        self.closed += 1


def listeners(server: RedisServer) -> int:
    """Return how many listen."""
    with suppress(Exception):
        return int(server.command("PUBSUB", "NUMSUB", "requests-smithy-retry:gates")[1])
    return 0


def wait_for(what: Callable[[], Any]) -> None:
    """Wait until it is so; a minute on a busy machine is a defect."""
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until
        time.sleep(0.002)


@pytest.fixture(params=["redis", "shm"])
def quota_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A place for a quota."""
    if request.param == "redis":
        yield request.getfixturevalue("redis_server").url(PATIENT)
    else:
        name = f"test-{uuid.uuid4().hex}"
        yield f"shm://{name}{PATIENT.partition('&')[0]}"
        (own_directory() / f"{name}.quota").unlink(missing_ok=True)


SENDER = """
import sys, threading, time
import requests
from requests_smithy_retry import mount
session = mount(requests.Session(), quota_url=sys.argv[1], max_retry_after=1000)
def send():
    while True:
        session.get(sys.argv[2], headers={"Client": sys.argv[3]})
        time.sleep(0.01)
threading.Thread(target=send, daemon=True).start()
sys.stdin.read()
"""


class Service(BaseHTTPRequestHandler):
    """Serves; refuses one request, once it is told to."""

    protocol_version = "HTTP/1.1"
    clients: ClassVar[set[str]] = set()
    seen: ClassVar[list[float]] = []
    is_to_refuse = threading.Event()

    def do_GET(self) -> None:
        """Answer."""
        Service.clients.add(self.headers["Client"])
        Service.seen.append(time.monotonic())
        refuses = Service.is_to_refuse.is_set()
        Service.is_to_refuse.clear()
        self.send_response(429 if refuses else 200)
        self.send_header("Content-Length", "0")
        if refuses:
            self.send_header("Retry-After", "900")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.mark.once
@pytest.mark.real_time
def test_one_refusal_silences_all_processes(quota_url: str, request: pytest.FixtureRequest) -> None:
    """One of three processes is refused; first attempts of the others are held back, too."""
    Service.clients.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = [sys.executable, "-c", SENDER, quota_url, f"http://127.0.0.1:{server.server_port}/"]
        processes = [subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE) for number in range(3)]
        try:
            wait_for(lambda: len(Service.clients) == 3)
            if quota_url.startswith("redis"):
                wait_for(lambda: listeners(request.getfixturevalue("redis_server")) == 3)
            Service.is_to_refuse.set()
            wait_for(lambda: not Service.is_to_refuse.is_set() and time.monotonic() - Service.seen[-1] > 0.5)
        finally:
            for process in processes:
                process.communicate()
            server.shutdown()


@pytest.mark.parametrize(("pacing", "is_shared"), [("announced", True), ("off", False)])
def test_a_strategy_reads_the_board_of_its_quota(pacing: str, is_shared: bool, tmp_path: Path) -> None:
    """The quota may be a bucket of the program's own; without pacing nobody reads."""
    bucket = SharedMemoryTokenBucket("test", directory=tmp_path)
    for quota in ({"quota": bucket}, {"quota_url": f"shm://test-{os.getpid()}"}):
        adapter = RetryAdapter(pacing=pacing, **quota)
        assert is_shared is isinstance(adapter.strategy.busy, Lookout)
    for quota in ({"quota": 100}, {"quota_url": "memory://"}, {"quota": None}):
        assert not isinstance(RetryAdapter(pacing=pacing, **quota).strategy.busy, Lookout)
    (own_directory() / f"test-{os.getpid()}.quota").unlink()


def test_a_server_that_stays_away_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Each try that fails is followed by another one, and the first alone is told."""
    tries = []

    def connect() -> Any:
        tries.append(1)
        if len(tries) == 3:
            listener.close()
        raise ConnectionError("nobody is there")

    link: Any = SimpleNamespace(
        settings=SimpleNamespace(prefix="test", retry_interval=0.0),
        outage=SimpleNamespace(place="redis://nowhere"),
        connect=connect,
    )
    listener = redis_board.Listener(link)
    listener._run()
    assert (3, 1) == (len(tries), sum("closed gates are not shared" in message for message in caplog.messages))
