"""The demo from end to end: real servers, real child processes, a run of the smallest size."""

import io
import json

import pytest
from rich.console import Console

from requests_smithy_retry.cli import main
from requests_smithy_retry.cli.demo import command, contest
from requests_smithy_retry.cli.demo.clients import CROWD_CLIENTS, OURS
from requests_smithy_retry.cli.demo.contest import Setting
from requests_smithy_retry.cli.demo.plan import FEWEST
from requests_smithy_retry.cli.demo.results import Result, Verdict
from requests_smithy_retry.cli.demo.scenes import Scene

BRIEF = Scene("brief", "A brief restart", remains=0.0, begins=0.1, ends=0.3, seconds=0.5, grace=1.0, rate=20.0, users=2)


@pytest.fixture
def brief(monkeypatch):
    """Make runs short: a brief outage, little patience, though more than the longest honest wait, and one scene."""

    class BriefSetting(Setting):
        patience_of_all = 1.6

        def __init__(self, **options):
            super().__init__(**options, outage=0.3, patience=self.patience_of_all, scenes=(BRIEF,))

    monkeypatch.setattr(command, "Setting", BriefSetting)
    return BriefSetting


def status_of(arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


@pytest.mark.real_time
@pytest.mark.once
def test_a_whole_run(brief, capsys):
    """Ours gets through without a wrong body; urllib3's Retry sends a generator empty and sleeps on a day's hint."""
    for brief.patience_of_all in (1.6, 8.0, 30.0):  # on a busy machine, silence alone is no sleep
        status = status_of(["demo", "--json", "--operations", str(FEWEST)])
        said = capsys.readouterr()
        document = json.loads(said.out)
        plain, retry, ours = document["clients"]
        if not ours["asleep"]:
            break
    assert (0, True, "") == (status, document["ok"], said.err)
    assert (0, 0, 0) == (ours["wrong"], ours["asleep"], ours["missing"])
    assert FEWEST - 2 == ours["succeeded"]
    assert 1.0 == plain["requests_per_operation"]
    assert (1, 1) == (retry["faults"]["generator-503"]["wrong"], retry["faults"]["day"]["asleep"])
    assert retry["slowest"]["still_asleep"]
    assert document["seconds"] < 200
    assert [client.name for client in CROWD_CLIENTS] == [
        each["client"] for each in document["scenes"]["brief"]["clients"]
    ]


def ended(client, verdict):
    """Make a contender whose operations have all ended so."""
    contender = contest.Contender(client, Setting(operations=FEWEST))
    contender.results.extend(Result(operation, verdict, 1, 0.1) for operation in contender.plan)
    return contender


@pytest.mark.parametrize(("verdict", "expected"), [(Verdict.SUCCEEDED, 0), (Verdict.WRONG, 1), (Verdict.MISSING, 1)])
def test_the_exit_status_is_ours(monkeypatch, capsys, brief, verdict, expected):
    """The exit status goes by our own column alone; JSON has the versions and is alone."""
    monkeypatch.setattr(
        command, "Contender", lambda client, setting: ended(client, verdict if client is OURS else Verdict.WRONG)
    )
    monkeypatch.setattr(command, "take_turns", lambda runs, draw=None: None)
    assert expected == status_of(["demo", "--operations", "60"])
    said = capsys.readouterr().out
    assert said.startswith("60 operations for each client, and two scenes: about 45 seconds ...")
    assert "wrong or empty bodies" in said
    assert expected == status_of(["demo", "--json", "--seed", "7"])
    document = json.loads(capsys.readouterr().out)
    assert (7, 60, expected == 0) == (document["seed"], document["operations"], document["ok"])
    assert {"python", "requests", "urllib3", "requests-smithy-retry"} == set(document["versions"])
    assert ("brief", 20.0, 40.0) == tuple(document["scenes"]["brief"][name] for name in ("name", "rate", "capacity"))


@pytest.mark.real_time
@pytest.mark.parametrize("bars", [True, False])
def test_a_run_with_bars_or_none(monkeypatch, bars):
    """On a terminal, the bars follow the run; children that fail at once leave everything undone."""
    monkeypatch.setattr(contest, "work", repr)
    monkeypatch.setattr(contest, "play", repr)
    setting = Setting(operations=FEWEST, scenes=(BRIEF,))
    console = Console(file=io.StringIO(), force_terminal=bars, legacy_windows=False)
    document = command.run(setting, console)
    assert [FEWEST] * 3 == [each["missing"] for each in document["clients"]]
    assert [0] * 4 == [each["otherwise_done"] for each in document["scenes"]["brief"]["clients"]]
    assert bars == ("RetryAdapter" in console.file.getvalue()) == (BRIEF.label in console.file.getvalue())
