"""``requests-smithy-retry demo``."""

from __future__ import annotations

from contextlib import ExitStack

import click
from rich.console import Console

from ...clock import SYSTEM_CLOCK
from .contender import Contender, Setting, compete
from .plan import FEWEST
from .report import Bars, show, to_json
from .summary import Summary
from .workload import CLIENTS

MOST = 150
"""More operations would not be done within the time limit."""


@click.command(short_help="Three clients, three misbehaving servers, one table.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else.")
@click.option(
    "--operations",
    type=click.IntRange(FEWEST, MOST),
    default=Setting.operations,
    show_default=True,
    help="Operations for each client.",
)
@click.option("--seed", type=int, default=Setting.seed, show_default=True, help="Makes the order and the bodies.")
@click.pass_context
def demo(ctx: click.Context, as_json: bool, operations: int, seed: int) -> None:
    """Watch requests ride through failures.

    A server on loopback misbehaves on real sockets. The same operations go through plain requests, through urllib3's
    Retry and through RetryAdapter, each in a process of its own. It takes about 20 seconds, 40 at most.

    The exit status is 0 if RetryAdapter did all of its operations and none ended with a wrong body; otherwise 1.
    """
    console = Console()
    setting = Setting(seed=seed, operations=operations)
    if not as_json:
        console.print(f"{operations} operations for each client, about 20 seconds ...", highlight=False)
    summaries, took = run(setting, None if as_json else console)
    if as_json:
        click.echo(to_json(setting, summaries, took))
    else:
        show(console, setting, summaries, took)
    ctx.exit(0 if summaries[-1].is_sound else 1)


def run(setting: Setting, console: Console | None) -> tuple[list[Summary], float]:
    """Do a run, with real sockets and real child processes.

    :param console: where the progress is drawn; None draws none.
    :returns: a summary of each client, ours last; and the seconds that it took.
    """
    started = SYSTEM_CLOCK.now()
    with ExitStack() as stack:
        contenders = [stack.enter_context(Contender(client, setting)) for client in CLIENTS]
        bars = None if console is None else stack.enter_context(Bars(console, contenders))
        compete(contenders, setting.limit, (lambda: None) if bars is None else bars.draw)
    took = SYSTEM_CLOCK.now() - started
    return [Summary(each.client, each.results, tuple(each.noise)) for each in contenders], took
