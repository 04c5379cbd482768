"""``python -m requests_smithy_retry``."""

import sys
from pathlib import Path
from unittest.mock import Mock, call

import pytest

import requests_smithy_retry


def run_main(name: str) -> dict[str, object]:
    """Run ``__main__.py`` under a name, by hand: runpy wants a loader, which pytest's is not."""
    path = Path(requests_smithy_retry.__file__).with_name("__main__.py")
    space: dict[str, object] = {"__name__": name, "__package__": "requests_smithy_retry"}
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), space)
    return space


@pytest.mark.parametrize(
    ("argument", "said"), [("dance", "No such command 'dance'"), ("run", "run [option] program [argument ...]")]
)
def test_it_hands_everything_to_the_command_line(argument, said, monkeypatch, capsys):
    """The module, run as a program, is the command line."""
    monkeypatch.setattr(sys, "argv", ["-m", argument])
    with pytest.raises(SystemExit) as ended:
        run_main("__main__")
    assert 2 == ended.value.code
    assert said in "".join(capsys.readouterr())


def test_importing_it_does_nothing():
    """Tools that import every module do not start a program."""
    assert "main" in run_main("a_tool")


def test_run_is_handed_the_program_and_its_arguments(monkeypatch):
    """Options that follow the program are the program's."""
    run = Mock(return_value=7)
    monkeypatch.setattr("requests_smithy_retry.cli.run_program", run)
    monkeypatch.setattr(sys, "argv", ["-m", "run", "app.py", "--flag"])
    with pytest.raises(SystemExit) as ended:
        run_main("__main__")
    assert (7, [call(["app.py", "--flag"])]) == (ended.value.code, run.mock_calls)
