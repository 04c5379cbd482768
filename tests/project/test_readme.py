"""The README's first screen: the two commands that set everything up run as they stand there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import dev

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = """\
python3 dev.py demo    # sets up, and shows an outage with and without this adapter (30 s)
python3 dev.py test    # sets up, and runs the whole test suite (8 min)
"""


def first_block() -> str:
    """The first block of code in the README, which is one of shell."""
    found = re.search(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert found is not None
    assert "sh" == found[1]
    return found[2]


def handed_to_dev(command: str) -> list[str]:
    """What dev.py gets if a line of the block runs."""
    line = next(line for line in first_block().splitlines() if line.startswith(f"python3 dev.py {command}"))
    python, script, *arguments = shlex.split(line, comments=True)
    assert ("python3", Path(dev.__file__)) == (python, ROOT / script)
    return arguments


def test_the_first_block_of_the_readme_is_the_two_commands_that_set_up() -> None:
    """Nothing is before them but a few lines of prose, and they are all that dev.py knows."""
    assert first_block() == COMMANDS
    assert README[: README.index("```")].count("\n") <= 12
    assert sorted(dev.NEEDS) == sorted(shlex.split(line, comments=True)[2] for line in COMMANDS.splitlines())


@pytest.mark.once
@pytest.mark.real_time
def test_the_demo_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortened, and with this environment in place of a new one, it tells of the clients that the README names."""
    monkeypatch.setattr(dev, "set_up", lambda command: sys.executable)
    file = tmp_path / "demo.json"
    assert 0 == dev.main([*handed_to_dev("demo"), "--quick", "--json", str(file)])
    found = json.loads(file.read_text(encoding="utf-8"))["outages"]["restart, 3 s"]
    assert ["requests", "urllib3's Retry(2)", "RetryAdapter()"] == [*found]


@pytest.mark.once
@pytest.mark.real_time
def test_the_test_command_of_the_readme_reaches_tox() -> None:
    """It runs as it stands; tox complains of the name of an environment, here one that tox.ini does not have."""
    stamp = dev.VENV / "ready-for-test"
    if not stamp.exists():
        pytest.skip("tox was not set up by dev.py")
    command = [sys.executable, "dev.py", *handed_to_dev("test"), "-e", "lnit"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert 0 < done.returncode
    assert "lnit" in done.stdout + done.stderr


def test_the_test_command_of_the_readme_runs_every_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sets up tox, and runs all of the default environments: it names none, and hands on nothing else."""
    seen: list[list[str]] = []

    def popen(command: list[str], **how: object) -> None:
        seen.append(command)
        raise SystemExit(0)

    monkeypatch.setattr(dev, "set_up", lambda command: f"python-for-{command}")
    monkeypatch.setattr(dev.subprocess, "Popen", popen)
    with pytest.raises(SystemExit):
        dev.main(handed_to_dev("test"))
    (command,) = seen
    assert ["python-for-test", "-m", "tox", "run-parallel"] == command[:4]
    assert "-e" not in command
