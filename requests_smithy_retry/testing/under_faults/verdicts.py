"""What a reviewer would say of a run under a fault: judged by what the service did and what reached the test."""

from __future__ import annotations

from dataclasses import dataclass

from .faults import SendFault
from .runs import Run, Sent
from .virtual_wire import Endless, RunEnded

TWICE = "sent twice: the service acted on a request that is not idempotent, and got it again"
SWALLOWED = "error swallowed: the client got no answer, and told nobody"
WRONG_DATA = "wrong data accepted: a part of the answer came, and the client told nobody"
NO_BOUND = "no bound: the client goes on for more than an hour, or with more than 50 requests"
HANG = "hang: the client waits for a silent server without a time-out"
STUCK = "hang: the test came to no end"


class Stuck(RunEnded):
    """The run took too long on a real clock."""


ENDINGS: dict[type[RunEnded], str] = {Endless: HANG, Stuck: STUCK}
"""The finding for each way in which the virtual clock ends a run; any other one has no bound."""


@dataclass(frozen=True)
class Finding:
    """One thing that a reviewer would name.

    :param what: the kind of finding.
    :param where: the place in the client's code that sent.
    :param test: the id of the test.
    :param fault: the fault, and the send that met it.
    :param noticed: the test itself failed by an assertion of its own, so its author would have seen it.
    """

    what: str
    where: str
    test: str
    fault: str
    noticed: bool = False


def judge(test: str, plain: Run, run: Run) -> Finding | None:
    """Return the gravest finding of a run; None if a reviewer would be content.

    :param test: the id of the test.
    :param plain: its run without a fault.
    :param run: its run with one.
    """
    sent, fault = run.struck, run.fault
    if sent is None or fault is None:
        return None
    what = _what(plain, run, sent, fault, plain.sends[run.at])
    if what is None:
        return None
    return Finding(what, sent.where, test, f"{fault.name}, send {run.at + 1}", not run.passed)


def _what(plain: Run, run: Run, sent: Sent, fault: SendFault, before: Sent) -> str | None:
    """Compare two runs, in which the same request may have different URLs: ``before`` is what ``sent`` was."""
    if sent.is_unsafe and sent.is_well and run.asked(sent) > plain.asked(before):
        return TWICE
    if run.clock.ending is not None:
        return ENDINGS.get(type(run.clock.ending), NO_BOUND)
    if run.has_raised or run.was_ridden_out(sent) or run.answered(sent) >= plain.answered(before):
        return None
    if fault.kind == "error":
        return SWALLOWED
    if fault.kind == "status":
        # A client that hands responses on as they are leaves it to the test to look at the status.
        return SWALLOWED if run.passed else None
    return WRONG_DATA if sent.method == "GET" else None
