"""The settings of the AWS SDKs, on request (contract 10.3)."""

import configparser
import os
import warnings

import pytest

from requests_smithy_retry import RetryConfig, RetryConfigError, RetryConfigWarning
from requests_smithy_retry.config import aws_settings
from requests_smithy_retry.config.sources import AWS_OPTIONS, resolve

FILE = """\
# a comment
[default]
max_attempts = 4  # another

[profile slow]
retry_mode=adaptive
max_attempts = 9
s3 =
    max_concurrent_requests = 20

[profile "quoted name"]
max_attempts = 6

[profile bad]
max_attempts = several

[services local]
max_attempts = 99
"""


@pytest.fixture
def aws_file(tmp_path):
    path = tmp_path / "config"
    path.write_text(FILE)
    return str(path)


# From /spec/standard-vectors.json, "environment_vectors".
VECTORS = [
    ({"AWS_RETRY_MODE": "adaptive"}, {"retry_mode": "standard"}, {"mode": "adaptive"}),
    ({}, {"max_attempts": "5"}, {"max_attempts": 5}),
    ({"AWS_MAX_ATTEMPTS": "string"}, {}, None),
    ({"AWS_MAX_ATTEMPTS": "0"}, {}, None),
    ({"AWS_NEW_RETRIES_2026": "false"}, {}, {"retry_spec": "2.0"}),
    ({"AWS_NEW_RETRIES_2026": "true"}, {}, {"retry_spec": "2.1"}),
]


@pytest.mark.parametrize(("environ", "profile", "expected"), VECTORS)
def test_the_published_environment_vectors(environ, profile, expected, tmp_path):
    """Variables beat the profile; a value that is not a number of attempts is an error."""
    path = tmp_path / "config"
    path.write_text("[default]\n" + "".join(f"{key} = {value}\n" for key, value in profile.items()))
    environ = {**environ, "AWS_CONFIG_FILE": str(path)}
    if expected is None:
        with pytest.raises(RetryConfigError, match="environment variable AWS_MAX_ATTEMPTS"):
            resolve(RetryConfig(aws_config=True), environ)
    else:
        config = resolve(RetryConfig(aws_config=True), environ)
        assert expected == {name: getattr(config, name) for name in expected}


def test_nothing_is_read_unless_asked_for(aws_file):
    """A fleet's AWS variables do not reach an adapter that did not ask."""
    assert resolve(RetryConfig(), {"AWS_MAX_ATTEMPTS": "9", "AWS_CONFIG_FILE": aws_file}).max_attempts is None


@pytest.mark.parametrize(
    ("code", "environ", "expected"),
    [
        ({"aws_config": True}, {}, (4, "profile 'default' in {file}")),
        ({"aws_config": "slow"}, {}, (9, "profile 'slow' in {file}")),
        ({"aws_config": "quoted name"}, {}, (6, "profile 'quoted name' in {file}")),
        ({"aws_config": True}, {"AWS_PROFILE": "slow"}, (9, "profile 'slow' in {file}")),
        ({}, {"SMITHY_RETRY_AWS_CONFIG": "true"}, (4, "profile 'default' in {file}")),
        ({}, {"SMITHY_RETRY_AWS_CONFIG": "slow"}, (9, "profile 'slow' in {file}")),
        ({"aws_config": "slow"}, {"AWS_MAX_ATTEMPTS": "7"}, (7, "environment variable AWS_MAX_ATTEMPTS")),
        (
            {"aws_config": "slow"},
            {"AWS_MAX_ATTEMPTS": "7", "SMITHY_RETRY_MAX_ATTEMPTS": "8"},
            (8, "environment variable SMITHY_RETRY_MAX_ATTEMPTS"),
        ),
        ({"aws_config": "slow", "max_attempts": 2}, {"AWS_MAX_ATTEMPTS": "7"}, (2, "code")),
        ({"aws_config": False}, {"SMITHY_RETRY_AWS_CONFIG": "true"}, (None, "default")),
    ],
)
@pytest.mark.filterwarnings("ignore:.*it has no effect:requests_smithy_retry.RetryConfigWarning")
def test_precedence_per_field(code, environ, expected, aws_file):
    """Code, SMITHY_RETRY_*, AWS_*, profile, default; each value says which it was."""
    config = resolve(RetryConfig(**code), {**environ, "AWS_CONFIG_FILE": aws_file})
    value, source = expected
    assert (value, source.format(file=aws_file)) == (config.max_attempts, config.source("max_attempts"))


def test_legacy_means_standard_with_a_warning():
    """Standard takes the place of the legacy mode, with a warning."""
    with pytest.warns(RetryConfigWarning, match="'legacy' .from environment variable AWS_RETRY_MODE.*'standard'"):
        config = resolve(RetryConfig(aws_config=True), {"AWS_RETRY_MODE": "Legacy", "AWS_CONFIG_FILE": os.devnull})
    assert "standard" == config.mode


def test_what_is_overruled_is_not_looked_at(aws_file):
    """Neither a bad value nor legacy mode matters if code, SMITHY_RETRY_* or an earlier variable sets the option."""
    environ = {"AWS_CONFIG_FILE": aws_file, "AWS_RETRY_MODE": "legacy"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = resolve(RetryConfig(aws_config="bad", max_attempts=2, mode="adaptive"), environ)
        assert (2, "adaptive") == (config.max_attempts, config.mode)
        overruled = {**environ, "SMITHY_RETRY_MODE": "adaptive", "AWS_MAX_ATTEMPTS": "7"}
        config = resolve(RetryConfig(aws_config="bad"), overruled)
        assert (7, "adaptive") == (config.max_attempts, config.mode)


@pytest.mark.parametrize(
    ("code", "environ", "option", "variable"),
    [
        ({"aws_config": "absent"}, {}, "aws_config", None),
        ({}, {"SMITHY_RETRY_AWS_CONFIG": "absent"}, "aws_config", "SMITHY_RETRY_AWS_CONFIG"),
        ({"aws_config": True}, {"AWS_PROFILE": "absent"}, "aws_config", "AWS_PROFILE"),
        ({"aws_config": True}, {"AWS_NEW_RETRIES_2026": "absent"}, "retry_spec", "AWS_NEW_RETRIES_2026"),
        ({"aws_config": True}, {"AWS_CONFIG_FILE": "absent"}, "AWS_CONFIG_FILE", "AWS_CONFIG_FILE"),
    ],
)
def test_an_error_names_the_option_and_who_set_it(code, environ, option, variable, aws_file):
    """The error names the source of a profile's or a file's name, too."""
    with pytest.raises(RetryConfigError) as caught:
        resolve(RetryConfig(**code), {"AWS_CONFIG_FILE": aws_file, **environ})
    source = "code" if variable is None else f"environment variable {variable}"
    assert (option, "absent", source) == (caught.value.option, caught.value.value, caught.value.source)


def test_an_absent_default_file_is_normal(tmp_path, monkeypatch):
    """Without ~/.aws/config there are no settings and no error, and it is found where HOME says."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert 3 == resolve(RetryConfig(aws_config=True), {}).most_attempts
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text("[profile default]\nmax_attempts=5\n[default]\nmax_attempts=4\n")
    config = resolve(RetryConfig(aws_config=True), {})
    assert (5, "profile 'default' in ~/.aws/config") == (config.max_attempts, config.source("max_attempts"))


def said(environ, aws_config=True):
    """The words of the refusal."""
    with pytest.raises(RetryConfigError) as caught:
        resolve(RetryConfig(aws_config=aws_config), environ)
    return str(caught.value)


THE_NAME = "the name of a profile in {file} is allowed"
MODES = "one of 'standard', 'adaptive' is allowed"


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        (
            {"AWS_MAX_ATTEMPTS": " legacy "},
            "max_attempts='legacy' (from environment variable AWS_MAX_ATTEMPTS): "  # noqa: ISC004
            "a whole number of 1 or more or None is allowed",
        ),
        ({"AWS_RETRY_MODE": "x"}, f"mode='x' (from environment variable AWS_RETRY_MODE): {MODES}"),
        (
            {"AWS_NEW_RETRIES_2026": "soon"},
            "retry_spec='soon' (from environment variable AWS_NEW_RETRIES_2026): true (2.1) or false (2.0) is allowed",
        ),
        ({"AWS_PROFILE": "bad mode"}, f"mode='often' (from profile 'bad mode' in {{file}}): {MODES}"),
        (
            {"AWS_PROFILE": " local "},
            f"aws_config='local' (from environment variable AWS_PROFILE): {THE_NAME}; it has 'X', 'bad mode'",
        ),
    ],
)
def test_a_bad_value_is_named_with_its_source(environ, words, tmp_path):
    """The error names the option, or what chose the profile, its value, where that came from, and what is allowed."""
    path = tmp_path / "config"
    path.write_text("[profile X]\nmax_attempts=5\n[profile bad mode]\nretry_mode=often\n[services local]\n")
    assert words.format(file=path) == said({**environ, "AWS_CONFIG_FILE": str(path)})


def test_the_default_file_is_named_as_people_know_it(tmp_path, monkeypatch):
    """An error about ~/.aws/config shows no path of the machine."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text("max_attempts = 5\n")
    assert (
        "aws_config='~/.aws/config' (from its default): a readable file of profiles is allowed (File contains no "
        r"section headers. file: '~/.aws/config', line: 1 'max_attempts = 5\n')"
    ) == said({})


@pytest.mark.parametrize(
    ("content", "name", "expected"),
    [
        (b"[profile X]\nmax_attempts=5\nretry_mode=adaptive", "X", (5, "adaptive")),
        (b"[profile 'X']\nmax_attempts=5", "X", (5, "standard")),
        (
            b"\xef\xbb\xbf[default]\nmax_attempts=5\n[profile M\xc3\xbcnchen]\nmax_attempts=6\n",
            "München",
            (6, "standard"),
        ),
        (b"[default]\nmax_attempts=5 ; or so # or more", "default", (5, "standard")),
        (b"[default]\nmax_attempts=5\n[default]\nmax_attempts=6\nmax_attempts=7", "default", (7, "standard")),
        (b"[default]\nmax_attempts: 5\nretry_mode:adaptive", "default", (5, "adaptive")),
        (b"[default]\nmax_attempts = 5 # 5:00\nurl = https://a:1\n", "default", (5, "standard")),
        (b"[DEFAULT]\nmax_attempts=5\n[profile X]\n", "X", (3, "standard")),
        (b"[profile]\n[plugins]\n[a b]\n[default]\nmax_attempts=5", "default", (5, "standard")),
    ],
)
def test_files_are_read_as_the_sdks_write_them(content, name, expected, tmp_path):
    """UTF-8 with or without its mark, comments, quotes, repeated sections; [DEFAULT] and others are no profiles."""
    path = tmp_path / "config"
    path.write_bytes(content)
    config = resolve(RetryConfig(aws_config=name), {"AWS_CONFIG_FILE": str(path)})
    assert expected == (config.most_attempts, config.mode)


@pytest.mark.parametrize(
    ("content", "aws_config", "match"),
    [
        (None, True, "AWS_CONFIG_FILE=.*No such file"),
        (b"max_attempts = 5\n", True, "no section headers"),
        (b"[default]\n\xff\xfe\n", True, "a readable file of profiles"),
        (b"[default]\ns3\n  max_concurrent_requests = 20\nmax_attempts = 7\n", True, "a readable file of profiles"),
        (FILE.encode(), "absent", "aws_config='absent'.*it has 'default', 'slow'"),
        (b"", "absent", "it has none"),
        (FILE.encode(), "bad", "max_attempts='several' .from profile 'bad' in"),
    ],
)
def test_what_cannot_be_read_is_a_clear_error(content, aws_config, match, tmp_path):
    """A file that was named and is not there, a broken one, and a profile that is not in it are errors."""
    path = tmp_path / "config"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RetryConfigError, match=match):
        resolve(RetryConfig(aws_config=aws_config), {"AWS_CONFIG_FILE": str(path)})


def test_a_line_that_belongs_to_no_value_is_told_by_every_python(aws_file, monkeypatch):
    """Before Python 3.13 the parser raises AttributeError for an indented line below a key without a value."""

    def stumble(*_):
        raise AttributeError("'NoneType' object has no attribute 'append'")

    monkeypatch.setattr(configparser.RawConfigParser, "read_file", stumble)
    with pytest.raises(RetryConfigError, match=r"readable file.*an indented line stands below a key that has no value"):
        resolve(RetryConfig(aws_config=True), {"AWS_CONFIG_FILE": aws_file})


def test_a_default_profile_that_is_not_there_is_normal(tmp_path):
    """A file without a default profile says nothing, even if AWS_PROFILE says default; a blank value is no value."""
    path = tmp_path / "config"
    path.write_text("[profile x]\nmax_attempts=\nretry_mode\n")
    environ = {"AWS_CONFIG_FILE": str(path)}
    assert 3 == resolve(RetryConfig(aws_config=True), {**environ, "AWS_PROFILE": "default"}).most_attempts
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 3 == resolve(RetryConfig(aws_config="x"), environ).most_attempts


def test_each_option_that_they_set_is_known_to_the_resolver():
    """``AWS_OPTIONS`` names each option that the AWS settings can set."""
    assert {*aws_settings.VARIABLES.values(), *aws_settings.KEYS.values()} == AWS_OPTIONS
