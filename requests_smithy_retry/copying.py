"""Copies and pickles (contract 11.1): configuration is kept, runtime state is not."""

from __future__ import annotations

from typing import Any, ClassVar


class FreshCopies:
    """A class whose copies and pickles keep all attributes but those that hold runtime state.

    A copy is made without the constructor, so a subclass may have a constructor of its own.
    """

    _past: ClassVar[frozenset[str]]
    """The attributes that a copy begins anew."""

    def _begin(self) -> None:
        """Set the attributes named in ``_past``."""
        raise NotImplementedError  # pragma: no cover - each subclass has it

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in self._past}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()
