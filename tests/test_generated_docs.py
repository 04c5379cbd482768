"""What the documentation says of the options is what the code says."""

import importlib.util
from pathlib import Path

import pytest

from requests_smithy_retry.environment import VARIABLES
from requests_smithy_retry.options import OPTIONS

DOCS = Path(__file__).parent.parent / "docs"
_spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
generate = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(generate)


def test_the_generated_parts_are_up_to_date(capsys):
    """Running docs/generate.py would change nothing."""
    assert 0 == generate.main(["--check"]), capsys.readouterr().err


def test_every_option_and_variable_is_in_the_reference():
    """The table has each option and each environment variable."""
    page = (DOCS / "reference" / "options.md").read_text(encoding="utf-8")
    assert [] == [name for name in (*OPTIONS, *VARIABLES) if f"`{name}`" not in page]


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


def test_a_page_without_the_block_is_an_error():
    """A marker that was lost is not passed over."""
    with pytest.raises(ValueError, match="there is no block 'x'"):
        generate.with_block("text", "x", "content")
