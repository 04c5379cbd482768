"""Immutable values, beside the dataclasses that they stand in for."""

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError
from typing import ClassVar

import pytest

from requests_smithy_retry import ErrorKind, RetryConfig, RetryReason
from requests_smithy_retry.values import field, fields, immutable, replace


def kinds(make, spec, *, slots):
    """The same classes, made with one decorator or the other."""

    @make(frozen=True, slots=slots)
    class Base:
        KIND: "ClassVar[int]" = 1
        a: "int"
        b: "str" = "b"

    @make(frozen=True, slots=slots)
    class Sub(Base):
        c: "list" = spec(default_factory=list)
        d: "int" = spec(default=4, repr=False, compare=False)
        e: "int" = spec(init=False, compare=False)

        def __post_init__(self):
            object.__setattr__(self, "e", self.d + 1)

    @make(frozen=True, kw_only=True, repr=False, slots=slots)
    class Named:
        x: "int" = spec(metadata={"why": "x"})
        y: "int" = 2

    @make(frozen=True, slots=slots)
    class Empty:
        def __repr__(self):
            return "nothing"

    for kind in (Base, Sub, Named, Empty):
        kind.__qualname__ = f"{kinds.__name__}.{kind.__name__}"
    return Base, Sub, Named, Empty


PAIRS = [
    pair
    for slots in (False, True)
    for pair in zip(
        kinds(immutable, field, slots=slots), kinds(dataclasses.dataclass, dataclasses.field, slots=slots), strict=True
    )
]
ARGUMENTS = [
    ((), {}),
    ((1,), {}),
    ((1, "x"), {}),
    ((1,), {"b": "x"}),
    ((1, "x", [3], 5), {}),
    ((), {"a": 1, "c": [2]}),
    ((), {"x": 1}),
    ((), {"x": 1, "y": 3}),
    ((1,), {"a": 2}),
    ((), {"a": 1, "z": 2}),
    ((), {"a": 1, "e": 2}),
    ((1, 2, 3, 4, 5, 6), {}),
]


def made(kind, args, given):
    try:
        return kind(*args, **given)
    except TypeError:
        return TypeError


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
@pytest.mark.parametrize(("args", "given"), ARGUMENTS)
def test_it_is_made_and_shown_like_a_dataclass(ours, theirs, args, given):
    """The same arguments make the same fields, the same text where one is generated, or a TypeError."""
    one, other = made(ours, args, given), made(theirs, args, given)
    if other is TypeError:
        assert other is one
        return
    names = [each.name for each in dataclasses.fields(other)]
    assert names == [each.name for each in fields(one)]
    assert [getattr(other, name) for name in names] == [getattr(one, name) for name in names]
    assert ours.__name__ == "Named" or repr(other) == repr(one)
    assert dataclasses.asdict(other) == dataclasses.asdict(one)
    assert hasattr(other, "__dict__") == hasattr(one, "__dict__")
    assert made(theirs, args, given) == other
    assert (made(ours, args, given) == one, one == other, one != other) == (True, False, True)
    assert outcome(hash, other) == outcome(hash, one)


def outcome(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_introspection_finds_a_dataclass(ours, theirs):
    """Signature, fields with their metadata, parameters and patterns are those of a dataclass."""
    assert inspect.signature(theirs) == inspect.signature(ours)
    assert theirs.__match_args__ == ours.__match_args__
    assert dataclasses.is_dataclass(ours)
    for one, other in zip(dataclasses.fields(ours), dataclasses.fields(theirs), strict=True):
        assert (other.name, other.type, other.init, other.metadata) == (one.name, one.type, one.init, one.metadata)
    assert ours.__dataclass_params__.frozen


@pytest.mark.parametrize("kind", [pair[0] for pair in PAIRS if pair[0].__name__ == "Sub"])
def test_a_value_does_not_change(kind):
    """Assigning and deleting are refused; replace makes another value, and leaves out what is computed."""
    value = kind(1, d=7)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'a'"):
        value.a = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'a'"):
        del value.a
    for change in (replace, dataclasses.replace):
        changed = change(value, b="x", d=9)
        assert (1, "x", [], 9, 10) == (changed.a, changed.b, changed.c, changed.d, changed.e)
    assert (kind(1), 5) == (value, kind(1).e)


@pytest.mark.parametrize("value", [RetryReason(ErrorKind.TRANSIENT, 3.0), RetryConfig(max_attempts=4)])
def test_a_value_can_be_copied(value):
    """Copies and pickles of every protocol are equal, with slots and without."""
    copies = [copy.copy(value), copy.deepcopy(value)]
    copies += [pickle.loads(pickle.dumps(value, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    assert [value] * len(copies) == copies


def test_a_subclass_may_be_a_dataclass():
    """A program's own dataclass inherits the fields."""

    @dataclasses.dataclass(frozen=True)
    class Own(RetryReason):
        more: int = 7

    own = Own(ErrorKind.TRANSIENT, 2.0, more=3)
    assert (ErrorKind.TRANSIENT, 2.0, 3) == (own.kind, own.retry_after, own.more)


@pytest.mark.parametrize(
    ("args", "given", "says"),
    [
        ((), {}, "RetryReason.__init__() missing 1 required argument: 'kind'"),
        ((1, 2, 3, 4, 5, 6), {}, "RetryReason.__init__() takes 6 positional arguments but 7 were given"),
        ((1,), {"kind": 2}, "RetryReason.__init__() got multiple values for argument 'kind'"),
        ((1,), {"kinds": 2}, "RetryReason.__init__() got an unexpected keyword argument 'kinds'"),
    ],
)
def test_what_does_not_fit_is_named(args, given, says):
    """The error has Python's own words."""
    with pytest.raises(TypeError) as error:
        RetryReason(*args, **given)
    assert says == str(error.value)
