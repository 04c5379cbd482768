"""Threads in virtual time: one runs at a time, and the clock jumps when all of them wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from math import inf

from requests_smithy_retry.testing import FakeClock


class _Turn:
    def __init__(self) -> None:
        self.go = threading.Semaphore(0)
        self.until = -inf
        self.looks: threading.Condition | None = None
        """The condition on which it waits, at which it may look whenever another thread has got any further."""


class TurnClock(FakeClock):
    """A clock on which only the threads of :meth:`run` wait, each for its own moment."""

    def __init__(self, wall: float = 1_700_000_000.0) -> None:
        super().__init__(wall=wall)
        self._turns: list[_Turn] = []
        self._mine = threading.local()
        self._has_looked: set[_Turn] = set()

    def run(self, functions: Iterable[Callable[[], object]]) -> None:
        """Run each function in a thread of its own, to its end."""
        errors: list[BaseException] = []

        def work(turn: _Turn, function: Callable[[], object]) -> None:
            turn.go.acquire()
            self._mine.turn = turn
            try:
                function()
            except BaseException as error:
                errors.append(error)
            finally:
                self._turns.remove(turn)
                self._has_looked.clear()
                self._hand_on()

        threads = []
        for function in functions:
            turn = _Turn()
            turn.until = self.now()
            self._turns.append(turn)
            threads.append(threading.Thread(target=work, args=(turn, function), daemon=True))
            threads[-1].start()
        self._hand_on()
        for thread in threads:
            thread.join(60)
        assert [] == self._turns
        if errors:
            raise errors[0]

    def sleep(self, seconds: float) -> None:
        if getattr(self._mine, "turn", None) is None:
            super().sleep(seconds)
        else:
            self._rest(seconds, None)

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Wait with the lock released; come back whenever others have run."""
        condition.release()
        try:
            if getattr(self._mine, "turn", None) is None:
                super().sleep(seconds)
            else:
                self._rest(seconds, condition)
        finally:
            condition.acquire()

    def _rest(self, seconds: float, looks: threading.Condition | None) -> None:
        turn = self._mine.turn
        if looks is None or turn.looks is not looks:  # else it has only looked
            self._has_looked.clear()
        turn.until, turn.looks = self.now() + seconds, looks
        if looks is not None:
            self._has_looked.add(turn)
        self._hand_on()
        turn.go.acquire()

    def _hand_on(self) -> None:
        """Let the next one run: one that has something to look at, or else the first one that is due."""
        if not self._turns:
            return
        first = next((turn for turn in self._turns if turn.looks is not None and turn not in self._has_looked), None)
        first = first or min(self._turns, key=lambda turn: turn.until)
        if first.looks is None or first in self._has_looked:
            self.advance(max(0.0, first.until - self.now()))
            self._has_looked.discard(first)
        first.go.release()
