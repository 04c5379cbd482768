"""The entry point: what it does without its extra."""

import subprocess
import sys

import pytest

from tests.unit.cli import Done, main

EXTRA = ["click", "rich"]


def outcome(*arguments):
    """The exit status, and what was said on the two streams."""
    done = Done(*arguments)
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def without(monkeypatch):
    """A function that makes a distribution look as if it were not installed."""

    def forget(missing):
        for name in tuple(sys.modules):
            if name.partition(".")[0] == missing or name.startswith("requests_smithy_retry.cli."):
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, missing, None)

    return forget


@pytest.mark.parametrize("missing", EXTRA)
def test_a_missing_extra_is_told_in_one_sentence(missing, without):
    """Without the extra, one line says how to install it, and the status is 2."""
    without(missing)
    status, out, err = outcome("explain")
    assert (2, "", 1) == (status, out, err.count("\n"))
    assert f"needs '{missing}'" in err
    assert f"{sys.executable} -m pip install click rich" in err


@pytest.mark.parametrize("missing", EXTRA)
@pytest.mark.parametrize(
    ("arguments", "expected"), [(["--help"], 0), (["-h"], 0), (["explain", "--help"], 0), ([], 2)], ids=str
)
def test_help_needs_no_extra(arguments, expected, missing, without):
    """Without the extra, help names the commands, and what to install for those that need it."""
    without(missing)
    status, out, err = outcome(*arguments)
    assert (expected, "") == (status, err)
    assert [] == [
        words for words in ("run --help", "config ", "explain ", f"{sys.executable} -m pip") if words not in out
    ]


def test_run_needs_no_extra_and_help_tells_of_it(without):
    """``run`` works without the extra's library, and stands in the help although it is no command like the others."""
    assert "requests-smithy-retry run app.py" in outcome("--help")[1]
    without("click")
    status, out, err = outcome("run")
    assert (2, "") == (status, out)
    assert err.startswith("usage: ")


def test_another_missing_module_is_a_bug(without):
    """A module that the extra does not bring is not blamed on it."""
    without("json")
    with pytest.raises(ModuleNotFoundError, match="json"):
        main(["explain"])


@pytest.mark.real_time
def test_the_package_imports_nothing_of_the_extra():
    """Importing the entry point imports neither click nor rich."""
    code = f"import sys, requests_smithy_retry.cli; sys.exit(not sys.modules.keys().isdisjoint({EXTRA}))"
    assert 0 == subprocess.run([sys.executable, "-c", code], check=False, timeout=600).returncode


def test_help_names_every_command():
    """``--help`` lists all commands, which also shows that each can be imported."""
    status, out, _ = outcome("--help")
    lines = out.partition("Commands:")[2].partition("\n\n")[0].splitlines()
    assert (0, ["config", "explain", "run"]) == (status, [line.split()[0] for line in lines if line.startswith("  ")])
