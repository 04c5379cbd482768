"""The addresses of a name that fail: they are remembered, and tried last.

An address is avoided for 30 s after a failure, then for twice as long each time it fails again, at most 300 s. When
that time is over, one connection probes the address; an answer below 500 clears it. An address is avoided only while
another one is better. Addresses that answer with 5xx are avoided only while another one answers well, and never more
than half of a name's.

There is no lock: every change replaces one entry, and a change that another thread overwrites costs one more failure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ...clock import Clock
from ...wire.connect import Opener

FIRST_PERIOD = 30.0
"""Seconds for which an address is avoided after its first failure."""
LONGEST_PERIOD = 300.0
FORGOTTEN_AFTER = 300.0
"""Seconds after its period at which a failure is forgotten: the next one counts as the first."""
MOST_ORIGINS = 1024
"""The most origins of which failures are remembered; the oldest go first."""
MOST_ADDRESSES = 64
"""The most addresses of one origin of which failures are remembered; the oldest go first."""


class Fault(NamedTuple):
    """The failures of one address.

    :param until: the moment, on the clock, until which the address is avoided.
    :param period: how long that is, in seconds.
    :param why: the last failure: the name of an exception, or a status.
    :param answers: the address answers, but with 5xx.
    :param probed: a connection is probing the address.
    """

    until: float
    period: float
    why: str
    answers: bool = False
    probed: bool = False


class AddressFault(NamedTuple):
    """An address that failed lately, in a snapshot.

    :param origin: the host and port that connections go to: those of the proxy, if there is one.
    :param address: one of the host's IP addresses.
    :param why: the last failure: the name of an exception, or a status.
    :param seconds_left: how much longer the address is avoided; 0: the next connection may try it.
    :param period: how long it is avoided in all, in seconds.
    """

    origin: str
    address: str
    why: str
    seconds_left: float
    period: float


class AddressMemory(Opener):
    """The failures of addresses, per origin, bounded in number and in time."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.faults: dict[str, dict[str, Fault]] = {}
        """By origin and address; empty without failures."""

    def in_order(self, origin: str, addresses: Sequence[str], tried: Collection[tuple[str, str]] = ()) -> Sequence[str]:
        """Return the addresses in the order in which to try them; those that an operation has tried come later."""
        badness = self._badness(origin, addresses, tried)
        return addresses if badness is None else sorted(addresses, key=badness)

    def is_avoided(
        self, origin: str, address: str, addresses: Sequence[str], tried: Collection[tuple[str, str]] = ()
    ) -> bool:
        """Return True if another of the origin's addresses is better."""
        badness = self._badness(origin, addresses, tried)
        return badness is not None and badness(address) > min(map(badness, addresses))

    def _badness(
        self, origin: str, addresses: Sequence[str], tried: Collection[tuple[str, str]]
    ) -> Callable[[str], tuple[bool, bool, bool]] | None:
        """Return a key to sort by: whether an address is dead, was tried, and answers badly; None: all are alike."""
        if len(addresses) < 2 or not (tried or origin in self.faults):
            return None
        dead, bad = _avoided(self.faults.get(origin, {}), addresses, self.clock.now())

        def key(address: str) -> tuple[bool, bool, bool]:
            return address in dead, (origin, address) in tried, address in bad

        return key

    def begin_probe(self, origin: str, address: str) -> None:
        """Record that a connection to an address begins: others avoid the address meanwhile, even if its period is
        over.
        """
        faults = self.faults.get(origin, {})
        fault, now = faults.get(address), self.clock.now()
        if fault is not None and fault.until <= now:
            faults[address] = fault._replace(until=now + fault.period, probed=True)

    def is_known(self, origin: str, address: str) -> bool:
        """Return True if an address has failed and not answered well since."""
        return address in self.faults.get(origin, ())

    def failed(self, origin: str, address: str, why: str, *, answers: bool = False) -> None:
        """Record that an address failed. Simultaneous failures count once."""
        faults = self.faults.setdefault(origin, {})
        fault, now = faults.pop(address, None), self.clock.now()
        if fault is not None and now > fault.until + FORGOTTEN_AFTER:
            fault = None
        period = FIRST_PERIOD
        if fault is not None and fault.until > now and not fault.probed:
            faults[address] = fault._replace(why=why, answers=fault.answers and answers)
        else:
            if fault is not None:
                period = min(2 * fault.period, LONGEST_PERIOD)
            faults[address] = Fault(now + period, period, why, answers)
        _shorten(faults, MOST_ADDRESSES)
        _shorten(self.faults, MOST_ORIGINS)

    def succeeded(self, origin: str, address: str) -> None:
        """Record that an address that failed answers well."""
        faults = self.faults.get(origin, {})
        faults.pop(address, None)
        if not faults:
            self.faults.pop(origin, None)

    def forget(self) -> None:
        self.faults.clear()

    def snapshot(self) -> tuple[AddressFault, ...]:
        now = self.clock.now()
        return tuple(
            AddressFault(origin, address, fault.why, min(max(0.0, fault.until - now), fault.period), fault.period)
            for origin, faults in list(self.faults.items())
            for address, fault in list(faults.items())
            if now <= fault.until + FORGOTTEN_AFTER
        )


def _avoided(faults: Mapping[str, Fault], addresses: Sequence[str], now: float) -> tuple[set[str], set[str]]:
    """Return the addresses that are dead, and those that answer badly and may be avoided."""
    avoided = {}
    for address in addresses:
        fault = faults.get(address)
        if fault is not None and fault.until > now:
            avoided[address] = fault
    dead = {address for address, fault in avoided.items() if not fault.answers}
    bad = [address for address, fault in avoided.items() if fault.answers]
    if len(avoided) == len(addresses):
        return dead, set()  # none answers well
    bad.sort(key=lambda address: -avoided[address].period)
    return dead, set(bad[: len(addresses) // 2])


def _shorten(entries: dict[str, Any], most: int) -> None:
    for key in list(entries)[: max(0, len(entries) - most)]:
        entries.pop(key, None)


class Peer(NamedTuple):
    """The far end of a connection.

    :param origin: the host and port that the connection goes to.
    :param address: the IP address; all that were tried, if no connection was made.
    :param addresses: all addresses of the origin, as they were when the connection was made.
    :param since: when the connection was made, on the memory's clock.
    """

    memory: AddressMemory
    origin: str
    address: str
    addresses: tuple[str, ...]
    since: float

    def is_avoided(self, tried: Collection[tuple[str, str]]) -> bool:
        """Return True if another address is better."""
        return self.memory.is_avoided(self.origin, self.address, self.addresses, tried)

    def failed(self, why: str, *, answers: bool = False) -> None:
        """Record that the address failed, unless it is the only one."""
        if len(self.addresses) > 1:
            self.memory.failed(self.origin, self.address, why, answers=answers)
