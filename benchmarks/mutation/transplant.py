"""Put a mutated text into a module that is imported already: quick, but it does not reach everything.

Functions and methods get the code and the defaults of the mutated ones, classes and modules their plain constants.
What was worked out from them when other modules were imported stays as it was, so a survivor is tried once more with
the module imported anew.
"""

from __future__ import annotations

import enum
import functools
import re
import sys
from types import FunctionType, ModuleType
from typing import Any

PLAIN = (int, float, str, bytes, type(None), re.Pattern)


def transplant(module: ModuleType, source: str) -> None:
    """Make a module behave as if it had another text.

    :param module: one of a package that is imported.
    :param source: the other text; it is executed, and may raise what it likes.
    """
    fresh = ModuleType(module.__name__)
    for name in ("__package__", "__file__", "__spec__", "__path__"):
        if hasattr(module, name):
            setattr(fresh, name, getattr(module, name))
    exec(compile(source, str(module.__file__), "exec"), fresh.__dict__)
    package = module.__name__.partition(".")[0]
    holders = [vars(each) for name, each in tuple(sys.modules.items()) if name.partition(".")[0] in (package, "tests")]
    for name, new in vars(fresh).items():
        old = vars(module).get(name)
        if name.startswith("__") or new is old:
            continue
        if _is_plain(old) and _is_plain(new):
            for holder in holders:
                if holder.get(name) is old:
                    holder[name] = new
        elif isinstance(new, type):
            if new.__module__ == module.__name__:
                _change_class(old, new)
        else:
            _change_function(old, new)


def _change_class(old: Any, new: type) -> None:
    if issubclass(new, enum.Enum):
        return
    for name, value in vars(new).items():
        before = vars(old).get(name)
        if name.startswith("__") and not isinstance(value, FunctionType):
            continue
        if _is_plain(before) and _is_plain(value):
            if before != value or type(before) is not type(value):
                setattr(old, name, value)
        elif isinstance(value, property):
            for part in ("fget", "fset"):
                _change_function(getattr(before, part, None), getattr(value, part))
        else:
            _change_function(before, value)


def _change_function(old: Any, new: Any) -> None:
    if isinstance(old, (staticmethod, classmethod, functools.cached_property)):
        kind = "func" if isinstance(old, functools.cached_property) else "__func__"
        _change_function(getattr(old, kind), getattr(new, kind, None))
    elif hasattr(old, "__wrapped__") and hasattr(new, "__wrapped__"):
        _change_function(old.__wrapped__, new.__wrapped__)
    elif isinstance(old, FunctionType) and isinstance(new, FunctionType):
        if old.__code__.co_freevars != new.__code__.co_freevars:
            return
        old.__code__ = new.__code__
        if len(old.__defaults__ or ()) == len(new.__defaults__ or ()):
            pairs = zip(old.__defaults__ or (), new.__defaults__ or (), strict=True)
            old.__defaults__ = tuple(after if _is_plain(after) else before for before, after in pairs) or None
        if old.__kwdefaults__ is not None and new.__kwdefaults__ is not None:
            plain = {name: value for name, value in new.__kwdefaults__.items() if _is_plain(value)}
            old.__kwdefaults__ = old.__kwdefaults__ | plain


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list, set, frozenset)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    return isinstance(value, PLAIN) and not isinstance(value, enum.Enum)
