"""One row in one way of using ours, in a process of its own.

    python -m benchmarks.sdks.child ROW plain|install|mount FILE [--mounted none|plain|all] [--trouble NAME]...

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
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from typing import Any
from unittest import mock

from requests import PreparedRequest, Response

from requests_smithy_retry import RetryAdapter, retry_history

from .row import ROOMS, ROWS, Row
from .service import OUTAGE, Service, serve, serving_context

MOST_REQUESTS = 3
BOUND = 8.0
"""Seconds after which a script counts as hanging."""
IMPORTS = 60.0
"""Seconds for a script without trouble, which imports the client."""
RIGHT, ERROR, HANG, WRONG, TWICE = OUTCOMES = ("right", "error", "hang", "wrong", "twice")
"""From the best to the worst."""
SAFE = ("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PROPFIND", "LIST")


class Measurement:
    """All scripts of one row. Each runs in a fork, which leaves no thread and no connection to the next."""

    def __init__(self, row: Row, way: str, tls: ssl.SSLContext) -> None:
        self._row, self._way, self._tls = row, way, tls
        self._healthy: dict[str, Any] = {}

    def healthy(self) -> dict[str, Any]:
        """Run the script without trouble, in this process; later runs profit from what it imports."""
        found = self._run(Service(self._row), IMPORTS)
        if found["error"] or found["told"] is None:
            raise SystemExit(f"{self._row.name}: the healthy script failed: {found}")
        if found["unknown"]:
            raise SystemExit(f"{self._row.name}: no answers for {found['unknown']}")
        self._healthy = found
        return found

    def troubled(self, trouble: str, at: int) -> list[Any]:
        """Run the script with one trouble.

        :returns: the outcome, the exception's name, the number of requests, seconds, and the number of times that ours
            sent something again other than what is safe to repeat.
        """
        found = in_fork(lambda: self._run(Service(self._row, trouble, at)))
        again = sum(attempts - 1 for method, attempts in found["ours"] if method not in SAFE)
        return [judge(found, self._healthy), found["error"], len(found["trace"]), found["seconds"], again]

    def _run(self, service: Service, bound: float = BOUND) -> dict[str, Any]:
        told: list[Any] = []
        errors: list[BaseException] = []

        def use() -> None:
            try:
                told.append(self._script(service.url))
            except BaseException as error:  # whatever a client raises is what is looked for
                errors.append(error)

        ours: list[tuple[str, int]] = []

        def note(request: PreparedRequest, outcome: Response | Exception) -> None:
            history = retry_history(outcome)
            ours.append((request.method or "", 1 if history is None else len(history.attempts)))

        real = RetryAdapter.send

        def send(self: RetryAdapter, request: PreparedRequest, *args: Any, **options: Any) -> Response:
            try:
                response = real(self, request, *args, **options)
            except Exception as error:
                note(request, error)
                raise
            note(request, response)
            return response

        with serve(service, self._row, self._tls), mock.patch.object(RetryAdapter, "send", send):
            began = time.monotonic()
            thread = threading.Thread(target=use, daemon=True)
            thread.start()
            thread.join(bound)
            seconds = time.monotonic() - began
        return {
            "told": told[0] if told else None,
            "error": type(errors[0]).__name__ if errors else "",
            "says": str(errors[0])[:300] if errors else "",
            "trace": list(service.trace),
            "acted": list(service.acted),
            "unknown": service.unknown,
            "ours": ours,
            "seconds": round(seconds, 2),
        }

    def _script(self, url: str) -> Any:
        steps = self._row.script(url)
        client = next(steps)
        if self._way == "mount":
            mount_by(self._row.line, client)
        return json.loads(json.dumps(next(steps), default=str).replace(url, "URL"))


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


def in_fork(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Call a function in a fork, and return what it returns."""
    receiving, sending = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(receiving)
        with os.fdopen(sending, "w", encoding="utf-8") as file:
            json.dump(run(), file)
        os._exit(0)
    os.close(sending)
    try:
        with os.fdopen(receiving, encoding="utf-8") as file:
            return dict(json.load(file))
    finally:
        os.waitpid(pid, 0)


def mount_by(line: str, client: Any) -> None:
    """Execute the line of a row that mounts ours."""
    import requests

    from requests_smithy_retry import RetryAdapter, mount

    exec(line, {"client": client, "mount": mount, "requests": requests, "RetryAdapter": RetryAdapter})


def left_alone() -> list[str]:
    """Return the adapters that the installation in force left as they are, each with the reason."""
    from requests_smithy_retry import mounting

    return [str(each) for each in getattr(mounting._current, "left_alone", ())]


def find_row(name: str) -> Row:
    """Return a row, whose module is imported."""
    for room in ROOMS:
        import_module(f"{__package__}.{room}")
    return ROWS[name]


def main() -> int:
    """Measure one row."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("row")
    parser.add_argument("way", choices=("plain", "install", "mount"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--mounted", choices=("none", "plain", "all"))
    parser.add_argument("--trouble", action="append", default=[])
    parser.add_argument("--times", type=int, default=MOST_REQUESTS, help="at how many of its requests")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable()
    if options.way == "install":
        from requests_smithy_retry import install

        install(mounted=options.mounted)
    row = find_row(options.row)
    with tempfile.TemporaryDirectory() as folder:
        measurement = Measurement(row, options.way, serving_context(Path(folder), row.host))
        healthy = measurement.healthy()
        times = min(len(healthy["trace"]), options.times)
        cells = {
            trouble: [measurement.troubled(trouble, at) for at in range(1 if trouble == OUTAGE else times)]
            for trouble in options.trouble
        }
    found = {"version": metadata.version(row.package), "healthy": healthy, "cells": cells, "left_alone": left_alone()}
    options.file.write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    STATUS = main()
    sys.stdout.flush()
    os._exit(STATUS)  # some clients leave threads that are no daemons
