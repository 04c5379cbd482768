"""The time to load a Smithy model, and to match a request.

Run it with the path of a model: ``python benchmarks/smithy_matching.py model.json``; without one, only
matching is measured. Every figure is the best of several runs. The models for matching are made here: REST
operations of every kind (literals, labels, greedy labels, query literals), and awsJson ones.
"""

from __future__ import annotations

import sys
import timeit
from typing import Any

from requests_smithy_retry.smithy import SmithyEndpoint, SmithyModel

SIZES = (10, 100, 1000)
ENDPOINT = "https://api.example.com/v1"
URIS = (
    "/t{0}",
    "/t{0}/{{id}}/part",
    "/t{0}/{{id}}/{{rest+}}",
    "/{{kind}}/of/{{id}}/t{0}",
    "/search?x-id=t{0}",
)
PATHS = ("/t{0}?n={1}", "/t{0}/{1}/part", "/t{0}/{1}/a/b/c", "/any/of/{1}/t{0}", "/search?x-id=t{0}&n={1}")
DISTINCT = 200
"""More URLs of each kind than `urllib.parse` remembers, as no two requests of a program need be alike."""


def synthetic(size: int, protocol: str) -> SmithyEndpoint:
    """A model with this many operations, on its endpoint."""
    shapes: dict[str, Any] = {
        f"bench#Op{index}": {
            "type": "operation",
            "traits": {
                "smithy.api#idempotent": {},
                "smithy.api#http": {"method": "POST", "uri": URIS[index % len(URIS)].format(index)},
            },
        }
        for index in range(size)
    }
    bound = [{"target": name} for name in shapes]
    shapes["bench#Bench"] = {"type": "service", "version": "1", "operations": bound, "traits": {protocol: {}}}
    return SmithyModel.from_dict({"smithy": "2.0", "shapes": shapes}).for_endpoint(ENDPOINT)


def requests_of(size: int, protocol: str) -> list[tuple[str, dict[str, str]]]:
    """URLs and headers of requests of each kind in turn, to operations in the middle of the model."""
    middle = size // 2 - size // 2 % len(URIS)
    if protocol.endswith("awsJson1_0"):
        return [(ENDPOINT, {"X-Amz-Target": f"Bench.Op{middle + kind}"}) for kind in range(len(URIS))]
    return [
        (ENDPOINT + path.format(middle + kind, number), {})
        for number in range(DISTINCT)
        for kind, path in enumerate(PATHS)
    ]


def microseconds(size: int, protocol: str) -> float:
    """Return the time to ask an endpoint about one request."""
    endpoint, sent = synthetic(size, protocol), requests_of(size, protocol)
    for index, (url, headers) in enumerate(sent):
        found = endpoint.operation_for("POST", url, headers, b"{}")
        if found is None or int(found.name[2:]) % len(URIS) != index % len(URIS):
            raise SystemExit(f"{url}: matched {found}")

    def match() -> None:
        for url, headers in sent:
            endpoint.operation_for("POST", url, headers, b"{}")

    rounds = 10_000 // len(sent)
    return min(timeit.repeat(match, number=rounds, repeat=5)) / rounds / len(sent) * 1e6


def load_milliseconds(path: str) -> float:
    """Return the time to load a model."""
    return min(timeit.repeat(lambda: SmithyModel.load(path), number=1, repeat=5)) * 1000


def main() -> None:
    """Print the figures."""
    for path in sys.argv[1:]:
        print(f"load {path}: {load_milliseconds(path):.1f} ms, {SmithyModel.load(path)}")
    for protocol in ("aws.protocols#restJson1", "aws.protocols#awsJson1_0"):
        costs = [microseconds(size, protocol) for size in SIZES]
        for size, cost in zip(SIZES, costs, strict=True):
            print(f"{protocol}: {size:>5} operations: {cost:6.2f} us per request, ratio {cost / costs[0]:.2f}")


if __name__ == "__main__":
    main()
