"""The reader of the Smithy JSON AST (contract 3; Smithy 2.0 "JSON AST", "Mixins").

Every access is checked, so a broken model can only raise :class:`SmithyModelError`. The AST is not kept after loading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MIXIN = "smithy.api#mixin"
PRELUDE = "smithy.api#"
_KIND = {dict: "an object", list: "an array", type(None): "null", bool: "a boolean", int: "a number", float: "a number"}


class SmithyModelError(ValueError):
    """A model that cannot be used. The message names the file, the place in it, and what was expected there.

    >>> print(SmithyModelError("api.json", "/shapes", "expected an object, found null"))
    api.json: at /shapes: expected an object, found null

    :param source: the path as the user gave it.
    :param place: a JSON pointer into the file, ``line 3, column 7``, or an empty string for the whole file.
    :param problem: a phrase with what was expected and found.
    """

    def __init__(self, source: str, place: str, problem: str) -> None:
        super().__init__(source, place, problem)
        self.source = source
        self.place = place
        self.problem = problem

    def __str__(self) -> str:
        where = f"at {self.place}: " if self.place != "" else ""
        return f"{self.source}: {where}{self.problem}"


def pointer(keys: tuple[str, ...]) -> str:
    """Return a JSON pointer (RFC 6901)."""
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)


@dataclass(frozen=True, slots=True)
class Node:
    """One JSON value and its place in the file. Each reader checks the value, and names the place in its error."""

    value: Any
    source: str
    keys: tuple[str, ...] = ()

    def error(self, expected: str) -> SmithyModelError:
        kind = type(self.value)
        found = repr(self.value[:40]) if isinstance(self.value, str) else _KIND.get(kind, kind.__name__)
        return SmithyModelError(self.source, pointer(self.keys), f"expected {expected}, found {found}")

    def child(self, key: str) -> Node | None:
        value = self.object().get(key, self)
        return None if value is self else Node(value, self.source, (*self.keys, key))

    def needed(self, key: str, expected: str = "") -> Node:
        child = self.child(key)
        if child is None:
            raise self.error(expected or f'an object with "{key}"')
        return child

    def each_of(self, key: str) -> Iterator[Node]:
        listed = self.child(key)
        if listed is not None:
            yield from listed.elements()

    def items(self) -> Iterator[tuple[str, Node]]:
        for key, value in self.object().items():
            if not isinstance(key, str):
                raise self.error("an object whose keys are strings")
            yield key, Node(value, self.source, (*self.keys, key))

    def elements(self) -> Iterator[Node]:
        for index, value in enumerate(self._checked(isinstance(self.value, list), "an array")):
            yield Node(value, self.source, (*self.keys, str(index)))

    def object(self) -> Any:
        return self._checked(isinstance(self.value, dict), "an object")

    def string(self) -> str:
        return str(self._checked(isinstance(self.value, str) and self.value != "", "a string that is not empty"))

    def integer(self) -> int:
        return int(self._checked(isinstance(self.value, int) and not isinstance(self.value, bool), "an integer"))

    def boolean(self) -> bool:
        return bool(self._checked(isinstance(self.value, bool), "true or false"))

    def _checked(self, is_right: bool, expected: str) -> Any:
        if not is_right:
            raise self.error(expected)
        return self.value

    def annotation(self) -> None:
        """Check that this is the value of an annotation trait: an object (``true`` in the 1.0 AST)."""
        if self.value is not True:
            self.object()

    def target(self) -> str:
        return self.needed("target").string()


class Ast:
    """The shapes of one model, with mixins and applied traits resolved."""

    def __init__(self, root: Node) -> None:
        version = root.needed("smithy", 'a Smithy JSON AST: an object with "smithy" (its version) and "shapes"')
        if version.string().split(".")[0] not in ("1", "2"):
            raise version.error('the version of a Smithy AST, "1.0" or "2.0"')
        self.root = root
        self.shapes: dict[str, Node] = {}
        self.by_type: dict[str, list[str]] = {}
        for shape_id, shape in root.needed("shapes").items():
            kind = shape.needed("type", 'a shape: an object with "type"')
            self.shapes[shape_id] = shape
            self.by_type.setdefault(kind.string(), []).append(shape_id)
        self._lineages: dict[str, tuple[str, ...]] = {}

    def follow(self, reference: Node, kind: str) -> str:
        """Return the shape ID in a reference, which must exist and be of this type."""
        target = reference.target()
        shape = self.shapes.get(target)
        if shape is None or shape.value["type"] != kind:
            raise reference.error(f"a reference to a shape of type {kind} (there is no {kind} {target!r})")
        return target

    def lineage(self, shape_id: str, above: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the mixins of a shape in the order in which they apply, and last the shape itself."""
        known = self._lineages.get(shape_id)
        if known is not None:
            return known
        shape = self.shapes[shape_id]
        line: dict[str, None] = {}
        above = (*above, shape_id)
        for reference in shape.each_of("mixins"):
            mixin = self.follow(reference, shape.value["type"])
            if mixin in above:
                raise reference.error("a mixin that does not lead back to itself")
            line.update(dict.fromkeys(self.lineage(mixin, above)))
        self._lineages[shape_id] = (*line, shape_id)
        return self._lineages[shape_id]

    def traits(self, shape_id: str) -> dict[str, Node]:
        """Return the traits of a shape: those of its mixins (except local ones), then its own."""
        found: dict[str, Node] = {}
        for ancestor in self.lineage(shape_id):
            own = _traits(self.shapes[ancestor])
            if ancestor != shape_id and MIXIN in own:
                for name in own.pop(MIXIN).each_of("localTraits"):
                    own.pop(name.string(), None)
            found.update(own)
        return found

    def members(self, shape_id: str) -> dict[str, dict[str, Node]]:
        """Return the members of a structure with the traits of each, applied ones included."""
        found: dict[str, dict[str, Node]] = {}
        for ancestor in self.lineage(shape_id):
            members = self.shapes[ancestor].child("members")
            for name, member in () if members is None else members.items():
                found.setdefault(name, {}).update(_traits(member))
        for name, traits in found.items():
            applied = self.shapes.get(f"{shape_id}${name}")
            if applied is not None:
                traits.update(_traits(applied))
        return found

    def references(self, shape_id: str, key: str) -> Iterator[Node]:
        """Yield the references in a list of a service or resource, those of its mixins included."""
        for ancestor in self.lineage(shape_id):
            yield from self.shapes[ancestor].each_of(key)


def _traits(holder: Node) -> dict[str, Node]:
    traits = holder.child("traits")
    return {} if traits is None else dict(traits.items())


def shape_name(shape_id: str) -> str:
    return shape_id.rpartition("#")[2]
