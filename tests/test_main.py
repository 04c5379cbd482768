"""``python -m requests_smithy_retry``."""

import runpy
import sys

import pytest


def test_it_hands_everything_to_the_command_line(monkeypatch, capsys):
    """The module, run as a program, is the command line."""
    monkeypatch.setattr(sys, "argv", ["-m", "dance"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("requests_smithy_retry", run_name="__main__")
    assert 2 == ended.value.code
    assert "No such command 'dance'" in capsys.readouterr().err


def test_importing_it_does_nothing():
    """Tools that import every module do not start a program."""
    assert "sys" in runpy.run_module("requests_smithy_retry.__main__", run_name="a_tool")
