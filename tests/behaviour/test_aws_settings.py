"""The settings of the AWS SDKs, on request (contract 10.2)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from requests_smithy_retry import RetryConfig, RetryConfigError, RetryConfigWarning

FILE = """\
# a comment
[profile slow]
retry_mode=adaptive
max_attempts = 9
s3 =
    max_concurrent_requests = 20

[profile "quoted name"]
max_attempts = 6

[profile bad]
max_attempts = several

[profile bad mode]
retry_mode = often

[services local]
max_attempts = 99
"""

Read = Callable[..., RetryConfig]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config"


@pytest.fixture
def read(path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Return the config of an adapter made with these variables, options, and contents of the file."""

    def resolve(environ: dict[str, str], content: str | bytes | None = FILE, **code: Any) -> RetryConfig:
        if content is not None:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        for name, value in {"AWS_CONFIG_FILE": str(path), **environ}.items():
            monkeypatch.setenv(name, value)
        return RetryConfig.from_environment(**{"aws_config": True, **code})

    return resolve


@pytest.mark.parametrize(
    ("code", "environ", "profile", "expected", "source"),
    [
        # From standard-vectors.json, "environment_vectors".
        ({}, {"AWS_RETRY_MODE": "adaptive"}, "retry_mode = standard", {"mode": "adaptive"}, None),
        ({}, {}, "max_attempts = 5", {"max_attempts": 5}, "profile 'default' in {}"),
        ({}, {"AWS_NEW_RETRIES_2026": "false"}, "", {"retry_spec": "2.0"}, None),
        ({}, {"AWS_NEW_RETRIES_2026": "true"}, "", {"retry_spec": "2.1"}, None),
        # Code, SMITHY_RETRY_*, AWS_*, profile, default, in this order.
        ({"aws_config": "slow"}, {}, "", {"max_attempts": 9}, "profile 'slow' in {}"),
        ({"aws_config": "quoted name"}, {}, "", {"max_attempts": 6}, "profile 'quoted name' in {}"),
        ({}, {"AWS_PROFILE": "slow"}, "", {"max_attempts": 9}, "profile 'slow' in {}"),
        ({}, {"AWS_PROFILE": "slow", "AWS_MAX_ATTEMPTS": "7"}, "", {"max_attempts": 7}, "{variable} AWS_MAX_ATTEMPTS"),
        ({"max_attempts": 2}, {"AWS_MAX_ATTEMPTS": "7"}, "", {"max_attempts": 2}, "code"),
        (
            {},
            {"AWS_MAX_ATTEMPTS": "7", "SMITHY_RETRY_MAX_ATTEMPTS": "8"},
            *("", {"max_attempts": 8}, "{variable} SMITHY_RETRY_MAX_ATTEMPTS"),
        ),
        # A fleet's AWS variables do not reach an adapter that did not ask, or asked for none.
        ({"aws_config": False}, {"AWS_MAX_ATTEMPTS": "9"}, "max_attempts = 5", {"max_attempts": None}, "default"),
        ({"aws_config": False}, {"SMITHY_RETRY_AWS_CONFIG": "true"}, "", {"max_attempts": None}, "default"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*it has no effect:requests_smithy_retry.RetryConfigWarning")
def test_precedence_per_field(code, environ, profile, expected, source, path: Path, read: Read) -> None:
    """Each value is that of the first source that has one, and says which it was."""
    config = read(environ, f"[default]\n{profile}\n{FILE}", **code)
    assert expected == {name: getattr(config, name) for name in expected}
    if source is not None:
        assert source.format(path, variable="environment variable") == config.source("max_attempts")


def test_legacy_means_standard_with_a_warning(read: Read) -> None:
    """Standard takes the place of the legacy mode, with a warning."""
    with pytest.warns(RetryConfigWarning, match="'legacy' .from environment variable AWS_RETRY_MODE.*'standard'"):
        assert "standard" == read({"AWS_RETRY_MODE": "Legacy", "AWS_CONFIG_FILE": os.devnull}).mode


@pytest.mark.parametrize(
    ("code", "environ", "attempts"),
    [
        ({"max_attempts": 2, "mode": "adaptive"}, {}, 2),
        ({}, {"SMITHY_RETRY_MODE": "adaptive", "AWS_MAX_ATTEMPTS": "7"}, 7),
    ],
)
def test_what_is_overruled_is_not_looked_at(code, environ, attempts, read: Read) -> None:
    """Neither a bad value nor legacy mode matters if code, SMITHY_RETRY_* or an earlier variable sets the option."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = read({"AWS_RETRY_MODE": "legacy", **environ}, aws_config="bad", **code)
    assert (attempts, "adaptive") == (config.max_attempts, config.mode)


def test_the_default_file_is_found_where_home_is(tmp_path: Path, monkeypatch) -> None:
    """It may be absent; an error about it shows no path of the machine."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert 3 == RetryConfig.from_environment(aws_config=True).most_attempts
    (tmp_path / ".aws").mkdir()
    file = tmp_path / ".aws" / "config"
    file.write_text("[profile default]\nmax_attempts=5\n[default]\nmax_attempts=4\n")
    config = RetryConfig.from_environment(aws_config=True)
    assert (5, "profile 'default' in ~/.aws/config") == (config.max_attempts, config.source("max_attempts"))
    file.write_text("max_attempts = 5\n")
    said = r"^aws_config='~/.aws/config' \(from its default\): a readable file.*headers. file: '~/.aws/config', line: 1"
    with pytest.raises(RetryConfigError, match=said):
        RetryConfig.from_environment(aws_config=True)


WHOLE = "a whole number of 1 or more or None is allowed"
MODES = "one of 'standard', 'adaptive' is allowed"
PROFILES = "the name of a profile in {} is allowed; it has 'slow', 'quoted name', 'bad', 'bad mode'"


@pytest.mark.parametrize(
    ("code", "environ", "words"),
    [
        ({}, {"AWS_MAX_ATTEMPTS": " string "}, f"max_attempts='string' (from {{variable}} AWS_MAX_ATTEMPTS): {WHOLE}"),
        ({}, {"AWS_MAX_ATTEMPTS": "0"}, f"max_attempts='0' (from {{variable}} AWS_MAX_ATTEMPTS): {WHOLE}"),
        ({"aws_config": "bad"}, {}, f"max_attempts='several' (from profile 'bad' in {{}}): {WHOLE}"),
        ({}, {"AWS_RETRY_MODE": "x"}, f"mode='x' (from {{variable}} AWS_RETRY_MODE): {MODES}"),
        (
            *({}, {"AWS_NEW_RETRIES_2026": "soon"}),
            "retry_spec='soon' (from {variable} AWS_NEW_RETRIES_2026): true (2.1) or false (2.0) is allowed",
        ),
        ({}, {"AWS_PROFILE": "bad mode"}, f"mode='often' (from profile 'bad mode' in {{}}): {MODES}"),
        ({}, {"AWS_PROFILE": " local "}, f"aws_config='local' (from {{variable}} AWS_PROFILE): {PROFILES}"),
        ({"aws_config": "absent"}, {}, f"aws_config='absent' (from code): {PROFILES}"),
    ],
)
def test_a_bad_value_is_named_with_its_source(code, environ, words, path: Path, read: Read) -> None:
    """The error names the option, or what chose the profile, its value, where that came from, and what is allowed."""
    with pytest.raises(RetryConfigError) as caught:
        read(environ, **code)
    assert words.format(path, variable="environment variable") == str(caught.value)


@pytest.mark.parametrize(
    ("content", "name", "expected"),
    [
        (b"[profile X]\nmax_attempts=5\nretry_mode=adaptive", "X", (5, "adaptive")),
        (b"[profile 'X']\nmax_attempts=5", "X", (5, "standard")),
        (b"\xef\xbb\xbf[default]\nmax_attempts=5\n[profile M\xc3\xbcn]\nmax_attempts=6\n", "Mün", (6, "standard")),
        (b"[default]\nmax_attempts=5 ; or so # or more", "default", (5, "standard")),
        (b"[default]\nmax_attempts=5\n[default]\nmax_attempts=6\nmax_attempts=7", "default", (7, "standard")),
        (b"[default]\nmax_attempts: 5\nretry_mode:adaptive", "default", (5, "adaptive")),
        (b"[default]\nmax_attempts = 5 # 5:00\nurl = https://a:1\n", "default", (5, "standard")),
        (b"[DEFAULT]\nmax_attempts=5\n[profile X]\n", "X", (3, "standard")),
        (b"[profile]\n[plugins]\n[a b]\n[default]\nmax_attempts=5", "default", (5, "standard")),
        (b"[profile x]\nmax_attempts=\nretry_mode=\n", "default", (3, "standard")),
        (b"[profile x]\nmax_attempts=\nretry_mode=\n", "x", (3, "standard")),
    ],
)
def test_files_are_read_as_the_sdks_write_them(content, name, expected, read: Read) -> None:
    """UTF-8 with or without its mark, comments, quotes, repeated sections; [DEFAULT] and others are no profiles.

    A file without a default profile says nothing, and a blank value is no value.
    """
    config = read({}, content, aws_config=name)
    assert expected == (config.most_attempts, config.mode)


@pytest.mark.parametrize(
    ("content", "aws_config", "match"),
    [
        (None, True, r"^AWS_CONFIG_FILE=.*from environment variable AWS_CONFIG_FILE.*No such file"),
        (b"max_attempts = 5\n", True, "no section headers"),
        (b"[default]\n\xff\xfe\n", True, "a readable file of profiles"),
        (b"[default]\nmax_attempts\n", True, "a readable file of profiles"),
        (b"[default]\ns3\n  max_concurrent_requests = 20\nmax_attempts = 7\n", True, "a readable file of profiles"),
        (b"", "absent", "it has none"),
    ],
)
def test_what_cannot_be_read_is_a_clear_error(content, aws_config, match, read: Read) -> None:
    """A file that was named and is not there, a broken one, and a profile that is not in it are errors."""
    with pytest.raises(RetryConfigError, match=match):
        read({}, content, aws_config=aws_config)
