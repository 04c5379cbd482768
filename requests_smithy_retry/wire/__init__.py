"""The layer below ``super().send`` (contract 14): bytes written, deadlines, heads and bodies.

:mod:`pools` prepares connections, :mod:`connect` bounds how they are made and how they send, :mod:`racing` connects to
one of several addresses and :mod:`addresses` remembers those that failed, :mod:`response` reads heads, :mod:`reader`
reads sockets, :mod:`peek` looks ahead to where a body ends and :mod:`decoding` decodes it, :mod:`body` and
:mod:`digests` watch bodies, and :mod:`forked` leaves a parent its connections.
They meet the adapter in :mod:`state`.
"""

from .decoding import verify_whole
from .peek import UNREAD_BYTES, Peeked, peek
from .pools import use_our_pools
from .reader import reader_of, set_read_timeout
from .state import this_thread

__all__ = [
    "UNREAD_BYTES",
    "Peeked",
    "peek",
    "reader_of",
    "set_read_timeout",
    "this_thread",
    "use_our_pools",
    "verify_whole",
]
