"""The rows of the fault table: what a server does wrong, and the best that a careful client can come to.

To add one, give it a line in `FAULTS`, with behaviours from `tests.faults`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.faults import (
    Behaviour,
    CloseAfterReply,
    CutBody,
    Drip,
    MisstatedLength,
    Reply,
    ResetAfterRequest,
    Stall,
    coded_reply,
    try_later,
)

DOWN, IDLE = 1.0, 0.2
INTACT, ERROR, TWICE, WRONG, HANG = OUTCOMES = ("intact", "error", "applied twice", "wrong body", "hang")
"""From the best to the worst."""
BODY = b"".join(b"%04d the quick brown fox\n" % number for number in range(200))
UPLOAD = b"".join(b"%04d jumps over the lazy dog\n" % number for number in range(200))
GOOD = Reply(body=BODY)


@dataclass(frozen=True)
class Fault:
    """One row.

    :param best: the best outcome for a careful client.
    :param first: the behaviours of the server for its first requests.
    :param always: the last of `first` repeats without end.
    :param lasts: the number of seconds, from the first request on, for which the last of `first` repeats.
    :param upload: `bytes`, `file` or `generator`.
    :param applied: the server acts on a request that it then fails.
    :param down: nothing listens for the first second.
    :param warm: an operation goes before, on whose connection the fault comes.
    :param without: clients that it cannot be asked of.
    """

    best: str
    first: tuple[Behaviour, ...] = ()
    method: str = "GET"
    upload: str = ""
    always: bool = False
    lasts: float = 0.0
    applied: bool = False
    down: bool = False
    warm: bool = False
    without: tuple[str, ...] = ()

    @property
    def answer(self) -> bytes:
        """The body of a good answer; none to a PUT, as S3 has it."""
        return b"" if self.method == "PUT" else BODY


FAULTS: dict[str, Fault] = {
    "503 once": Fault(INTACT, (Reply(503),)),
    "429 for 1 s, `Retry-After: 1`": Fault(INTACT, (try_later(429, 1),), lasts=1.0),
    "503 for ever, `Retry-After: 86400`": Fault(ERROR, (try_later(503, 86400),), always=True),
    "reset before the answer": Fault(INTACT, (ResetAfterRequest(),)),
    "silence before the head": Fault(INTACT, (Stall(reply=GOOD),)),
    "body that drips, once": Fault(INTACT, (Drip("body", 0.3, GOOD),)),
    "body cut": Fault(INTACT, (CutBody(GOOD),)),
    "chunked body cut": Fault(INTACT, (CutBody(Reply(body=BODY, framing="chunked")),)),
    "gzip body cut, length agrees": Fault(INTACT, (coded_reply("gzip", BODY, cut_to=len(BODY) // 20),)),
    "body cut, no length": Fault(WRONG, (CutBody(Reply(body=BODY, framing="close")),)),
    "`Content-Length` too small": Fault(WRONG, (MisstatedLength("100", GOOD),)),
    "connection refused for 1 s": Fault(INTACT, down=True),
    "idle connection closed": Fault(INTACT, (CloseAfterReply(GOOD, after=0.02),), warm=True),
    "redirect, then 503 once": Fault(INTACT, (Reply(302, {"Location": "/b"}), Reply(503)), without=("botocore",)),
    "PUT of a file, 503 once": Fault(INTACT, (Reply(503),), "PUT", "file"),
    "PUT of a generator, 503 once": Fault(ERROR, (Reply(503),), "PUT", "generator"),
    "POST, 429 once": Fault(INTACT, (Reply(429),), "POST", "bytes"),
    "POST, 503 once, not applied": Fault(INTACT, (Reply(503),), "POST", "bytes"),
    "POST applied, then a reset": Fault(ERROR, (ResetAfterRequest(),), "POST", "bytes", applied=True),
    "POST applied, then 503": Fault(ERROR, (Reply(503),), "POST", "bytes", applied=True),
}
