"""Connecting to one of several addresses: staggered attempts on real sockets."""

from __future__ import annotations

import contextlib
import errno
import selectors
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from requests_smithy_retry.clock import Deadline
from requests_smithy_retry.features.addresses import racing
from requests_smithy_retry.features.addresses.opening import candidates
from requests_smithy_retry.features.addresses.racing import Candidate, How, Race
from requests_smithy_retry.testing import FakeClock
from requests_smithy_retry.wire.state import this_thread
from tests.faults import hanging_port, refusing_port
from tests.unit.wire.support import nothing_left

pytestmark = pytest.mark.real_time

V4, V6, STREAM = socket.AF_INET, socket.AF_INET6, socket.SOCK_STREAM
PLAIN = How(None, None, ())
NEVER = 60.0
"""Seconds that no test waits."""


def at(port: int, number: int = 1, host: str = "127.0.0.1") -> Candidate:
    """An address whose name is unlike others'."""
    return Candidate(f"{number}", V4, 6, (host, port))


@contextlib.contextmanager
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@contextlib.contextmanager
def raced(race: Race) -> Iterator[tuple[socket.socket, str]]:
    """Run a race; see that nothing but the winner is left open."""
    with nothing_left():
        sock, won = race.run()
        with sock:
            yield sock, won.name


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No address is tried because another one takes long."""
    monkeypatch.setattr(racing, "FIRST_DELAY", NEVER)
    monkeypatch.setattr(racing, "LATER_DELAY", NEVER)


def info(host: str, *rest: Any) -> Any:
    return V6 if ":" in host else V4, STREAM, 6, "", (host, 80, *rest)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ("a", "a"),
        ("a b c", "a b c"),
        ("a a b a", "a b"),
        ("1: 2: 3: a b", "1: a 2: b 3:"),
        ("a b c 1:", "a 1: b c"),
        ("a 1: 2: 3:", "a 1: 2: 3:"),
    ],
)
def test_families_alternate(found: str, expected: str) -> None:
    """Families alternate in the resolver's order, beginning with its first; a duplicate address is tried once."""
    assert expected.split() == [item.name for item in candidates(list(map(info, found.split())))]


BOUND = How(5, ("127.0.0.3", 0), ())


@pytest.mark.parametrize(
    ("kinds", "how", "delay", "least", "winner", "failed"),
    [
        pytest.param("ww", PLAIN, NEVER, 0.0, "0", "", id="one that answers is the only one tried"),
        pytest.param("rw", PLAIN, NEVER, 0.0, "1", "r", id="after a refusal the next begins at once"),
        pytest.param("hw", PLAIN, None, 0.25, "1", "h", id="beside a silent one the next begins after 250 ms"),
        pytest.param("hhhhhhhw", PLAIN, None, 0.0, "7", "hhhhhhh", id="among eight the one that is well is found"),
        pytest.param("wh", PLAIN, 0.0, 0.0, "0", "", id="a slow one may still win, and later ones have not failed yet"),
        pytest.param("hw", How(0.05, None, ()), None, 0.0, "1", "h", id="each has a time-out of its own"),
        pytest.param("6w", BOUND, None, 0.0, "1", "6", id="one that cannot be bound has failed"),
        pytest.param("?w", PLAIN, None, 0.0, "1", "?", id="one of a family that the system lacks has failed"),
        pytest.param("rr", PLAIN, NEVER, 0.0, "ConnectionRefusedError", "rr", id="all refuse"),
        pytest.param("hhh", How(0.4, None, ()), None, 0.4, "TimeoutError", "hhh", id="none answers"),
    ],
)
def test_who_wins_and_who_has_failed(
    kinds: str,
    how: How,
    delay: float | None,
    least: float,
    winner: str,
    failed: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that answers wins; where none does, the last failure is raised. Those that were given up have failed."""
    if delay is not None:
        monkeypatch.setattr(racing, "FIRST_DELAY", delay)
    with hanging_port() as hanging, refusing_port() as refusing, listening() as port, nothing_left():
        ports = {"h": hanging, "r": refusing, "w": port}
        others = {"6": Candidate("0", V6, 6, ("::1", port, 0, 0)), "?": Candidate("0", 9999, 6, ("::1", port, 0, 0))}
        race = Race([others.get(kind) or at(ports[kind], place) for place, kind in enumerate(kinds)], how)
        began = time.monotonic()
        try:
            sock, won = race.run()
            sock.close()
            found = won.name
        except OSError as error:
            found = type(error).__name__
        assert winner == found
        words = {"h": "TimeoutError", "r": "ConnectionRefusedError"}
        expected = {str(place): words.get(kind) for place, kind in enumerate(failed)}
        assert expected.keys() == race.failed.keys()
        assert all(why is None or why == race.failed[name] for name, why in expected.items())
        assert time.monotonic() - began >= least


def test_while_one_does_not_answer_refusals_do_not_hold_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a refusal the next attempt begins at once then, too."""
    monkeypatch.setattr(racing, "LATER_DELAY", NEVER)
    with hanging_port() as hanging, refusing_port() as refusing, listening() as port:
        race = Race([at(hanging), at(refusing, 2), at(refusing, 3), at(port, 4)], PLAIN)
        with raced(race) as (_, name):
            expected = {"1": "TimeoutError", "2": "ConnectionRefusedError", "3": "ConnectionRefusedError"}
            assert ("4", expected) == (name, race.failed)


@contextlib.contextmanager
def under(seconds: float) -> Iterator[FakeClock]:
    """A deadline on a clock that stands still, so that a busy machine does not make it pass."""
    clock = FakeClock()
    with this_thread.under(Deadline(clock.now() + seconds, clock)):
        yield clock


def test_the_time_that_is_left_is_that_of_each_address() -> None:
    """Where there is no shorter time-out, an address has what is left when it is begun."""
    with hanging_port() as hanging, under(0.6), nothing_left():
        race = Race([at(hanging), at(hanging, 2)], PLAIN)
        with pytest.raises(TimeoutError, match="timed out"):
            race.run()
        assert {"1": "TimeoutError", "2": "TimeoutError"} == race.failed


def test_a_deadline_ends_the_race(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the deadline, addresses that had their 250 ms are noted as failed."""
    with hanging_port() as hanging, under(5) as clock, nothing_left():
        monkeypatch.setattr(racing, "LATER_DELAY", NEVER)
        real = selectors.DefaultSelector.select

        def select(selector: Any, seconds: float | None = None) -> Any:
            return real(selector, seconds) if len(selector.get_map()) < 2 else clock.advance(5) or []

        monkeypatch.setattr(selectors.DefaultSelector, "select", select)
        race = Race([at(hanging), at(hanging, 2), at(hanging, 3)], PLAIN)
        with pytest.raises(TimeoutError, match="the deadline has passed"):
            race.run()
        assert "1" in race.failed
        assert "3" not in race.failed


def test_a_near_deadline_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead address does not eat the time of an attempt that has less than a second."""
    monkeypatch.setattr(racing, "FIRST_DELAY", NEVER)
    with hanging_port() as hanging, listening() as port, under(0.8):
        race, began = Race([at(hanging), at(port, 2)], PLAIN), time.monotonic()
        with raced(race) as (_, name):
            assert "2" == name
            assert time.monotonic() - began >= 0.2


def test_no_address_is_tried_after_the_deadline() -> None:
    """After the deadline no address is tried, not even the first."""
    with under(0), pytest.raises(TimeoutError, match="the deadline has passed"):
        Race([at(9)], PLAIN).run()


def test_an_address_that_connects_at_once_wins() -> None:
    """A Unix socket does so even without blocking."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/s")
        server.listen()
        with hanging_port() as hanging:
            race = Race([at(hanging), Candidate("2", socket.AF_UNIX, 0, f"{folder}/s"), at(hanging, 3)], PLAIN)
            with raced(race) as (_, name):
                assert ("2", {"1": "TimeoutError"}) == (name, race.failed)


def test_a_connection_that_fails_late_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The selector tells that it is over, the socket how."""
    with hanging_port() as hanging, nothing_left():
        real = socket.socket.getsockopt

        def getsockopt(sock: Any, level: int, name: int) -> Any:
            return errno.ECONNRESET if name == socket.SO_ERROR else real(sock, level, name)

        def select(selector: Any, seconds: float | None = None) -> Any:
            return [(key, key.events) for key in list(selector.get_map().values())]

        monkeypatch.setattr(socket.socket, "getsockopt", getsockopt)
        monkeypatch.setattr(selectors.DefaultSelector, "select", select)
        race = Race([at(hanging), at(hanging, 2)], PLAIN)
        with pytest.raises(ConnectionResetError):
            race.run()
        assert {"1": "ConnectionResetError", "2": "ConnectionResetError"} == race.failed


def test_after_the_kernels_own_time_out_an_attempt_is_over(monkeypatch: pytest.MonkeyPatch, patient: None) -> None:
    """After the kernel's own time-out an attempt is over, so the next one begins."""
    real = socket.socket.connect

    def connect(sock: Any, address: Any) -> None:
        if address[0] == "127.0.0.2":
            raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")
        real(sock, address)

    monkeypatch.setattr(socket.socket, "connect", connect)
    with listening() as port:
        race = Race([at(9, host="127.0.0.2"), at(port, 2)], PLAIN)
        with raced(race) as (_, name):
            assert ("2", {"1": "TimeoutError"}) == (name, race.failed)


def test_the_winner_has_its_options_and_its_source() -> None:
    """So have all sockets of a race."""
    options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    with hanging_port() as hanging, listening() as port:
        race = Race([at(hanging), at(port, 2)], How(5, ("127.0.0.3", 0), options))
        with raced(race) as (sock, name):
            found = [sock.getsockopt(*option[:2]) != 0 for option in options]
            assert ("2", "127.0.0.3", [True, True]) == (name, sock.getsockname()[0], found)


REUSE = [(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)]


@pytest.fixture
def source() -> tuple[str, int]:
    """An address to connect from, with a port that is free."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.4", 0))
        return reserved.getsockname()


def test_with_a_fixed_source_port_attempts_follow_each_other(source: tuple[str, int]) -> None:
    """Two sockets cannot have the same one; each address has all of its time."""
    with hanging_port() as hanging, listening() as port:
        race, began = Race([at(hanging), at(port, 2)], How(0.5, source, REUSE)), time.monotonic()
        with raced(race) as (sock, name):
            assert ("2", source) == (name, sock.getsockname())
            assert time.monotonic() - began >= 0.5


def test_attempts_that_follow_each_other_may_all_be_refused(source: tuple[str, int]) -> None:
    """The last refusal is raised, as where they race."""
    with refusing_port() as refusing, nothing_left():
        race = Race([at(refusing), at(refusing, 2)], How(NEVER, source, REUSE))
        with pytest.raises(ConnectionRefusedError):
            race.run()
        assert ["1", "2"] == list(race.failed)


class OwnSocket(socket.socket):
    """A socket class such as a recorder or a proxy puts into the ``socket`` module."""


def test_with_a_socket_of_somebody_elses_attempts_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """It need not know of non-blocking sockets. Under a deadline, each address has its share of the time."""
    with hanging_port() as hanging, listening() as port, under(0.6):
        monkeypatch.setattr(socket, "socket", OwnSocket)
        race, began = Race([at(hanging), at(port, 2)], PLAIN), time.monotonic()
        with raced(race) as (sock, name):
            assert ("2", OwnSocket) == (name, type(sock))
            assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize(
    ("source", "made_by", "waited_by", "expected"),
    [
        (None, "socket", "selectors", True),
        (("", 0), "socket", "selectors", True),
        (("", 5000), "socket", "selectors", False),
        (None, "gevent._socket3", "gevent.selectors", True),
        (None, "gevent._socket3", "selectors", False),
        (None, "socket", "gevent.selectors", False),
        (None, "socks", "selectors", False),
    ],
)
def test_whose_sockets_can_be_raced(
    monkeypatch: pytest.MonkeyPatch, source: Any, made_by: str, waited_by: str, expected: bool
) -> None:
    """Sockets of Python and of gevent can be raced, each with its own selectors and a free source port."""
    monkeypatch.setattr(socket.socket, "__module__", made_by)
    monkeypatch.setattr(selectors, "DefaultSelector", type("Selector", (), {"__module__": waited_by}))
    assert expected == racing.can_stagger(source)


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="signals of POSIX")
def test_a_signals_time_out_is_not_that_of_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that raises ``TimeoutError`` while an address is connected to ends the race, and no other is tried."""

    def interrupt(*_: Any) -> None:
        raise TimeoutError("of the program")

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with nothing_left():
            monkeypatch.setattr(socket.socket, "connect", lambda *_: signal.raise_signal(signal.SIGUSR1))
            race = Race([at(9), at(9, 2)], PLAIN)
            with pytest.raises(TimeoutError, match="of the program"):
                race.run()
            assert [] == list(race.failed)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_threads_race_by_themselves() -> None:
    """Ten threads find the same well address."""
    found = []
    with hanging_port() as hanging, listening() as port:

        def connect() -> None:
            sock, won = Race([at(hanging), at(port, 2)], PLAIN).run()
            sock.close()
            found.append(won.name)

        threads = [threading.Thread(target=connect) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert ["2"] * 10 == found
