"""What became of a program's adapters: the line and the list of ``run`` (contract 10.5)."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter, install, mount, uninstall
from requests_smithy_retry.features.everywhere.installation import RunOptions, install_later
from requests_smithy_retry.testing import FaultServer, Reply, skipped_waits

mounting: Any = sys.modules["requests_smithy_retry.features.everywhere.installation"]


@pytest.fixture(autouse=True)
def _restore():
    yield
    uninstall()


class Deciding(Retry):
    """A Retry that decides by itself."""

    def is_exhausted(self) -> bool:
        return False


class File(BaseAdapter):
    """No HTTP."""


def session_with(*adapters: Any) -> requests.Session:
    """A session with adapters of its own, each at both schemes."""
    session = requests.Session()
    for number, adapter in enumerate(adapters):
        for scheme in ("http://", "https://"):
            session.mount(scheme if number == 0 else f"{scheme}{number}", adapter)
    return session


NONE = "none of 5 adapters had retries: --mounted=plain would reach 1 more, --mounted=all would reach 3 more, "


@pytest.mark.parametrize(
    ("mounted", "line", "by_replace"),
    [
        ("none", NONE, 4),
        ("plain", "1 of 5 adapters had retries: --mounted=all would reach 2 more, ", 3),
        ("all", "3 of 5 adapters had retries: ", 1),
    ],
)
def test_the_line_says_what_would_reach_the_others(mounted, line, by_replace) -> None:
    """Each value reaches those of the one before. The session's own adapter, which nobody meets, does not count."""
    installation = install(mounted=mounted)
    own = [HTTPAdapter(), HTTPAdapter(max_retries=2), HTTPAdapter(max_retries=Retry(3))]
    session_with(*own, HTTPAdapter(max_retries=Deciding(3)), File())
    others = f"--mounted=replace would reach {by_replace} more, 1 cannot have them (run --list names each)"
    assert [line + others] == installation.report()


def test_what_the_program_itself_gave_retries_counts() -> None:
    """One adapter for each session, though it is mounted twice, and those that have a policy of their own."""
    installation = install(mounted="plain")
    assert [] == installation.report()
    for _ in range(2):
        requests.Session()
    assert ["2 of 2 adapters had retries"] == installation.report()
    mount(requests.Session(), max_attempts=7)
    line, *listed = installation.report(each=True)
    assert "3 of 3 adapters had retries" == line
    own = "1 x requests_smithy_retry's RetryAdapter: RetryConfig(mode='standard' [default], max_attempts=7 [code]"
    assert any(each.startswith(own) for each in listed)


def test_the_list_names_each_with_its_policy_or_why_it_has_none() -> None:
    """Adapters of one kind are one line."""
    installation = install(mounted="all", max_attempts=4)
    requests.Session()
    session_with(HTTPAdapter(max_retries=Retry(1)), HTTPAdapter(max_retries=Deciding(3)))
    session_with(HTTPAdapter(max_retries=Retry(1)))
    _, *lines = installation.report(each=True)
    policies = ("max_attempts=4 [code]", "max_attempts=2 [max_retries]")
    assert ["1 x an adapter of requests' own", "2 x requests's HTTPAdapter with Retry(1)"] == [
        line.partition(": ")[0] for line, policy in zip(lines, policies, strict=False) if policy in line
    ]
    deciding = f"requests's HTTPAdapter with {__name__}.Deciding(3), whose is_exhausted cannot be translated"
    assert [f"1 x {deciding}: left alone"] == lines[2:]


def test_retries_that_are_switched_off_are_said_to_be(monkeypatch) -> None:
    """Neither a number nor advice would help."""
    monkeypatch.setenv("SMITHY_RETRY_ENABLED", "no")
    installation = install(mounted="all")
    session_with(HTTPAdapter(max_retries=2))
    off = "retries are switched off: enabled=False (from environment variable SMITHY_RETRY_ENABLED)"
    assert [off] == installation.report(each=True)


def later(said: list[str], *, is_dry: bool = False) -> None:
    """Install as ``run`` does."""
    install_later(RunOptions(pytest.fail, said.append, is_dry))


def test_it_is_told_at_once_that_nothing_is_reached() -> None:
    """When the first session has no adapter with retries; once, and not where another one has."""
    said: list[str] = []
    later(said)
    session = requests.Session()
    session.mount("https://", HTTPAdapter(max_retries=2))
    assert [] == said
    session.mount("http://", HTTPAdapter(max_retries=2))
    session_with(HTTPAdapter(max_retries=3))
    sentence = "requests's HTTPAdapter with Retry(2), which mounted='all' would translate"
    assert [f"nothing in this program has retries so far; left alone: {sentence}"] == said


@pytest.mark.parametrize("mounted", ["plain", "all", "replace"])
def test_a_dry_run_changes_nothing_and_tells_what_it_would_do(mounted, monkeypatch) -> None:
    """Each adapter is listed as in a run that is meant, with the line that mounts it; none is touched."""
    monkeypatch.setenv("SMITHY_RETRY_MOUNTED", mounted)
    reports = []
    for is_dry in (True, False):
        said: list[str] = []
        later(said, is_dry=is_dry)
        retries = (Retry(2), Deciding(3), Retry(total=True))
        adapters = [HTTPAdapter(pool_maxsize=3), *(HTTPAdapter(max_retries=each) for each in retries)]
        before = [(type(adapter), dict(vars(adapter))) for adapter in adapters]
        session_with(*adapters)
        plain = requests.Session()
        reports.append(mounting.current().report(each=True))
        if is_dry:
            assert before == [(type(adapter), vars(adapter)) for adapter in adapters]
            assert not any(each.retry_config.enabled for each in plain.adapters.values())
            assert [] == said
        uninstall()
    at = re.compile(rf", tests/unit/features/{Path(__file__).name}:(\d+)")
    meant = [reports[1][0].replace("had", "would have"), *reports[1][1:]]
    assert sorted(meant) == sorted(at.sub("", line) for line in reports[0])
    places = [found[1] for line in reports[0] if (found := at.search(line))]
    assert (len(reports[0]) - 1, 2) == (len(places), len(set(places)))


def test_adapters_with_different_policies_are_listed_apart(monkeypatch) -> None:
    """Two Retries of the same total may differ in what they send again."""
    monkeypatch.setenv("SMITHY_RETRY_MOUNTED", "all")
    later([], is_dry=True)
    for given in ({}, {"allowed_methods": None, "status_forcelist": [503]}, {}):
        session_with(HTTPAdapter(max_retries=Retry(3, **given)))
    _, safe, unsafe = mounting.current().report(each=True)
    assert safe.startswith("2 x requests's HTTPAdapter with Retry(3), tests/")
    assert unsafe.startswith("1 x requests's HTTPAdapter with Retry(3), tests/")
    assert (False, True) == ("503" in safe, "503" in unsafe)


class Equal(HTTPAdapter):
    """An adapter that cannot be in a set."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)


@pytest.mark.parametrize("mounted", ["replace", "all"])
def test_a_second_line_counts_what_retries_did(mounted: str) -> None:
    """Over all adapters, those with a policy of their own included; before any operation there is no such line."""
    installation = install(mounted=mounted)
    given = (None, HTTPAdapter(max_retries=Retry(3, status_forcelist=[503])), Equal(), RetryAdapter(max_attempts=2))
    sessions = [requests.Session() if adapter is None else session_with(adapter) for adapter in given]
    assert 1 == len(installation.report())
    with skipped_waits(), FaultServer([Reply(503), Reply(200)] * 4) as server:
        for session in sessions:
            assert 200 == session.get(server.url).status_code
    line, counts = installation.report()
    assert "4 of 4 adapters had retries" == line
    assert counts.startswith("4 operations: 4 retried (4 retries), 4 saved, 0 lost, ")
