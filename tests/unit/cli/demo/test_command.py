"""The demo from end to end: real servers, real child processes, a run of the smallest size."""

import json
import sys

import pytest

from requests_smithy_retry.cli import main
from requests_smithy_retry.cli.demo import command
from requests_smithy_retry.cli.demo.clients import CROWD_CLIENTS
from requests_smithy_retry.cli.demo.contest import Setting
from requests_smithy_retry.cli.demo.plan import FEWEST
from requests_smithy_retry.cli.demo.results import Summary, Verdict
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


@pytest.mark.parametrize(("verdict", "expected"), [(Verdict.SUCCEEDED, 0), (Verdict.WRONG, 1), (Verdict.MISSING, 1)])
def test_the_exit_status_is_ours(monkeypatch, capsys, verdict, expected):
    """The exit status goes by our own column alone."""

    def run(setting, console):
        from requests_smithy_retry.cli.demo.clients import CLIENTS
        from requests_smithy_retry.cli.demo.plan import make_plan
        from requests_smithy_retry.cli.demo.results import Result

        plan = make_plan(setting.seed, setting.operations)
        columns = [Verdict.WRONG, Verdict.WRONG, verdict]
        return (
            [
                Summary(client, [Result(operation, each, 1, 0.1) for operation in plan])
                for client, each in zip(CLIENTS, columns, strict=True)
            ],
            {},
            1.0,
        )

    monkeypatch.setattr(command, "run", run)
    assert expected == status_of(["demo"])
    said = capsys.readouterr().out
    assert said.startswith("60 operations for each client, and two scenes: about 45 seconds ...")
    assert "wrong or empty bodies" in said
    assert expected == status_of(["demo", "--json"])
    assert (expected == 0) == json.loads(capsys.readouterr().out)["ok"]


@pytest.mark.real_time
@pytest.mark.parametrize("bars", [True, False])
def test_a_run_with_bars_or_none(monkeypatch, bars):
    """With a console, the bars follow the run; children that end at once leave everything undone."""
    from rich.console import Console

    from requests_smithy_retry.cli.demo import contest

    monkeypatch.setattr(contest, "PROGRAM", "this")
    setting = Setting(operations=FEWEST, scenes=(BRIEF,))
    with open("/dev/null" if sys.platform != "win32" else "nul", "w") as nowhere:
        summaries, turnouts, _ = command.run(setting, Console(file=nowhere, force_terminal=True) if bars else None)
    assert [FEWEST] * 3 == [summary.count(Verdict.MISSING) for summary in summaries]
    assert [0] * 4 == [turnout.otherwise_done for turnout in turnouts[BRIEF]]
    assert "The Zen of Python, by Tim Peters" not in turnouts[BRIEF][0].noise[1:]
