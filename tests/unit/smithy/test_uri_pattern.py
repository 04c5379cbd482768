from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from requests_smithy_retry.smithy import UriPattern
from requests_smithy_retry.smithy.operations import Label, UriTable
from requests_smithy_retry.smithy.protocols import parameters, path_segments, split_target


def table(*patterns):
    return UriTable(("GET", UriPattern.parse(text), text) for text in patterns)


def find(routes, target):
    path, query = split_target(target)
    segments = path_segments(path)
    return None if segments is None else routes.find("GET", segments, query)


@pytest.mark.parametrize(
    ("text", "segments", "query"),
    [
        ("/", (), ()),
        ("/a/", ("a",), ()),
        ("/a%20b/{c}/{d+}", ("a b", Label.ONE, Label.GREEDY), ()),
        ("/a?x&y=&z=1", ("a",), (("x", None), ("y", None), ("z", "1"))),
        ("/@a/{b+}/{c}/d", ("@a", Label.GREEDY, Label.ONE, "d"), ()),
        ("/{X}/{aXb}/{X+}", (Label.ONE, Label.ONE, Label.GREEDY), ()),
    ],
)
def test_a_pattern_is_read(text, segments, query):
    """A pattern is literals, labels and query literals."""
    pattern = UriPattern.parse(text)
    assert (pattern.text, pattern.segments, pattern.query) == (text, segments, query)


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "//", "/a//b", "/a?", "/a#b", "/a?b={c}", "/a?b={c", "/a?b=c}", "/./a", "/a/..", "/a/%2e%2e"),
        *("/{a}b", "/a{b}", "/{a}{b}", "/{a", "/{ab", "/ab}", "/}", "/{}", "/{+}", "/{a++}", "/{a+}/b/{c+}"),
    ],
)
def test_what_is_no_pattern_is_refused(text):
    """A pattern that the specification does not allow is refused."""
    with pytest.raises(ValueError, match="URI pattern"):
        UriPattern.parse(text)


MATCHING = {
    # Smithy 2.0, "HTTP bindings", the tables on literals, labels, query literals and greedy labels.
    "/my/uri/path": (["/my/uri/path", "/my/uri/path/"], ["/my/uri", "/my/uri/other", "/my/uri/path/other"]),
    "/my/uri/{label}": (
        ["/my/uri/foo", "/my/uri/foo/", "/my/uri/foo?query=bar", "/my/uri/foo#bar"],
        ["/my/uri", "/my/uri/foo/bar", "/my/uri/", "/my/uri//"],  # the last two are ours
    ),
    "/my/uri/{label1}/{label2}": (["/my/uri/bar/baz/"], ["/my/uri/foo", "/my/uri/foo/bar/baz"]),
    "/path?requiredKey": (["/path?requiredKey", "/path?other&requiredKey"], ["/path", "/path?", "/path?otherKey"]),
    "/path?requiredKey=requiredValue": (
        ["/path?requiredKey=requiredValue", "/path?other&requiredKey=requiredValue"],
        ["/path?requiredKey=otherValue"],
    ),
    "/my/uri/{label+}": (["/my/uri/foo/bar", "/my/uri/bar/baz/"], ["/my/uri"]),
    "/prefix/{label+}/suffix": (
        ["/prefix/foo/suffix", "/prefix/foo/bar/suffix", "/prefix/foo/suffix/bar/suffix"],
        ["/prefix/foo/bar", "/foo/bar/suffix", "/prefix/suffix"],
    ),
    # Ours.
    "/": (["/", ""], ["//", "a"]),
    "/a": (["/%61"], ["/A"]),
    "/a b/é": (["/a%20b/%c3%a9"], []),
    "/{label}": (["/a%2Fb"], []),
    "/{label}/b": ([], ["//b"]),
    "/{a}/{b}": (["/a%2Fb/%c3%a9", "/%zz/%", "/a/..."], ["/a%2Fb", "/a/b//"]),
    "/{label+}": (["/a//b", "//b", "///"], ["/", "//", "a", "/..", "/a/../b", "/a/./b", "/a/%2e%2E/b", "/a/%2e/b"]),
    "/a/{label+}/b": ([], ["/a//b"]),
    "/{a+}/x/{b}": (["/1/2/x/3"], ["/1/2/x/"]),
    "/a?x": ([], ["/a?X"]),
    "/a?x=1": (["/a?x=2&x=1"], []),
    "/a?x=%20": (["/a?x=+"], []),
    "/a?x=1&y": ([], ["/a?x=1"]),
    "/a?x&x=1": (["/a?x=1"], ["/a?x=2"]),
}
"""By pattern: targets that it matches, and targets that it does not."""


@pytest.mark.parametrize("pattern", MATCHING)
def test_what_a_pattern_matches(pattern):
    """A pattern matches what the specification's tables say, and nothing that only looks like it."""
    matched, others = MATCHING[pattern]
    found = {target: find(table(pattern), target) for target in matched + others}
    assert {**dict.fromkeys(matched, pattern), **dict.fromkeys(others)} == found


@pytest.mark.parametrize(
    ("patterns", "target", "expected"),
    [
        # The three routing examples of the specification.
        (("/abc/bcd/{xyz}", "/abc/{xyz}/cde", "/{xyz}/bcd/cde"), "/abc/bcd/cde", "/abc/bcd/{xyz}"),
        (("/abc/bcd/{xyz}", "/abc/{xyz}/cde", "/{xyz}/bcd/cde"), "/abc/foo/cde", "/abc/{xyz}/cde"),
        (("/abc/bcd/{xyz}", "/abc/{xyz}/cde", "/{xyz}/bcd/cde"), "/foo/bcd/cde", "/{xyz}/bcd/cde"),
        (("/abc/bcd/{xyz}", "/{xyz}/bcd/cde?def=efg"), "/abc/bcd/cde?def=efg", "/abc/bcd/{xyz}"),
        (("/abc/{xyz}/cde", "/{xyz}/bcd/cde?def=efg"), "/foo/bcd/cde?def=efg", "/{xyz}/bcd/cde?def=efg"),
        (("/abc/{xyz+}", "/abc/{xyz+}/bcd"), "/abc/foo/bar/bcd", "/abc/{xyz+}/bcd"),
        (("/abc/{xyz+}", "/abc/{xyz+}/bcd"), "/abc/foo/bar/baz", "/abc/{xyz+}"),
        # Ours.
        (("/a/{x}", "/a/{x+}"), "/a/b", "/a/{x}"),
        (("/a/{x}", "/a/{x+}"), "/a/b/c", "/a/{x+}"),
        (("/a", "/a?x", "/a?x&y=1"), "/a?y=1&x=2", "/a?x&y=1"),
        (("/a", "/a?x", "/a?x&y=1"), "/a?y=2&x=2", "/a?x"),
        (("/a", "/a?x", "/a?x&y=1"), "/a", "/a"),
        (("/a/b?x", "/a/{y}"), "/a/b", "/a/{y}"),
        (("/a/b?x", "/a/{y}"), "/a/b?x", "/a/b?x"),
        (("/{x+}/{y}/c", "/{x+}/c"), "/1/2/3/c", "/{x+}/c"),
        (("/{x}/b/c", "/a/{y}/d"), "/a/b/c", "/{x}/b/c"),
        (("/{x}/{y+}", "/{x+}/b"), "/a/b", "/{x}/{y+}"),
        # Two that match equally well: no guess.
        (("/a/{x}", "/a/{y}"), "/a/b", None),
        (("/a?x", "/a?y"), "/a?x&y", None),
        (("/a?x", "/a?y"), "/a?y", "/a?y"),
    ],
)
def test_the_most_specific_pattern_wins(patterns, target, expected):
    """Paths are compared segment by segment, then query literals are counted; a draw is no match."""
    assert find(table(*patterns), target) == expected
    assert find(table(*reversed(patterns)), target) == expected


QUERIES = st.sampled_from(["", "?p", "?p=1", "?q", "?p=1&q", "?p&q=2"])
PATTERNS = st.builds(
    lambda segments, query: "/" + "/".join(segments) + query,
    st.lists(st.sampled_from(["a", "b", "{x}", "{y}", "{g+}"]), max_size=5),
    QUERIES,
).filter(lambda text: text.count("+") <= 1)
TARGETS = st.builds(
    lambda segments, query: "/" + "/".join(segments) + query,
    st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=6),
    st.sampled_from(["", "?p", "?p=1", "?q=2&p=1", "?q", "?p=2&q=2"]),
)


def slow_match(pattern, segments, query):
    """Return True if a pattern matches, by trying every length for a greedy label."""
    if not pattern:
        return not segments
    if pattern[0] is Label.GREEDY:
        return any(
            segments[:size] not in ((), ("",)) and slow_match(pattern[1:], segments[size:], query)
            for size in range(len(segments) + 1)
        )
    if not segments or segments[0] == "" or (pattern[0] is not Label.ONE and pattern[0] != segments[0]):
        return False
    return slow_match(pattern[1:], segments[1:], query)


def slow_find(patterns, target):
    path, query = split_target(target)
    segments, present = path_segments(path), parameters(query)
    matching = []
    for text in patterns:
        pattern = UriPattern.parse(text)
        met = all(key in present and value in (None, *present[key]) for key, value in pattern.query)
        if met and slow_match(pattern.segments, segments, query):
            kinds = tuple({Label.ONE: 1, Label.GREEDY: 2}.get(each, 0) for each in pattern.segments)
            matching.append(((*kinds, 3), -len(pattern.query), text))
    best = min((each[:2] for each in matching), default=None)
    winners = [each[2] for each in matching if each[:2] == best]
    return winners[0] if len(winners) == 1 else None


@pytest.mark.once
@given(st.lists(PATTERNS, max_size=8), TARGETS)
@example(["/{g+}/a/a/a"], "/a/a")
def test_the_table_agrees_with_trying_every_length(patterns, target):
    """The table finds the same pattern as trying every length of a greedy label."""
    assert find(table(*patterns), target) == slow_find(patterns, target)
