"""Acting on a module as soon as it has been imported, without importing it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Then = Callable[[ModuleType], None]


def after_import(name: str, then: Then) -> None:
    """Call a function with a module: now if it has been imported, else right after its first import.

    :param name: the module's full name.
    :param then: called in the importing thread, before the import returns. The import raises what it raises.
    """
    if name in sys.modules:
        then(sys.modules[name])
        return
    for finder in sys.meta_path:
        if isinstance(finder, _Finder) and finder.name == name:
            finder.calls.append(then)
            return
    sys.meta_path.insert(0, _Finder(name, then))


class _Finder:
    """Finds one module by the other finders, and wraps its loader to act after the module was executed.

    It leaves ``sys.meta_path`` once the module is imported.
    """

    def __init__(self, name: str, then: Then) -> None:
        self.name = name
        self.calls: list[Then] = [then]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the other finders' spec for the one module; None for any other."""
        if name != self.name:
            return None
        others = [
            finder.find_spec
            for finder in sys.meta_path
            if not isinstance(finder, _Finder) and hasattr(finder, "find_spec")
        ]
        spec = next(filter(None, (find(name, path, target) for find in others)), None)
        loader: Any = None if spec is None else spec.loader
        # Patched, not replaced: programs ask loaders for much more than this. A loader may serve many modules.
        if hasattr(loader, "exec_module") and "exec_module" not in getattr(loader, "__dict__", {"exec_module": None}):
            self._wrap(loader)
        return spec

    def _wrap(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if module.__name__ == self.name:
                vars(loader).pop("exec_module", None)
                with contextlib.suppress(ValueError):  # somebody may have replaced the list
                    sys.meta_path.remove(self)
                for then in self.calls:
                    then(module)

        loader.exec_module = exec_module
