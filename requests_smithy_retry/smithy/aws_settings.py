"""Options from the settings of the AWS SDKs (contract 10.3), on request only.

``AWS_MAX_ATTEMPTS``, ``AWS_RETRY_MODE`` and ``AWS_NEW_RETRIES_2026`` first, then the profile in the shared config file.
"""

from __future__ import annotations

import configparser
import os
import warnings
from collections.abc import Container, Mapping
from typing import Any

from ..config.options import source_of
from ..config.sources import BOOLEANS, Found, parse_text
from ..errors import RetryConfigError, RetryConfigWarning

VARIABLES = {"AWS_MAX_ATTEMPTS": "max_attempts", "AWS_RETRY_MODE": "mode", "AWS_NEW_RETRIES_2026": "retry_spec"}
"""Each variable and the option that it sets."""

KEYS = {"max_attempts": "max_attempts", "retry_mode": "mode"}
"""Each setting of a profile and the option that it sets."""


def from_aws_settings(
    environ: Mapping[str, str], aws_config: bool | str, *, source: str, settled: Container[str]
) -> Found:
    """Return the options that the AWS settings set, but for those that a source with precedence has settled.

    :param aws_config: True, or the name of the profile to read; it came from ``source``.
    :raises RetryConfigError: for a bad value, a named profile or file that is not there, or a file that is broken.
    """
    section, profile = _profile(environ, aws_config, source)
    found = [(KEYS[key], section[key], profile) for key in KEYS if key in section]
    # Later ones win: the variables beat the profile.
    found += [(VARIABLES[name], environ.get(name, ""), source_of(name)) for name in VARIABLES]
    winners = {
        option: (text.strip(), where) for option, text, where in found if text.strip() != "" and option not in settled
    }
    return {option: (_parse(option, text, where), where) for option, (text, where) in winners.items()}


def _parse(option: str, text: str, source: str) -> Any:
    if option == "mode" and text.lower() == "legacy":  # the mode from before the standard one
        warnings.warn(
            f"retry mode 'legacy' (from {source}) is not one of ours: 'standard' is used",
            RetryConfigWarning,
            stacklevel=2,
        )
        return "standard"
    if option == "retry_spec":
        is_new = BOOLEANS.get(text.lower())
        if is_new is None:
            raise RetryConfigError(option, text, source, "true (2.1) or false (2.0) is allowed")
        return "2.1" if is_new else "2.0"
    return parse_text(option, text, source)


def _profile(environ: Mapping[str, str], aws_config: bool | str, asked_by: str) -> tuple[Mapping[str, str], str]:
    """Return the profile's settings and their name as a source. An absent default profile, or file, is normal."""
    if isinstance(aws_config, str):
        asked = aws_config.strip()
    else:
        asked, asked_by = environ.get("AWS_PROFILE", "").strip(), source_of("AWS_PROFILE")
    profile = asked or "default"
    named_file = environ.get("AWS_CONFIG_FILE", "").strip()
    shown = named_file or "~/.aws/config"
    source = f"profile {profile!r} in {shown}"
    sections = _read(shown, required=named_file != "")
    if profile in sections:
        return sections[profile], source
    if asked and asked != "default":
        there = ", ".join(map(repr, sections)) or "none"
        raise RetryConfigError(
            "aws_config", asked, asked_by, f"the name of a profile in {shown} is allowed; it has {there}"
        )
    return {}, source


def _read(shown: str, *, required: bool) -> dict[str, Mapping[str, str]]:
    """Return the profiles of a file by name; an empty dict if the file is absent and not required."""
    path = os.path.expanduser(shown)
    parser = configparser.RawConfigParser(
        strict=False, default_section="\0", inline_comment_prefixes=("#", ";"), allow_no_value=True
    )
    try:
        with open(path, encoding="utf-8-sig") as file:
            parser.read_file(file, shown)
    except (OSError, UnicodeDecodeError, configparser.Error, AttributeError) as error:
        if isinstance(error, FileNotFoundError) and not required:
            return {}
        # From Python 3.13 on the parser has an error of its own for it.
        indented = "an indented line stands below a key that has no value"
        why = indented if isinstance(error, AttributeError) else str(error).replace("\n", " ")
    else:
        return _profiles(parser)
    option, source = ("AWS_CONFIG_FILE", source_of("AWS_CONFIG_FILE")) if required else ("aws_config", "its default")
    raise RetryConfigError(option, shown, source, f"a readable file of profiles is allowed ({why})")


def _profiles(parser: configparser.RawConfigParser) -> dict[str, Mapping[str, str]]:
    """Return ``[default]`` and each ``[profile x]``, no other section. ``[profile default]`` beats ``[default]``."""
    profiles: dict[str, Mapping[str, str]] = {}
    for title in parser.sections():
        words = title.split(None, 1)
        settings = {key: value or "" for key, value in parser.items(title)}
        if title.strip() == "default":
            profiles.setdefault("default", settings)
        elif len(words) == 2 and words[0] == "profile":
            profiles[words[1].strip().strip("\"'")] = settings
    return profiles
