"""What holds for a strategy that is driven by hand: the block of ``retry_options`` around it (contract 10.4)."""

from __future__ import annotations

import dataclasses

from ..clock import Clock
from ..operation_options import current_options
from ..outcome import RetryContext, context_of


def context_around(error: Exception, clock: Clock) -> RetryContext:
    """What an error carries; from code without an adapter it carries nothing, and what the block around says holds.

    :param error: what an attempt raised, or what carries its response.
    :param clock: the strategy's, to read the block's deadline on.
    """
    context, around = context_of(error), current_options.get()
    if around is None or context.options is not None:
        return context
    deadline = None if around.deadline is None else around.deadline.on(clock).at
    return dataclasses.replace(context, deadline=deadline, options=around)
