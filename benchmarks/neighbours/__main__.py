"""Run other people's test suites, plain and with retries under every Session, and explain the difference by test.

    tox -e neighbours [-- NAME...]
    python -m benchmarks.neighbours [NAME...] [--work FOLDER] [--learn]

Takes each suite from the package's source distribution (``SUITES``; the versions are those of requirements.txt, which
has to be installed), and runs it twice. differences.json holds the tests that end otherwise with retries, each with its
reason; exit status 1 if a test is missing there, or differs no more. ``--learn`` writes new ones with the reason
"unexplained". A test that ends otherwise in a second plain run is left out: it depends on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
DIFFERENCES = HERE / "differences.json"
BOUND = 900.0
"""Seconds for one run of one suite."""
UNEXPLAINED = "unexplained"
PYTEST = (
    "-m",
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
    "--timeout",
    "60",
    "-W",
    "ignore",
    "-o",
    "addopts=",
    "--continue-on-collection-errors",
)


class Suite(NamedTuple):
    """A suite.

    :param tests: the paths of the tests in the source distribution.
    :param options: further options of pytest.
    """

    tests: tuple[str, ...] = ("tests",)
    options: tuple[str, ...] = ()


SUITES = {
    "requests": Suite(options=("--deselect", "tests/test_requests.py::TestRequests::test_redirecting_to_bad_url")),
    "responses": Suite(("responses",)),
    "requests-mock": Suite(),
    "requests-cache": Suite(("tests/unit",)),
    "requests-toolbelt": Suite(),
    "requests-ntlm": Suite(),
    "requests-oauthlib": Suite(options=("--ignore", "tests/examples")),
    "requests-ratelimiter": Suite(("test",)),
    "vcrpy": Suite(("tests/unit", "tests/integration/test_requests.py")),
    "betamax": Suite(),
    "python-gitlab": Suite(("tests/unit",)),
    "hvac": Suite(("tests/unit_tests",)),
    "prawcore": Suite(),
    "zeep": Suite(),
    "twine": Suite(),
}
"""By distribution. CacheControl's and docker's source distributions hold no tests."""


def main() -> int:
    """Run the suites, and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("suites", nargs="*", metavar="NAME", help=f"of {', '.join(SUITES)}; default: all")
    parser.add_argument("--work", type=Path, help="keep the sources in this folder")
    parser.add_argument("--learn", action="store_true", help="write the differences down")
    options = parser.parse_args()
    known: dict[str, dict[str, str]] = json.loads(DIFFERENCES.read_text(encoding="utf-8"))
    is_good = True
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.work or Path(temporary)
        for name in options.suites or SUITES:
            source = unpacked(name, folder)
            plain, ours = outcomes(name, source), outcomes(name, source, "-p", "with_retries")
            found = differing(plain, ours)
            if found:
                # A test that depends on the machine, or on its turn, differs without retries, too.
                again = outcomes(name, source)
                found = [test for test in found if plain.get(test) == again.get(test)]
            trouble = unexpected(found, known.get(name, {}))
            print(f"{name} {metadata.version(name)}: {len(plain)} tests, {len(found)} differ", flush=True)
            for line in trouble:
                print(f"    {line}", flush=True)
            if sum(outcome == "passed" for outcome in plain.values()) < len(plain) / 2 or not plain:
                trouble.append("most tests do not even pass without retries: is something not installed?")
                print(f"    {trouble[-1]}", flush=True)
            is_good = is_good and not trouble
            if options.learn:
                reasons = known.get(name, {})
                known[name] = {test: reasons.get(test, f"{UNEXPLAINED}: {ours.get(test)}") for test in found}
                DIFFERENCES.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0 if is_good else 1


def unpacked(name: str, folder: Path) -> Path:
    """Return the folder of a distribution's source, in the installed version."""
    wanted = f"{name}=={metadata.version(name)}"
    target = folder / name
    if not target.exists():
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check")
        with tempfile.TemporaryDirectory() as downloads:
            subprocess.run([*pip, "--no-deps", "--no-binary", ":all:", "-d", downloads, wanted], check=True)
            with tarfile.open(next(Path(downloads).glob("*.tar.gz"))) as archive:
                archive.extractall(target, filter="data")
    return next(path for path in target.iterdir() if path.is_dir())


def outcomes(name: str, source: Path, *plugins: str) -> dict[str, str]:
    """Run a suite once.

    :returns: by test: ``passed``, ``skipped``, or the first line of what it failed with.
    """
    suite = SUITES[name]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, *PYTEST, *plugins, "--junitxml", str(report), *suite.options, *suite.tests]
        path = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
        try:
            subprocess.run(
                command,
                cwd=source,
                env={**os.environ, "PYTHONPATH": path, "HOME": folder},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=BOUND,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {}
        return parsed(report.read_text(encoding="utf-8")) if report.exists() else {}


def parsed(report: str) -> dict[str, str]:
    """Read a report of JUnit's form."""
    found = {}
    for case in ET.fromstring(report).iter("testcase"):
        told = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        first = "" if told is None else (told.get("message") or "").partition("\n")[0][:200]
        is_failure = told is not None and told.tag != "skipped"
        found[f"{case.get('classname')}::{case.get('name')}"] = (
            "passed" if told is None else f"failed: {first}" if is_failure else "skipped"
        )
    return found


def differing(plain: dict[str, str], ours: dict[str, str]) -> list[str]:
    """Return the tests whose kind of ending differs, or that are there only once."""
    return sorted(
        test
        for test in plain.keys() | ours.keys()
        if plain.get(test, "").partition(":")[0] != ours.get(test, "").partition(":")[0]
    )


def unexpected(found: Iterable[str], known: dict[str, str]) -> list[str]:
    """Say what is not as it was written down.

    :param found: the tests that differ.
    :param known: the reasons, by test.
    """
    found = set(found)
    lines = [f"differs, without a reason: {test}" for test in sorted(found - known.keys())]
    lines += [f"unexplained: {test}" for test in sorted(found) if known.get(test, "").startswith(UNEXPLAINED)]
    return lines + [f"differs no more: {test}" for test in sorted(known.keys() - found)]


if __name__ == "__main__":
    raise SystemExit(main())
