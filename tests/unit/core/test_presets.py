"""The published sets of numbers (contract 6.2, 7.1)."""

from pathlib import Path

from requests_smithy_retry.core.backoff import RETRY_SPECS

OPTIONS_PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "options.md"


def test_the_presets_are_the_published_numbers():
    """Retries 2.1 and 2.0, as data."""
    rows = {
        name: (
            numbers.initial_backoff,
            numbers.throttling_backoff,
            numbers.retry_cost,
            numbers.throttling_cost,
            numbers.timeout_cost,
        )
        for name, numbers in RETRY_SPECS.items()
    }
    assert {"2.1": (0.05, 1.0, 14, 5, 14), "2.0": (1.0, 1.0, 5, 5, 10)} == rows


def test_the_reference_says_the_same_bases():
    """The sentence below the table of options, which is written by hand."""
    new, old = RETRY_SPECS["2.1"], RETRY_SPECS["2.0"]
    assert old.initial_backoff == old.throttling_backoff
    sentence = (
        f"from {new.initial_backoff:g} s after a transient failure and {new.throttling_backoff:g} s after throttling "
        f'with `retry_spec="2.1"`, and from {old.initial_backoff:g} s with `"2.0"`.'
    )
    assert sentence in OPTIONS_PAGE.read_text(encoding="utf-8").replace("\n", " ")
