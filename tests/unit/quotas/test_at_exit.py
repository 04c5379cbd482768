from __future__ import annotations

import gc

from requests_smithy_retry.quotas.redis import link


class Owner:
    def __init__(self, said: list[str]) -> None:
        self.said = said

    def flush(self) -> None:
        self.said.append("flushed")


def test_everybody_who_is_still_there_is_flushed() -> None:
    """Each owner that asked for it is flushed once, and the registry keeps no owner alive."""
    said: list[str] = []
    one, two = Owner(said), Owner(said)
    link.flush_at_exit(one)
    link.flush_at_exit(two)
    del two
    gc.collect()
    link.flush_all()
    assert said == ["flushed"]
    del one
