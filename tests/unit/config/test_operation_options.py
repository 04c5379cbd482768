"""Options for the operations of one block or function (contract 8.4, 10.4)."""

import asyncio
import contextvars
import dataclasses
import gc
import inspect
import itertools
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from requests_smithy_retry import RetryConfigError, classifier, retry_options
from requests_smithy_retry.clock import Deadline
from requests_smithy_retry.config.retry_options import (
    NOTHING,
    OPERATION_OPTIONS,
    OperationKeywords,
    OperationOptions,
    current_options,
    options_in_force,
)
from requests_smithy_retry.testing.clock import FakeClock


@classifier
def first(outcome, previous):
    return previous


@classifier
def second(outcome, previous):
    return previous


def most():
    return (options_in_force() or NOTHING).max_attempts


def test_a_block_sets_options_and_takes_them_back():
    """The options hold in the block alone, also when it ends with an exception."""
    with retry_options(max_attempts=2) as options:
        assert (2, 2) == (most(), options.max_attempts)
    with pytest.raises(KeyError), retry_options(max_attempts=2):
        raise KeyError
    assert current_options.get() is None


def test_a_block_sets_what_it_is_given_and_nothing_else():
    """Each option is in force as it was given; the others are left to the adapter's configuration."""
    given = {
        "max_attempts": 2,
        "classifiers": (first,),
        "default_classifiers": True,
        "idempotent": False,
        "long_poll": True,
        "idempotency_key": str,
        "enabled": True,
    }
    nothing = dict.fromkeys([*given, "deadline"]) | {"classifiers": ()}
    for set_here in ({}, *({name: value} for name, value in given.items())):
        with retry_options(**set_here) as options:
            assert {**nothing, **set_here} == {name: getattr(options, name) for name in nothing}


def test_none_leaves_an_option_as_it_is():
    """A wrapper may hand on options that it was not given."""
    with retry_options(max_attempts=2), retry_options(max_attempts=None, deadline=None, idempotent=True) as inner:
        assert (2, None, True) == (inner.max_attempts, inner.deadline, inner.idempotent)


def test_blocks_nest():
    """An inner block overrides what it names, inherits the rest, and adds its classifiers."""
    with retry_options(max_attempts=2, classifiers=[first], enabled=False):
        with retry_options(max_attempts=5, classifiers=[second]) as inner:
            assert (5, (first, second), False) == (inner.max_attempts, inner.classifiers, inner.enabled)
        with retry_options(classifiers=[second], default_classifiers=False) as alone:
            assert (2, (second,)) == (alone.max_attempts, alone.classifiers)
        assert 2 == most()


def test_of_nested_deadlines_the_earliest_counts():
    """An inner block cannot give itself more time."""
    clock = FakeClock(now=100.0)
    with retry_options(deadline=5, clock=clock) as outer:
        assert Deadline(105.0, clock) == outer.deadline
        with retry_options(deadline=60, clock=clock) as inner:
            assert outer.deadline == inner.deadline
        with retry_options(deadline=1, clock=clock) as short:
            assert outer.deadline != short.deadline


def test_it_decorates_a_function():
    """The options hold during each call; name, arguments and result stay."""

    @retry_options(max_attempts=4)
    def call(depth, *, more=()):
        """Recurses."""
        return [most(), *(call(depth - 1, more=more) if depth else more)]

    assert ([4, 4, 4, 5], "call", "Recurses.") == (call(2, more=[5]), call.__name__, call.__doc__)
    assert current_options.get() is None


def test_it_decorates_a_coroutine_function():
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


@pytest.mark.parametrize("function", [numbers, numbers_in_time])
def test_a_generator_is_refused(function):
    """A generator's body runs between other code, where the options must not hold."""
    with pytest.raises(TypeError) as caught:
        retry_options(max_attempts=2)(function)
    assert f"retry_options cannot decorate the generator {function.__name__}: use a with block in it" == str(
        caught.value
    )


def test_one_block_serves_many_threads_and_reentry():
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


def test_a_pool_does_not_inherit_unless_told():
    """Worker threads have a context of their own; copy_context carries the options over."""
    with ThreadPoolExecutor(1) as pool, retry_options(max_attempts=2):
        assert pool.submit(most).result() is None
        assert 2 == pool.submit(contextvars.copy_context().run, most).result()


TAKEN = (
    "max_attempts, classifiers, default_classifiers, idempotent, long_poll, idempotency_key, enabled, deadline, "
    "patience, pacing, resume"
)


def attempts(number):
    with retry_options(max_attempts=number):
        yield most()


def in_thread(function, *args):
    """Run a function in a thread, and so in a context, of its own; return its result, or raise its error."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args).result()


@pytest.mark.parametrize(
    "elsewhere", [in_thread, lambda function, *args: contextvars.copy_context().run(function, *args)]
)
def test_a_block_may_be_left_in_another_context(elsewhere):
    """The exception in the block is the one that arrives, and where it was entered, its options hold no longer."""
    generator = attempts(1)
    next(generator)
    with retry_options(idempotent=True):
        inherited = contextvars.copy_context()
        with pytest.raises(KeyError, match="its own"):
            elsewhere(generator.throw, KeyError("its own"))
        assert (None, True) == (options_in_force().max_attempts, options_in_force().idempotent)
    assert 1 == inherited.run(most)
    assert options_in_force() is None


def test_a_block_that_is_left_in_a_copied_context_holds_there_no_longer():
    """A task that closes what it inherited is free of it, and so is the context where it was entered."""
    generator = attempts(1)
    next(generator)

    def close():
        generator.close()
        return most()

    assert (None, None) == (contextvars.copy_context().run(close), most())


def test_a_fixture_may_be_entered_and_left_in_tasks_of_its_own():
    """Fixtures of pytest-asyncio enter and leave blocks in different tasks; nothing is left in force."""

    async def fixture():
        with retry_options(max_attempts=1):
            yield

    async def main():
        one = fixture()
        await asyncio.create_task(one.__anext__())
        with pytest.raises(KeyError):
            await asyncio.create_task(one.athrow(KeyError("its own")))
        return most()

    assert asyncio.run(main()) is None


def test_generators_may_be_closed_in_any_order():
    """Whichever is closed first, those that are open hold, in the order in which they were entered."""
    for order in itertools.permutations(range(3)):
        generators = {number: attempts(number + 1) for number in range(3)}
        for generator in generators.values():
            next(generator)
        for number in order:
            generators.pop(number).close()
            assert (max(generators) + 1 if generators else None) == most()
        assert current_options.get() is None


def test_the_deadline_of_a_closed_generator_is_gone():
    """Deadlines and classifiers of the other blocks, around it and within it, stay in force."""
    clock = FakeClock(now=100.0)

    def pages(**options):
        with retry_options(clock=clock, **options):
            yield

    first_pages, second_pages = pages(deadline=5, classifiers=[first]), pages(deadline=60, classifiers=[second])
    next(first_pages), next(second_pages)
    assert (Deadline(105.0, clock), (first, second)) == (options_in_force().deadline, options_in_force().classifiers)
    first_pages.close()
    assert (Deadline(160.0, clock), (second,)) == (options_in_force().deadline, options_in_force().classifiers)
    second_pages.close()


def test_of_a_shared_block_it_cannot_be_told_which_one_is_left():
    """A block open in two contexts and left in a third one stays in force in both, and nothing is raised."""
    shared = retry_options(max_attempts=2)

    def pages():
        with shared:
            yield

    generator = pages()
    next(generator)
    with shared:
        in_thread(generator.close)
        assert 2 == most()
    assert 2 == most()
    current_options.set(None)


def test_a_block_that_nobody_leaves_is_forgotten_with_its_context():
    """A shared block that was entered in a context that is gone can still be left elsewhere by others."""
    shared = retry_options(max_attempts=2)
    in_thread(shared.__enter__)

    def pages():
        with shared:
            yield

    generator = pages()
    next(generator)
    gc.collect()
    in_thread(generator.close)
    assert most() is None


def test_options_can_be_pickled_with_an_error_that_carries_them():
    """A block belongs to its context and does not go along; its options do."""
    with retry_options(max_attempts=2) as options:
        copied = pickle.loads(pickle.dumps(options))
    assert (options, 2) == (copied, copied.max_attempts)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "mode",
            f"retry_options takes no 'mode', it holds for a whole adapter: give it to RetryAdapter. It takes {TAKEN}",
        ),
        (
            "status_forcelist",
            (
                "retry_options takes no 'status_forcelist', by which you may mean 'retry_status_codes', it holds for a "
                f"whole adapter: give it to RetryAdapter. It takes {TAKEN}"
            ),
        ),
        ("max_atempts", "there is no option 'max_atempts': did you mean 'max_attempts'?"),
        ("attempts", "there is no option 'attempts': did you mean 'max_attempts'?"),
        ("zzz", f"there is no option 'zzz': there are {TAKEN}"),
    ],
)
def test_other_options_are_refused(name, message):
    """The error says where an adapter's option belongs, and the nearest name of one that there is not."""
    with pytest.raises(TypeError) as caught:
        retry_options(**{name: 2})
    assert message == str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("max_attempts", 0, "a whole number of 1 or more is allowed"),
        ("classifiers", 3, "a collection of classifiers is allowed"),
        ("default_classifiers", 0, "True or False is allowed"),
        ("idempotent", "yes", "True or False is allowed"),
        ("long_poll", 2, "True or False is allowed"),
        ("idempotency_key", "k", "True, False, or a function that makes a key is allowed"),
        ("enabled", 1, "True or False is allowed"),
        ("pacing", "on", "one of 'announced', 'off' is allowed"),
        ("deadline", 0, "a finite number of seconds above 0 is allowed"),
    ],
)
def test_bad_values_are_refused_at_once(name, value, allowed):
    """The call refuses a bad value, before a block is entered or a function runs; the error names everything."""
    with pytest.raises(RetryConfigError) as caught:
        retry_options(**{name: value})
    assert f"{name}={value!r} (from retry_options): {allowed}" == str(caught.value)


def test_repr_shows_what_it_sets():
    """The repr has only the options that were given."""
    assert "retry_options(max_attempts=2, enabled=False)" == repr(retry_options(max_attempts=2, enabled=False))


def test_the_fields_the_keywords_and_the_signature_agree():
    """Every option of a block is a field and a keyword, and ``help()`` shows it with its type and default."""
    fields = [field.name for field in dataclasses.fields(OperationOptions) if "option" in field.metadata]
    shown = inspect.signature(retry_options).parameters
    assert fields == list(OPERATION_OPTIONS)
    assert fields == list(OperationKeywords.__annotations__)
    assert fields == [name for name in shown if name not in ("clock", "options")]
    assert ("int | None", None) == (shown["max_attempts"].annotation, shown["max_attempts"].default)
