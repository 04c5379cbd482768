"""The benchmark of names with sick addresses."""

from __future__ import annotations

import pytest

from benchmarks import addresses

pytestmark = [pytest.mark.once, pytest.mark.real_time]


def test_a_sick_address_fails_no_operation_of_ours() -> None:
    """Operations of ours succeed with every sick address, while those of plain requests fail."""
    with addresses.scene() as stage:
        cells = {
            kind: addresses.measure(stage, addresses.PEERS[addresses.OURS], kind, (2, 1), fresh=2, long=3)
            for kind in addresses.KINDS
        }
        plain = addresses.measure(stage, addresses.PEERS["plain"], "503", (2, 1), fresh=1, long=0)
        crowd = addresses.crowd(stage, "refusing", 2, 2)
    assert [1.0] * len(addresses.KINDS) == [cell["success"] for cell in cells.values()]
    assert [0, 0, 1, 1, 1] == [cell["hits"] for cell in cells.values()]
    assert (0.0, 1.0) == (plain["success"], crowd)
