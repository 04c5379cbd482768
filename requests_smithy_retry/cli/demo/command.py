"""``requests-smithy-retry demo``."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from importlib import metadata
from typing import Any

import click
from rich.console import Console

from ...clock import SYSTEM_CLOCK
from ...version import __version__
from .clients import CLIENTS, CROWD_CLIENTS
from .contest import Contender, Crowd, Setting, take_turns
from .plan import FEWEST
from .report import Bars, show
from .results import column

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
    console = Console(quiet=as_json)
    console.print(f"{operations} operations for each client, and two scenes: about 45 seconds ...", highlight=False)
    document = run(Setting(seed=seed, operations=operations), console)
    show(console, document)
    if as_json:
        click.echo(json.dumps(document, indent=2))
    ctx.exit(0 if document["ok"] else 1)


def run(setting: Setting, console: Console) -> dict[str, Any]:
    """Do a run, with real sockets and real child processes, and return the document that ``--json`` prints."""
    started = SYSTEM_CLOCK.now()
    contenders = [Contender(client, setting) for client in CLIENTS]
    with Bars(console, contenders) as bars:
        take_turns([each.run() for each in contenders], draw=bars.draw)
    columns = [column(each.client, each.results, each.noise) for each in contenders]
    scenes = {}
    for scene in setting.scenes:
        if console.is_terminal:
            console.print(f"{scene.label} ...", highlight=False)
        crowds = [Crowd(client, scene) for client in CROWD_CLIENTS]
        take_turns([each.run() for each in crowds])
        scenes[scene.name] = {**asdict(scene), "clients": [each.turnout() for each in crowds]}
    return {
        "seed": setting.seed,
        "operations": setting.operations,
        "patience": setting.patience,
        "seconds": round(SYSTEM_CLOCK.now() - started, 3),
        "versions": {
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("requests", "urllib3")},
            "requests-smithy-retry": __version__,
        },
        "clients": columns,
        "scenes": scenes,
        "ok": not (columns[-1]["wrong"] or columns[-1]["missing"]),
    }
