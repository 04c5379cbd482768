"""Running a program in this process (contract 10.5): what it leaves, reports and refuses."""

import atexit
import io
import os
import pickle
import sys
import types

import pytest
import requests

from requests_smithy_retry import RetryAdapter, uninstall
from requests_smithy_retry.features.everywhere import run as run_module
from tests.support import LEFT, URL

PROGRAM = """\
import sys

if sys.argv[1] == "raise":
    raise ValueError("oops")
if sys.argv[1] == "exit":
    sys.exit(7)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(PROGRAM)
    (tmp_path / "package" / "__init__.py").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SAID = "requests-smithy-retry: "


@pytest.fixture
def own_process(monkeypatch):
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "excepthook", lambda *shown: seen.append(shown))
    main = sys.modules["__main__"]
    seen = []
    yield seen
    sys.modules["__main__"] = main
    atexit.unregister(run_module._report)
    uninstall()


@pytest.mark.parametrize("arguments", [["program.py", "raise"], ["-m", "program", "raise"], ["package", "raise"]])
def test_the_traceback_begins_in_the_program(arguments, folder, own_process):
    """The exception hook is given a traceback without a frame of ours."""
    sys.modules.pop("program", None)
    with pytest.raises(ValueError, match="oops") as caught:
        run_module.run(arguments)
    # This function stands above, as an installed command's does.
    sys.excepthook(ValueError, caught.value, caught.value.__traceback__)
    ((_, error, shown),) = own_process
    assert (caught.value, "<module>", shown) == (error, shown.tb_frame.f_code.co_name, error.__traceback__)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        *((program, 0) for program in (["program.py", "a"], ["-m", "program", "a"], ["package", "a"])),
        *((["--help"], 0), ([], 2), (["absent.py"], 2), (["-x"], 2)),
    ],
)
def test_run_returns_the_status(arguments, status, folder, own_process, capsys):
    """0 when the program has ended or help was asked for, 2 for bad usage."""
    sys.modules.pop("program", None)
    assert status == run_module.run(arguments)
    with pytest.raises(SystemExit, match="7"):
        run_module.run(["program.py", "exit"])


def test_a_dry_run_has_a_line_for_each_kind(folder, monkeypatch, own_process, capsys):
    """In any order with the other option; what is of another process is none of its business."""
    monkeypatch.setenv("SMITHY_RETRY_MOUNTED", "none")
    (folder / "left.py").write_text(LEFT)
    assert 0 == run_module.run(["--list", "--mounted", "all", "left.py"])
    capsys.readouterr()
    for process in (os.getpid(), os.getpid() + 1):
        run_module._report(process, True)
    line, listed = capsys.readouterr().err.splitlines()
    assert f"{SAID}2 of 2 adapters would have retries" == line
    assert listed.startswith(f"{SAID}2 x requests's HTTPAdapter with Retry(2), left.py:7: RetryConfig(")


@pytest.mark.parametrize("stderr", [None, io.StringIO()])
def test_without_a_stderr_nothing_is_told(stderr, monkeypatch):
    """A program may have none, or have closed it."""
    monkeypatch.setattr(sys, "stderr", stderr)
    if stderr is not None:
        stderr.close()
    run_module._tell("this")


BAD_ATTEMPTS = "max_attempts='many' (from environment variable SMITHY_RETRY_MAX_ATTEMPTS): a whole number of 1 or more"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MAX_ATTEMPTS", "many", f"{SAID}{BAD_ATTEMPTS} or None is allowed"),
        ("MOUNTED", "some", f"{SAID}mounted='some' (from environment variable SMITHY_RETRY_MOUNTED): one of 'none', "),
    ],
)
def test_a_bad_policy_is_told_in_one_line(name, value, said, folder, monkeypatch, own_process, capsys):
    """As by every command, and the program does not start, unless retries are switched off."""
    monkeypatch.setenv(f"SMITHY_RETRY_{name}", value)
    assert 2 == run_module.run(["program.py", "x"])
    out, err = capsys.readouterr()
    assert ("", 1, said) == (out, err.count("\n"), err[: len(said)])
    monkeypatch.setenv("SMITHY_RETRY_ENABLED", "no")
    assert [0, 0] == [run_module.run([*how, "program.py", "x"]) for how in ([], ["--mounted=all"])]


def test_a_safe_path_is_left_as_it_is(folder, monkeypatch, own_process, capsys):
    """With python -P nothing is put in front of the path."""
    flags = {name: getattr(sys.flags, name) for name in dir(sys.flags) if not name.startswith("_")}
    monkeypatch.setattr(sys, "flags", types.SimpleNamespace(**{**flags, "safe_path": True}))
    before = list(sys.path)
    run_module.run(["program.py", "a"])
    assert before == sys.path


def test_a_child_begins_without_us_where_it_does_not_find_us(monkeypatch):
    """If the child cannot import the library, the preparation data has no effect and its path is unchanged."""
    spawning = types.ModuleType("spawning")
    spawning.get_preparation_data = lambda name: {"name": name}
    run_module._cover_children(spawning)
    data = spawning.get_preparation_data("one")
    called, before = [], list(sys.path)
    monkeypatch.setattr(run_module, "install_when_needed", lambda folder: called.append(list(sys.path)))
    read = pickle.loads(pickle.dumps(data))
    assert ({"name": "one", "requests_smithy_retry": None}, [before]) == (read, called)
    monkeypatch.setitem(sys.modules, "requests_smithy_retry.features.everywhere.run", None)
    pickle.loads(pickle.dumps(data))
    assert (1, before) == (len(called), sys.path)


def test_a_policy_that_cannot_be_had_ends_the_program(monkeypatch, own_process, capsys):
    """An error that only making the adapter reveals is printed in one line, too, with the same exit status."""
    monkeypatch.setenv("SMITHY_RETRY_QUOTA", "redis://cache?max_connections=many")
    assert run_module._is_good_policy()
    run_module._install(requests)
    with pytest.raises(SystemExit, match="2"):
        requests.Session()
    assert "requests-smithy-retry: quota='redis://cache:6379'" in capsys.readouterr().err


def test_only_the_requests_that_has_sessions_gets_the_adapter(own_process):
    """Another module named ``requests``, without sessions, does not get the adapter."""
    run_module._install(types.ModuleType("requests"))
    assert type(requests.Session().get_adapter(URL)) is requests.adapters.HTTPAdapter
    run_module._install(requests)
    assert isinstance(requests.Session().get_adapter(URL), RetryAdapter)
