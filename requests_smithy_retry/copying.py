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


class PicklesByEveryProtocol:
    """A mix-in for classes with slots, which pickle protocols 0 and 1 cannot handle."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return the parts of protocol 2 or later, which the older ones can write, too."""
        return super().__reduce_ex__(max(protocol, 2))
