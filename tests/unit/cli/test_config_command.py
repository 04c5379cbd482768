"""``requests-smithy-retry config``."""

import json

import pytest

pytest.importorskip("click")

from tests.unit.cli import Done


def run(*arguments, **environ):
    return Done("config", *arguments, **environ)


def test_only_what_was_set_is_shown_unless_all_is_asked_for():
    """Without --all, an option with its default has no row; with nothing set, a sentence stands for the table."""
    shown = run("timeout=3").output.splitlines()
    assert [["option", "value", "source"], ["timeout", "3", "the", "command", "line"], []] == [
        line.split() for line in shown[:3]
    ]
    assert run().output.startswith("every option has its default (--all shows them)\n\nworst case of one operation\n")
    assert max(map(len, run().output.splitlines())) <= 110


def test_a_table_shows_every_source_and_the_worst_case():
    """Option, value, source; below it the worst case in words."""
    done = run("--all", "timeout=3", SMITHY_RETRY_MAX_ATTEMPTS="5")
    assert 0 == done.exit_code
    rows = [line.split() for line in done.output.splitlines() if line]
    assert ["max_attempts", "5", "environment", "variable", "SMITHY_RETRY_MAX_ATTEMPTS"] in rows
    assert ["timeout", "3", "the", "command", "line"] in rows
    assert ["quota", "payoff", "default"] in rows
    assert ["patience", "5.0", "default"] in rows
    assert ["most", "attempts", "5"] in rows
    assert "no bound; operation_timeout sets one" in done.output
    assert "no bound; max_attempts sets one" in run().output
    lines = [line.split("  ") for line in done.output.splitlines() if line]
    told = {parts[0]: parts[-1].strip() for parts in lines}
    assert "10 s; none once it has been down for 5 s" == told["longest wait for a service that is down"]


@pytest.mark.parametrize(
    ("arguments", "attempts", "line"),
    [
        (["operation_timeout=30"], "no bound; max_attempts sets one", "10 s; none once it has been down for 5 s"),
        (["operation_timeout=3"], "no bound; max_attempts sets one", "3 s"),
        (["max_attempts=4"], "4", "10 s; none once it has been down for 5 s"),
        (["max_attempts=1"], "1", "0 s"),
        (["patience=0"], "3", "0 s"),
        (["quota=500", "max_attempts=5"], "5", "0 s"),
        (["retry_spec=2.1"], "3", "0 s"),
        (["quota=none"], "3", "0 s"),
        (["patience=2"], "no bound; max_attempts sets one", "4 s; none once it has been down for 2 s"),
    ],
)
def test_it_says_how_long_a_service_is_waited_for(arguments, attempts, line):
    """The report says whether attempts are bounded, and the longest wait for a service that is down."""
    lines = [line.split("  ") for line in run(*arguments).output.splitlines() if line]
    told = {parts[0]: parts[-1].strip() for parts in lines}
    assert (attempts, line) == (told["most attempts"], told["longest wait for a service that is down"])


def test_a_url_of_a_quota_is_shown_without_its_secrets():
    """Scheme, host and path, as the user wrote them."""
    row = run("quota=redis://cache:6379/0").output.splitlines()[1].split()
    assert ["quota", "redis://cache:6379/0", "the", "command", "line"] == row
    assert "hunter2" not in run("quota=redis://:hunter2@cache/0").output


def test_json_has_the_same():
    """Values as JSON holds them; null for no bound."""
    shown = json.loads(run("--json", "operation_timeout=30").output)
    assert {"value": 30, "source": "the command line"} == shown["options"]["operation_timeout"]
    statuses = [408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529]
    assert statuses == shown["options"]["retry_status_codes"]["value"]
    in_vain = {"at_first": 2.0, "per_success": 4.0, "per_second": 2.0}
    bounds = {"attempts": None, "backoff": 30, "sleep": 30, "wall_time": 30, "in_vain": in_vain, "line_wait": 10}
    assert bounds == shown["worst_case"]
    shown = json.loads(run("--json", "operation_timeout=30", "quota=500").output)
    in_vain = {"at_first": 100.0, "per_success": 0.2, "per_second": 0.0}
    bounds = {"attempts": 3, "backoff": 3.0, "sleep": 30, "wall_time": 30, "in_vain": in_vain, "line_wait": 0}
    assert bounds == shown["worst_case"]
    assert json.loads(run("--json", "quota=none").output)["worst_case"]["in_vain"] is None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "2, and 4 more for each success, and 2 more a second"),
        (["retry_spec=2.1"], "100, and 0.2 more for each success"),
        (["patience=0"], "2, and 4 more for each success, and 1 more every 150 s"),
        (["max_attempts=1"], "0"),
        (["quota=none"], "no bound; a quota sets one"),
    ],
)
def test_it_says_how_many_retries_can_be_in_vain(arguments, expected):
    """The report has the bound of a scope: what it may lose at first, for each success, and by the clock."""
    lines = [line.split("  ") for line in run(*arguments).output.splitlines() if line]
    told = {parts[0]: parts[-1].strip() for parts in lines}
    assert expected == told["most failed retries of all operations on a service"]


def test_aws_settings_on_request():
    """--aws-config alone, or with a profile."""
    environ = {"AWS_CONFIG_FILE": "/dev/null", "AWS_MAX_ATTEMPTS": "8"}
    assert "environment variable AWS_MAX_ATTEMPTS" in run("--aws-config=default", **environ).output
    assert 2 == run("--aws-config=absent", **environ).exit_code


@pytest.mark.parametrize(
    ("arguments", "environ", "message"),
    [
        (["max_attempts=many"], {}, "max_attempts='many' (from the command line): a whole number"),
        ([], {"SMITHY_RETRY_MODE": "x"}, "from environment variable SMITHY_RETRY_MODE"),
        (["max_attempts"], {}, "OPTION=VALUE is allowed"),
        (["scope=x"], {}, "the option 'scope' can only be set in code"),
        (["operation_timout=11"], {}, "did you mean 'operation_timeout'?"),
        (["total_timeout=11"], {}, "did you mean 'operation_timeout'?"),
        (["quota=500", "patience=7"], {}, "patience=7 (from the command line)"),
    ],
)
def test_a_bad_value_is_told_in_one_line(arguments, environ, message):
    """Exit status 2, as with every command and wherever the value came from, and no traceback."""
    done = run(*arguments, **environ)
    assert (2, True, False) == (done.exit_code, message in done.output, "Traceback" in done.output)
