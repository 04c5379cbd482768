"""Count exactly what the calling thread executes during one call.

Measured: executed bytecodes (one `opcode` trace event each, on every frame the call enters), Python calls
(frames entered, so each resumption of a generator too) and C calls (built-in functions and methods of
built-in types).

Not measured: other threads; the `RESUME` marker at a frame's start, for which CPython sends no event; C
types called as constructors (`dict()`, `float()`), operators and attribute hooks in C, which CPython does
not report as C calls (CPU time has to speak for those); the garbage collector, which is off meanwhile; what
the end of the result's life costs. A bytecode is no unit of time, and figures of two Python versions cannot
be compared: the compiler and the set of instructions differ.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


class Counts(NamedTuple):
    """The counts of one call."""

    bytecodes: int
    python_calls: int
    c_calls: int


def count(call: Callable[..., Any], make_arguments: Callable[[], tuple[Any, ...]] = tuple) -> Counts:
    """Call twice, once per kind of hook, each time with new arguments; tracing is as before afterwards."""
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        bytecodes = _count_bytecodes(call, make_arguments())
        python_calls, c_calls = _count_calls(call, make_arguments())
    finally:
        if collecting:
            gc.enable()
    return Counts(bytecodes, python_calls, c_calls)


def _count_bytecodes(call: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
    total = 0

    def local(_frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal total
        if event == "opcode":
            total += 1
        return local

    def enter(frame: FrameType, _event: str, _arg: Any) -> Any:
        frame.f_trace = local  # Python 3.13 asks for opcodes only where this is set
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return local

    # Python 3.12 looks at the moment of settrace whether any frame ever asked for opcodes.
    sys._getframe().f_trace_opcodes = True
    before, profile_before = sys.gettrace(), sys.getprofile()
    sys.setprofile(None)
    sys.settrace(enter)
    try:
        kept = call(*arguments)  # its end comes after the count
    finally:
        sys.settrace(before)
        sys.setprofile(profile_before)
    del kept
    return total


def _count_calls(call: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[int, int]:
    python_calls = c_calls = 0

    def hook(_frame: FrameType, event: str, arg: Any) -> None:
        nonlocal python_calls, c_calls
        if event == "call":
            python_calls += 1
        elif event == "c_call" and arg is not sys.setprofile:  # the call that ends the count
            c_calls += 1

    before, trace_before = sys.getprofile(), sys.gettrace()
    sys.settrace(None)
    sys.setprofile(hook)
    try:
        kept = call(*arguments)
    finally:
        sys.setprofile(before)
        sys.settrace(trace_before)
    del kept
    return python_calls, c_calls
