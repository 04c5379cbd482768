"""One client in one way, in a process of its own: ``python -m benchmarks.sdks.child NAME plain|mount PORT``.

Under `python -m requests_smithy_retry run` the way is ``plain``, as the program knows nothing of ours. Each line of
standard input is a JSON object: a call is made ``here``, so that what it imports is there, or else in a fork, which
leaves nothing to the next; with ``times``, it is made so often, and the CPU time is told.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import threading
import time
import warnings
from typing import Any

from requests_smithy_retry.testing import refusing_port

from .rows import DATA, LIMIT, rows

BOUND, IMPORTS = 12.0, 60.0
"""Seconds after which a call counts as hanging, and the first of its kind."""


def lead_here(port: int) -> list[int]:
    """Lead each look-up of a name to a port of loopback; those in the list that is returned come first, each once."""
    look_up, first = socket.getaddrinfo, list[int]()

    def to_loopback(_host: Any, _service: Any, *args: Any, **kwargs: Any) -> Any:
        return look_up("127.0.0.1", first.pop() if first else port, *args, **kwargs)

    setattr(socket, "getaddrinfo", to_loopback)  # noqa: B010 - its type is too exact
    return first


def prepared(row: dict[str, Any], way: str) -> dict[str, Any]:
    """Make the client; return the names that its calls may use."""
    import requests

    from requests_smithy_retry import RetryAdapter, mount

    names = {"DATA": DATA, "LIMIT": LIMIT, "URL": "https://" + row["host"], "HOST": row["host"], "options": {}}
    names |= {"requests": requests, "RetryAdapter": RetryAdapter, "mount": mount}
    lines = [row["make"], row["line"]] if way == "mount" else [row["make"]]
    for line in reversed(lines) if row.get("early") else lines:
        exec(line, names)
    return names


def made(call: dict[str, Any], names: dict[str, Any]) -> Any:
    """Make a call; return the value of its last line."""
    before, _, last = call["do"].strip().rpartition("\n")
    exec(before, names)
    return json.loads(json.dumps(eval(last, names), default=str))


def outcome(row: dict[str, Any], way: str, call: dict[str, Any], bound: float) -> dict[str, Any]:
    """Make a call with a fresh client, and wait so many seconds for it."""
    told: list[Any] = []
    errors: list[BaseException] = []

    def use() -> None:
        try:
            told.append(made(call, prepared(row, way)))
        except BaseException as error:  # whatever a client raises is what is looked for
            errors.append(error)

    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(bound)
    says = f"{type(errors[0]).__name__}: {errors[0]}"[:300] if errors else ""
    ended = "error" if errors else "right" if told else "hang"
    return {"told": told[0] if told else None, "ended": ended, "says": says}


def main() -> None:
    """Do as standard input says."""
    name, way, port = sys.argv[1:4]
    row = rows()[name]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what clients print is no answer
    warnings.simplefilter("ignore")
    logging.disable()
    first = lead_here(int(port))
    kept: dict[str, Any] = {}
    with refusing_port() as refusing:
        for line in sys.stdin:
            asked = json.loads(line)
            call = row["call"][asked["call"]]
            found: Any
            if times := asked.get("times"):
                kept = kept or prepared(row, way)
                began = time.process_time()
                for _ in range(times):
                    made(call, kept)
                found = time.process_time() - began
            elif asked["here"]:
                found = outcome(row, way, call, IMPORTS)
            elif pid := os.fork():
                os.waitpid(pid, 0)
                continue
            else:
                first += [refusing] * asked["refused"]
                print(json.dumps(outcome(row, way, call, BOUND)), file=answers, flush=True)
                os._exit(0)
            print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # some clients leave threads that are no daemons
