"""What gives the package under test a switch point before each statement, and simulated threads, clock, network.

:func:`install` comes before the first import of the package. Before each statement of a function it calls ``__step__``,
which is where an interrupt arrives, a thread is preempted, or a process dies. The modules ``threading``, ``time``,
``socket`` and ``selectors`` are those of :mod:`.fakes`. Everything else is the package as it stands.
"""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

PACKAGE = "requests_smithy_retry"
FAKES = frozenset({"threading", "time", "socket", "selectors"})
NOT_STEPPED = frozenset({"__del__", "__repr__"})
"""A finalizer runs whenever the garbage collector likes, and Python swallows what is raised in it."""

cleanups: dict[str, list[tuple[int, int]]] = {}
"""By file: the lines of ``finally`` and ``except`` blocks."""


class _Steps(ast.NodeTransformer):
    """Puts a call of ``__step__`` before each statement, and the fakes in the place of the modules."""

    def __init__(self, file: str) -> None:
        self._depth = 0
        self._ranges = cleanups.setdefault(file, [])

    def visit_Import(self, node: ast.Import) -> Any:
        if len(node.names) == 1 and node.names[0].name in FAKES:
            name = node.names[0].name
            return ast.copy_location(ast.ImportFrom("benchmarks.explore.fakes", [ast.alias(name)], 0), node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if node.name in NOT_STEPPED:
            return node
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        has_docstring = ast.get_docstring(node, clean=False) is not None
        node.body = node.body[:has_docstring] + self._stepped(node.body[has_docstring:])
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node

    def visit_Try(self, node: ast.Try) -> Any:
        for handler in node.handlers:
            self._ranges.append((handler.lineno, handler.end_lineno or handler.lineno))
        if node.finalbody:
            self._ranges.append((node.finalbody[0].lineno, node.finalbody[-1].end_lineno or 0))
        return self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if self._depth and not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    setattr(node, name, self._stepped(block))
        return node

    def _stepped(self, block: list[ast.stmt]) -> list[ast.stmt]:
        stepped: list[ast.stmt] = []
        for statement in block:
            call = ast.Expr(ast.Call(ast.Name("__step__", ast.Load()), [], []))
            stepped += [ast.fix_missing_locations(ast.copy_location(call, statement)), statement]
        return stepped


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> Any:  # not from a cache of bytecode
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        tree = ast.fix_missing_locations(_Steps(path).visit(tree))
        return compile(tree, path, "exec", dont_inherit=True)


class _Finder:
    """Comes before the usual finders, and changes what they find."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] != PACKAGE or ".cli" in name or ".testing" in name:
            return None
        for finder in sys.meta_path:
            spec = None if finder is _Finder else finder.find_spec(name, path, target)
            if spec is not None:
                if type(spec.loader) is importlib.machinery.SourceFileLoader:
                    spec.loader = _Loader(spec.loader.name, spec.loader.path)
                return spec
        return None


def install(step: Callable[[], None]) -> None:
    """Load the package with switch points from now on: ``step`` is called before each statement."""
    if PACKAGE in sys.modules:
        raise RuntimeError(f"{PACKAGE} is loaded already: it cannot be given switch points")
    builtins.__step__ = step
    sys.meta_path.insert(0, _Finder)


NOT_INTERRUPTED = frozenset(
    {
        ("wire/pools.py", "_put_conn"),  # a connection changes hands
        ("features/urllib3_retry/__init__.py", "is_retry"),  # a response changes hands
        ("wire/response.py", "__init__"),  # and here a socket
        ("wire/response.py", "close"),  # http.client has forgotten it by then, until it is collected
    }
)
"""Functions within which nothing in Python can undo what they do halfway: an interrupt there may cost a connection."""


def is_cleaning_up(frame: Any) -> bool:
    """Return True if the package is within ``finally`` or ``except``, or in one of :data:`NOT_INTERRUPTED`."""
    while frame is not None:
        if (frame.f_code.co_filename.rpartition(f"{PACKAGE}/")[2], frame.f_code.co_name) in NOT_INTERRUPTED:
            return True
        ranges = cleanups.get(frame.f_code.co_filename)
        if ranges is not None and any(first <= frame.f_lineno <= last for first, last in ranges):
            return True
        frame = frame.f_back
    return False
