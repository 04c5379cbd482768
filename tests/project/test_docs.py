"""The documentation runs: every Python block of every page, in the order of the page."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import responses

from requests_smithy_retry import classifier, only
from requests_smithy_retry.config.sources import INSTALLING, VARIABLES
from requests_smithy_retry.testing import scripted
from tests.support import send

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "requests_smithy_retry"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LOGGER = logging.getLogger("requests_smithy_retry")
BLOCK = re.compile(r"^(<!-- not run: [^\n]+ -->\n)?```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LOOPBACK = re.compile(r"https?://(127\.0\.0\.1|localhost|\[::1\])[:/].*")
ANYWHERE = re.compile(r"https://[a-z.]*example\.com/.*")


def blocks_of(page: Path) -> list[str]:
    """The page's Python blocks, each padded so that an error names its line in the page."""
    text = page.read_text(encoding="utf-8")
    return ["\n" * text[: match.start(2)].count("\n") + match[2] for match in BLOCK.finditer(text) if match[1] is None]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=lambda page: page.name)
@pytest.mark.real_time
def test_every_block_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples of the documentation run as printed, against a loopback server or a mocked example.com."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(LOGGER, "filters", LOGGER.filters[:])
    space: dict[str, object] = {"__name__": "docs"}
    with mock.patch.dict(os.environ), responses.RequestsMock(assert_all_requests_are_fired=False) as answers:
        answers.add_passthru(LOOPBACK)
        for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
            answers.add(method, ANYWHERE, json={"status": "done"})
        for block in blocks_of(page):
            exec(compile(block, page.name, "exec"), space)


WITH_OUTPUT = re.compile(r"^```python\n(.*?)^```\n\n?(?:^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)


def shape_of(text: str) -> str:
    """Printed text without what is another one each time: times in seconds and bare words left out for brevity."""
    text = re.sub(r"[\d.e-]+ s\b", "# s", text)
    return re.sub(r", (?!HttpStatusCodeClassifier)\w[\w ]*: no opinion", "", text).replace(", ...", "")


@pytest.mark.real_time
def test_the_tutorial_shows_what_its_steps_print(capsys: pytest.CaptureFixture[str]) -> None:
    """The text below a step is what the step prints, but for times and the votes that are left out."""
    space: dict[str, object] = {"__name__": "tutorial"}
    for code, shown in WITH_OUTPUT.findall((ROOT / "docs/tutorial/first-retry.md").read_text(encoding="utf-8")):
        exec(compile(code, "first-retry.md", "exec"), space)
        assert shape_of(shown) == shape_of(capsys.readouterr().out)


NAMED = re.compile(r"\b((?:benchmarks|tests|docs|requests_smithy_retry)/[\w/.-]+\.(?:py|json|md))\b")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_is_there(page: Path) -> None:
    """Files, tests and environment variables that a page names exist; a block is left out only with a reason."""
    text = page.read_text(encoding="utf-8")
    assert [] == [name for name in NAMED.findall(text) if not (ROOT / name).exists()]
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert [] == [name for name in re.findall(r"`(test_\w+)`", text) if f"def {name}(" not in tests]
    assert set() == set(re.findall(r"\bSMITHY_RETRY_[A-Z_]*[A-Z]\b", text)) - {*VARIABLES, *INSTALLING}
    assert all(line.strip() for line in re.findall(r"<!-- not run:(.*?)-->", text))


def test_the_floor_plan_names_what_is_there() -> None:
    """The files and folders that it says to open exist, and the list of rooms has each folder of the package."""
    text = (ROOT / "docs/explanation/design.md").read_text(encoding="utf-8")
    names = re.findall(r"`([\w/]+(?:\.py|/))`", text)
    assert names
    assert [] == [name for name in names if not any((root / name).exists() for root in (PACKAGE, ROOT))]
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert rooms == set(re.findall(r"^- `(\w+)/`: ", text, re.MULTILINE))


LINK = re.compile(r"\]\((?!https?://|#)([^)\s#]+)(?:#([^)\s]+))?\)")


def anchors_of(page: Path) -> set[str]:
    """The anchors that a page's headings get."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_the_links_of_a_page_outside_the_documentation_lead_somewhere(name: str) -> None:
    """Sphinx looks at the links within docs/; these pages are looked at here, headings included."""
    page = ROOT / name
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
        assert anchor == "" or anchor in anchors_of(page.parent / target), f"{target}#{anchor}"


def test_the_outage_page_counts_the_requests_of_a_lone_get() -> None:
    """Each row's number of requests, and its longest time, are those of a service that always answers 503."""
    text = (ROOT / "docs/howto/riding-out-an-outage.md").read_text(encoding="utf-8")
    table = text.partition("| a lone GET that always gets 503, with |")[2].partition("| any of these")[0]
    rows = re.findall(r"^\| (no option|`[^`]+`) \| (\d+) \| ([\d.]+) s", table, re.MULTILINE)
    assert len(rows) == len(table.splitlines()) - 2
    for options, requests_made, seconds in rows:
        adapter = scripted(*[503] * 20, **eval(f"dict({options.strip('`') if options != 'no option' else ''})"))
        begun = adapter.clock.now()
        send(adapter)
        found = (len(adapter.sent), round(adapter.clock.now() - begun, 2))
        assert (int(requests_made), float(seconds)) == found, options


SDK = (ROOT / "docs/howto/ship-it-in-your-library.md").read_text(encoding="utf-8")


@pytest.mark.once
@pytest.mark.parametrize(("page", "count"), [("ship-it-in-your-library", 6), ("write-a-strategy", 2)])
def test_an_example_type_checks(page, count, tmp_path):
    """Whoever copies it, and the block that uses it, into a package that mypy checks strictly has no error."""
    pytest.importorskip("mypy")
    text = (ROOT / f"docs/howto/{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "example.py").write_text("\n".join(blocks[:count]), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", str(tmp_path / "example.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr), done.stdout


def test_the_example_for_a_library_keeps_the_classifiers_of_its_user():
    """They come after its own; an only(...) stays alone."""
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", SDK, re.DOTALL | re.MULTILINE)[:5]:
        exec(block, names)
    own, theirs = (names["by_code"], names["BUSY"]), classifier(lambda outcome: None)
    for given, expected in (((), own), ((theirs,), (*own, theirs)), (only(theirs), only(theirs))):
        client = names["Client"](names["Tokens"](lambda: ("secret", 60)), classifiers=given)
        found = client.session.get_adapter(client.url).retry_config.classifiers
        assert (expected, type(expected)) == (found, type(found))
