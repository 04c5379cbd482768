from __future__ import annotations

import pickle

import pytest

from requests_smithy_retry.smithy import SmithyModelError


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("/shapes/a~1b", "api.json: at /shapes/a~1b: expected an object"),
        ("", "api.json: expected an object"),
    ],
)
def test_it_says_where(place, expected):
    """The message names the file, the place and what was expected; a file as a whole has no place."""
    assert str(SmithyModelError("api.json", place, "expected an object")) == expected


@pytest.mark.parametrize(
    ("by_position", "by_name"),
    [
        (("api.json", "/shapes", "expected an object"), {}),
        ((), {"source": "api.json", "place": "/shapes", "problem": "expected an object"}),
    ],
)
def test_it_survives_pickling(by_position, by_name):
    """A pickled error keeps its parts, so that it can cross a process pool, however it was made."""
    error = pickle.loads(pickle.dumps(SmithyModelError(*by_position, **by_name)))
    assert (error.source, error.place, error.problem) == ("api.json", "/shapes", "expected an object")
    assert repr(error) == "SmithyModelError('api.json', '/shapes', 'expected an object')"
    assert isinstance(error, ValueError)
