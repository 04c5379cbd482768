from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry.smithy import SmithyModel, TokenLocation

from .asts import HERE, annotation, operation, service

WEATHER = SmithyModel.load(HERE / "models" / "weather.json")
QUEUE = SmithyModel.load(HERE / "models" / "queue.json")
EC2 = SmithyModel.from_dict(
    service(operation("Run", members={"token": annotation("idempotencyToken")}), protocol="aws.protocols#ec2Query")
)
CBOR = {"smithy-protocol": "rpc-v2-cbor"}


def name(found):
    return None if found is None else found.name


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [
        ("POST", "/cities/search", "SearchCities"),
        ("POST", "/cities", "CreateCity"),
        ("POST", "/cities?mode=import", "ImportCities"),
        ("POST", "/cities?mode=export", "CreateCity"),
        ("GET", "/cities/rome", "GetCity"),
        ("GET", "/cities/rome/photos", "ListPhotos"),
        ("PUT", "/cities/rome/photos/a/b.jpg", "PutPhoto"),
        ("POST", "/cities/rome/photos/a/b.jpg", "AppendPhoto"),
        ("POST", "/storms?wait=1", "WaitForStorm"),
        *(("POST", target, None) for target in ("/storms", "/unbound", "/Cities", "/cities/../cities", "cities")),
        ("GET", "/cities", None),
    ],
)
def test_rest_goes_by_method_and_pattern(method, target, expected):
    """A REST request is matched by its method and URI pattern, whatever its headers and body say."""
    headers = {"X-Amz-Target": "Weather.GetCity", **CBOR}
    assert name(WEATHER.match(method, target, headers, b"Action=GetCity")) == expected


@pytest.mark.parametrize(
    ("method", "target", "header", "expected"),
    [
        ("POST", "/", "Queue_2024.Send", "Send"),
        ("POST", "", "Queue_2024.Receive", "Receive"),
        ("POST", "/", b"Queue_2024.Send", "Send"),
        *(("POST", "/", other, None) for other in ("Queue_2023.Send", "example.queue#Queue_2024.Send", "Send", "")),
        *(("POST", "/", other, None) for other in ("Queue_2024.send", "Queue_2024.Other.Send")),
        ("GET", "/", "Queue_2024.Send", None),
        ("POST", "/x", "Queue_2024.Send", None),
    ],
)
def test_aws_json_goes_by_target(method, target, header, expected):
    """An awsJson request is matched by X-Amz-Target, which has to name the service shape."""
    assert name(QUEUE.match(method, target, {"x-amz-target": header}, b"Action=Peek")) == expected


@pytest.mark.parametrize(
    ("method", "target", "body", "expected"),
    [
        ("POST", "/", b"Action=Send&Version=1", "Send"),
        ("POST", "/", "Version=1&Action=Send", "Send"),
        ("GET", "/?Action=Peek", None, "Peek"),
        ("POST", "/?Action=Send", b"Action=Send", "Send"),
        ("POST", "/?Action=Peek", b"Action=Send", None),
        *(("POST", "/", body, None) for body in (b"Action=Send&Action=Peek", b"action=Send", b"Action=", None)),
        ("POST", "/", iter([b"Action=Send"]), None),
        ("POST", "/x", b"Action=Send", None),
        ("PUT", "/", b"Action=Send", None),
    ],
)
def test_aws_query_goes_by_action(method, target, body, expected):
    """An awsQuery request is matched by Action in the form or the query; with two different ones it matches nothing."""
    assert name(QUEUE.match(method, target, {}, body)) == expected


@pytest.mark.parametrize(
    ("method", "target", "headers", "expected"),
    [
        ("POST", "/service/Queue_2024/operation/Send", CBOR, "Send"),
        ("POST", "/service/Queue_2024/operation/Send", {}, None),
        ("POST", "/service/Other/operation/Send", CBOR, None),
        ("POST", "/service/Queue_2024/operation/Nothing", CBOR, None),
        ("POST", "/service/Queue_2024/operation", CBOR, None),
        ("GET", "/service/Queue_2024/operation/Send", CBOR, None),
    ],
)
def test_rpc_goes_by_path(method, target, headers, expected):
    """An RPC v2 request is matched by its path and its smithy-protocol header."""
    assert name(QUEUE.match(method, target, headers, b"")) == expected


def test_a_token_is_bound_as_the_request_speaks():
    """In a service of several protocols, the token is where the protocol of this request puts it."""
    found = [
        QUEUE.match("POST", "/", {"X-Amz-Target": "Queue_2024.Send"}, b""),
        QUEUE.match("POST", "/", {}, b"Action=Send"),
        QUEUE.match("POST", "/service/Queue_2024/operation/Send", CBOR, b""),
    ]
    assert [(each.idempotency_token.location, each.idempotency_token.name) for each in found] == [
        (TokenLocation.JSON, "Token"),
        (TokenLocation.FORM, "SendToken"),
        (TokenLocation.OPAQUE, "Token"),
    ]


@given(
    st.sampled_from(["GET", "POST", "x"]),
    st.text(st.characters()),
    st.dictionaries(st.sampled_from(["X-Amz-Target", "smithy-protocol"]), st.text() | st.binary()),
    st.none() | st.text(st.characters()) | st.binary() | st.integers(),
)
def test_no_request_raises(method, target, headers, body):
    """For any request, ``match`` returns an operation or None."""
    for model in (WEATHER, QUEUE, EC2):
        found = model.match(method, target, headers, body)
        assert found is None or found.resendable_with(target, headers, body) in (True, False)
