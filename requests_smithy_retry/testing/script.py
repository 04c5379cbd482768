"""The script of a server: the behaviours in turn."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from .behaviour import Behaviour, ReadSoFar
from .recorded_request import RecordedRequest

Step = Behaviour | Callable[[RecordedRequest], Behaviour]
"""One turn: a behaviour, or a function of the whole request that returns one."""

Turns = Step | Sequence[Step]
"""A single step for every request, or a sequence with one step per request."""

Steps = Turns | Mapping[str, Turns]
"""Turns for all requests, or by path (the whole target with its query is looked up first)."""


class Script:
    """Gives each step once, to any number of threads."""

    def __init__(self, steps: Steps, default: Behaviour) -> None:
        self._steps = steps
        self._default = default
        self._lock = threading.Lock()
        self.rewind()

    def rewind(self) -> None:
        with self._lock:
            if isinstance(self._steps, Mapping):
                self._by_path = {path: _Turns(turns) for path, turns in self._steps.items()}
                self._common = _Turns(())
            else:
                self._by_path = {}
                self._common = _Turns(self._steps)

    def take_early(self, read: ReadSoFar) -> Behaviour | None:
        """Take the next step if it begins at ``read`` or earlier."""
        with self._lock:
            step = self._common.peek()
            if isinstance(step, Behaviour) and step.begins_after <= read:
                self._common.take()
                return step
        return None

    def take(self, request: RecordedRequest) -> Step:
        """Take the step for a request whose head was read."""
        with self._lock:
            turns = self._by_path.get(request.target) or self._by_path.get(request.path) or self._common
            return turns.take() or self._default


class _Turns:
    def __init__(self, turns: Turns) -> None:
        self._always = None if isinstance(turns, Sequence) else turns
        self._left = deque(turns if isinstance(turns, Sequence) else ())

    def peek(self) -> Step | None:
        return self._left[0] if self._left else self._always

    def take(self) -> Step | None:
        return self._left.popleft() if self._left else self._always
