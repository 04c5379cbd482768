"""What measures one row in one way of using ours, in a process of its own.

    python -m benchmarks.sdks.child ROW plain|mount FILE [--trouble NAME]...

Under ``python -m requests_smithy_retry run`` the way is ``plain``, as the program knows nothing of ours. Writes to
FILE, as JSON: the healthy script's result and requests, how many of them ours sent, and the outcome of each trouble at
each request.
"""

from __future__ import annotations

import argparse
import collections
import json
import logging
import os
import ssl
import sys
import tempfile
import threading
import time
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest import mock

import requests

from requests_smithy_retry import RetryAdapter, mount, retry_history

from .rows import LIMIT, ROWS, Row
from .service import OUTAGE, Service, serve, serving_context

MOST_REQUESTS = 3
BOUND, IMPORTS = 8.0 * LIMIT, 60.0 * LIMIT
"""Seconds after which a script counts as hanging; the same for the first one, which imports the client."""
RIGHT, ERROR, HANG, WRONG, TWICE = OUTCOMES = ("right", "error", "hang", "wrong", "twice")
"""From the best to the worst."""
SAFE = ("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PROPFIND", "LIST")


def ran(row: Row, way: str, tls: ssl.SSLContext, service: Service, bound: float = BOUND) -> dict[str, Any]:
    """Run the script of a row once."""
    told: list[Any] = []
    errors: list[BaseException] = []
    ours: list[tuple[str, int]] = []
    real = RetryAdapter.send

    def send(self: RetryAdapter, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        outcome: Any = None
        try:
            outcome = real(self, request, *args, **options)
        except Exception as error:
            outcome = error
            raise
        finally:
            history = retry_history(outcome)
            ours.append((request.method or "", 1 if history is None else len(history.attempts)))
        return outcome

    def use() -> None:
        try:
            steps = row.script(service.url)
            client = next(steps)
            if way == "mount":
                names = {"client": client, "mount": mount, "requests": requests, "RetryAdapter": RetryAdapter}
                exec(row.line, names)
            told.append(json.loads(json.dumps(next(steps), default=str).replace(service.url, "URL")))
        except BaseException as error:  # whatever a client raises is what is looked for
            errors.append(error)

    with serve(service, tls), mock.patch.object(RetryAdapter, "send", send):
        began = time.monotonic()
        thread = threading.Thread(target=use, daemon=True)
        thread.start()
        thread.join(bound)
        seconds = round(time.monotonic() - began, 2)
    return {
        "told": told[0] if told else None,
        "error": type(errors[0]).__name__ if errors else "",
        "says": str(errors[0])[:300] if errors else "",
        "trace": list(service.trace),
        "acted": list(service.acted),
        "unknown": service.unknown,
        "ours": ours,
        "seconds": seconds,
    }


def judge(found: dict[str, Any], healthy: dict[str, Any]) -> str:
    """Return the outcome of a script.

    :param found: the troubled run.
    :param healthy: the run without trouble.
    """
    acted, usual = (collections.Counter(map(tuple, each["acted"])) for each in (found, healthy))
    if any(acted[each] > usual[each] > 0 for each in acted if each[0] not in SAFE):
        return TWICE
    if found["error"]:
        return ERROR
    if found["told"] is None:
        return HANG
    return RIGHT if found["told"] == healthy["told"] else WRONG


def in_fork(row: Row, way: str, tls: ssl.SSLContext, service: Service) -> dict[str, Any]:
    """Run a script in a fork, which leaves no thread and no connection to the next."""
    receiving, sending = os.pipe()
    pid = os.fork()
    if not pid:
        with os.fdopen(sending, "w", encoding="utf-8") as file:
            json.dump(ran(row, way, tls, service), file)
        os._exit(0)
    os.close(sending)
    try:
        with os.fdopen(receiving, encoding="utf-8") as file:
            return dict(json.load(file))
    finally:
        os.waitpid(pid, 0)


def main() -> int:
    """Measure one row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("row", choices=ROWS)
    parser.add_argument("way", choices=("plain", "mount"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--trouble", action="append", default=[])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable()
    row, cells = ROWS[options.row], {}
    with tempfile.TemporaryDirectory() as folder:
        tls = serving_context(Path(folder))
        healthy = ran(row, options.way, tls, Service(row), IMPORTS)
        if healthy["error"] or healthy["told"] is None or healthy["unknown"]:
            raise SystemExit(f"{row.name}: the healthy script failed: {healthy}")
        for trouble in options.trouble:
            cells[trouble] = []
            for at in range(1 if trouble == OUTAGE else min(len(healthy["trace"]), MOST_REQUESTS)):
                found = in_fork(row, options.way, tls, Service(row, trouble, at))
                again = sum(attempts - 1 for method, attempts in found["ours"] if method not in SAFE)
                outcome = judge(found, healthy)
                cells[trouble].append([outcome, found["error"], len(found["trace"]), found["seconds"], again])
    found = {"version": metadata.version(row.package), "healthy": healthy, "cells": cells}
    options.file.write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    STATUS = main()
    sys.stdout.flush()
    os._exit(STATUS)  # some clients leave threads that are no daemons
