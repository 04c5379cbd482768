"""A table of faults and their observable outcomes, for suites that try them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from requests_smithy_retry.testing import (
    Behaviour,
    CloseAfterReply,
    CloseAfterRequest,
    CutBody,
    Drip,
    Reply,
    ResetAfterRequest,
)

from . import connection, reply
from .reply import DEFAULT_BODY, Framing, coded_reply

Outcome = Literal["whole", "broken", "slow", "unknowable"]
"""The body arrives whole; a client can notice that it is broken; it takes so long that a timeout or, while bytes keep
coming, a deadline must end it; or no client can know."""


@dataclass(frozen=True)
class CataloguedFault:
    """A fault, and its outcome for a client that reads the whole body of a GET.

    :param name: a unique name, for test ids.
    """

    name: str
    behaviour: Behaviour
    outcome: Outcome


def fault_catalogue(body: bytes = DEFAULT_BODY, *, interval: float = 0.05) -> list[CataloguedFault]:
    """List every fault of a reply, applied to one body.

    :param body: the body that each fault distorts, at least 8 bytes.
    :param interval: seconds between the bytes of a slow reply, 0 or more. Stalls last until the server closes.
    """
    framings: tuple[Framing, ...] = ("length", "chunked", "close")
    codings = ("gzip", "deflate")
    plain, chunked = Reply(body=body), Reply(body=body, framing="chunked")
    table: dict[Outcome, dict[str, Behaviour]] = {
        "whole": {
            **{f"framed-by-{framing}": Reply(body=body, framing=framing) for framing in framings},
            **{f"coded-{coding}": coded_reply(coding, body) for coding in codings},
            "close-after-reply": CloseAfterReply(plain),
            "reset-after-reply": CloseAfterReply(plain, reset=True, after=0.02),
            "garbage-after-reply": reply.GarbageAfterReply(reply=plain),
            **{f"interim-{status}": reply.Interim((status,), reply=plain) for status in (100, 102, 103)},
            "interim-several": reply.Interim((100, 102, 103), count=2, reply=plain),
            "length-and-chunks": reply.LengthAndChunks(reply=chunked),
        },
        "broken": {
            "close-before-request": connection.CloseBeforeRequest(),
            "reset-before-request": connection.ResetBeforeRequest(),
            "close-after-request": CloseAfterRequest(),
            "reset-after-request": ResetAfterRequest(),
            "half-close": connection.HalfClose(),
            "head-cut-in-status": reply.CutHead(plain, at=9),
            "head-cut-in-header": reply.CutHead(plain, at=-8),
            "head-without-blank-line": reply.CutHead(plain),
            "head-reset": reply.CutHead(plain, then="reset"),
            "bad-status-line": reply.BadStatusLine(b"HTTP/1.1 well OK", plain),
            "no-http": reply.BadStatusLine(b"SSH-2.0-OpenSSH_9.6", plain),
            "huge-header": reply.HugeHeader(reply=plain),
            "endless-headers": reply.EndlessHeaders(),
            "switching-protocols": reply.SwitchProtocols(),
            "length-cut": CutBody(plain),
            "length-cut-at-start": CutBody(plain, 0),
            "length-cut-at-end": CutBody(plain, -1),
            "length-reset": CutBody(plain, then="reset"),
            "chunk-cut": CutBody(chunked),
            "chunk-reset": CutBody(chunked, then="reset"),
            "last-chunk-missing": reply.MissingLastChunk(plain),
            "chunk-size-no-number": reply.BadChunkSize(b"zz", chunked),
            "chunk-size-negative": reply.BadChunkSize(b"-3", chunked),
            "length-negative": reply.MisstatedLength("-1", plain),
            "length-no-number": reply.MisstatedLength("soon", plain),
            "length-too-large": reply.MisstatedLength(str(len(plain.body) + 5), plain),
            "length-too-large-reset": reply.MisstatedLength(str(len(plain.body) + 5), plain, then="reset"),
            "two-lengths": reply.TwoLengths(reply=plain),
            "two-lengths-joined": reply.TwoLengths(reply=plain, joined=True),
        },
        "slow": {
            **{f"stall-{point}": connection.Stall(point, reply=plain) for point in get_args(connection.StallPoint)},
            "head-drip": Drip("head", interval, plain),
            "body-drip": Drip("body", interval, plain),
            "endless-headers-slow": reply.EndlessHeaders(interval),
            "endless-body": reply.EndlessBody(),
            "endless-chunks": reply.EndlessBody(framing="chunked"),
            "trickling-body": reply.EndlessBody(piece=b"x", interval=interval, framing="length"),
            "interim-without-end": reply.Interim((102,), count=1_000_000, interval=interval, reply=plain),
        },
        "unknowable": {
            "close-framed-cut": CutBody(Reply(body=body, framing="close")),
            "length-too-small": reply.MisstatedLength("3", plain),
            "length-too-small-kept": reply.MisstatedLength("3", plain, then="keep"),
        },
    }
    for coding in codings:
        half = len(coded_reply(coding, body).body) // 2
        table["broken"][f"{coding}-cut-in-the-middle"] = coded_reply(coding, body, cut_to=half)
        table["broken"][f"{coding}-corrupt"] = coded_reply(coding, body, corrupt_at=-6)
        for framing in framings:
            table["broken"][f"{coding}-end-cut-{framing}"] = coded_reply(coding, body, cut_to=-5, framing=framing)
    return [
        CataloguedFault(name, fault, outcome) for outcome, faults in table.items() for name, fault in faults.items()
    ]
