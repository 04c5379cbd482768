"""Runs a program with one adapter, notes all that it can see, and compares."""

from __future__ import annotations

import codecs
import copy
import csv
import ctypes
import functools
import gc
import gzip
import hashlib
import io
import itertools
import json
import logging
import os
import pickle
import queue
import re
import shutil
import sys
import tarfile
import threading
import traceback
import warnings
import weakref
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import requests
from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from requests.auth import HTTPDigestAuth
from urllib3 import Retry

from requests_smithy_retry import (
    ErrorInBodyClassifier,
    RetryAdapter,
    RetryListener,
    SimpleRetryStrategy,
    install,
    uninstall,
)
from requests_smithy_retry.testing import skipped_waits

from .programs import Program
from .server import Run, Server, settled

HANGS_AFTER = 20.0
PLAIN = "HTTPAdapter()"


class Listener(RetryListener):
    """Is told of bodies, and does nothing."""

    def body_progress(self, event: Any) -> None:
        """Do nothing."""


class Own(PreparedRequest):
    """A request with a target of its own."""

    @classmethod
    def like(cls, request: PreparedRequest) -> Own:
        """Return a request of this class."""
        own = cls()
        vars(own).update(vars(request))
        return own

    @property
    def path_url(self) -> str:
        """The target, which says so."""
        usual = super().path_url
        return usual + ("&own" if "?" in usual else "?own")


def with_own_requests(session: requests.Session) -> None:
    """Make a session prepare requests of :class:`Own`, without a reference to itself that would keep its pools."""
    usual = weakref.WeakMethod(session.prepare_request)
    session.prepare_request = lambda request: Own.like(usual()(request))


def no_error(body: Any) -> None:
    """Find no error in a body."""


MODULES = (codecs, copy, csv, gzip, hashlib, io, itertools, json, pickle, requests, shutil, sys, tarfile, zipfile)
NAMES = {
    **{module.__name__: module for module in MODULES},
    "no_error": no_error,
    "ErrorInBodyClassifier": ErrorInBodyClassifier,
    "HTTPAdapter": HTTPAdapter,
    "HTTPDigestAuth": HTTPDigestAuth,
    "Listener": Listener,
    "Retry": Retry,
    "RetryAdapter": RetryAdapter,
    "SimpleRetryStrategy": SimpleRetryStrategy,
    "with_own_requests": with_own_requests,
}


def shown(value: object, port: int) -> str:
    """Say a value without what differs from one run to another: ports, addresses, random digits."""
    if isinstance(value, bytes) and len(value) > 10_000:
        edges, middle = value[:200] + value[-200:], value[200:-200]
        return f"{len(value)} bytes, {shown(edges, port)} but for {zlib.crc32(middle)}"
    random = rf"\b{port}\b|0x[0-9a-f]+|\b[0-9a-f]{{16,}}\b"
    if isinstance(value, bytes) and len(value) > 200:
        text = re.sub(random.encode(), b"#", value).decode("latin-1")
    else:
        text = re.sub(random, "#", value if isinstance(value, str) else repr(value))
    if len(text) < 4000:
        return text if not isinstance(value, str) else repr(text)
    digest = zlib.crc32(text.encode("utf-8", "replace"))
    return f"{type(value).__name__} of {len(text)}: {text[:40]!r}...{text[-20:]!r} ({digest})"


def raised(error: BaseException, port: int) -> tuple[str, ...]:
    """Say what a program sees of an exception."""
    kind, inner = type(error), error.args[0] if error.args else None
    about = (str(error), type(inner).__name__)
    response = getattr(error, "response", None)
    status = "" if response is None else f"with a {response.status_code}"
    return "raises", f"{kind.__module__}.{kind.__qualname__}", shown(about, port), status


@dataclass
class Seen:
    """All that can be seen of one run."""

    said: list[tuple[Any, ...]] = field(default_factory=list)
    """The number of a line, and what it saw or raised."""
    requests: list[tuple[int, str, str]] = field(default_factory=list)
    """The connection, the head and the body of each request, as the server saw them."""
    connections: int = 0
    places: list[Any] = field(default_factory=list)
    """Of each pool, the places free and those with a connection, after the last line."""
    cookies: str = ""
    left: list[str] = field(default_factory=list)
    """What stayed open: connections, descriptors, threads."""
    warned: list[str] = field(default_factory=list)
    """What urllib3 logged as a warning, and what was warned of."""
    slept: list[float] = field(default_factory=list)
    """The waits that were skipped, ours alone."""


class Warned(logging.Handler):
    """Keeps what urllib3 logs."""

    def __init__(self, kept: list[str]) -> None:
        super().__init__(logging.WARNING)
        self.kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the text."""
        self.kept.append(record.getMessage())


def places(session: Any) -> list[Any]:
    """Return the places and the connections of each pool of a session's adapter."""
    pools = session.get_adapter("http://a").poolmanager.pools
    found = [pools.get(key) for key in pools.keys()]  # noqa: SIM118 - a container that cannot be iterated
    return sorted(
        (pool.pool.qsize(), sum(c is not None for c in pool.pool.queue)) for pool in found if pool and pool.pool
    )


@functools.lru_cache(4096)
def compiled(line: str) -> Any:
    return compile(line, "<program>", "exec")


def play(program: Program, how: str, run: Run, server: Server) -> Seen:
    """Run a program, and note what is logged and warned of."""
    heard: list[str] = []
    handler, logger = Warned(heard), logging.getLogger("urllib3")
    logger.addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            if how.startswith("install"):
                eval(how, {"install": install})
                how = PLAIN
            seen = run_lines(program, how, run, server)
    finally:
        uninstall()
        logger.removeHandler(handler)
    told = [f"{each.category.__name__}: {each.message}" for each in warned if each.category is not ResourceWarning]
    seen.warned = [shown(text, server.port) for text in heard + told]
    return seen


def run_lines(program: Program, how: str, run: Run, server: Server) -> Seen:
    """Run the lines with an adapter, each whatever the one before raised."""
    seen = Seen()
    session = requests.Session()
    session.trust_env = False
    arguments = ", ".join(filter(None, [how.partition("(")[2][:-1], program.pool]))
    adapter = eval(f"{how.partition('(')[0]}({arguments})", dict(NAMES))
    for prefix in ("http://", "https://"):
        session.mount(prefix, adapter)
    at = 0

    def see(*values: Any) -> None:
        seen.said.append((at, *(shown(value, server.port) for value in values)))

    names = {**NAMES, "session": session, "url": server.url, "see": see}
    names["places"] = lambda: places(names["session"])
    for at, line in enumerate(program.lines):
        settled(lambda: not run.closing)
        if line.startswith("r = "):
            names.pop("r", None)
        try:
            exec(compiled(line), names)
        except Exception as error:
            seen.said.append((at, *raised(error, server.port)))
    session = names["session"]
    seen.cookies = shown([{**vars(cookie), "expires": bool(cookie.expires)} for cookie in session.cookies], server.port)
    seen.places = places(session)
    seen.connections = run.connections
    for number, head, body in list(run.log):
        seen.requests.append((number, shown(head, server.port), shown(body, server.port)))
    names.clear()  # nothing is closed: what is dropped must be gone
    return seen


class Player:
    """Plays programs in a thread of its own, so that one that hangs is noticed."""

    def __init__(self) -> None:
        self.server = Server()
        self.asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.told: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._start()
        self.exchanges = 0
        self.closes_within = 0.05
        """So many seconds are given to the server's threads to see that a connection was closed."""
        self.base = self._open()

    def _start(self) -> None:
        self.thread = threading.Thread(target=self._work, args=(self.asked, self.told), daemon=True)
        self.thread.start()

    def _work(self, asked: Any, told: Any) -> None:
        while job := asked.get():
            try:
                told.put(play(*job))
            except BaseException as error:
                traceback.print_exc()
                told.put(error)
            del job

    def close(self) -> None:
        """End the thread and the server."""
        self.asked.put(None)
        self.server.close()

    @staticmethod
    def _open() -> tuple[int, int]:
        folder = "/proc/self/fd"
        return len(os.listdir(folder)) if os.path.isdir(folder) else 0, threading.active_count()

    def play(self, program: Program, how: str) -> Seen:
        """Run a program, and wait until all that it opened is closed."""
        run = self.server.begin({path: [a.step() for a in answers] for path, answers in program.script.items()})
        with ExitStack() as stack:
            clock = stack.enter_context(skipped_waits()) if program.area == "faults" else None
            self.asked.put((program, how, run, self.server))
            try:
                seen = self.told.get(timeout=HANGS_AFTER)
            except queue.Empty:
                frame = sys._current_frames()[self.thread.ident or 0]
                seen = Seen(said=[("hangs",)])
                sys.stderr.write(f"{how} hangs:\n{''.join(traceback.format_stack(frame)[-6:])}")
                end = ctypes.pythonapi.PyThreadState_SetAsyncExc
                end(ctypes.c_ulong(self.thread.ident or 0), ctypes.py_object(SystemExit))
                self.asked, self.told = queue.SimpleQueue(), queue.SimpleQueue()
                self._start()
                self.base = self._open()
                return seen
        if isinstance(seen, BaseException):
            raise seen
        self.exchanges += len(run.log)
        seen.slept = clock.sleeps if clock else []
        if not settled(lambda: not run.open and self._open() <= self.base, self.closes_within):
            seen.left = [f"{len(run.open)} connections until garbage is collected"]
            gc.collect()
            if not settled(lambda: self._open() <= self.base, 1):
                seen.left.append(f"descriptors and threads: {self._open()} instead of {self.base}")
                self.base = self._open()
        return seen


def differences(plain: Seen, ours: Seen) -> Iterator[tuple[str, Any, Any]]:
    """Yield where two runs differ, and both values."""
    for at in sorted({said[0] for said in plain.said + ours.said}, key=lambda at: (str(type(at)), at)):
        one, other = ([said for said in seen.said if said[0] == at] for seen in (plain, ours))
        yield from (("said", *pair) for pair in itertools.zip_longest(one, other) if pair[0] != pair[1])
    for pair in itertools.zip_longest(plain.requests, ours.requests):
        if pair[0] != pair[1]:
            yield "requests", *pair
    for name in ("connections", "places", "cookies", "warned"):
        if getattr(plain, name) != getattr(ours, name):
            yield name, getattr(plain, name), getattr(ours, name)
    if len(ours.left) > len(plain.left):
        yield "left", plain.left, ours.left
