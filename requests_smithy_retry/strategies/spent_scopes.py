"""Which scopes a success owes something to (contract 6.2): marks, so few that touching many hosts fills no memory."""

from __future__ import annotations

from ..quota import RetryQuota, is_full
from ..scopes import MAX_SCOPES, OVERFLOW, ScopeTable

MOST_MARKS = 2 * MAX_SCOPES
"""With more, those that nothing is owed to go."""


class SpentScopes(set["str | None"]):
    """The marks of a table's buckets: by scope; one for the bucket that newcomers share. Empty: nothing is owed.

    :param table: of the buckets.
    """

    def __init__(self, table: ScopeTable[RetryQuota]) -> None:
        super().__init__()
        self._table = table

    def owes(self, scope: str | None) -> bool:
        """Whether a first-try success may be worth something. Scopes that share a bucket cannot be told apart."""
        return scope in self or OVERFLOW in self

    def spent(self, scope: str | None, bucket: RetryQuota) -> None:
        """Mark a bucket. Called while it is in use."""
        self.add(self._mark(scope, bucket))
        if len(self) > MOST_MARKS:
            self._prune()

    def given_back(self, scope: str | None, bucket: RetryQuota) -> None:
        """Unmark a bucket that is full. Called while it is in use."""
        if not is_full(bucket):
            return
        mark = self._mark(scope, bucket)
        self.discard(mark)
        # Looked at once more: a retry may have been paid in between, and its mark must not be lost.
        if not is_full(bucket):
            self.add(mark)

    def _mark(self, scope: str | None, bucket: RetryQuota) -> str | None:
        return OVERFLOW if bucket is self._table.overflow else scope

    def _prune(self) -> None:
        """Remove the marks of buckets that were given up: they were as good as new."""
        for mark in tuple(self):
            if mark not in self._table and mark != OVERFLOW:
                self.discard(mark)
                # It may have come back in between, spent.
                if mark in self._table:
                    self.add(mark)
