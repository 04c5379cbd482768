"""Small Smithy ASTs for the tests, made by hand, and where the published ones are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SMALL = sorted((HERE / "models").glob("*.json"))


def published() -> list[Path]:
    """The published models: in the folder that SMITHY_MODELS names, or beside the repository; else none."""
    folder = Path(os.environ.get("SMITHY_MODELS") or HERE.parents[1].parent / "shared" / "smithy-models")
    return sorted(folder.glob("*.json"))


def every_model() -> list[Path]:
    return [*SMALL, *published()]


def annotation(*names: str) -> dict[str, Any]:
    return {name if "#" in name else f"smithy.api#{name}": {} for name in names}


def operation(
    name: str,
    *,
    http: str | None = None,
    traits: dict[str, Any] | None = None,
    members: dict[str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """The shapes of one operation: ``http`` as in ``"GET /things/{id}"``, members as name -> traits."""
    shape: dict[str, Any] = {"type": "operation", "traits": dict(traits or {})}
    shapes = {f"t#{name}": shape}
    if http is not None:
        method, uri = http.split(" ")
        shape["traits"]["smithy.api#http"] = {"method": method, "uri": uri}
    if members is not None:
        shape["input"] = {"target": f"t#{name}Input"}
        described = {key: {"target": "smithy.api#String", "traits": value} for key, value in members.items()}
        shapes[f"t#{name}Input"] = {"type": "structure", "members": described}
    return shapes


def service(*operations: dict[str, Any], protocol: str = "aws.protocols#restJson1", **more: Any) -> dict[str, Any]:
    """A model with one service, ``t#Service``, and its operations; ``more`` goes to the service shape."""
    shapes: dict[str, Any] = {}
    for each in operations:
        shapes.update(each)
    bound = [{"target": key} for key, shape in shapes.items() if shape["type"] == "operation"]
    traits = annotation(*protocol.split()) if protocol else {}
    shapes["t#Service"] = {"type": "service", "version": "1", "operations": bound, "traits": traits, **more}
    return {"smithy": "2.0", "shapes": shapes}


def error(name: str, fault: str = "client", **traits: Any) -> dict[str, Any]:
    """The shape of one error: ``retryable={}``, ``httpError=429``, ..."""
    shape_id = name if "#" in name else f"t#{name}"
    named = {f"smithy.api#{key}" if "__" not in key else key.replace("__", "#"): value for key, value in traits.items()}
    return {shape_id: {"type": "structure", "traits": {"smithy.api#error": fault, **named}}}
