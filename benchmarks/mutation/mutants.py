"""The small changes that are made to a module: mutmut's, and some of ours, everywhere in the file.

mutmut by itself changes only the bodies of functions without decorators. Here much is decided by tables, defaults and
properties, so its operators are applied to the whole file. Left alone, because nothing could or should tell:
docstrings, annotations, decorators, imports, ``__slots__`` and ``__all__``, what is for type checkers only, the words
of an error message or a log line, and the letter case of a string that is no regular expression.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst
import libcst.matchers as m
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation import mutators

UNTOLD_NAMES = ("__slots__", "__all__")
WORDS_ONLY = ("warn", "debug", "info", "warning", "log", "TypeVar", "ParamSpec", "cast")
"""Calls whose strings are words for people or for type checkers."""


@dataclass(frozen=True)
class Mutant:
    """One change.

    :param line: where it begins.
    :param was: the lines that change, without their margins.
    :param now: the lines that they become.
    :param source: the whole module, changed.
    """

    line: int
    was: str
    now: str
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Every change to a module that gives other code than it had."""
    wrapper = MetadataWrapper(cst.parse_module(source))
    seen = {_code(source)}
    collector = _Collector()
    wrapper.visit(collector)
    for line, node, changed in collector.changes:
        text = wrapper.module.deep_replace(node, changed).code
        try:
            code = _code(text)
        except SyntaxError:
            continue
        if code not in seen:
            seen.add(code)
            yield Mutant(line, *_difference(source, text), text)


def _code(source: str) -> str:
    # Not the code object: that has line numbers, and constants compare equal that are not (1 and 1.0 and True).
    import ast

    return ast.dump(ast.parse(source))


def _difference(before: str, after: str) -> tuple[str, str]:
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    was: list[str] = []
    now: list[str] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            was += before.splitlines()[i1:i2]
            now += after.splitlines()[j1:j2]
    return (" ⏎ ".join(line.strip() for line in was), " ⏎ ".join(line.strip() for line in now))


class _Collector(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[tuple[int, cst.CSTNode, cst.CSTNode]] = []
        self._words = 0

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom, cst.TypeAlias)):
            return False
        if _is_untold(node):
            return False
        self._words += _has_words(node)
        if not (self._words and isinstance(node, cst.BaseString)):
            for changed in _changes(node):
                if self._words and _says_less(node, changed):
                    continue
                line = self.get_metadata(PositionProvider, node).start.line
                self.changes.append((line, node, changed))
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        self._words -= _has_words(original_node)


def _has_words(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Raise) or m.matches(node, m.Arg(keyword=m.Name("meaning"))):
        return True
    if not isinstance(node, cst.Call):
        return False
    name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    return isinstance(name, cst.Name) and (name.value in WORDS_ONLY or name.value.endswith("Error"))


def _is_untold(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.If):
        return m.matches(node.test, m.Name("TYPE_CHECKING"))
    if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
        if m.matches(node.body[0], m.Expr(value=m.SimpleString() | m.ConcatenatedString() | m.Ellipsis())):
            return True  # a docstring, also that of a field
        return any(m.matches(node.body[0], m.Assign(targets=[m.AssignTarget(m.Name(name))])) for name in UNTOLD_NAMES)
    return False


def _changes(node: cst.CSTNode) -> Iterator[Any]:
    for kind, operator in mutators.mutation_operators:
        if isinstance(node, kind):
            for changed in operator(node):
                if not (isinstance(node, cst.BaseString) and _is_case_only(node, changed)) and not _is_false(node):
                    yield changed
    yield from _ours(node)


def _is_case_only(node: Any, changed: Any) -> bool:
    raw = isinstance(node, cst.SimpleString) and "r" in node.prefix
    return not raw and node.value.lower() == changed.value.lower()


def _is_false(node: Any) -> bool:
    """True if a truth value becomes None: another operator turns it round."""
    values = m.Name("True") | m.Name("False")
    return isinstance(node, (cst.Assign, cst.AnnAssign)) and m.matches(node.value, values)


def _says_less(node: cst.CSTNode, changed: Any) -> bool:
    """True if words are replaced by None or left out."""
    kinds = (cst.BaseString, cst.FormattedString)
    if not isinstance(node, cst.Call) or not isinstance(changed, cst.Call):
        return False
    return any(isinstance(old.value, kinds) and old not in changed.args for old in node.args)


def _ours(node: cst.CSTNode) -> Iterable[cst.CSTNode]:
    """A condition forced, an operand or a clamp dropped, a statement left out."""
    if isinstance(node, (cst.If, cst.While)):
        yield node.with_changes(test=cst.Name("False"))
        if isinstance(node, cst.If):
            yield node.with_changes(test=cst.Name("True"))
    elif isinstance(node, cst.BooleanOperation):
        yield node.left
        yield node.right
    elif isinstance(node, cst.Call) and m.matches(node.func, m.Name("min") | m.Name("max")) and len(node.args) == 2:
        yield from (arg.value for arg in node.args if not arg.keyword)
    elif isinstance(node, cst.Expr) and isinstance(node.value, (cst.Call, cst.Yield)):
        yield cst.Pass()
    elif isinstance(node, cst.CompIf):
        yield node.with_changes(test=cst.Name("True"))
