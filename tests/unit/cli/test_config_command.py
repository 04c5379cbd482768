"""``requests-smithy-retry config``."""

import json

import pytest

from tests.unit.cli import Done


def run(*arguments, **environ):
    return Done("config", *arguments, **environ)


def told(done):
    """The rows of the report, by their first column."""
    parts = [line.split("  ") for line in done.output.splitlines() if line]
    return {part[0]: part[-1].strip() for part in parts}


def test_only_what_was_set_is_shown_unless_all_is_asked_for():
    """Without --all, an option with its default has no row; with nothing set, a sentence stands for the table."""
    shown = run("timeout=3").output.splitlines()
    assert [["option", "value", "source"], ["timeout", "3", "the", "command", "line"], []] == [
        line.split() for line in shown[:3]
    ]
    assert run().output.startswith("every option has its default\n\nworst case of one operation\n")
    assert max(map(len, run().output.splitlines())) <= 110


def test_a_table_shows_every_source_and_the_worst_case():
    """Option, value, source; below it the worst case in words."""
    done = run("--all", "timeout=3", SMITHY_RETRY_MAX_ATTEMPTS="5")
    assert 0 == done.exit_code
    rows = [" ".join(line.split()) for line in done.output.splitlines()]
    assert "max_attempts 5 environment variable SMITHY_RETRY_MAX_ATTEMPTS" in rows
    assert {"timeout 3 the command line", "quota payoff default", "patience 5.0 default", "most attempts 5"} <= {*rows}
    assert "no bound; operation_timeout sets one" in done.output


ANY, LONGEST = "no bound; max_attempts sets one", "10 s; none once it has been down for 5 s"
IN_VAIN = "2, and 4 more for each success, and 2 more a second"
PUBLISHED = "100, and 0.2 more for each success"


@pytest.mark.parametrize(
    ("arguments", "attempts", "wait", "in_vain"),
    [
        ([], ANY, LONGEST, IN_VAIN),
        (["operation_timeout=30"], ANY, LONGEST, IN_VAIN),
        (["operation_timeout=3"], ANY, "3 s", IN_VAIN),
        (["max_attempts=4"], "4", LONGEST, "3, and 6 more for each success, and 2 more a second"),
        (["max_attempts=1"], "1", "0 s", "0"),
        (["patience=0"], "3", "0 s", "2, and 4 more for each success, and 1 more every 150 s"),
        (["quota=500", "max_attempts=5"], "5", "0 s", PUBLISHED),
        (["retry_spec=2.1"], "3", "0 s", PUBLISHED),
        (["quota=none"], "3", "0 s", "no bound; a quota sets one"),
        (["patience=2"], ANY, "4 s; none once it has been down for 2 s", IN_VAIN),
    ],
)
def test_it_says_what_bounds_operations(arguments, attempts, wait, in_vain):
    """Attempts, the wait for a service that is down, and what a scope may lose: at first, for each success, by time."""
    said = told(run(*arguments))
    assert (attempts, wait) == (said["most attempts"], said["longest wait for a service that is down"])
    assert in_vain == said["most failed retries of all operations on a service"]


def test_json_has_the_same():
    """Values as JSON holds them; null for no bound."""
    shown = json.loads(run("--json", "operation_timeout=30").output)
    assert {"value": 30, "source": "the command line"} == shown["options"]["operation_timeout"]
    statuses = [408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529]
    assert statuses == shown["options"]["retry_status_codes"]["value"]
    in_vain = {"at_first": 2.0, "per_success": 4.0, "per_second": 2.0}
    bounds = {"attempts": None, "backoff": 30, "sleep": 30, "wall_time": 30, "in_vain": in_vain, "line_wait": 10}
    assert bounds == shown["worst_case"]
    assert json.loads(run("--json", "quota=none").output)["worst_case"]["in_vain"] is None


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
