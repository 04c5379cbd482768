from __future__ import annotations

import pytest

from requests_smithy_retry.smithy import SmithyModel, SmithyModelError

from .asts import HERE, operation, service

WEATHER = SmithyModel.load(HERE / "models" / "weather.json")


def read(traits):
    return SmithyModel.from_dict(service(operation("Op", traits=traits))).operations["Op"]


def test_only_bound_operations_count():
    """The operations are those of the service, its resources and theirs, by whatever way they are bound."""
    names = (
        "AppendPhoto CreateCity DeletePhoto GetCity ImportCities ListPhotos PutPhoto SearchCities TagCity WaitForStorm"
    )
    assert sorted(WEATHER.operations) == names.split()


@pytest.mark.parametrize(
    ("prefix", "expected"), [("management.", "management."), ("Data-", "data-"), ("{account}.", ""), (None, "")]
)
def test_a_host_prefix_is_read(prefix, expected):
    """A host prefix is taken in lower case; one with labels is not known."""
    traits = {} if prefix is None else {"smithy.api#endpoint": {"hostPrefix": prefix}}
    assert read(traits).host_prefix == expected


METHOD_AND_URI = 'expected an object with "method" and "uri"'


@pytest.mark.parametrize(
    ("trait", "value", "place", "expected"),
    [
        ("readonly", None, "", "expected an object, found null"),
        ("http", {"method": "GET"}, "", METHOD_AND_URI),
        ("http", {"uri": "/"}, "", METHOD_AND_URI),
        ("http", {"method": 1, "uri": "/"}, "/method", "expected a string"),
        ("http", {"method": "GET", "uri": "x"}, "/uri", "expected a URI pattern that"),
        ("endpoint", {}, "", 'expected an object with "hostPrefix"'),
    ],
)
def test_a_broken_trait_is_named(trait, value, place, expected):
    """A trait with a value that it cannot have is an error at the trait."""
    with pytest.raises(SmithyModelError) as caught:
        read({f"smithy.api#{trait}": value})
    assert caught.value.place == f"/shapes/t#Op/traits/smithy.api#{trait}{place}"
    assert caught.value.problem.startswith(expected)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"operations": [{"target": "t#Nothing"}]}, "/shapes/t#Service/operations/0"),
        ({"operations": [{}]}, "/shapes/t#Service/operations/0"),
        ({"operations": {}}, "/shapes/t#Service/operations"),
        ({"resources": [{"target": "t#Op"}]}, "/shapes/t#Service/resources/0"),
    ],
)
def test_a_broken_reference_is_named(change, place):
    """A reference that leads nowhere is an error at the reference."""
    with pytest.raises(SmithyModelError) as caught:
        SmithyModel.from_dict(service(operation("Op"), **change))
    assert caught.value.place == place


@pytest.mark.parametrize(("target", "broken"), [("smithy.api#Unit", False), ("t#Nothing", True), ("t#Service", True)])
def test_an_input_has_to_be_a_structure(target, broken):
    """An input is a structure of the model, or one of the prelude."""
    shapes = operation("Op")
    shapes["t#Op"]["input"] = {"target": target}
    if broken:
        with pytest.raises(SmithyModelError, match="/shapes/t#Op/input"):
            SmithyModel.from_dict(service(shapes))
    else:
        assert SmithyModel.from_dict(service(shapes)).operations["Op"].idempotency_token is None


def test_resources_in_a_circle_end():
    """Resources that contain each other are read once each."""
    model = service(operation("Op"), resources=[{"target": "t#A"}])
    model["shapes"]["t#A"] = {"type": "resource", "resources": [{"target": "t#B"}], "read": {"target": "t#Op"}}
    model["shapes"]["t#B"] = {"type": "resource", "resources": [{"target": "t#A"}]}
    assert list(SmithyModel.from_dict(model).operations) == ["Op"]
