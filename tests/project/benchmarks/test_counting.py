"""The counter behind `benchmarks/overhead.py`."""

from __future__ import annotations

import dis
import gc
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support import Reply, prepare, scripted

FILE = Path(__file__).resolve().parents[3] / "benchmarks" / "counting.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("counting_under_test", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


counting = load()
pytestmark = pytest.mark.once  # in Python 3.13, coverage's tracer hides instructions from another one


def straight(value):
    """Compute without a branch or a call, so that each instruction runs once."""
    first = value + 1
    second = first * first
    return second - value


def outer(value):
    return straight(value)


def twice_len(value):
    return len(value) + len(value)


def sort(values):
    values.sort()


def items():
    yield 1
    yield 2


def drain():
    for _ in items():
        pass


def instructions(function) -> int:
    """Return the number of instructions that `dis` lists, without RESUME, for which CPython sends no event."""
    return sum(1 for instruction in dis.get_instructions(function) if instruction.opname != "RESUME")


def test_each_instruction_of_a_straight_function_is_counted_once():
    """A function without branches executes exactly the instructions that `dis` lists."""
    assert counting.count(straight, lambda: (3,)).bytecodes == instructions(straight)


def test_instructions_of_the_functions_it_calls_are_added():
    """A caller counts as its own instructions and those of its callee."""
    expected = instructions(outer) + instructions(straight)
    assert counting.count(outer, lambda: (3,)).bytecodes == expected


def test_python_calls_are_the_frames_entered():
    """The function itself and the one it calls make two."""
    assert counting.count(outer, lambda: (3,))[1:] == (2, 0)


def test_c_calls_are_counted_without_the_counters_own():
    """Two calls of a built-in make two, and the call that ends the count is left out."""
    assert counting.count(twice_len, lambda: ([],))[1:] == (1, 2)


def test_work_inside_c_is_one_call():
    """Sorting a long list costs as many bytecodes as sorting a short one, and one C call either way."""
    short, long = ([3, 1, 2],), (list(range(999, 0, -1)),)
    assert counting.count(sort, lambda: short) == counting.count(sort, lambda: long)
    assert counting.count(sort, lambda: long).c_calls == 1


def test_a_generator_counts_each_time_it_is_resumed():
    """Three entries into a generator of two items, and the loop around it."""
    assert counting.count(drain).python_calls == 4


def test_counts_repeat():
    """Twenty counts of the same call are equal."""
    assert len({counting.count(drain) for _ in range(20)}) == 1


def test_every_hook_gets_new_arguments():
    """The call is made twice, and never twice with one set of arguments."""
    seen = []
    numbers = iter(range(10))
    counting.count(seen.append, lambda: (next(numbers),))
    assert seen == [0, 1]


@pytest.mark.parametrize("fails", [False, True])
def test_tracing_profiling_and_collecting_are_as_before(fails):
    """Hooks that were set are set again, whether or not the counted call raises."""

    def trace(frame, event, arg):
        return None

    def profile(frame, event, arg):
        return None

    def call():
        if fails:
            raise LookupError("counted call")

    saved = sys.gettrace(), sys.getprofile()
    try:
        sys.settrace(trace)
        sys.setprofile(profile)
        try:
            counting.count(call)
        except LookupError:
            assert fails
        hooks = sys.gettrace(), sys.getprofile()
    finally:
        sys.settrace(saved[0])
        sys.setprofile(saved[1])
    assert hooks == (trace, profile)
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    """Counting does not switch the garbage collector on."""
    gc.disable()
    try:
        counting.count(drain)
        assert not gc.isenabled()
    finally:
        gc.enable()


LIMIT = {"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "4987", "X-RateLimit-Reset": "3000"}
OPENAI = {
    **{f"x-ratelimit-{name}-requests": value for name, value in (("limit", 60), ("remaining", 59), ("reset", "1m0s"))},
    **{f"x-ratelimit-{name}-tokens": value for name, value in (("limit", 900), ("remaining", 800), ("reset", "1m0s"))},
}


@pytest.mark.parametrize("headers", [LIMIT, OPENAI])
def test_an_announced_limit_of_which_there_is_plenty_costs_little(headers):
    """Over a response with as many other headers: a glance at what is left, in each of its headers."""
    named = {name: str(value) for name, value in headers.items()}
    others = {name.replace("imit", "umit"): value for name, value in named.items()}

    def cost(told):
        adapter = scripted(*[Reply(200, told)] * 6)
        request = prepare()
        for _ in range(4):
            adapter.send(request)
        return counting.count(lambda: adapter.send(request)).bytecodes

    assert 0 < cost(named) - cost(others) <= 150
