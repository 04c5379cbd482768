"""What must be known and done below ``super().send`` (contract 14): bytes written, deadlines, heads and bodies.

:mod:`pools` prepares connections, :mod:`connect` bounds how they are made and :mod:`upload` how they send,
:mod:`response` reads heads, :mod:`reader` reads sockets, :mod:`peek` looks ahead, :mod:`decoding` judges a coded
body's end, :mod:`plain` has all of them let everything pass, and :mod:`forked` leaves a parent its connections. They
meet the adapter in :mod:`state`.
"""

from .decoding import verify_whole
from .peek import Peeked, peek
from .plain import send_plainly, send_within
from .pools import watch
from .reader import set_read_timeout
from .state import attempt

__all__ = ["Peeked", "attempt", "peek", "send_plainly", "send_within", "set_read_timeout", "verify_whole", "watch"]
