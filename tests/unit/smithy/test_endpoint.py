from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry.smithy import ModeledOperation, SmithyModel

from .asts import HERE, annotation, operation, service

MODEL = SmithyModel.from_dict(
    service(
        operation("Everything", http="POST /{path+}", traits=annotation("readonly")),
        operation("Root", http="POST /", traits=annotation("idempotent")),
        operation("Create", http="POST /things", members={"token": annotation("idempotencyToken")}),
        operation("Manage", http="POST /manage", traits={"smithy.api#endpoint": {"hostPrefix": "management."}}),
    )
)
API = MODEL.for_endpoint("https://api.example.com/base")
WEATHER = SmithyModel.load(HERE / "models" / "weather.json").for_endpoint("https://api.example.com/v1")


@pytest.mark.parametrize(
    "url",
    [
        *("https://api.example.com/base", "https://api.example.com/base/", "https://api.example.com/base?x"),
        *("https://api.example.com/base/x/y?z#w", "HTTPS://API.Example.COM/base/x", "https://api.example.com/b%61se/x"),
        *("https://api.example.com:443/base/x", "https://api.example.com:/base/x"),
        *("https://user:pw@api.example.com/base/x", "https://a@b@api.example.com/base/x"),
        "https://management.api.example.com/base/manage",
    ],
)
def test_an_endpoint_speaks_for_itself(url):
    """Scheme, host, port and path prefix are the endpoint's, however they are written."""
    assert API.speaks_for(url)
    assert API.operation_for("POST", url, {}, None) is not None


@pytest.mark.parametrize(
    "url",
    [
        # Another scheme, port, path or host.
        *("http://api.example.com/base/x", "http://api.example.com:443/base/x", "ftp://api.example.com/base/x"),
        *("https://api.example.com:8443/base/x", "https://api.example.com:80/base/x"),
        *("https://api.example.com/", "https://api.example.com/based", "https://api.example.com/Base/x"),
        *("https://api.example.com//base/x", "https://api.example.com%2Fbase/x", "https://api.example.com/base%2Fx"),
        *("https://other.example.com/base/x", "https://xapi.example.com/base/x", "https://api.example.com./base/x"),
        "https://api.example.com.evil.example/base/x",
        # Userinfo.
        *("https://api.example.com@evil.example/base/x", "https://api.example.com:443@evil.example/base/x"),
        *("https://api.example.com%40evil.example/base/x", "https://evil.example/@api.example.com/base/x"),
        *("https://evil.example#@api.example.com/base/x", "https://evil.example?@api.example.com/base/x"),
        # Parsers differ on a backslash.
        *("https://evil.example\\@api.example.com/base/x", "https://api.example.com\\@evil.example/base/x"),
        "https://api.example.com/base\\x",
        # Dot segments.
        *("https://api.example.com/base/../admin", "https://api.example.com/base/%2e%2E/admin"),
        *("https://api.example.com/base/.", "https://api.example.com/x/../base"),
        # Not a URL.
        *("https://api.example.com/ba\nse/x", " https://api.example.com/base/x", "https:///base/x"),
        *("https://api.example.com:x/base/x", "https://api.example.com:99999/base/x"),
        *("https://[::1/base/x", "https://[zz]/base/x", "//api.example.com/base/x", "/base/x", ""),
    ],
)
def test_an_endpoint_speaks_for_nobody_else(url):
    """A dubious URL is nobody's."""
    assert not API.speaks_for(url)
    assert API.operation_for("POST", url, {}, None) is None


@pytest.mark.parametrize(
    ("endpoint", "spoken_for", "others"),
    [
        ("http://api.example.com", ["http://api.example.com:80/x"], ["https://api.example.com/x"]),
        ("http://api.example.com:80/", ["http://api.example.com/x"], []),
        ("http://[::1]:8000", ["http://[::1]:8000/x", "http://[0:0:0:0:0:0:0:1]:8000/x"], ["http://[::2]:8000/x"]),
        ("http://[2001:DB8::1]", ["http://[2001:db8::1]/x"], []),
        ("http://127.0.0.1:8000", ["http://127.0.0.1:8000/x"], ["http://management.127.0.0.1:8000/x"]),
        ("http://localhost:8000", ["http://localhost:8000"], []),
        ("https://API.example.com", ["https://api.example.com/x"], []),
        ("https://user:pw@api.example.com", ["https://api.example.com/x"], []),
        ("https://xn--bcher-kva.example", ["https://xn--bcher-kva.example/x"], ["https://bücher.example/x"]),
        ("https://api.example.com/a@b", ["https://api.example.com/a@b/x"], []),
        ("https://api.example.com/a@b.example", [], ["https://b.example/x"]),
    ],
)
def test_hosts_of_every_kind(endpoint, spoken_for, others):
    """A host is a name, an IPv4 or an IPv6 address, and the port has the scheme's default."""
    assert spoken_for == [url for url in spoken_for + others if MODEL.for_endpoint(endpoint).speaks_for(url)]


@pytest.mark.parametrize(
    "url",
    [
        *("", "api.example.com", "/base", "ftp://api.example.com", "https://", "https://api.example.com:x"),
        *("https://api.example.com?x", "https://api.example.com/#", "https://api.example.com/a/../b"),
        *("https://bücher.example", "https://user:secret@api.example.com?x", "user:secret@api.example.com"),
        *("https:/user:secret@api.example.com", "https://user:sec/secret@api.example.com"),
    ],
)
def test_what_is_no_endpoint_is_refused(url):
    """An endpoint that is no plain URL is refused, with what is allowed; no userinfo gets into the message."""
    with pytest.raises(ValueError, match=r"endpoint '.*': an http:// or https:// URL with an ASCII host") as caught:
        MODEL.for_endpoint(url)
    assert url.rpartition("@")[2] in str(caught.value)
    assert "secret" not in str(caught.value)


def test_an_endpoint_shows_no_userinfo():
    """Userinfo given with an endpoint is dropped, so that it cannot get into a log; nothing else is."""
    found = MODEL.for_endpoint("https://user:secret@api.example.com/base")
    assert repr(found) == "SmithyEndpoint(url='https://api.example.com/base')"
    assert {found} == {API}
    found = MODEL.for_endpoint("https://user:secret@api.example.com/a@b/c://d@e")
    assert found.url == "https://api.example.com/a@b/c://d@e"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        *(("https://api.example.com/base", "Root"), ("https://api.example.com/base/", "Root")),
        ("https://api.example.com/base/things", "Create"),
        ("https://api.example.com/base/things/1", "Everything"),
        ("https://api.example.com/base/manage", "Manage"),
        ("https://management.api.example.com/base/manage", "Manage"),
        ("https://management.api.example.com/base/things", None),
        ("https://api.example.com/things", None),
    ],
)
def test_the_prefix_is_taken_off(url, expected):
    """The path below the endpoint is matched; a host prefix fits only the operations that have it."""
    assert expected == getattr(API.operation_for("POST", url, {}, None), "name", None)


def test_an_endpoint_survives_copying():
    """A pickled or copied endpoint answers as before: an adapter carries it along."""
    for same in (pickle.loads(pickle.dumps(WEATHER)), copy.deepcopy(WEATHER), copy.copy(WEATHER)):
        found = same.operation_for("POST", "https://api.example.com/v1/cities/search", {}, None)
        assert (same.url, found.name) == (WEATHER.url, "SearchCities")


@given(st.text(st.sampled_from("abc.@:/\\?#[]%2e"), min_size=1))
def test_nothing_before_the_host_helps(text):
    """Userinfo and tricks before another host never make it the endpoint's."""
    assert not API.speaks_for(f"https://{text.replace('/', '')}@evil.example/base/x".replace("?", "").replace("#", ""))


@given(st.text(), st.sampled_from(["", "https://", "https://api.example.com", "https://api.example.com/base/"]))
def test_no_url_raises(text, start):
    """For any URL, an endpoint has an operation or none."""
    assert isinstance(API.operation_for("POST", start + text, {}, None), ModeledOperation | None)
