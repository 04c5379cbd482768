"""The benchmark of names with sick addresses."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

import addresses

pytestmark = pytest.mark.once


@pytest.mark.real_time
def test_a_sick_address_fails_no_operation_of_ours() -> None:
    """Operations of ours succeed with every sick address, while those of plain requests fail."""
    with addresses.scene() as stage:
        cells = {
            kind: addresses.measure(stage, addresses.PEERS[addresses.OURS], kind, (2, 1), fresh=2, long=3)
            for kind in addresses.KINDS
        }
        plain = addresses.measure(stage, addresses.PEERS["plain"], "503", (2, 1), fresh=1, long=0)
        cost = addresses.new_connection_cost(stage, 2, 2, 2)
        crowd = addresses.crowd(stage, "refusing", 2, 2)
    assert [1.0] * len(addresses.KINDS) == [cell["success"] for cell in cells.values()]
    assert [0, 0, 1, 1, 1] == [cell["hits"] for cell in cells.values()]
    assert (0.0, 1.0, {"median", "q1", "q3"}) == (plain["success"], crowd, set(cost))


def cell(**changed: Any) -> dict[str, Any]:
    return {"success": 1.0, "first": 0.01, "later": 0.001, "hits": 0, **changed}


def row(kind: str = "refusing", **changed: Any) -> dict[str, Any]:
    sick = 0 if kind == addresses.HEALTHY else 1
    return {"method": "GET", "kind": kind, "addresses": 2, "sick": sick, addresses.OURS: cell(**changed)}


@pytest.mark.parametrize(
    ("changed", "part", "expected"),
    [
        ({}, 1.0, []),
        ({"success": 0.5}, 1.0, ["GET, 1 of 2 refusing: 50.0% succeed"]),
        ({"first": 0.5}, 1.0, ["GET, 1 of 2 refusing: the first takes 0.500 s"]),
        ({"later": 0.011}, 1.0, ["GET, 1 of 2 refusing: a later one takes 10.0 ms more"]),
        ({"hits": 2}, 1.0, ["GET, 1 of 2 refusing: a sick address gets 2.0 requests"]),
        ({}, 0.9, ["200 clients, refusing: 90.00%"]),
    ],
)
def test_what_is_missed_is_told(changed: Any, part: float, expected: list[str]) -> None:
    """Beside the healthy case, by what is wanted."""
    result = {"rows": [row(addresses.HEALTHY), row(**changed)], "clients": {"refusing": part}}
    assert expected == addresses.missed(result)


def test_a_percentile_is_one_of_the_values() -> None:
    """That so large a part of them is not above."""
    assert (98, 1) == (addresses.percentile(list(range(99)), 0.99), addresses.percentile([1], 0.99))
