"""The addresses of a name that fail (contract 14.5): they are remembered, and tried last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...classifiers.outcome import Outcome
from ...classifiers.transport_faults import is_timeout, is_transient
from ...core.port import Feature
from .memory import AddressMemory as AddressMemory

if TYPE_CHECKING:
    from ...clock import Clock
    from ...config.retry_config import RetryConfig
    from ...core.driver import Call
    from ...wire.peers import Peer


class Addresses(Feature):
    """The hooks."""

    def attempted(self, call: Call, outcome: Outcome, peer: Peer | None, tried: set[tuple[str, str]]) -> None:
        """Have the memory of addresses know of a failure."""
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
    """Return the feature for a configuration."""
    return Addresses()
