"""The script that sets up a fresh clone. What only a fresh machine shows, CI shows."""

import os
import sys
from pathlib import Path

import pytest

import dev

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def commands(monkeypatch):
    """Every command that would be run quietly is written down; those that contain a word of ``failing`` fail."""
    seen, failing = [], []

    def run(command):
        seen.append(" ".join(command))
        return (1, "no") if any(word in seen[-1] for word in failing) else (0, "")

    monkeypatch.setattr(dev, "run_quietly", run)
    monkeypatch.setattr(dev.shutil, "which", lambda name, path=None: f"/bin/{name}" if name == "apt-get" else None)
    monkeypatch.setattr(dev.subprocess, "call", lambda command: seen.append(" ".join(command)))
    return seen, failing


@pytest.mark.parametrize("arguments", [[], ["dance"]])
def test_bad_usage_names_the_commands(arguments, capsys):
    """A missing or unknown command leads to the list of commands."""
    assert 2 == dev.main(arguments)
    assert "demo|test" in capsys.readouterr().err


def test_a_program_that_cannot_be_run_is_no_python(tmp_path):
    """A path that does not exist, or is not a program, is not a working Python."""
    (tmp_path / "python").write_text("no program")
    assert [True, False, False] == [
        dev.is_working(path) for path in (sys.executable, str(tmp_path / "nowhere"), str(tmp_path / "python"))
    ]


def test_pythons_of_pyenv_come_first(tmp_path, monkeypatch):
    """The versions that are supported are looked for, newest first, before those on the PATH."""
    for version in ("3.9.18", "3.10.13", "3.13.0"):
        (tmp_path / "versions" / version / "bin").mkdir(parents=True)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", "/bin")
    found = [str(tmp_path / "versions" / version / "bin") for version in ("3.13.0", "3.10.13")]
    assert [*found, "/bin"] == dev.search_path()


def test_an_old_python_hands_on_to_a_newer_one(tmp_path, monkeypatch, capsys):
    """Started with a Python that is too old, dev.py runs a newer one, and says so if it finds no other."""
    called = []
    monkeypatch.setattr(dev.subprocess, "call", lambda command: called.append(command) or 7)
    monkeypatch.setattr(dev, "search_path", lambda: [str(tmp_path)])
    monkeypatch.setattr(dev, "OLDEST", (99,))
    assert 2 == dev.main(["test"])
    assert "Python 3.10 or newer is needed" in capsys.readouterr().err
    os.symlink(sys.executable, tmp_path / "python3.12")
    monkeypatch.setattr(dev, "is_working", lambda python: True)
    assert 7 == dev.main(["test", "-e", "lint"])
    assert [[str(tmp_path / "python3.12"), str(ROOT / "dev.py"), "test", "-e", "lint"]] == called


def test_root_adds_what_is_missing_where_venv_does_not_work(commands, monkeypatch):
    """As root, the distribution's package is added, and venv is tried again; where it works, nothing else is tried."""
    seen, failing = commands
    dev.make_venv()
    assert [f"{sys.executable} -m venv --clear {dev.VENV}"] == seen
    failing += ["-m venv", "-m virtualenv"]
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    with pytest.raises(SystemExit, match="install python3-venv or virtualenv"):
        dev.make_venv()
    assert "apt-get install -y -qq python3-venv" in seen
    failing[:] = ["-m virtualenv"]
    dev.make_venv()


@pytest.mark.parametrize(
    ("expected", "line"),
    [
        (True, "============ 12 passed in 3.10s ============"),
        (True, "= 1 failed, 12 passed, 2 skipped in 61.10s (0:01:01) ="),
        *((True, line) for line in ("12 passed in 0.10s", "= 3 errors in 0.10s =")),
        *((False, line) for line in ("tests/test_x.py::test_passed PASSED", "  py311: OK (3.10 seconds)")),
        (False, "ERROR tests/test_x.py::test_y[12 passed in 0.10s-True]"),
    ],
)
def test_closing_lines_are_known(expected, line):
    """The line with which pytest ends is repeated after tox has ended."""
    assert expected == bool(dev.CLOSING_LINE.search(line))
