"""``requests-smithy-retry demo``."""

from __future__ import annotations

from contextlib import ExitStack

import click
from rich.console import Console

from ...clock import SYSTEM_CLOCK
from .clients import CLIENTS
from .contest import Contender, Setting, play_scene, watch
from .plan import FEWEST
from .report import Bars, show, to_json
from .results import Summary
from .scenes import Scene, Turnout

MOST = 150
"""The most operations that fit into the time limit."""


@click.command(short_help="Several clients, a faulty server for each, and the results.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else.")
@click.option(
    "--operations",
    type=click.IntRange(FEWEST, MOST),
    default=Setting.operations,
    show_default=True,
    help="Operations for each client.",
)
@click.option("--seed", type=int, default=Setting.seed, show_default=True, help="Determines the order and the bodies.")
@click.pass_context
def demo(ctx: click.Context, as_json: bool, operations: int, seed: int) -> None:
    """Watch requests ride through failures.

    A server on loopback produces faults on real sockets. The same operations go through plain requests, urllib3's Retry
    and RetryAdapter, each in a process of its own: first each fault by itself, then a server that restarts and one that
    is overloaded. It takes about 45 seconds, 75 at most.

    The exit status is 0 if RetryAdapter finished all of its operations without a wrong body; otherwise 1.
    """
    console = Console()
    setting = Setting(seed=seed, operations=operations)
    if not as_json:
        console.print(f"{operations} operations for each client, and two scenes: about 45 seconds ...", highlight=False)
    summaries, turnouts, took = run(setting, None if as_json else console)
    if as_json:
        click.echo(to_json(setting, summaries, turnouts, took))
    else:
        show(console, setting, summaries, turnouts, took)
    ctx.exit(0 if summaries[-1].is_sound else 1)


def run(setting: Setting, console: Console | None) -> tuple[list[Summary], dict[Scene, list[Turnout]], float]:
    """Do a run, with real sockets and real child processes."""
    started = SYSTEM_CLOCK.now()
    terminal = console if console is not None and console.is_terminal else None
    with ExitStack() as stack:
        contenders: list[Contender] = [stack.enter_context(Contender(client, setting)) for client in CLIENTS]
        bars = None if terminal is None else stack.enter_context(Bars(terminal, contenders))
        watch(contenders, draw=(lambda: None) if bars is None else bars.draw)
    summaries = [Summary(each.client, each.results, tuple(each.noise)) for each in contenders]
    turnouts = {}
    for scene in setting.scenes:
        if terminal is not None:
            terminal.print(f"{scene.label} ...", highlight=False)
        turnouts[scene] = play_scene(scene)
    return summaries, turnouts, SYSTEM_CLOCK.now() - started
