"""The order in which classifiers run (contract 3.3): opaque, and only ever made relative to another."""

from __future__ import annotations

import functools


@functools.total_ordering
class RetryClassifierPriority:
    """Where a classifier runs. Lower priorities run first and may be overruled by higher ones.

    A priority is made from another one:

    >>> status = RetryClassifierPriority.http_status_code_classifier()
    >>> RetryClassifierPriority.run_before(status) < status < RetryClassifierPriority.run_after(status)
    True

    Each lies nearest to the one it was made from, so that ``run_before(p)`` lies above everything below ``p``
    except what was made relative to it or to ``p`` itself. Equal priorities keep the order of addition.
    """

    __slots__ = ("_path",)

    _path: tuple[int, ...]

    def __init__(self, *, _path: tuple[int, ...] = (4,)) -> None:
        object.__setattr__(self, "_path", _path)

    @classmethod
    def default(cls) -> RetryClassifierPriority:
        """The priority of a classifier that names none: after all default classifiers."""
        return cls()

    @classmethod
    def run_before(cls, other: RetryClassifierPriority) -> RetryClassifierPriority:
        """Just earlier than ``other``, which may therefore overrule it.

        :raises TypeError: if ``other`` is no priority.
        """
        return cls(_path=(*_path_of(other), -1))

    @classmethod
    def run_after(cls, other: RetryClassifierPriority) -> RetryClassifierPriority:
        """Just later than ``other``, which it may therefore overrule.

        :raises TypeError: if ``other`` is no priority.
        """
        return cls(_path=(*_path_of(other), 1))

    @classmethod
    def http_status_code_classifier(cls) -> RetryClassifierPriority:
        """The priority of :class:`HttpStatusCodeClassifier`, the lowest of the defaults."""
        return cls(_path=(0,))

    @classmethod
    def aws_error_code_classifier(cls) -> RetryClassifierPriority:
        """The priority of :class:`AwsErrorCodeClassifier`."""
        return cls(_path=(1,))

    @classmethod
    def modeled_as_retryable_classifier(cls) -> RetryClassifierPriority:
        """The priority of :class:`ModeledAsRetryableClassifier`."""
        return cls(_path=(2,))

    @classmethod
    def transient_error_classifier(cls) -> RetryClassifierPriority:
        """The priority of :class:`TransientErrorClassifier`, the highest of the defaults."""
        return cls(_path=(3,))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} does not change; make another with run_before or run_after")

    # A child sorts around its parent: the parent's own place is 0 at the child's level, before is -1, after 1.
    def __lt__(self, other: object) -> bool:
        if not isinstance(other, RetryClassifierPriority):
            return NotImplemented
        return (*self._path, 0) < (*other._path, 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RetryClassifierPriority) and self._path == other._path

    def __hash__(self) -> int:
        return hash(self._path)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._path}>"

    def __reduce__(self) -> tuple[object, tuple[tuple[int, ...]]]:
        return _priority, (self._path,)


def _path_of(other: object) -> tuple[int, ...]:
    if not isinstance(other, RetryClassifierPriority):
        raise TypeError(f"a priority is made relative to another RetryClassifierPriority, not to {other!r}")
    return other._path


def _priority(path: tuple[int, ...]) -> RetryClassifierPriority:
    """Rebuild a priority from a pickle or a copy."""
    return RetryClassifierPriority(_path=path)
