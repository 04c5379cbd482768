"""The entry point: what it does without its extra, and with bad usage."""

import builtins
import errno
import io
import os
import subprocess
import sys

import pytest

from requests_smithy_retry.cli import EXTRA, main
from requests_smithy_retry.cli.group import COMMANDS, LazyGroup, run


def outcome(call, capsys):
    """The exit status, and what was said on the two streams."""
    with pytest.raises(SystemExit) as ended:
        call()
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


@pytest.fixture
def without(monkeypatch):
    """A function that makes a distribution look as if it were not installed."""
    real_import = builtins.__import__

    def forget(missing):
        def refuse(name, globals=None, locals=None, fromlist=(), level=0):  # noqa: A002
            if level == 0 and name.partition(".")[0] == missing:
                raise ModuleNotFoundError(f"No module named {missing!r}", name=name)
            return real_import(name, globals, locals, fromlist, level)

        for name in tuple(sys.modules):
            if name.partition(".")[0] == missing or name.startswith("requests_smithy_retry.cli."):
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(builtins, "__import__", refuse)

    return forget


@pytest.mark.parametrize("missing", sorted(EXTRA))
def test_a_missing_extra_is_told_in_one_sentence(missing, without, capsys):
    """Without the extra, one line says how to install it, and the status is 2."""
    without(missing)
    status, out, err = outcome(lambda: main(["explain"]), capsys)
    assert (2, "", 1) == (status, out, err.count("\n"))
    assert f"needs '{missing}'" in err
    assert f'{sys.executable} -m pip install "requests-smithy-retry[cli]"' in err


def test_run_needs_no_extra_and_help_tells_of_it(without, capsys):
    """``run`` works without the extra's library, and stands in the help although it is no command like the others."""
    assert "requests-smithy-retry run app.py" in outcome(lambda: main(["--help"]), capsys)[1]
    without("click")
    status, out, err = outcome(lambda: main(["run"]), capsys)
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
    code = (
        "import sys, requests_smithy_retry.cli; sys.exit(any(name.split('.')[0] in "
        f"{sorted(EXTRA)} for name in sys.modules))"
    )
    assert 0 == subprocess.run([sys.executable, "-c", code], check=False, timeout=600).returncode


def test_the_arguments_of_the_process_are_the_default(monkeypatch, capsys):
    """Called without arguments, it takes those of the process."""
    monkeypatch.setattr(sys, "argv", ["requests-smithy-retry", "--version"])
    status, out, _ = outcome(main, capsys)
    assert (0, True) == (status, out.startswith("requests-smithy-retry, version "))


def test_help_names_every_command(capsys):
    """``--help`` lists all commands, which also shows that each can be imported."""
    status, out, _ = outcome(lambda: main(["--help"]), capsys)
    assert 0 == status
    listed = [
        line.split()[0]
        for line in out.partition("Commands:")[2].partition("\n\n")[0].splitlines()
        if line.startswith("  ")
    ]
    assert sorted([*COMMANDS, "run"]) == listed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dance"], "No such command 'dance'"),
        (["explain", "--status", "many"], "'many' is not a valid integer"),
        (["explain", "--loud"], "No such option"),
    ],
)
def test_bad_usage_says_what_is_wrong(arguments, said, capsys):
    """Bad usage ends with status 2 and a sentence."""
    status, out, err = outcome(lambda: main(arguments), capsys)
    assert (2, "") == (status, out)
    assert said in err


def test_a_command_is_imported_when_it_is_asked_for(capsys):
    """A command that cannot be imported does not stand in the way of another."""
    places = {"broken": "no.such.module:command", **COMMANDS}
    status, out, _ = outcome(lambda: run(["config", "--help"], places), capsys)
    assert (0, True) == (status, "Show the options that were set" in out)


@pytest.mark.real_time
def test_python_dash_m_is_the_same_command_line():
    """``python -m requests_smithy_retry`` runs the same commands."""
    done = subprocess.run(
        [sys.executable, "-m", "requests_smithy_retry", "config", "--help"],
        check=False,
        capture_output=True,
        timeout=600,
    )
    assert (0, b"") == (done.returncode, done.stderr)
    assert b"requests-smithy-retry config [OPTIONS]" in done.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="it stands for a full disk")
def test_a_full_disk_is_told_in_one_sentence():
    """Where the output goes to a file that cannot be written, no traceback is shown."""
    command = [sys.executable, "-m", "requests_smithy_retry", "config"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (1, "requests-smithy-retry: the output cannot be written: No space left on device\n") == (
        done.returncode,
        done.stderr,
    )


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, SystemExit), (errno.ENOENT, FileNotFoundError)])
def test_another_error_of_the_system_is_a_bug(number, kind, monkeypatch):
    """An error of the system other than a full disk is raised with its traceback."""
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(LazyGroup, "main", lambda *_, **__: raises(OSError(number, "oops")))
    with pytest.raises(kind):
        run([])


@pytest.mark.parametrize("is_own", [True, False])
def test_an_output_that_cannot_be_written_is_closed(is_own, monkeypatch):
    """Python would write the rest at its end, and fail again; an output that is somebody else's stays open."""
    output = io.StringIO()
    monkeypatch.setattr(sys, "stdout", output)
    if is_own:
        monkeypatch.setattr(sys, "__stdout__", output)
    monkeypatch.setattr(LazyGroup, "main", lambda *_, **__: raises(OSError(errno.ENOSPC, "full")))
    with pytest.raises(SystemExit):
        run([])
    assert is_own == output.closed


def raises(error):
    raise error
