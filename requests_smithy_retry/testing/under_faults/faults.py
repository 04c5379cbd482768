"""The faults that a test runs under: those of the kit that tell a careful client from a careless one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from ..behaviour import Behaviour, Reply, coded_reply, try_later
from ..connection_faults import ResetAfterRequest, Stall
from ..reply_faults import CutBody, CutHead

Kind = Literal["error", "status", "data"]
"""The client gets an exception of the wire; a response that says no; or a part of the service's answer."""

LEAST_BODY = 8
"""The shortest body that is worth cutting, in bytes."""


@dataclass(frozen=True)
class SendFault:
    """A fault of one send.

    :param name: as the report says it.
    :param kind: what reaches the client.
    :param behaviour: made of the service's own reply; None: the connection is refused.
    :param applied: the service acts on the request all the same.
    :param lasting: every send from then on has it, so that no client can ride it out.
    """

    name: str
    kind: Kind
    behaviour: Callable[[Reply], Behaviour] | None
    applied: bool = False
    lasting: bool = False

    def suits(self, method: str, size: int) -> bool:
        """Return True if an answer with a body of ``size`` bytes can have this fault."""
        return self.kind != "data" or (method != "HEAD" and size >= LEAST_BODY)


def _gzip_cut(reply: Reply) -> Behaviour:
    coded = coded_reply("gzip", reply.body, cut_to=len(coded_reply("gzip", reply.body).body) // 2, status=reply.status)
    return replace(coded, headers=(*reply.headers, *coded.headers))


SEND_FAULTS = (
    SendFault("connection refused", "error", None),
    SendFault("reset after the request", "error", lambda _: ResetAfterRequest(), applied=True),
    SendFault("silence after the request", "error", lambda reply: Stall("status", reply=reply), applied=True),
    SendFault("503", "status", lambda _: Reply(503)),
    SendFault("504 after it was applied", "status", lambda _: Reply(504), applied=True),
    SendFault("429 with Retry-After", "status", lambda _: try_later(429, "2")),
    SendFault("body cut", "data", CutBody, applied=True),
    SendFault("head cut before its blank line", "data", CutHead, applied=True),
    SendFault("gzip body cut", "data", _gzip_cut, applied=True),
    SendFault("connection refused for good", "error", None, lasting=True),
    SendFault("503 for good", "status", lambda _: Reply(503), lasting=True),
)
