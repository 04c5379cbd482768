"""The reader of the JSON AST, and its errors."""

from __future__ import annotations

import pickle

import pytest

from requests_smithy_retry.smithy import SmithyModelError
from requests_smithy_retry.smithy.json_ast import Ast, Node


def ast_of(shapes):
    return Ast(Node({"smithy": "2.0", "shapes": shapes}, "api.json"))


def shape(*mixins, kind="structure", **more):
    """A shape with its mixins, by their names."""
    return {"type": kind, "mixins": [{"target": f"t#{name}"} for name in mixins], **more}


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        ("object", [], "expected an object, found an array"),
        ("object", ("a",), "expected an object, found tuple"),
        ("elements", {}, "expected an array, found an object"),
        ("string", "", "expected a string that is not empty, found ''"),
        ("string", None, "expected a string that is not empty, found null"),
        ("integer", True, "expected an integer, found a boolean"),
        ("integer", 1.5, "expected an integer, found a number"),
        ("boolean", "x" * 100, f"expected true or false, found '{'x' * 40}'"),
        pytest.param("boolean", 10**5000, "expected true or false, found a number", id="huge"),
        ("annotation", False, "expected an object, found a boolean"),
        ("target", {}, 'expected an object with "target", found an object'),
        ("items", {1: 2}, "expected an object whose keys are strings, found an object"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(read, value, expected):
    """An error says what was expected and what was found, shortened, and where."""
    with pytest.raises(SmithyModelError) as caught:
        list(getattr(Node(value, "api.json", ("shapes", "t#X")), read)() or ())
    assert str(caught.value) == f"api.json: at /shapes/t#X: {expected}"


def test_mixins_give_traits_members_and_references():
    """A shape has those of its mixins, a later one and its own replacing an earlier one's, but no local ones."""
    local = {"smithy.api#mixin": {"localTraits": ["x#local", "x#absent"]}, "x#local": 1, "x#a": 1, "x#b": 1}
    ast = ast_of(
        {
            "t#A": shape(traits=local, members={"m": {"traits": {"x#t": 1}}}),
            "t#B": shape("A", traits={"x#b": 2}),
            "t#C": shape("A", "B", traits={"x#c": 3}, members={"n": {}}),
            "t#C$m": {"type": "apply", "traits": {"x#applied": 4}},
            "t#M": shape(kind="service", operations=[{"target": "t#A"}]),
            "t#S": shape("M", kind="service", operations=[{"target": "t#B"}]),
        }
    )
    assert ast.lineage("t#C") == ("t#A", "t#B", "t#C")
    assert {key: node.value for key, node in ast.traits("t#C").items()} == {"x#a": 1, "x#b": 2, "x#c": 3}
    assert list(ast.traits("t#A")) == list(local)
    members = {key: sorted(traits) for key, traits in ast.members("t#C").items()}
    assert members == {"m": ["x#applied", "x#t"], "n": []}
    assert [node.target() for node in ast.references("t#S", "operations")] == ["t#A", "t#B"]
    assert list(ast.references("t#S", "resources")) == []


def test_a_circle_of_mixins_is_refused():
    """A mixin that leads back to its shape is an error, not endless."""
    with pytest.raises(SmithyModelError, match=r"at /shapes/t#B/mixins/0: expected a mixin that does not lead back"):
        ast_of({"t#A": shape("B"), "t#B": shape("A")}).lineage("t#A")


def test_a_mixin_is_followed_once():
    """Mixins that are reached in a billion ways cost no more than their number."""
    shapes = {"t#30a": shape(), "t#30b": shape()}
    for level in range(30):
        shapes.update({f"t#{level}{side}": shape(f"{level + 1}a", f"{level + 1}b") for side in "ab"})
    assert len(ast_of(shapes).lineage("t#0a")) == 61


@pytest.mark.parametrize("target", ["t#Nothing", "t#A$b"])
def test_a_reference_has_to_lead_somewhere(target):
    """A reference to a shape that is not there, or is of another type, is an error at the reference."""
    ast = ast_of({"t#A": {"type": "structure"}, "t#A$b": {"type": "apply"}})
    with pytest.raises(SmithyModelError, match=r"at /x: expected a reference to a shape of type structure"):
        ast.follow(Node({"target": target}, "api.json", ("x",)), "structure")


@pytest.mark.parametrize(
    ("by_position", "by_name", "shown"),
    [
        (("api.json", "/shapes/a~1b", "expected an object"), {}, "api.json: at /shapes/a~1b: expected an object"),
        ((), {"source": "api.json", "place": "", "problem": "expected"}, "api.json: expected"),
    ],
)
def test_an_error_says_where_and_survives_pickling(by_position, by_name, shown):
    """File, place, if it has one, and what was expected; it can cross a process pool, however it was made."""
    parts = by_position or tuple(by_name.values())
    error = pickle.loads(pickle.dumps(SmithyModelError(*by_position, **by_name)))
    assert (error.source, error.place, error.problem) == parts
    assert (str(error), repr(error)) == (shown, f"SmithyModelError{parts!r}")
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(("read", "value"), [("annotation", True), ("annotation", {}), ("boolean", False)])
def test_a_value_of_the_right_kind_is_taken(read, value):
    """The value of an annotation is an object, or true as in the 1.0 AST."""
    getattr(Node(value, "api.json"), read)()
