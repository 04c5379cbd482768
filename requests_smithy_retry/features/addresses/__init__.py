"""Connections to a well address in time (contract 8.1, 8.5, 14.5); without this, urllib3 opens their sockets.

:mod:`opening` opens a socket: names are resolved by the deadline (:mod:`resolving`), their addresses tried staggered
(:mod:`racing`), and those that failed lately tried last (:mod:`memory`). :mod:`socks` does it through a SOCKS proxy.
"""

from __future__ import annotations

from typing import Any

from ...classifiers.outcome import Outcome
from ...classifiers.transport_faults import is_timeout, is_transient
from ...clock import Clock
from ...config.retry_config import RetryConfig
from ...core.plan import Call
from ...core.port import Feature
from .memory import AddressFault, AddressMemory
from .opening import AddressOpener as opener

__all__ = ["AddressFault", "AddressMemory", "Addresses", "feature", "opener"]


class Addresses(Feature):
    """The hooks."""

    def attempted(self, call: Call, outcome: Outcome, peer: Any, tried: set[tuple[str, str]]) -> None:
        if peer is None:
            return
        error, response = outcome.error, outcome.response
        if error is not None and is_transient(error):
            tried.add((peer.origin, peer.address))
            # A kept connection may break because it was idle for too long, which is not the address's fault.
            if is_timeout(error) or peer.since >= outcome.started:
                peer.failed(type(error).__name__)
        elif error is None and response is not None and response.status_code >= 500:
            tried.add((peer.origin, peer.address))
            peer.failed(str(response.status_code), answers=True)


def feature(config: RetryConfig, clock: Clock) -> Addresses:
    return Addresses()
