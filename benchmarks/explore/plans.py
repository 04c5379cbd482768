"""What will happen in a run, as data: drawn from a seed, shrunk, and printed as Python."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from dataclasses import replace as replace
from random import Random
from typing import Any


class Shown:
    """Shows what differs from the defaults, as it is written in Python."""

    def __repr__(self) -> str:
        parts = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                parts.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"


@dataclass(frozen=True, repr=False)
class Try(Shown):
    """What one attempt meets.

    :param status: of its answer.
    :param size: bytes of the body of an error.
    :param framing: "length", "chunked", or "close": the body ends with the connection.
    :param coding: "gzip" or "".
    :param version: of the object; each has a strong validator of its own.
    :param headers: further header fields.
    :param interim: 1xx answers before it.
    :param latency: seconds to its first byte.
    :param pieces: parts in which it arrives.
    :param fault: "end", "reset", "stall" or "drip" within the answer, or "".
    :param at: the byte at which that happens, modulo the length of the answer.
    :param seconds: how long the stall is, of whatever kind.
    :param after: what follows the answer: "keep", "close" (as announced), "end" (unannounced), "dead" (the next request
        over the connection is answered by a reset) or "garbage".
    :param request: while the request is sent: "reset" or "stall" after ``request_at`` bytes, or "early": the answer
        comes after the head of the request, and nothing more is read.
    :param connect: "refused", "lost" (no answer for ``seconds``), "late", or "".
    :param resolve: "unknown", "late", or "".
    :param ranges: "kept" (as RFC 9110 wants it), "ignored", "wrong": another range than was asked for, "half" of the
        one that was asked for, or "blind": of whatever version, as If-Range is ignored.
    """

    status: int = 200
    size: int = 20
    framing: str = "length"
    coding: str = ""
    version: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    interim: int = 0
    latency: float = 0.01
    pieces: int = 1
    fault: str = ""
    at: int = 0
    seconds: float = 5.0
    after: str = "keep"
    request: str = ""
    request_at: int = 0
    connect: str = ""
    resolve: str = ""
    ranges: str = "kept"


WELL = Try()


@dataclass(frozen=True, repr=False)
class Op(Shown):
    """One call of ``send``.

    :param start: seconds after the beginning.
    :param host: number of the host.
    :param method: of the request.
    :param body: of the request: "", "bytes", "file", "list" (an iterable that could be iterated again), "generator" or
        "changing" (an iterable that would give other bytes the next time).
    :param length: bytes of the body.
    :param keyed: has an idempotency key.
    :param vouched: the caller says that the request may, or may not, be sent again.
    :param answer: bytes of the body of a success.
    :param stream: "", or what the caller does with the unread body: "read", "part" (reads some of it, closes), "close".
    :param timeout: given to ``send``.
    :param deadline: seconds, of a ``retry_options`` block; None: none.
    :param tries: what its attempts meet; further ones go well.
    :param interrupt: the statement of the package at which it is interrupted, and by what: "stop" (like Ctrl-C),
        "limit" or "timeout" (a signal's handler raises its own exception, or ``TimeoutError``), or "leap": the machine
        stands still for ``leap`` seconds.
    :param leap: see there.
    :param cancel: seconds after its start at which it is ended where it waits, as gevent does.
    """

    start: float = 0.0
    host: int = 0
    method: str = "GET"
    body: str = ""
    length: int = 0
    keyed: bool = False
    vouched: bool | None = None
    answer: int = 40
    stream: str = ""
    timeout: Any = 30.0
    deadline: float | None = None
    tries: tuple[Try, ...] = ()
    interrupt: tuple[int, str] | None = None
    leap: float = 0.0
    cancel: float | None = None


@dataclass(frozen=True, repr=False)
class Plan(Shown):
    """One run.

    :param seed: of what the package draws, and of the turns of the tasks.
    :param ops: the operations.
    :param options: of the adapter. "quota" may be "bucket": one whose tokens are counted, and "waiting": a small one
        on which operations wait.
    :param addresses: the number of addresses of each host.
    :param dead: addresses that never answer: host and number.
    :param refusing: addresses that refuse connections.
    :param preempts: steps from one preemption to the next, on average; 0: none.
    :param fork: seconds at which a child is forked; None: none.
    """

    seed: int = 0
    ops: tuple[Op, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    addresses: tuple[int, ...] = (1, 1, 1)
    dead: tuple[tuple[int, int], ...] = ()
    refusing: tuple[tuple[int, int], ...] = ()
    preempts: int = 0
    fork: float | None = None


STATUSES = (*(200,) * 6, *(503,) * 6, *(500, 429, 429, 429, 408, 425, 404, 401, 403, 409, 413, 422, 529, 502, 204, 302))
HINTS: tuple[tuple[tuple[str, str], ...], ...] = (
    *((),) * 12,
    (("Retry-After", "1"),),
    (("Retry-After", "200"),),
    (("Retry-After", "soon"),),
    (("retry-after-ms", "70"),),
    (("x-amz-retry-after", "1500"),),
    (("RateLimit-Limit", "10"), ("RateLimit-Remaining", "0"), ("RateLimit-Reset", "2")),
    (("X-RateLimit-Limit", "10"), ("X-RateLimit-Remaining", "3"), ("X-RateLimit-Reset", "4")),
    (("x-amzn-errortype", "ThrottlingException"),),
)


def draw(random: Random, most: int = 50) -> Plan:
    """Draw a plan.

    :param most: operations at a time.
    """
    count = random.choice((2, 2, 3, 4, 6, 8, 12, 20, most))
    hosts = random.choice((1, 1, 2, 3))
    addresses = tuple(random.choice((1, 1, 1, 2, 4)) for _ in range(hosts))
    options = _options(random)
    names = dict(options)
    if names.get("quota") == "waiting":
        count = min(count, 8)  # those that wait look again each second
    trouble = random.choice((0.1, 0.3, 0.6, 0.9))
    span = random.choice((0.0, 0.2, 3.0, 60.0, 400.0))
    everywhere = [(host, number) for host in range(hosts) for number in range(addresses[host])]
    sick = [where for where in everywhere if addresses[where[0]] > 1 and random.random() < 0.25]
    return Plan(
        seed=random.getrandbits(32),
        ops=tuple(_op(random, hosts, span, trouble, names) for _ in range(count)),
        options=options,
        addresses=addresses,
        dead=tuple(where for where in sick if where[1] % 2),
        refusing=tuple(where for where in sick if not where[1] % 2),
        preempts=random.choice((0, 0, 7, 40, 300)),
        fork=random.random() * 2 if random.random() < 0.002 else None,
    )


def _options(random: Random) -> tuple[tuple[str, Any], ...]:
    found: dict[str, Any] = {}

    def perhaps(name: str, chance: float, *values: Any) -> None:
        if random.random() < chance:
            found[name] = random.choice(values)

    perhaps("mode", 0.15, "adaptive")
    perhaps("quota", 0.5, "bucket", "bucket", "waiting", None, 500)
    perhaps("max_attempts", 0.4, 1, 2, 5, 8)
    perhaps("operation_timeout", 0.5, 0.3, 2.0, 10.0, 30.0)
    perhaps("operation_attempt_timeout", 0.2, 0.2, 1.0, 4.0)
    perhaps("pool_block", 0.3, True)
    if found.get("pool_block"):
        found["pool_maxsize"] = random.choice((1, 1, 2, 4))
    perhaps("resume", 0.2, False)
    perhaps("raise_on_status", 0.15, True)
    perhaps("pacing", 0.15, "off")
    perhaps("max_retry_after", 0.1, 0.5, 3.0)
    perhaps("max_backoff", 0.2, 0.0, 1.0)
    perhaps("idempotency_key", 0.05, True)
    perhaps(
        "patience", 0.1 if found.get("quota", "payoff") == "payoff" and "mode" not in found else 0.0, 0.0, 1.0, 20.0
    )
    perhaps("listeners", 0.1, "heard")
    perhaps("on_unauthorized", 0.1, "renewed")
    return tuple(sorted(found.items()))


METHODS = (*("GET",) * 6, *("POST",) * 4, "PUT", "PUT", "DELETE", "HEAD", "PATCH")


def _op(random: Random, hosts: int, span: float, trouble: float, options: dict[str, Any]) -> Op:
    chance = random.random
    method = random.choice(METHODS)
    body = random.choice(("bytes", "bytes", "bytes", "file", "list", "generator", "changing", ""))
    body = body if method in ("POST", "PUT", "PATCH") else ""
    stream = random.choice(("", "", "", "", "read", "part", "close")) if options.get("quota") != "bucket" else ""
    interrupt = None
    if chance() < 0.08:
        kind = random.choice(("stop", "stop", "limit", "timeout", "leap"))
        interrupt = (int(3 ** (chance() * 7)), kind)
    tries = []
    while chance() < trouble and len(tries) < 9:
        tries.append(_try(random))
    return Op(
        start=round(chance() * span, 3),
        host=random.randrange(hosts),
        method=method,
        body=body,
        length=random.choice((1, 60, 60, 500, 40_000)) if body else 0,
        keyed=method == "POST" and chance() < 0.2,
        vouched=random.choice((True, False)) if chance() < 0.06 else None,
        answer=random.choice((0, 1, 40, 40, 40, 300, 9_000, 70_000)),
        stream=stream,
        timeout=random.choice((30.0, 30.0, (3.0, 0.7), 0.25, (0.2, 6.0))),
        deadline=random.choice((0.5, 4.0)) if chance() < 0.07 else None,
        tries=tuple(tries),
        interrupt=interrupt,
        leap=random.choice((0.3, 5.0, 100.0)) if interrupt and interrupt[1] == "leap" else 0.0,
        cancel=round(chance() * 6, 2) if chance() < 0.05 else None,
    )


def _try(random: Random) -> Try:
    chance = random.random
    status = random.choice(STATUSES)
    fault = random.choice(("", "end", "reset", "stall", "drip"))
    where = chance()
    found: dict[str, Any] = {
        "status": status,
        "size": random.choice((0, 20, 20, 700, 70_000)),
        "framing": random.choice(("length", "length", "chunked", "close")),
        "coding": random.choice(("", "", "gzip")),
        "version": random.choice((0, 0, 0, 1)),
        "headers": random.choice(HINTS),
        "interim": random.choice((0, 0, 0, 1, 15, 17)),
        "latency": random.choice((0.001, 0.01, 0.01, 0.2, 1.0)),
        "pieces": random.choice((1, 1, 2, 5)),
        "seconds": random.choice((0.05, 0.3, 2.0, 20.0, 500.0)),
        "after": random.choice(("keep", "keep", "keep", "close", "end", "dead", "garbage")),
        "ranges": random.choice(("kept", "kept", "kept", "ignored", "wrong", "half", "blind")),
    }
    if where < 0.5 and fault:
        found |= {"fault": fault, "at": random.choice((random.randrange(300), random.randrange(80_000)))}
    elif where < 0.6:
        found |= {"request": random.choice(("reset", "stall", "early")), "request_at": int(3 ** (chance() * 9)) - 1}
    elif where < 0.7:
        found["connect"] = random.choice(("refused", "lost", "late"))
    elif where < 0.75:
        found["resolve"] = random.choice(("unknown", "late"))
    return Try(**found)


def smaller(plan: Plan) -> Iterator[Plan]:
    """Yield plans that are one step simpler, the greatest steps first."""
    ops = plan.ops
    size = len(ops) // 2
    while size:
        for begin in range(0, len(ops), size):
            yield replace(plan, ops=ops[:begin] + ops[begin + size :])
        size //= 2
    for name in ("fork", "preempts", "dead", "refusing"):
        if getattr(plan, name) != getattr(Plan, name):
            yield replace(plan, **{name: getattr(Plan, name)})
    for option in plan.options:
        yield replace(plan, options=tuple(item for item in plan.options if item is not option))
    for at, op in enumerate(ops):
        for simpler in _smaller_op(op):
            yield replace(plan, ops=(*ops[:at], simpler, *ops[at + 1 :]))
    if plan.addresses != (1, 1, 1) and not (plan.dead or plan.refusing):
        yield replace(plan, addresses=(1, 1, 1))
    if plan.seed:
        yield replace(plan, seed=0)


def _smaller_op(op: Op) -> Iterator[Op]:
    for at, met in enumerate(op.tries):
        yield replace(op, tries=op.tries[:at] + op.tries[at + 1 :])
        if met != WELL:
            yield replace(op, tries=(*op.tries[:at], WELL, *op.tries[at + 1 :]))
    for field in fields(Op):
        if field.name not in ("tries", "timeout") and getattr(op, field.name) != field.default:
            yield replace(op, **{field.name: field.default})
    if op.length > 1:
        yield replace(op, length=1)
    for at, met in enumerate(op.tries):
        for field in fields(Try):
            if getattr(met, field.name) != field.default:
                simpler = replace(met, **{field.name: field.default})
                yield replace(op, tries=(*op.tries[:at], simpler, *op.tries[at + 1 :]))
