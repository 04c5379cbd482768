"""What the processes that a program starts have to tell (contract 10.5)."""

from __future__ import annotations

import multiprocessing.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter, install, mount, uninstall
from requests_smithy_retry.features.everywhere import children, installation
from requests_smithy_retry.features.everywhere import run as run_module
from requests_smithy_retry.features.everywhere.children import ProgramProcesses
from requests_smithy_retry.features.everywhere.counts import ProcessReport, report
from requests_smithy_retry.features.everywhere.decisions import no_longer_retried
from requests_smithy_retry.features.everywhere.installation import RunOptions, install_later
from requests_smithy_retry.observing.summary import RetrySummary
from requests_smithy_retry.testing import FaultServer, Reply, skipped_waits


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ProgramProcesses]:
    """Processes of its own for this process, which register nothing that stays."""
    made = ProgramProcesses()
    monkeypatch.setattr(os, "register_at_fork", lambda **_: None, raising=False)
    for module in (children, installation, run_module):
        monkeypatch.setattr(module, "PROCESSES", made)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield made
    uninstall()


def test_a_folder_is_made_before_the_first_process_and_removed_at_the_end(
    processes: ProgramProcesses, tmp_path: Path
) -> None:
    """Once; without any process there is none, and nothing to be heard."""
    processes.start_counting()
    assert ([], False) == (list(processes.read_reports()), processes.is_child)
    folder = processes.make_folder()
    assert (folder, [Path(folder)]) == (processes.make_folder(), list(tmp_path.iterdir()))
    other = ProgramProcesses()
    other.join(folder)
    assert (True, folder) == (other.is_child, other.make_folder())
    for told in ([1], [2]):
        other.write_report(told)
    Path(folder, "7.new").write_text("[")  # its process was killed as it wrote
    assert [[2]] == list(processes.read_reports())
    assert [] == list(tmp_path.iterdir())
    other.write_report([3])  # too late
    assert [] == list(tmp_path.iterdir())


def test_a_second_program_begins_anew(processes: ProgramProcesses) -> None:
    """It has a folder of its own."""
    processes.start_counting()
    first = processes.make_folder()
    processes.start_counting()
    assert first != processes.make_folder()


def answered(session: requests.Session, *statuses: int) -> None:
    with skipped_waits(), FaultServer([Reply(status) for status in statuses]) as server:
        assert 200 == session.get(server.url, timeout=60).status_code


def test_a_process_tells_of_its_adapters_and_of_what_they_did(processes: ProgramProcesses, tmp_path: Path) -> None:
    """At once of a retry or a failure; of successes at once only from time to time, and at its end."""
    install_later(RunOptions(pytest.fail, pytest.fail))
    ended: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multiprocessing.util, "Finalize", lambda _, tell, **how: ended.append(tell))
        processes.join(str(tmp_path))
        session = requests.Session()
        kept = tmp_path / str(os.getpid())
        assert '"an adapter of requests\' own", null' in kept.read_text()
        answered(session, 503, 200)
        after_a_retry = kept.read_text()
        answered(session, 200)
        assert after_a_retry == kept.read_text()
        with skipped_waits(), pytest.raises(requests.ConnectionError):
            session.get("http://127.0.0.1:1/")
        assert after_a_retry != kept.read_text()
        (tell,) = ended
        answered(session, 200)
        tell()
    installation.current().restart_counts()  # type: ignore[union-attr]
    assert [] == installation.current().report()  # type: ignore[union-attr]
    processes.main_process = os.getpid()
    (line, did) = report([ProcessReport(*told) for told in processes.read_reports()], "had", each=False)
    assert "1 of 1 adapter had retries" == line
    assert did.startswith("4 operations: ")


def test_a_process_that_knows_no_multiprocessing_tells_at_its_end_by_atexit_alone(
    processes: ProgramProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else is registered."""
    monkeypatch.delitem(sys.modules, "multiprocessing.util")
    processes.call_at_end(pytest.fail)
    assert "multiprocessing.util" not in sys.modules


def test_what_was_counted_before_a_fork_is_the_other_process_own(processes: ProgramProcesses) -> None:
    """Adapters of before are no adapters of this process, also the program's own; what they do from now on counts."""
    install_later(RunOptions(pytest.fail, pytest.fail))
    session, own = requests.Session(), mount(requests.Session(), backoff=0)
    answered(session, 503, 200)
    answered(own, 200)
    now: Any = installation.current()
    now.restart_counts()
    assert [] == now.report()
    answered(session, 200)
    requests.Session()
    assert ["1 of 1 adapter had retries", str(RetrySummary(operations=1))] == now.report()


def test_at_the_end_all_are_told_of_together(processes: ProgramProcesses, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether or not the program's own process has sessions; a process that was forked tells only that one."""
    processes.start_counting()
    other = ProgramProcesses()
    other.join(processes.make_folder())
    kinds = [["an adapter", None, "Policy()", ", a.py:1", "", 2], ["another", "all", None, "", "", 1]]
    other.write_report([kinds, RetrySummary(operations=3, retried=1, retries=1, saved=1, waited=0.5)])
    run_module._report(os.getpid(), True)
    assert [
        "2 of 3 adapters would have retries: --mounted=all would reach 1 more (run --list names each)",
        str(RetrySummary(operations=3, retried=1, retries=1, saved=1, waited=0.5)),
        "2 x an adapter, a.py:1: Policy()",
        "1 x another: left alone",
    ] == [line.removeprefix("requests-smithy-retry: ") for line in capsys.readouterr().err.splitlines()]

    other.join(processes.make_folder())
    other.write_report([kinds, RetrySummary()])
    install()
    requests.Session()
    run_module._report(os.getpid(), False)
    assert "3 of 4 adapters of 2 processes had retries" in capsys.readouterr().err
    run_module._report(os.getpid() + 1, False)
    uninstall()
    run_module._report(os.getpid() + 1, False)
    assert "" == capsys.readouterr().err


def test_a_process_that_is_started_anew_is_told_of_the_folder(
    processes: ProgramProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It installs, and says nothing at once, whatever it leaves alone."""
    monkeypatch.setenv("SMITHY_RETRY_MOUNTED", "plain")
    monkeypatch.setattr(run_module, "_tell", pytest.fail)
    run_module.install_when_needed(folder="/nowhere")
    session = requests.Session()
    for prefix in ("http://", "https://"):
        session.mount(prefix, HTTPAdapter(max_retries=2))
    assert (True, "/nowhere") == (processes.is_child, processes.make_folder())


@pytest.mark.parametrize("is_installed", [True, False])
@pytest.mark.parametrize(
    ("variables", "methods"),
    [
        ({"ALLOWED_METHODS": "all"}, "PATCH and POST"),
        ({"ALLOWED_METHODS": "GET, POST"}, "POST"),
        ({"ALLOWED_METHODS": "GET, PUT"}, ""),
        ({"ALLOWED_METHODS": "all", "ENABLED": "no"}, ""),
        ({}, ""),
    ],
)
def test_methods_that_may_be_applied_twice_are_told_of(
    variables: dict[str, str],
    methods: str,
    is_installed: bool,
    processes: ProgramProcesses,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In the last line, with what allows them, wherever the program has its sessions."""
    for name, text in variables.items():
        monkeypatch.setenv(f"SMITHY_RETRY_{name}", text)
    processes.start_counting()
    other = ProgramProcesses()
    other.join(processes.make_folder())
    other.write_report([[["an adapter", None, "Policy()", "", "", 1]], RetrySummary()])
    if is_installed:
        install()
        requests.Session()
    run_module._report(os.getpid(), False)
    last = capsys.readouterr().err.splitlines()[-1].removeprefix("requests-smithy-retry: ")
    by = "by environment variable SMITHY_RETRY_ALLOWED_METHODS"
    risk = f"{methods} requests are sent again even if the server may have applied them, {by}"
    assert (last == risk) == bool(methods)
    assert ("sent again" in last) == bool(methods)


WANTED: dict[str, Any] = {"allowed_methods": None, "retry_status_codes": [404, 418, 503]}


@pytest.mark.parametrize(
    ("ignored", "policy", "methods", "value"),
    [
        (Retry(3, allowed_methods=None), {}, "PATCH and POST", "all"),
        (Retry(3, allowed_methods=["POST"]), {"allowed_methods": ["GET"]}, "POST", "GET,POST"),
        *((Retry(3, allowed_methods=None), {"allowed_methods": each}, "", "") for each in (None, ["POST", "PATCH"])),
        *((each, {}, "", "") for each in (Retry(3), 0, 3)),
    ],
)
def test_methods_that_are_not_sent_again_any_more(ignored: Any, policy: Any, methods: str, value: str) -> None:
    """Those that a Retry in whose place the policy is sent again, unless the policy does so, too."""
    clause = no_longer_retried(RetryAdapter(**policy).retry_config, ignored)
    variable = f"SMITHY_RETRY_ALLOWED_METHODS={value}"
    assert clause == (f"sent {methods} again, and the policy does not: {variable} brings it back" if methods else "")


def test_statuses_that_are_not_retried_any_more() -> None:
    """Those of a Retry that the policy in its place does not retry, after the methods, with the variable for each."""
    ignored = Retry(3, status_forcelist=[404, 418, 503, "x", 1000], allowed_methods=None)
    by_default, by_hand = (no_longer_retried(RetryAdapter(**each).retry_config, ignored) for each in ({}, WANTED))
    codes = "404,408,418,425,429,500,502,503,504,520,521,522,523,524,529"
    variable = f"SMITHY_RETRY_RETRY_STATUS_CODES={codes}"
    clause = f"; it retried after 404 and 418, and the policy does not: {variable} brings it back"
    assert by_default.endswith(clause)
    assert by_default.startswith("sent PATCH and POST again")
    assert by_hand == ""


def test_a_clause_is_told_once_for_all_adapters() -> None:
    """With their number; not of those that are of that kind no more."""
    kinds = [[f"adapter {number}", None, "", "", "clause", 2] for number in (1, 2)]
    assert "the own Retry of 4 adapters clause" == report([ProcessReport(kinds, [0])], "had", each=False)[-1]
