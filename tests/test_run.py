"""Running a program that is not changed (contract 10.5), beside python itself."""

import os
import signal
import subprocess
import sys

import pytest

from requests_smithy_retry import run as run_module
from requests_smithy_retry import uninstall
from requests_smithy_retry.testing import FaultServer, Reply

pytestmark = pytest.mark.real_time

PROGRAM = """\
import atexit, os, sys

def what():
    word = sys.argv[1]
    if word == "raise":
        raise ValueError("oops")
    if word == "exit":
        sys.exit(7)
    if word == "message":
        sys.exit("gone")
    if word == "interrupt":
        raise KeyboardInterrupt
    if word == "late":
        atexit.register(lambda: print(sys.modules["__main__"].what is what))

print(sys.argv, __name__, __file__, sys.path[0], __spec__ and __spec__.name)
x: "undefined" = 1
what()
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(PROGRAM)
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "bad.py").write_text("x = (\n")
    return tmp_path


def python(folder, *arguments):
    environ = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(run_module.__file__))}
    environ.pop("COVERAGE_PROCESS_START", None)
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False
    )


RUNPY = ("runpy", "_run_", "exec(code, run_globals)")
"""What stands in the lines of python's own frames."""

CASES = [[*how, word] for how in (["program.py"], ["-m", "program"]) for word in ("a", "raise", "exit", "interrupt")]
CASES += [["program.py", "message"], ["program.py", "late"], ["-m", "package", "raise"], ["bad.py"]]


@pytest.fixture(params=["-m", "script"])
def starter(request, folder):
    """The arguments by which the interpreter starts us: as a module, or as an installed command does it."""
    if request.param == "-m":
        return ["-m", "requests_smithy_retry"]
    script = folder / "bin" / "requests-smithy-retry"
    script.parent.mkdir()
    script.write_text("import sys\nfrom requests_smithy_retry.cli import main\nsys.exit(main())\n")
    return [str(script)]


@pytest.mark.parametrize("arguments", CASES, ids=" ".join)
def test_a_program_runs_as_under_python(arguments, starter, folder):
    """Arguments, __main__, __file__, the path, the exit status and the traceback are the same."""
    plain = python(folder, *arguments)
    ours = python(folder, *starter, "run", *arguments)
    assert (plain.returncode, plain.stdout) == (ours.returncode, ours.stdout)
    # python -m shows runpy's own two lines above the program's; here there are none.
    shown = [line for line in plain.stderr.splitlines() if not any(word in line for word in RUNPY)]
    assert [line for line in shown if "^^^" not in line] == [
        line for line in ours.stderr.splitlines() if "^^^" not in line
    ]


@pytest.mark.parametrize(
    ("arguments", "status", "out", "err"),
    [
        ([], 2, "", "usage: "),
        (["-x", "program.py"], 2, "", "usage: "),
        (["-m"], 2, "", "usage: "),
        (["--help"], 0, "usage: ", ""),
        (["absent.py"], 2, "", "can't open file"),
    ],
)
def test_bad_usage_is_told_on_stderr(arguments, status, out, err, folder):
    """The status is 2, as for python; help goes to stdout."""
    done = python(folder, "-m", "requests_smithy_retry", "run", *arguments)
    assert (status, True, True) == (done.returncode, out in done.stdout, err in done.stderr)


def test_a_signal_ends_the_program_as_under_python(folder):
    """SIGTERM kills it: nothing of ours is in between."""
    (folder / "wait.py").write_text("import time; print('ready', flush=True); time.sleep(60)")
    environ = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(run_module.__file__))}
    command = [sys.executable, "-m", "requests_smithy_retry", "run", "wait.py"]
    with subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.PIPE) as process:
        assert b"ready\n" == process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert -signal.SIGTERM == process.wait(timeout=30)


def test_the_program_has_retries_by_the_environment(folder, monkeypatch):
    """A program that knows nothing of us rides through two 503s, with attempts from the environment."""
    (folder / "app.py").write_text("import sys, requests; print(requests.get(sys.argv[1]).status_code)")
    monkeypatch.setenv("SMITHY_RETRY_MAX_ATTEMPTS", "4")
    with FaultServer([Reply(503)] * 3) as server:
        assert "503\n" == python(folder, "app.py", server.url).stdout
        assert "200\n" == python(folder, "-m", "requests_smithy_retry", "run", "app.py", server.url).stdout
        assert 1 + 3 == len(server.requests)


@pytest.fixture
def own_process(monkeypatch):
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "excepthook", lambda *shown: seen.append(shown))
    main = sys.modules["__main__"]
    seen = []
    yield seen
    sys.modules["__main__"] = main
    uninstall()


@pytest.mark.parametrize("arguments", [["program.py", "raise"], ["-m", "program", "raise"], ["package", "raise"]])
def test_the_traceback_begins_in_the_program(arguments, folder, monkeypatch, own_process):
    """Whoever prints an uncaught exception is given a traceback without a line of ours."""
    monkeypatch.chdir(folder)
    sys.modules.pop("program", None)
    with pytest.raises(ValueError, match="oops") as caught:
        run_module.run(arguments)
    # This function stands above, as an installed command's does.
    sys.excepthook(ValueError, caught.value, caught.value.__traceback__)
    ((_, error, shown),) = own_process
    assert (caught.value, "<module>", shown) == (error, shown.tb_frame.f_code.co_name, error.__traceback__)


@pytest.mark.parametrize(
    ("arguments", "status"), [(["program.py", "a"], 0), ([], 2), (["--help"], 0), (["absent.py"], 2), (["-x"], 2)]
)
def test_run_returns_the_status(arguments, status, folder, monkeypatch, own_process, capsys):
    """0 when the program has ended or help was asked for, 2 for bad usage."""
    monkeypatch.chdir(folder)
    assert status == run_module.run(arguments)
    with pytest.raises(SystemExit, match="7"):
        run_module.run(["program.py", "exit"])


def test_a_bad_policy_is_told_in_one_line(folder, monkeypatch, own_process, capsys):
    """As every command tells it; the program does not start."""
    monkeypatch.setenv("SMITHY_RETRY_MAX_ATTEMPTS", "many")
    monkeypatch.chdir(folder)
    assert 2 == run_module.run(["program.py", "x"])
    refusal = "max_attempts='many' (from environment variable SMITHY_RETRY_MAX_ATTEMPTS): a whole number from 1 on"
    assert ("", f"requests-smithy-retry: {refusal} is allowed\n") == capsys.readouterr()


def test_a_safe_path_is_left_as_it_is(folder, monkeypatch, own_process, capsys):
    """With python -P nothing is put in front of the path."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(run_module, "_has_safe_path", lambda: True)
    before = list(sys.path)
    run_module.run(["program.py", "a"])
    assert before == sys.path
