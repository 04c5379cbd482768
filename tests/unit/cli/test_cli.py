"""The entry point."""

from __future__ import annotations

import pytest

from requests_smithy_retry import __version__
from tests.unit.cli import Done


def outcome(*arguments: str) -> tuple[int, str, str]:
    """The exit status, and what was said on the two streams."""
    done = Done(*arguments)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize(("arguments", "expected"), [(["--help"], 0), (["-h"], 0), ([], 2)], ids=str)
def test_help_names_every_command(arguments: list[str], expected: int) -> None:
    """Without arguments, too, but then the exit status is that of bad usage."""
    status, out, err = outcome(*arguments)
    lines = out.partition("commands:\n")[2].partition("\n\n")[0].splitlines()
    named = [line.split()[0] for line in lines if line[2] != " "]
    assert (expected, "", ["config", "explain", "run"]) == (status, err, named)


@pytest.mark.parametrize("arguments", [["--help"], ["config", "--help"], ["explain", "--help"]], ids=str)
def test_help_is_readable_in_a_small_window(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is longer than 80 characters, and each command names its options."""
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = outcome(*arguments)
    assert (0, []) == (status, [line for line in out.splitlines() if len(line) > 80])
    assert len(arguments) == 1 or "[OPTION=VALUE ...]" in out


def test_the_version_is_told() -> None:
    """That of the package."""
    assert (0, f"requests-smithy-retry, version {__version__}\n", "") == outcome("--version")


def test_run_has_a_usage_of_its_own() -> None:
    """Without a program it is shown."""
    status, out, err = outcome("run")
    assert (2, "") == (status, out)
    assert err.startswith("usage: ")


@pytest.mark.parametrize("arguments", ["max_attempts=4 --json timeout=3", "--json max_attempts=4 timeout=3"])
def test_options_stand_before_and_after_values(arguments: str) -> None:
    """The order does not matter."""
    status, out, _ = outcome("config", *arguments.split())
    assert (0, 2) == (status, out.count('"source": "the command line"'))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["dance"], "error: No such command 'dance'"),
        (["config", "--al"], "error: unrecognized arguments: --al"),
        (["explain", "--status", "99"], "argument --status: '99': a status from 100 to 599 is allowed"),
        (["explain", "--status", "503", "--body", "."], "error: [Errno "),
    ],
)
def test_bad_usage_is_told_on_stderr(arguments: list[str], expected: str) -> None:
    """Below the usage, with the exit status 2."""
    status, out, err = outcome(*arguments)
    assert (2, "", True, True) == (status, out, err.startswith("usage: "), expected in err)
