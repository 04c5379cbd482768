"""Messages that appear once in a process."""

from __future__ import annotations

import threading

from requests_smithy_retry.checks import is_first


def test_only_the_first_one_is_first() -> None:
    """Only the first call for each key of a record gives True."""
    said: dict[str, object] = {}
    assert [is_first(said, what) for what in "abab"] == [True, True, False, False]
    assert is_first({}, "a")


def test_of_many_threads_one_is_first() -> None:
    """Of 16 threads that ask at the same time, one gets True."""
    said: dict[str, object] = {}
    barrier, firsts = threading.Barrier(16), []

    def say() -> None:
        barrier.wait(60)
        firsts.append(is_first(said, "a"))

    threads = [threading.Thread(target=say) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(firsts) == [False] * 15 + [True]
