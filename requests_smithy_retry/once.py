"""What is said once a process, such as a warning. Pure; it imports nothing of the package."""

from __future__ import annotations


def is_first(said: dict[str, object], what: str) -> bool:
    """Whether nobody has said it before; from now on somebody has.

    It needs no lock, which a forked child could inherit held (contract 11.1): ``setdefault`` is atomic.

    :param said: what was said until now.
    """
    mine = object()
    return said.setdefault(what, mine) is mine
