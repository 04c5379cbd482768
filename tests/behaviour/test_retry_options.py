"""Options for the operations of one block or function (contract 8.4, 10.1)."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import itertools
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from requests_smithy_retry import RetryConfigError, classifier, only, retry_options
from requests_smithy_retry.testing import FakeClock, scripted
from tests.support import URL

TAKEN = (
    "max_attempts, classifiers, idempotent, long_poll, idempotency_key, enabled, deadline, patience, max_wait, cancel, "
    "pacing, resume, validate"
)


@classifier
def first(outcome, previous):
    return previous


@classifier
def second(outcome, previous):
    return previous


def in_force() -> Any:
    """Return the options around the caller: a block without any of its own has them."""
    with retry_options() as options:
        return options


def most() -> int | None:
    return in_force().max_attempts


def test_a_block_sets_options_and_takes_them_back() -> None:
    """The options hold in the block alone, also when it ends with an exception."""
    with retry_options(max_attempts=2) as options:
        assert (2, 2) == (most(), options.max_attempts)
    with pytest.raises(KeyError), retry_options(max_attempts=2):
        raise KeyError
    assert most() is None


def test_a_block_sets_what_it_is_given_and_nothing_else() -> None:
    """Each option is in force as it was given; the others, and those that are None, are left as they are."""
    given = {"max_attempts": 2, "idempotent": False, "long_poll": True, "idempotency_key": str, "enabled": True}
    given |= {"classifiers": (first,), "patience": 3, "max_wait": 2, "pacing": "off", "resume": False}
    nothing = dict.fromkeys([*given, "deadline"]) | {"classifiers": ()}
    for set_here in ({}, *({name: value} for name, value in given.items())):
        with retry_options(**set_here), retry_options(**dict.fromkeys(given)) as options:
            assert {**nothing, **set_here} == {name: getattr(options, name) for name in nothing}


def test_blocks_nest() -> None:
    """An inner block overrides what it names, inherits the rest, and adds its classifiers, or replaces all others."""
    with retry_options(max_attempts=2, classifiers=[first], enabled=False):
        with retry_options(max_attempts=5, classifiers=[second]) as inner:
            assert (5, (first, second), False) == (inner.max_attempts, inner.classifiers, inner.enabled)
        with retry_options(classifiers=only(second)) as alone:
            assert (2, only(second)) == (alone.max_attempts, alone.classifiers)
            with retry_options(classifiers=[first]) as beside:
                assert "only(<classifier second>, <classifier first>)" == repr(beside.classifiers)
        assert 2 == most()


def test_it_decorates_a_function() -> None:
    """The options hold during each call; name, arguments and result stay."""

    @retry_options(max_attempts=4)
    def call(depth, *, more=()):
        """Recurses."""
        return [most(), *(call(depth - 1, more=more) if depth else more)]

    assert ([4, 4, 4, 5], "call", "Recurses.") == (call(2, more=[5]), call.__name__, call.__doc__)
    assert most() is None


def test_it_decorates_a_coroutine_function() -> None:
    """The options hold until the coroutine has ended, also beside others."""

    @retry_options(max_attempts=4)
    async def call(first, *, second):
        await asyncio.sleep(0)
        return most(), first, second

    async def both():
        return await asyncio.gather(call(1, second=2), call(3, second=4)), most()

    assert ([(4, 1, 2), (4, 3, 4)], None) == asyncio.run(both())


def numbers():
    yield 1


async def numbers_in_time():
    yield 1


class Client:
    """Its methods would be called outside of the block."""


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (numbers, "the generator numbers: use a with block in it$"),
        (numbers_in_time, "the generator numbers_in_time: use a with block in it$"),
        (Client, "the class .*Client"),
    ],
)
def test_a_generator_and_a_class_are_refused(function, words) -> None:
    """The body of either runs between other code, where the options must not hold."""
    with pytest.raises(TypeError, match=f"cannot decorate {words}"):
        retry_options(max_attempts=2)(function)


def test_one_block_serves_many_threads_and_reentry() -> None:
    """The same object can be entered again, and by several threads at once."""
    block = retry_options(max_attempts=3)
    with block, block:
        assert 3 == most()
    assert most() is None
    barrier = threading.Barrier(4)

    def work(number):
        with block, retry_options(max_attempts=number):
            barrier.wait(60)
            return most()

    with ThreadPoolExecutor(4) as pool:
        assert [1, 2, 3, 4] == list(pool.map(work, range(1, 5)))


def attempts(number, *block):
    """Hold a block open between two values: one of its own with a number of attempts, or another one."""
    with block[0] if block else retry_options(max_attempts=number):
        yield most()


def test_generators_may_be_closed_in_any_order() -> None:
    """Whichever is closed first, those that are open hold, in the order in which they were entered."""
    for order in itertools.permutations(range(3)):
        generators = {number: attempts(number + 1) for number in range(3)}
        for generator in generators.values():
            next(generator)
        for number in order:
            generators.pop(number).close()
            assert (max(generators) + 1 if generators else None) == most()


def test_the_deadline_of_a_closed_generator_is_gone() -> None:
    """Deadlines and classifiers of the other blocks, around it and within it, stay in force."""
    clock = FakeClock(now=100.0)
    blocks = (retry_options(deadline=each, classifiers=[own], clock=clock) for each, own in ((5, first), (60, second)))
    outer, inner = (attempts(None, block) for block in blocks)
    next(outer), next(inner)
    assert (5, (first, second)) == (in_force().deadline.left(), in_force().classifiers)
    outer.close()
    assert (60, (second,)) == (in_force().deadline.left(), in_force().classifiers)
    inner.close()


WHOLE = "it holds for a whole adapter: give it to RetryAdapter. It takes"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mode", f"retry_options takes no 'mode', {WHOLE} {TAKEN}"),
        (
            "status_forcelist",
            f"retry_options takes no 'status_forcelist', by which you may mean 'retry_status_codes', {WHOLE} {TAKEN}",
        ),
        ("max_atempts", "there is no option 'max_atempts': did you mean 'max_attempts'?"),
        ("attempts", "there is no option 'attempts': did you mean 'max_attempts'?"),
        ("default_classifiers", "there is no option 'default_classifiers': did you mean 'classifiers'?"),
        ("zzz", f"there is no option 'zzz': there are {TAKEN}"),
    ],
)
def test_other_options_are_refused(name, message) -> None:
    """The error says where an adapter's option belongs, and the nearest name of one that there is not."""
    with pytest.raises(TypeError) as caught:
        retry_options(**{name: 2})
    assert message == str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("max_attempts", 0, "a whole number of 1 or more"),
        ("classifiers", 3, "a collection of classifiers"),
        ("idempotent", "yes", "True or False"),
        ("long_poll", 2, "True or False"),
        ("idempotency_key", "k", "True, False, or a function that makes a key"),
        ("enabled", 1, "True or False"),
        ("pacing", "on", "one of 'announced', 'off'"),
        *(("deadline", value, "a finite number of seconds above 0") for value in (0, -1, float("inf"), "10", True)),
        ("max_wait", -1, "a finite number of seconds (0 or more)"),
        ("validate", 5, "a function of a response, or None"),
        *(("cancel", value, "a threading.Event") for value in (True, 1, "event", threading.Lock())),
    ],
)
def test_bad_values_are_refused_at_once(name, value, allowed) -> None:
    """The call refuses a bad value, before a block is entered or a function runs; the error names everything."""
    with pytest.raises(RetryConfigError) as caught:
        retry_options(**{name: value})
    assert f"{name}={value!r} (from retry_options): {allowed} is allowed" == str(caught.value)


def test_the_signature_and_the_repr_show_the_options() -> None:
    """``help()`` has each option with its type and default; the repr has only those that were given."""
    shown = inspect.signature(retry_options).parameters
    assert ["clock", *TAKEN.split(", "), "options"] == list(shown)
    assert ("int | None", None) == (shown["max_attempts"].annotation, shown["max_attempts"].default)
    assert "retry_options(max_attempts=2, enabled=False)" == repr(retry_options(max_attempts=2, enabled=False))


def test_options_can_be_pickled_with_an_error_that_carries_them() -> None:
    """A block belongs to its context and does not go along; its options do."""
    with retry_options(max_attempts=2) as options:
        copied = pickle.loads(pickle.dumps(options))
    assert (options, 2) == (copied, copied.max_attempts)


def test_a_block_that_is_left_in_another_context_stays_in_force_where_it_was_entered() -> None:
    """Leaving it elsewhere raises nothing."""
    generator = attempts(1)
    contextvars.copy_context().run(next, generator)
    generator.close()
    assert most() is None


def test_the_threads_of_a_pool_do_not_see_a_deadline() -> None:
    """A task sees it if it is given a copy of the block's context; another one is sent after the deadline, too."""
    adapter = scripted(200, 200)
    request = requests.Request("GET", URL).prepare()
    with ThreadPoolExecutor(1) as pool, retry_options(deadline=1, clock=adapter.clock):
        adapter.clock.advance(2)
        assert 200 == pool.submit(adapter.send, request).result().status_code
        bounded = pool.submit(contextvars.copy_context().run, adapter.send, request)
        with pytest.raises(requests.ConnectTimeout):
            bounded.result()
    assert 1 == len(adapter.sent)
