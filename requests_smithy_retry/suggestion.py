"""What to say of a name that there is not: the nearest one that there is, or all of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def suggestion(name: str, known: Iterable[str], show: Callable[[str], str] = str) -> str:
    """The half sentence that follows "there is no such name".

    >>> suggestion("max_atempts", ["max_attempts", "quota"], repr), suggestion("x", ["max_attempts", "quota"])
    ("did you mean 'max_attempts'?", 'there are max_attempts, quota')

    :param name: what was given.
    :param known: the names that there are.
    :param show: how the nearest one is written.
    """
    from difflib import get_close_matches  # only who mistyped a name needs it

    known = tuple(known)
    nearest = get_close_matches(name, known, n=1)
    return f"did you mean {show(nearest[0])}?" if nearest else f"there are {', '.join(known)}"
