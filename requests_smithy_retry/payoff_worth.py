"""What a success is worth to a payoff bucket, and how what it holds is written where that is too little. Pure."""

from __future__ import annotations


def worth_of(latency: float | None, timeout: float | None) -> float:
    """1 for a success at once, 0 for one at the last moment or later.

    :param latency: seconds that the attempt took; None: nobody measured.
    :param timeout: seconds that it was allowed; None: as long as it took.
    """
    if latency is None or timeout is None:
        return 1.0
    return max(0.0, 1.0 - latency / timeout) if timeout > 0 else 0.0


def written(tokens: float, cost: float) -> str:
    """Tokens with two places, rounded down, so that what is too little is never shown as enough.

    :param tokens: from 0 on.
    :param cost: what they are too few for: 0.3999... is written as 0.4 where that is not enough either.
    """
    about = tokens + 1e-9
    return f"{int((about if about < cost else tokens) * 100) / 100:g}"
