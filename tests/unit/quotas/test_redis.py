from __future__ import annotations

import contextlib
import copy
import gc
import logging
import pickle
import re
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from requests_smithy_retry import TokenBucketSnapshot
from requests_smithy_retry.clock import SYSTEM_CLOCK
from requests_smithy_retry.quotas.redis import RedisTokenBucket, link_to
from requests_smithy_retry.quotas.settings import RedisSettings

from .servers import RedisServer, SpoilingProxy

pytestmark = pytest.mark.real_time

PATIENT = "?budget=60&connect_timeout=60&flush_interval=600"
"""For a server that answers, however busy the machine is."""
TOLERANCE = 30.0
"""Seconds that a busy machine may add to a budget. Without one, each of these calls would take longer than that."""


def seconds_of(call) -> float:
    began = SYSTEM_CLOCK.now()
    call()
    return SYSTEM_CLOCK.now() - began


def level(server: RedisServer, name: str = "default") -> float | None:
    text = server.command("HGET", f"requests-smithy-retry:{{{name}}}", "level")
    return None if text is None else float(text)


def level_becomes(server: RedisServer, expected: float) -> bool:
    """Return True if a level is reached within half a minute: the link sends tokens later than it takes them."""
    for _ in range(600):
        if level(server) == expected:
            return True
        SYSTEM_CLOCK.sleep(0.05)
    return False


def becomes(condition: Callable[[], object]) -> bool:
    """Return True if a condition comes true within a minute."""
    end = SYSTEM_CLOCK.now() + 60
    while not condition():
        if SYSTEM_CLOCK.now() > end:
            return False
        SYSTEM_CLOCK.sleep(0.005)
    return True


@contextlib.contextmanager
def impatient(bucket: RedisTokenBucket) -> Iterator[None]:
    """Calls in the block have a budget of a moment."""
    link = bucket._link
    usual, link.settings = link.settings, replace(link.settings, budget=0.05)
    yield
    link.settings = usual


class TestTheBucket:
    def test_two_handles_share_one_bucket(self, redis_server: RedisServer) -> None:
        """Tokens that one handle takes are missing for the other."""
        one, two = (RedisTokenBucket(redis_server.url(PATIENT), capacity=28) for _ in range(2))
        assert [one.acquire(14), two.acquire(14), one.acquire(14), two.acquire(14)] == [True, True, False, False]
        assert (one.available, two.available, one.source) == (0, 0, "redis")

    def test_names_and_prefixes_keep_buckets_apart(self, redis_server: RedisServer) -> None:
        """Another name, or another prefix, is another bucket."""
        url = redis_server.url(PATIENT)
        for bucket in (
            RedisTokenBucket(url, "a", capacity=14),
            RedisTokenBucket(url, "b", capacity=14),
            RedisTokenBucket(url + "&prefix=other", "a", capacity=14),
        ):
            assert bucket.acquire(14)

    def test_nothing_is_connected_before_a_retry_asks(self, proxy: SpoilingProxy) -> None:
        """Making a bucket, looking at it and giving to a full one connects to nothing."""
        bucket = RedisTokenBucket(proxy.url())
        bucket.release(1)
        assert bucket.snapshot() == TokenBucketSnapshot(500, 500, source="redis")
        assert (proxy.connections, bucket._account.pending) == (0, 0)

    def test_give_backs_go_out_with_the_next_take(self, redis_server: RedisServer) -> None:
        """A success sends nothing; the next take brings what was gathered."""
        bucket = RedisTokenBucket(redis_server.url(PATIENT))
        bucket.acquire(100)
        bucket.release(30)
        bucket.release(10)
        assert (level(redis_server), bucket.available) == (400, 440)
        bucket.acquire(14)
        assert (level(redis_server), bucket.available) == (426, 426)

    def test_give_backs_go_out_after_an_interval(self, redis_server: RedisServer) -> None:
        """After flush_interval all that was gathered is sent, and the answer tells what others did."""
        one, two = (RedisTokenBucket(redis_server.url("?budget=60&flush_interval=0.2")) for _ in range(2))
        one.acquire(100)
        two.acquire(300)
        one.release(10)
        one.release(5)
        assert (level(redis_server), one.available) == (100, 415)
        SYSTEM_CLOCK.sleep(0.5)
        assert (level(redis_server), one.available) == (115, 115)

    def test_what_exceeds_the_capacity_is_dropped(self, redis_server: RedisServer) -> None:
        """A full bucket keeps nothing to send."""
        bucket = RedisTokenBucket(redis_server.url(PATIENT), capacity=50)
        bucket.acquire(14)
        bucket.release(400)
        assert bucket.available == 50
        bucket.release(1)
        bucket.flush()
        assert level(redis_server) is None

    def test_a_flush_by_hand_brings_everything(self, redis_server: RedisServer) -> None:
        """flush() gives back now; so does the end of the last handle."""
        bucket = RedisTokenBucket(redis_server.url(PATIENT))
        bucket.acquire(100)
        bucket.release(10)
        bucket.flush()
        assert level(redis_server) == 410
        bucket.acquire(10)
        bucket.release(10)
        del bucket
        gc.collect()
        for _ in range(50):
            if level(redis_server) == 410:
                break
            SYSTEM_CLOCK.sleep(0.02)
        assert level(redis_server) == 410

    def test_it_refills(self, redis_server: RedisServer) -> None:
        """A refill rate brings tokens back without anybody's success."""
        bucket = RedisTokenBucket(redis_server.url(PATIENT), capacity=100, refill_rate=1000)
        bucket.acquire(100)
        SYSTEM_CLOCK.sleep(0.05)
        assert bucket.refresh()
        assert bucket.available >= 40

    def test_copies_are_handles_of_the_same_bucket(self, redis_server: RedisServer) -> None:
        """A copied or unpickled bucket shares with its original."""
        bucket = RedisTokenBucket(redis_server.url(PATIENT), "mine", capacity=20, settings=RedisSettings(budget=60))
        for other in (copy.copy(bucket), copy.deepcopy(bucket), pickle.loads(pickle.dumps(bucket))):
            assert (other.name, other.capacity, other.acquire(5)) == ("mine", 20, True)
        bucket.refresh()
        assert bucket.available == 5

    def test_a_bucket_of_a_strategy_is_not_copied_alone(self, redis_server: RedisServer) -> None:
        """The bucket shares its connections, so a copy alone is refused; the error says what to do."""
        bucket = RedisTokenBucket(link_to(redis_server.url()), "a", capacity=5, refill_rate=0)
        with pytest.raises(TypeError, match="copy the strategy instead"):
            pickle.dumps(bucket)

    def test_many_threads_never_overspend(self, redis_server: RedisServer) -> None:
        """32 threads are granted exactly what there is, over one connection."""
        bucket = RedisTokenBucket(redis_server.url("?budget=60"), capacity=70)
        with ThreadPoolExecutor(32) as pool:
            granted = sum(pool.map(lambda _: bucket.acquire(1), range(320)))
        assert (granted, bucket.available, bucket.failures) == (70, 0, 0)

    @pytest.mark.parametrize(("option", "value"), [("capacity", -1), ("refill_rate", float("inf"))])
    def test_numbers_out_of_range_are_refused(self, option: str, value: float) -> None:
        """Numbers out of range are refused, as by the bucket in memory."""
        with pytest.raises(ValueError, match=option):
            RedisTokenBucket("redis://localhost", **{option: value})

    @pytest.mark.parametrize("amount", [-1, float("nan"), float("-inf")])
    def test_an_amount_that_is_none_is_refused(self, redis_server: RedisServer, amount: float) -> None:
        """A negative amount would overfill the bucket, nan would spoil it."""
        bucket = RedisTokenBucket(redis_server.url(PATIENT))
        for method in (bucket.acquire, bucket.release):
            with pytest.raises(
                ValueError, match=rf"^amount={amount!r}: a finite number of tokens, 0 or more, is allowed$"
            ):
                method(amount)
        assert (bucket.available, level(redis_server)) == (500, None)


class TestTheUrl:
    @pytest.mark.parametrize(
        "url",
        [
            "memory://",
            "redis://:sec/ret@localhost",
            "redis://localhost?secret=1",
            "redis://localhost?max_connections=secret",
            "redis://localhost?socket_timeout=secret",
        ],
    )
    def test_a_bad_url_is_refused_at_once_and_not_shown(self, url: str) -> None:
        """A URL that redis-py cannot use is refused when the bucket is made, without redis-py's own message."""
        with pytest.raises(ValueError, match=r"allowed|redis-py refuses|number") as error:
            RedisTokenBucket(url)
        assert "ret" not in str(error.value).replace("requests-smithy-retry", "").replace("retry", "")
        assert error.value.__context__ is None

    def test_a_password_is_used_and_never_shown(
        self, own_redis_server: RedisServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A right one lets in; a wrong one falls open; neither is in a log or a repr."""
        own_redis_server.command("CONFIG", "SET", "requirepass", "hunter2")
        right, wrong = (
            f"redis://:{word}@127.0.0.1:{own_redis_server.port}?budget=60" for word in ("hunter2", "hunter3")
        )
        with caplog.at_level(logging.DEBUG):
            good, bad = RedisTokenBucket(right), RedisTokenBucket(wrong)
            assert [good.acquire(1), good.source, bad.acquire(1), bad.source] == [
                True,
                "redis",
                True,
                "redis, fallen open",
            ]
        shown = caplog.text + repr(good) + repr(bad) + repr(bad.snapshot()) + repr(bad._link) + repr(vars(bad))
        assert "AuthenticationError" in caplog.text
        assert "hunter" not in shown

    def test_without_redis_py_the_error_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The extra is named, and nothing is chained to it."""
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "redis", None)
            with pytest.raises(ImportError, match=r"requests-smithy-retry\[redis\]") as error:
                RedisTokenBucket("redis://:secret@localhost")
        assert error.value.__context__ is None


class TestWithoutAnAnswer:
    def test_a_server_that_is_gone(self, own_redis_server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
        """If no server listens, the local bucket answers within the budget, and the log says so once."""
        own_redis_server.kill()
        bucket = RedisTokenBucket(own_redis_server.url("?local_capacity=20"))
        took = [seconds_of(lambda: bucket.acquire(14)) for _ in range(3)]
        assert max(took) < 0.02 + TOLERANCE
        assert (bucket.available, bucket.source, bucket.failures) == (6, "redis, fallen open", 3)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert bucket.acquire(1)
        assert bucket.failures == 3  # it was not asked

    def test_a_server_that_is_paused(self, own_redis_server: RedisServer) -> None:
        """While it hangs no call exceeds the budget, on a busy machine a second; afterwards it is asked again."""
        bucket = RedisTokenBucket(own_redis_server.url("?retry_interval=0.05"))
        # The first connection may be late on a busy machine.
        assert becomes(lambda: bucket.acquire(1) and bucket.source == "redis")
        own_redis_server.pause()
        worst = [0.0]

        def is_out() -> bool:
            worst.extend([seconds_of(lambda: bucket.acquire(0.01)), seconds_of(lambda: bucket.release(0.01))])
            return bucket.failures >= 5 and bucket._link.outage.fallen_open

        assert becomes(is_out)
        assert max(worst) < 1 + TOLERANCE
        own_redis_server.resume()
        assert becomes(lambda: bucket.acquire(0.01) and bucket.source == "redis")

    def test_what_a_paused_server_books_late_comes_back(self, own_redis_server: RedisServer) -> None:
        """A take that timed out was paid locally; what the server takes for it later is given back."""
        bucket = RedisTokenBucket(own_redis_server.url(PATIENT + "&retry_interval=0"))
        assert bucket.acquire(10)
        own_redis_server.pause()
        with impatient(bucket):
            assert bucket.acquire(14)
        assert bucket.source == "redis, fallen open"
        own_redis_server.resume()
        assert level_becomes(own_redis_server, 476)
        assert bucket.refresh()
        assert (bucket.available, bucket.source) == (490, "redis")

    def test_kill_during_load_and_a_new_server(self, own_redis_server: RedisServer) -> None:
        """The server dies under eight threads: every call ends in time, and a new server is found by itself."""
        bucket = RedisTokenBucket(own_redis_server.url("?retry_interval=0.05&budget=1"), capacity=1e9)
        stop = threading.Event()
        worst = [0.0] * 8

        def load(number: int) -> None:
            while not stop.is_set():
                worst[number] = max(worst[number], seconds_of(lambda: bucket.acquire(1)))
                bucket.release(1)
                SYSTEM_CLOCK.sleep(0.001)

        threads = [threading.Thread(target=load, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        try:
            assert becomes(lambda: bucket.source == "redis")
            own_redis_server.kill()
            assert becomes(lambda: bucket.source == "redis, fallen open")
            own_redis_server.start()
            assert becomes(lambda: bucket.source == "redis")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert max(worst) < 1 + TOLERANCE

    def test_script_flush(self, redis_server: RedisServer) -> None:
        """A server needs not remember the script, for a take and for a give-back alike."""
        bucket = RedisTokenBucket(redis_server.url(PATIENT))
        assert bucket.acquire(100)
        redis_server.command("SCRIPT", "FLUSH")
        assert bucket.acquire(100)
        redis_server.command("SCRIPT", "FLUSH")
        bucket.release(50)
        bucket.flush()
        assert level(redis_server) == 350
        assert bucket.failures == 0

    def test_a_full_server(self, redis_server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
        """Out of memory: fall open."""
        bucket = RedisTokenBucket(redis_server.url(PATIENT))
        redis_server.command("CONFIG", "SET", "maxmemory", "1")
        assert bucket.acquire(14)
        assert bucket.source == "redis, fallen open"
        # Redis 6 hides what went wrong within a script.
        assert re.search(r"\((OutOfMemoryError|ResponseError), failure 1\)", caplog.text)

    def test_a_read_only_server(self, own_redis_server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
        """A replica: fall open, and come back when it is a master again."""
        bucket = RedisTokenBucket(own_redis_server.url("?budget=60&retry_interval=0"))
        own_redis_server.command("REPLICAOF", "127.0.0.1", "1")
        assert bucket.acquire(14)
        assert bucket.source == "redis, fallen open"
        assert "ReadOnlyError" in caplog.text or "ResponseError" in caplog.text
        own_redis_server.command("REPLICAOF", "NO", "ONE")
        assert bucket.refresh()
        assert bucket.source == "redis"

    def test_a_key_that_is_something_else(self, redis_server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
        """If the bucket's key holds a text, the bucket falls open and leaves the text alone."""
        redis_server.command("SET", "requests-smithy-retry:{default}", "mine")
        bucket = RedisTokenBucket(redis_server.url(PATIENT))
        assert bucket.acquire(14)
        assert re.search(r"\(ResponseError( WRONGTYPE)?, failure 1\)", caplog.text)
        assert redis_server.command("GET", "requests-smithy-retry:{default}") == "mine"

    @pytest.mark.parametrize(
        "answer", [b"+OK\r\n", b"*2\r\n:1\r\n$3\r\nnan\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b":7\r\n"]
    )
    def test_nonsense(self, proxy: SpoilingProxy, answer: bytes) -> None:
        """A server that answers something else: fall open, and come back when it makes sense again."""
        bucket = RedisTokenBucket(proxy.url("?budget=60&retry_interval=0"))
        assert bucket.acquire(14)
        proxy.answer = answer
        assert bucket.acquire(14)
        assert bucket.source == "redis, fallen open"
        proxy.answer = None
        assert bucket.acquire(14)
        assert bucket.source == "redis"

    def test_an_answer_that_drips(self, proxy: SpoilingProxy) -> None:
        """Bytes that come one by one do not stretch the budget."""
        bucket = RedisTokenBucket(proxy.url(PATIENT))
        assert bucket.refresh()
        proxy.answer, proxy.drip = b"*2\r\n:1\r\n$3\r\n486\r\n", 5.0
        with impatient(bucket):
            assert seconds_of(lambda: bucket.acquire(14)) < TOLERANCE
        assert bucket.source == "redis, fallen open"

    def test_a_connection_that_was_closed_while_idle(self, proxy: SpoilingProxy) -> None:
        """Servers and middle boxes close idle connections: a new one is made, and nothing falls open."""
        bucket = RedisTokenBucket(proxy.url(PATIENT))
        assert bucket.acquire(14)
        proxy.hang_up()
        assert bucket.acquire(14)
        assert (bucket.source, bucket.available, proxy.connections) == ("redis", 472, 2)

    def test_a_give_back_on_a_closed_connection_is_not_lost(self, proxy: SpoilingProxy) -> None:
        """A return that meets a closed connection goes out on a new one."""
        bucket = RedisTokenBucket(proxy.url(PATIENT))
        bucket.acquire(100)
        proxy.hang_up()
        SYSTEM_CLOCK.sleep(0.02)
        bucket.release(10)
        bucket.flush()
        assert (bucket.available, bucket.failures, proxy.connections) == (410, 0, 2)

    def test_the_local_bucket_gets_its_own_back_first(self, own_redis_server: RedisServer) -> None:
        """While fallen open, give-backs fill the local bucket; what it has no room for is the server's."""
        bucket = RedisTokenBucket(own_redis_server.url(PATIENT + "&retry_interval=600&local_capacity=50"))
        bucket.acquire(100)
        own_redis_server.kill()
        assert [bucket.acquire(amount) for amount in (10, 5, 5)] == [True] * 3
        assert (bucket.available, bucket._link.outage.fallen_open) == (30, True)
        bucket.release(50)
        assert bucket.available == 50
        assert bucket._account.pending == 30

    def test_a_nearer_deadline_wins(self, own_redis_server: RedisServer) -> None:
        """A take is not waited for past the operation's deadline."""
        bucket = RedisTokenBucket(own_redis_server.url(PATIENT))
        assert bucket.refresh()
        own_redis_server.pause()
        assert seconds_of(lambda: bucket.acquire(1, deadline=SYSTEM_CLOCK.now() + 0.05)) < TOLERANCE

    def test_one_late_call_costs_one_call(self, own_redis_server: RedisServer) -> None:
        """A pause of the server: the call that met it goes by the local bucket, the next one does not."""
        bucket = RedisTokenBucket(own_redis_server.url(PATIENT + "&local_capacity=20"))
        assert bucket.refresh()
        own_redis_server.pause()
        with impatient(bucket):
            assert (bucket.acquire(14), bucket.source, bucket.available) == (True, "redis, fallen open", 6)
        own_redis_server.resume()
        bucket.release(14)
        assert bucket.available == 20
        assert becomes(lambda: bucket._account.pending == 14)  # what the server took late
        assert (bucket.acquire(14), bucket.source, bucket._link.outage.fallen_open) == (True, "redis", False)
        assert level(own_redis_server) == 486
