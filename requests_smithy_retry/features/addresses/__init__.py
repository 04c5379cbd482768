"""Connections to a healthy address, in time (contract 8.1, 8.5, 14.5). Without this feature, urllib3 opens the sockets.

:mod:`opening` opens a socket: names are resolved by the deadline (:mod:`resolving`), their addresses tried staggered
(:mod:`racing`), and those that failed lately tried last (:mod:`memory`). :mod:`socks` does so through a SOCKS proxy.
"""

from __future__ import annotations

from .memory import AddressFault, AddressMemory
from .opening import AddressOpener

__all__ = ["AddressFault", "AddressMemory", "AddressOpener"]
