"""An interruption at any line of the heart, and at any call of the package (contract 2, 8)."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter

from requests_smithy_retry import retry_options
from requests_smithy_retry.core import call, exchange, loop, strategy
from requests_smithy_retry.wire.state import this_thread
from tests.faults import FaultServer, Reply
from tests.support import reset_error, scripted, send
from tests.unit.wire.support import session


class Limit(Exception):
    """Stands in for Celery's soft time limit."""


class Stop(BaseException):
    """Stands in for Ctrl-C."""


def is_finalizing(frame: Any) -> bool:
    """Return True for a function of a finalizer (urllib3's for a pool): Python drops what is raised there."""
    while frame is not None:
        if frame.f_code.co_filename == weakref.__file__:
            return True
        frame = frame.f_back
    return False


def interrupted_at(
    line: Callable[[Any, str], bool], function: Callable[[], Any], kind: type[BaseException] = Limit
) -> bool:
    """Run a function with an interruption on entering the first function that ``line`` chooses."""

    def at(frame: Any, event: str, _: Any) -> None:
        if event == "call" and not is_finalizing(frame) and line(frame.f_code.co_name, frame.f_code.co_filename):
            sys.setprofile(None)
            raise kind

    sys.setprofile(at)
    try:
        function()
    except (Limit, Stop):
        return True
    except requests.ConnectionError:
        return False
    finally:
        sys.setprofile(None)
    return False


@pytest.mark.untraced
@pytest.mark.parametrize("options", [{"operation_timeout": 5}, {"enabled": False}])
@pytest.mark.parametrize("script", [[503, 200], [reset_error(), 404]], ids=["retry", "reset"])
def test_no_interruption_leaves_a_mark_on_its_thread(options: dict[str, Any], script: list[Any]) -> None:
    """Wherever a signal arrives, the next request of the thread is bound by no deadline and taken as it should be."""
    for number in range(1000):
        adapter, calls = scripted(*script, **options), set()

        def chosen(_: str, file: str, number: int = number, adapter: Any = adapter, calls: set[Any] = calls) -> bool:
            """Choose the call of that number; in each attempt, the turns of a loop are one call."""
            entered: Any = sys._getframe(2)
            if "requests_smithy_retry" in file and "testing" not in file:
                calls.add((len(adapter.sent), entered.f_code, entered.f_back.f_code, entered.f_back.f_lineno))
            return len(calls) > number

        was_interrupted = interrupted_at(chosen, functools.partial(send, adapter))
        left = this_thread.deadline, this_thread.retries_off, this_thread.connecting
        this_thread.deadline, this_thread.retries_off = None, False
        assert (None, False) == left[:2], f"interrupted at call {number}"
        if not was_interrupted:
            return
    pytest.fail("a request enters fewer functions")


HEART = (loop, call, exchange, strategy)


def lines_of(module: Any) -> set[int]:
    """The lines of a module without those that clean up, as nothing guards them against a signal in turn."""
    source = inspect.getsource(module)
    nodes = list(ast.walk(ast.parse(source)))
    cleaning = [part for node in nodes if isinstance(node, ast.Try) for part in node.finalbody]
    cleaning += [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "forget"]
    cleaned = {line for part in cleaning for line in range(part.lineno, (part.end_lineno or 0) + 1)}
    return set(range(1, len(source.splitlines()) + 1)) - cleaned


LINES = {(module.__file__, line) for module in HEART for line in lines_of(module)}


FILES = {file for file, _ in LINES}


def interrupted_at_line(number: int, function: Callable[[], Any]) -> bool:
    """Run a function with an interruption before the line of that number, of those of the heart that it comes to."""
    seen: set[tuple[str, int, int]] = set()

    def at(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in FILES:
            return None
        place = frame.f_code.co_filename, frame.f_lineno
        if event == "line" and place in LINES:
            seen.add((*place, len(sent)))
            if len(seen) > number:
                sys.settrace(None)
                raise Stop
        return at

    sent: list[Any] = []
    usual, before = HTTPAdapter.send, sys.gettrace()

    def send(*arguments: Any, **named: Any) -> Any:
        sent.append(1)
        return usual(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HTTPAdapter, "send", send)
        sys.settrace(at)
        try:
            function()
        except Stop:
            return True
        finally:
            sys.settrace(before)
    return False


@pytest.mark.once
@pytest.mark.parametrize(
    ("script", "stream"),
    [
        ([Reply(200, body=b"whole")], False),
        ([Reply(503, body=b"whole"), Reply(200)], False),
        ([Reply(429, body=b"x" * 100_000, framing="chunked"), Reply(404, body=b"x" * 100_000)], False),
        ([Reply(503, body=b"whole"), Reply(404, body=b"x" * 100_000)], True),
    ],
    ids=["at once", "after a retry", "long bodies", "streamed"],
)
def test_an_interruption_at_any_line_gives_the_connection_back(script: list[Any], stream: bool) -> None:
    """Wherever a signal arrives, the only place of a pool is free afterwards, and the thread has no deadline."""
    options: dict[str, Any] = {"pool_block": True, "pool_maxsize": 1, "operation_timeout": 60}
    for number in range(1000):
        with FaultServer([*script]) as server, session(**options) as client:
            was_interrupted = interrupted_at_line(number, lambda: client.get(server.url, stream=stream).close())
            assert None is this_thread.deadline, f"interrupted at line {number}"
            server.script([])
            assert 200 == client.get(server.url, timeout=5).status_code, f"interrupted at line {number}"
        if not was_interrupted:
            return
    pytest.fail("a request comes to fewer lines")


def test_options_outside_are_in_force_after_an_interruption() -> None:
    """An interrupted send restores the options of the block around it, even with retries switched off."""
    with FaultServer() as server, session(enabled=False) as client, retry_options(max_attempts=2):
        interrupted_at(lambda name, _: name == "build_response", lambda: client.get(server.url))
        assert 200 == client.get(server.url).status_code
