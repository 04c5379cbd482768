from __future__ import annotations

import copy
import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from requests_smithy_retry import ErrorKind, RetryAction
from requests_smithy_retry.smithy import IdempotencyToken, SmithyModel, SmithyModelError, TokenLocation

from .asts import HERE, error, every_model, operation, service

MODELS = every_model()


@pytest.fixture(params=MODELS, ids=lambda path: path.name)
def path(request):
    return request.param


SHAPE = b'{"smithy": "2.0", "shapes": {"t#X": %s}}'


@pytest.mark.parametrize(
    ("name", "content", "place", "expected"),
    [
        ("broken", b'{"smithy":\n  @}', "", "cannot be read: .*line 2 column 3"),
        ("empty", b"", "", "cannot be read: .*line 1 column 1"),
        ("latin", b'{"smithy": "\xe9"}', "", "cannot be read: 'utf-8' .* position 12"),
        ("deep", b"[" * 200_000, "", "cannot be read: "),
        ("number", b"9" * 5000, "", "cannot be read: "),
        ("list", b"[]", "", "expected an object, found an array"),
        ("nothing", b"{}", "", 'expected a Smithy JSON AST: an object with "smithy"'),
        ("other", b'{"openapi": "3.0"}', "", "expected a Smithy JSON AST"),
        ("bare version", b'{"smithy": 2, "shapes": {}}', "/smithy", "expected a string"),
        ("version", b'{"smithy": "3.0", "shapes": {}}', "/smithy", "expected the version of a Smithy AST"),
        ("no shapes", b'{"smithy": "2.0"}', "", 'expected an object with "shapes"'),
        ("shapes", b'{"smithy": "2.0", "shapes": []}', "/shapes", "expected an object, found an array"),
        ("no type", SHAPE % b"{}", "/shapes/t#X", 'expected a shape: an object with "type"'),
        ("type", SHAPE % b'{"type": 1}', "/shapes/t#X/type", "expected a string"),
        ("missing", None, "", "cannot be read: .*No such file"),
    ],
)
def test_a_file_that_is_no_model_is_named(tmp_path, name, content, place, expected):
    """A file that cannot be read or is no model gets an error with its path, the place and what a model has there."""
    path = tmp_path / f"{name}.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SmithyModelError) as caught:
        SmithyModel.load(str(path))
    assert (caught.value.source, caught.value.place) == (str(path), place)
    assert re.match(expected, caught.value.problem)


def test_several_services_need_a_choice(tmp_path):
    """A model with two services is read for the one that was named, from a file and from a parsed AST."""
    ast = service(operation("Op"))
    ast["shapes"]["t#Other"] = {"type": "service", "version": "1"}
    path = tmp_path / "two.json"
    path.write_text(json.dumps(ast), "utf-8")
    with pytest.raises(SmithyModelError, match="expected one service, or service= with one of t#Other, t#Service"):
        SmithyModel.from_dict(ast)
    with pytest.raises(SmithyModelError, match="expected a model with the service 't#Third'"):
        SmithyModel.from_dict(ast, service="t#Third")
    for model in (SmithyModel.from_dict(ast, service="t#Service"), SmithyModel.load(path, service="t#Service")):
        assert list(model.operations) == ["Op"]


def test_an_operation_name_is_there_once():
    """Two operations of one name in one service are an error."""
    ast = service(operation("Op"), {"u#Op": {"type": "operation"}})
    with pytest.raises(SmithyModelError, match=r"^<model>: at /shapes/u#Op: expected one operation of this name"):
        SmithyModel.from_dict(ast)


def test_endless_nesting_is_told():
    """Mixins nested beyond what can be followed are an error, not a crash."""
    shapes = {f"t#{i}": {"type": "structure", "mixins": [{"target": f"t#{i + 1}"}]} for i in range(5000)}
    shapes["t#5000"] = {"type": "structure"}
    with pytest.raises(SmithyModelError, match=r"^deep\.json: expected shapes that are not nested without end"):
        SmithyModel.from_dict({"smithy": "2.0", "shapes": shapes}, "deep.json")


def test_the_excerpt_of_a_real_model():
    """The excerpt of directory-service-data says what the published model says."""
    found = SmithyModel.load(HERE / "models" / "directory-excerpt.json")
    resendable = {name: each.resendable for name, each in found.operations.items()}
    assert resendable == {"DescribeUser": True, "CreateGroup": False, "ListUsers": True}
    create = found.match("POST", "/Groups/CreateGroup?DirectoryId=d-1", {}, b"{}")
    assert create.idempotency_token == IdempotencyToken("ClientToken", TokenLocation.JSON, "ClientToken")
    assert not create.resendable_with("/", {}, b"{}")
    assert create.resendable_with("/", {}, b'{"ClientToken": "1"}')
    assert found.verdict_for("ThrottlingException", 429).reason.kind is ErrorKind.THROTTLING
    assert found.verdict_for("DirectoryUnavailableException", 400).reason.kind is ErrorKind.TRANSIENT
    assert found.verdict_for("ConflictException", 409) == RetryAction.no_action_indicated()


def request_for(model, operation):
    """The method, target, headers and body of a plain request of an operation."""
    traits = {each.value for each in model.protocols[:1]}
    if traits == {"json-target"}:
        target = f"{model.service.rpartition('#')[2]}.{operation.name}"
        return "POST", "/", {"X-Amz-Target": target}, b"{}"
    filled = operation.uri_pattern.text
    for mark in ("+}", "}"):
        filled = filled.replace(mark, "}")
    path, _, query = filled.partition("?")
    path = "/".join("x%20y" if segment.startswith("{") else segment for segment in path.split("/"))
    return operation.http_method, path + ("?" + query if query else ""), {}, b"{}"


def test_every_operation_is_found_by_its_request(path):
    """In every model, the request of an operation is matched to it and to no other."""
    model = SmithyModel.load(path)
    for each in model.operations.values():
        assert model.match(*request_for(model, each)) == each


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
AST = json.loads((HERE / "models" / "weather.json").read_text("utf-8"))
AST["shapes"]["t#Query"] = error("E", **{"aws.protocols__awsQueryError": {"code": "c", "httpResponseCode": 4}})["t#E"]
AST["shapes"]["t#Host"] = {"type": "operation", "traits": {"smithy.api#endpoint": {"hostPrefix": "a."}}}
AST["shapes"]["example.weather#Weather"]["operations"].append({"target": "t#Host"})
QUEUE = json.loads((HERE / "models" / "queue.json").read_text("utf-8"))


def places(value, holder=()):
    yield holder
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*holder, key))


@pytest.mark.once
@pytest.mark.parametrize("ast", [AST, QUEUE], ids=["weather", "queue"])
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_mutated_model_raises_nothing_else(ast, data):
    """A model with any nodes replaced by any JSON is read, or is a SmithyModelError."""
    mutant = {"root": copy.deepcopy(ast)}
    for _ in range(data.draw(st.integers(1, 3))):
        *holder, key = data.draw(st.sampled_from(list(places(mutant))[1:]))
        node = mutant
        for step in holder:
            node = node[step]
        node[key] = data.draw(JSON | st.sampled_from(["smithy.api#Unit", "example.weather#City", {}, []]))
    source = "<model>"
    try:
        model = SmithyModel.from_dict(mutant["root"], source)
        model.for_endpoint("https://api.example.com").operation_for("POST", "https://api.example.com/cities", {}, b"")
    except SmithyModelError as problem:
        source = problem.source
    assert source == "<model>"
