"""The order of classifiers (contract 3.2)."""

from __future__ import annotations

import copy
import itertools
import pickle

import pytest

from requests_smithy_retry import RetryClassifierPriority as Priority

DEFAULTS = [
    Priority.http_status_code_classifier(),
    Priority.aws_error_code_classifier(),
    Priority.modeled_as_retryable_classifier(),
    Priority.transient_error_classifier(),
    Priority.default(),
]


def test_the_defaults_are_in_the_order_of_the_contract() -> None:
    """Status, AWS code, model, transient; a classifier that names none comes after them all."""
    assert all(one < other for one, other in itertools.pairwise(DEFAULTS))
    assert len(set(DEFAULTS)) == 5


@pytest.mark.parametrize("index", range(5))
def test_before_and_after_lie_next_to_the_priority_they_were_made_from(index: int) -> None:
    """Nothing that was there before lies between a priority and one that was made relative to it."""
    here = DEFAULTS[index]
    before, after = Priority.run_before(here), Priority.run_after(here)
    assert before < here < after
    assert all(other < before for other in DEFAULTS[:index])
    assert all(after < other for other in DEFAULTS[index + 1 :])


def test_what_is_made_last_from_a_priority_is_nearest_to_it_only_if_made_from_its_neighbour() -> None:
    """A priority made from a neighbour lies between it and what it neighbours on that side."""
    here = Priority.default()
    before = Priority.run_before(here)
    between = Priority.run_after(before)
    assert before < between < here
    assert Priority.run_before(before) < before


def test_the_same_derivation_gives_the_same_priority() -> None:
    """Two made in the same way are equal, hash alike, and so keep the order of addition; one beside them is another."""
    default = Priority.default()
    one, other = (Priority.run_after(default) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert not one < other
    assert one <= other
    assert one not in (default, Priority.run_before(default))


def test_a_priority_is_opaque() -> None:
    """A priority cannot be compared with a number, changed, or made from one."""
    here = Priority.default()
    assert here != 4
    with pytest.raises(TypeError):
        assert here < 5  # type: ignore[operator]
    with pytest.raises(AttributeError):
        here._path = (9,)
    with pytest.raises(TypeError):
        Priority(3)  # type: ignore[call-arg, misc]


def test_a_priority_survives_copies() -> None:
    """Pickle, copy and deepcopy give an equal priority."""
    here = Priority.run_before(Priority.transient_error_classifier())
    assert pickle.loads(pickle.dumps(here)) == copy.copy(here) == copy.deepcopy(here) == here


@pytest.mark.parametrize("other", [None, 3, "http_status_code_classifier"])
def test_a_priority_is_made_relative_to_a_priority_only(other: object) -> None:
    """Anything else is refused with a sentence."""
    for make in (Priority.run_before, Priority.run_after):
        with pytest.raises(TypeError, match="relative to another RetryClassifierPriority"):
            make(other)  # type: ignore[arg-type]
