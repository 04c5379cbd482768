"""The hooks of pytest for ``--under-faults``: run each test again, watch what reaches it, and tell what was found."""

from __future__ import annotations

import functools
import inspect
import os
import random
import signal
import unittest.case
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import astuple
from traceback import walk_tb
from typing import Any
from unittest import mock

import pytest
from _pytest.runner import runtestprotocol

from .runs import SEND_FAULTS, TWICE, Finding, Run, SendFault, judge
from .transport import Detour, run_under_way, watched_sends
from .virtual_wire import STUCK, VirtualTime

SENDS = 50
"""The sends that a client may make under one fault beyond twice those without a fault."""
VIRTUAL_SECONDS = 3600.0
"""The longest time, virtual, that a client may go on under a fault."""
REAL_SECONDS = 20.0
"""The longest time, real, that one run of a test may take."""

_RAISES: Any = type(pytest.raises(Exception))  # noqa: PT011 - only its class is wanted
_NOT_OF_THE_CLIENT = tuple(os.path.dirname(str(inspect.getfile(module))) for module in (pytest.raises, unittest.case))


class UnderFaults:
    """The plugin that ``--under-faults`` registers: at most so many runs of a test, with faults chosen by a seed."""

    def __init__(self, runs: int, seed: int) -> None:
        self._runs = runs
        self._seed = seed
        self._detour = Detour()
        self.findings: list[Finding] = []
        self.counts: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Iterator[None]:
        """Watch the ways to send, and the exceptions that tests expect, as long as tests run."""
        with ExitStack() as stack:
            stack.callback(self._detour.remove)
            for owner in (_RAISES, unittest.case._AssertRaisesContext):
                stack.enter_context(mock.patch.object(owner, "__exit__", _noting(owner.__exit__)))
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        """Run a test as ever, and then under faults, if it passed and sent anything."""
        self._detour.install()
        plain = Run()
        with _watched(item, plain):
            result = yield
        if not plain.passed:
            self.counts["not passed"] += 1
        elif not plain.sends:
            self.counts["without a send"] += 1
        else:
            self._review(item, nextitem, plain)
        return result

    def _review(self, item: pytest.Item, nextitem: pytest.Item | None, plain: Run) -> None:
        plans = self._plans(item.nodeid, plain)
        self.counts["reviewed"] += 1
        for sent in plain.sends:
            sent.answer = None
        for at, fault in plans:
            run = Run(fault, at, most=SENDS + 2 * len(plain.sends), clock=VirtualTime(VIRTUAL_SECONDS))
            with (
                _without_failures(item),
                run.clock.in_force(),
                _watched(item, run),
                _ending_in(REAL_SECONDS, run.clock),
            ):
                runtestprotocol(item, log=False, nextitem=nextitem)
            self.counts["runs"] += 1
            found = judge(item.nodeid, plain, run)
            # What the test itself sends is not the client's, except that nobody should send it twice.
            module = getattr(item, "module", None)
            is_own = found is not None and found.where.startswith(f"{getattr(module, '__name__', '')}:")
            if found is not None and (found.what == TWICE or not is_own):
                self.findings.append(found)

    def _plans(self, test: str, plain: Run) -> list[tuple[int, SendFault]]:
        """Choose sends and faults: each fault once before any comes again."""
        pairs = [
            (at, fault)
            for at, sent in enumerate(plain.sends)
            for fault in SEND_FAULTS
            if fault.suits(sent.method, sent.size)
        ]
        random.Random(f"{self._seed} {test}").shuffle(pairs)
        seen: Counter[str] = Counter()
        turns = []
        for at, fault in pairs:
            turns.append((seen[fault.name], (at, fault)))
            seen[fault.name] += 1
        return [pair for _, pair in sorted(turns, key=lambda turn: turn[0])[: self._runs]]

    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        """Take note of how a part of a test ended."""
        run = run_under_way()
        if run is not None and call.excinfo is not None:
            run.passed = False
            _note(call.excinfo.value)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand what was found on, where this is a worker of pytest-xdist."""
        output: Any = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["under_faults"] = [astuple(finding) for finding in self.findings], dict(self.counts)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker of pytest-xdist has found."""
        findings, counts = getattr(node, "workeroutput", {}).get("under_faults", ((), {}))
        self.findings += [Finding(*finding) for finding in findings]
        self.counts.update(counts)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the report."""
        terminalreporter.section("under faults")
        for line in report(self.findings, self.counts, self._seed):
            terminalreporter.write_line(line)


def _watched(item: pytest.Item, run: Run) -> AbstractContextManager[object]:
    """Have every send of a test pass by a run inside the block."""
    run.file = str(item.path)
    # What a test catches by itself is not seen, so it is given the benefit of the doubt.
    run.has_raised = _catches(getattr(item, "obj", None))
    return watched_sends(run)


def _noting(leave: Any) -> Any:
    def __exit__(context: Any, kind: Any, error: BaseException | None, traceback: Any) -> Any:
        _note(error)
        return leave(context, kind, error, traceback)

    return __exit__


def _note(error: BaseException | None) -> None:
    """Take note of an exception that reached the test."""
    run = run_under_way()
    # A mock that misses a request raises its own error in the place of the client's.
    while run is not None and run.struck is not None and error is not None:
        files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
        if files and not isinstance(error, AssertionError):
            run.has_raised |= not (files[-1] == run.file or files[-1].startswith(_NOT_OF_THE_CLIENT))
        error = error.__cause__ or error.__context__


@functools.lru_cache(1)
def _catches(function: Any) -> bool:
    try:
        return "except" in inspect.getsource(function)
    except (OSError, TypeError):
        return False


@contextmanager
def _without_failures(item: Any) -> Iterator[None]:
    """Have no failure of a test written down: that takes longer than the test, and nobody reads it."""
    with mock.patch.multiple(item, repr_failure=mock.DEFAULT, _repr_failure_py=mock.DEFAULT) as stand_ins:
        for stand_in in stand_ins.values():
            stand_in.return_value = ""
        yield


@contextmanager
def _ending_in(seconds: float, clock: VirtualTime) -> Iterator[None]:
    """End a run that comes to no end, where the platform has a timer that can."""
    if not hasattr(signal, "setitimer"):  # pragma: no cover - Windows
        yield
        return
    former = signal.signal(signal.SIGALRM, lambda *_: clock.end(STUCK, f"it took more than {seconds:g} s"))
    rest = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *rest)
        signal.signal(signal.SIGALRM, former)


def report(findings: list[Finding], counts: Counter[str], seed: int) -> Iterator[str]:
    """Yield the lines of the report: each finding once for each place in the client."""
    yield (
        f"{counts['reviewed']} tests ran {counts['runs']} times more, each time with a fault (seed {seed}); "
        f"{counts['without a send']} sent nothing through an adapter, {counts['not passed']} did not pass by themselves"
    )
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in sorted(findings, key=lambda each: (each.what, each.where)):
        groups.setdefault((finding.what, finding.where), []).append(finding)
    heading = ""
    for (what, where), found in groups.items():
        if what != heading:
            heading = what
            yield ""
            yield what
        tests = len({each.test for each in found})
        example = next((each for each in found if not each.noticed), found[0])
        unseen = len({each.test for each in found if not each.noticed})
        yield f"  {where}: {tests} tests, {unseen} of which pass all the same"
        yield f"    {example.fault}: {example.test}"
    if not groups:
        yield "nothing to report"
