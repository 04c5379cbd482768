"""The documentation of the options agrees with the code."""

import importlib
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

import requests_smithy_retry
import requests_smithy_retry.testing
from requests_smithy_retry import StandardRetryStrategy
from requests_smithy_retry.smithy.aws import KEYS
from tests.support import read_timeout
from tests.unit.core.test_strategy import Safe, refresh

pytestmark = pytest.mark.once

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS))
generate, tables = (importlib.import_module(name) for name in ("generate", "generators.reference_tables"))
REFERENCE = DOCS / "reference"
PACKAGE = Path(requests_smithy_retry.__file__).parent


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


@pytest.mark.real_time
def test_the_generated_parts_are_up_to_date(capsys):
    """Running docs/generate.py would change nothing."""
    assert 0 == generate.main(["--check"]), capsys.readouterr().err


ROOMS = ("", ".classifiers", ".events", ".quotas", ".smithy", ".testing")


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_in_the_reference_once(room):
    """Each name of ``__all__`` has its place, and only one: that of the package, if it is there as well."""
    home = importlib.import_module(requests_smithy_retry.__name__ + room)
    text = "\n".join(path.read_text(encoding="utf-8") for path in REFERENCE.rglob("*.md"))
    found = Counter(re.findall(rf"^\.\. auto\w+:: {re.escape(home.__name__)}\.(\w+)(?:\(\))?$", text, re.MULTILINE))
    names = {*home.__all__} - ({*requests_smithy_retry.__all__} if room else set())
    assert Counter(names) == found


def test_the_reference_says_the_bases_of_the_published_numbers():
    """The sentence below the table of options, which is written by hand."""
    bases = []
    for spec in ("2.1", "2.0"):
        strategy = StandardRetryStrategy(retry_spec=spec, jitter="none")
        failures = [
            (strategy.acquire_initial_retry_token(), error) for error in (read_timeout(), Safe(throttling=True))
        ]
        bases += [refresh(strategy, token, error).retry_delay for token, error in failures]
    assert [0.05, 1.0, 1.0, 1.0] == bases
    sentence = (
        'from 0.05 s after a transient failure and 1 s after throttling with `retry_spec="2.1"`, and from 1 s with'
    )
    assert f'{sentence} `"2.0"`.' in page("options.md").replace("\n", " ")


def test_every_pytest_fixture_is_in_the_reference():
    """The fixtures that the package brings are documented with it."""
    source = (PACKAGE.parent / "requests_smithy_retry_pytest.py").read_text(encoding="utf-8")
    fixtures = re.findall(r"^@pytest\.fixture\ndef (\w+)", source, re.MULTILINE)
    assert fixtures
    assert [] == [name for name in fixtures if f"requests_smithy_retry_pytest.{name}\n" not in page("api/testing.md")]


def test_every_aws_variable_is_in_the_reference():
    """Each environment variable of the AWS settings is on the page, and so is each key of a profile."""
    source = (PACKAGE / "smithy" / "aws.py").read_text(encoding="utf-8")
    names = {*re.findall(r'"(AWS_\w+)"', source), *KEYS}
    assert set() == {name for name in names if f"`{name}`" not in page("environment.md")}


def test_every_requests_exception_that_is_made_here_is_in_the_reference():
    """Each class of requests that the package instantiates has an entry that says when."""
    made = set()
    for path in PACKAGE.rglob("*.py"):
        if "testing" not in path.parts and "cli" not in path.parts:
            made |= set(re.findall(r"requests\.exceptions\.(\w+)\(", path.read_text(encoding="utf-8")))
    assert set() == {name for name in made if f"\n- `{name}`: " not in page("exceptions.md")}


def test_a_stop_reason_without_its_consequence_is_an_error(monkeypatch):
    """A docstring that does not say what the caller gets is not passed over."""
    monkeypatch.setattr(
        tables, "attribute_docs", lambda module, name: dict.fromkeys(dir(tables.StopReason), "It ended.")
    )
    with pytest.raises(ValueError, match="SUCCESS does not say what the caller gets"):
        tables.stop_reasons()


def test_a_page_that_is_out_of_date_is_told_and_mended(tmp_path, monkeypatch, capsys):
    """--check fails and names the page; without it the page is written."""
    (tmp_path / "reference").mkdir()
    page = tmp_path / "reference" / "options.md"
    empty = "".join(f"<!-- generated: {name} -->\n<!-- end -->\n" for _, name in generate.BLOCKS)
    page.write_text(empty, encoding="utf-8")
    monkeypatch.setattr(generate, "PAGES", {})
    monkeypatch.setattr(generate, "DOCS", tmp_path)
    monkeypatch.setattr(
        generate, "BLOCKS", {key: make for key, make in generate.BLOCKS.items() if "options.md" in key[0]}
    )
    assert (1, empty) == (generate.main(["--check"]), page.read_text(encoding="utf-8"))
    assert "reference/options.md" in capsys.readouterr().err
    assert (0, 0) == (generate.main([]), generate.main(["--check"]))
