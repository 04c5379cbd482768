"""The mutation tester behind `benchmarks/mutation`: which changes it makes, and that they take effect."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.once

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks" / "mutation"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"mutation_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SOURCE = '''
"""What it is."""
from dataclasses import dataclass

LIMIT = 3
__all__ = ["LIMIT"]

def within(value: int, least: int = 0) -> bool:
    """Whether it is."""
    if value < 0:
        raise ValueError("too small")
    return least <= value < LIMIT

@dataclass
class Pair:
    """Two."""
    one: int = 1
    """The first."""
    kind = "pair"

    @property
    def double(self):
        return self.one * 2

    @staticmethod
    def three():
        return 3
'''


def test_every_module_that_is_tried_is_there() -> None:
    """Every listed module exists, and so does every test that is listed for it."""
    toml = pytest.importorskip("tomllib", reason="Python 3.11")
    listed = toml.loads((FOLDER / "modules.toml").read_text(encoding="utf-8"))["modules"]
    root = FOLDER.parents[1]
    assert [] == [name for name in listed if not (root / "requests_smithy_retry" / f"{name}.py").exists()]
    assert [] == [test for each in listed.values() for test in each.get("also", []) if not (root / test).exists()]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "mutated_example.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("mutated_example")
    del sys.modules["mutated_example"]


@pytest.mark.parametrize(
    ("was", "now", "before", "after"),
    [
        ("LIMIT = 3", "LIMIT = 2", True, False),
        ("least <= value", "least < value", True, True),
        ("value < LIMIT", "value <= LIMIT", True, True),
        ("return least", "return not least", True, False),
    ],
)
def test_a_mutated_text_is_put_into_an_imported_module(
    module: ModuleType, was: str, now: str, before: bool, after: bool
) -> None:
    """Functions that were imported elsewhere have the new code, and see the new constants."""
    within = module.within
    assert within(2) is before
    load("transplant").transplant(module, SOURCE.replace(was, now))
    assert within(2) is after


def test_methods_defaults_and_attributes_are_put_in_as_well(module: ModuleType) -> None:
    """Into the class that is there, so that its objects behave by them."""
    pair = module.Pair()
    assert (pair.double, pair.three(), module.Pair().one, pair.kind) == (2, 3, 1, "pair")
    changed = (
        SOURCE.replace("* 2", "* 5").replace("return 3", "return 4").replace("= 1", "= 7").replace('"pair"', '"x"')
    )
    load("transplant").transplant(module, changed)
    assert (pair.double, pair.three(), module.Pair().one, pair.kind) == (5, 4, 7, "x")


def test_the_changes_leave_words_and_annotations_alone() -> None:
    """Code, constants and defaults change, each by itself; the words of an error do not."""
    pytest.importorskip("mutmut")
    pytest.importorskip("libcst")
    made = [(mutant.was, mutant.now) for mutant in load("mutants").mutants(SOURCE)]
    assert len(made) == len(set(made))
    assert {
        ("LIMIT = 3", "LIMIT = 4"),
        ("if value < 0:", "if value <= 0:"),
        ("if value < 0:", "if False:"),
        ("def within(value: int, least: int = 0) -> bool:", "def within(value: int, least: int = 1) -> bool:"),
        ("return least <= value < LIMIT", "return least <= value <= LIMIT"),
        ("one: int = 1", "one: int = 2"),
        ("return self.one * 2", "return self.one / 2"),
    } <= set(made)
    assert [] == [was for was, _ in made if "too small" in was or '"""' in was or "import" in was or "__all__" in was]
