"""The far ends of connections, and what a memory of addresses may say of them (contract 14.5). Here it knows nothing:
the feature ``addresses`` remembers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from ..clock import Clock


class NoMemory:
    """Knows of no failure. The methods are those of a memory."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def in_order(self, origin: str, addresses: Sequence[str], tried: Collection[tuple[str, str]] = ()) -> Sequence[str]:
        """Return the addresses in the order in which to try them; those that an operation has tried come later."""
        return addresses

    def is_avoided(
        self, origin: str, address: str, addresses: Sequence[str], tried: Collection[tuple[str, str]] = ()
    ) -> bool:  # fmt: skip
        """Return True if another of the origin's addresses is better."""
        return False

    def begin_probe(self, origin: str, address: str) -> None:
        """Take note that a connection to an address is begun."""

    def is_known(self, origin: str, address: str) -> bool:
        """Return True if an address has failed and not answered well since."""
        return False

    def failed(self, origin: str, address: str, why: str, *, answers: bool = False) -> None:
        """Take note that an address failed."""

    def succeeded(self, origin: str, address: str) -> None:
        """Take note that an address that failed answers well."""

    def forget(self) -> None:
        """Know of no failure."""

    def snapshot(self) -> tuple[Any, ...]:
        """Return the addresses that failed lately."""
        return ()


class Peer(NamedTuple):
    """The far end of a connection.

    :param memory: remembers its failures.
    :param origin: the host and port that the connection goes to.
    :param address: the IP address; of a connection that was not made, all that were tried.
    :param addresses: all addresses of the origin, as they were when the connection was made.
    :param since: when the connection was made, on the memory's clock.
    """

    memory: NoMemory
    origin: str
    address: str
    addresses: tuple[str, ...]
    since: float

    def failed(self, why: str, *, answers: bool = False) -> None:
        """Take note that the address failed. Of a single address there is nothing to remember."""
        if len(self.addresses) > 1:
            self.memory.failed(self.origin, self.address, why, answers=answers)


def is_in_disgrace(connection: Any, tried: Collection[tuple[str, str]] = ()) -> bool:
    """Return True if a kept connection is not to be used: another address is better, or not tried by the operation."""
    peer: Peer | None = getattr(getattr(connection, "connect", None), "peer", None)
    return peer is not None and peer.memory.is_avoided(peer.origin, peer.address, peer.addresses, tried)
