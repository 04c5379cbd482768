"""The run behind the README's picture: ten seconds in which a service answers nothing, before, during and after.

    python -m benchmarks.outage_picture [--quick] [--draw] [--json FILE]

One episode per line of the picture (`outage_client.py`): ten clients of 40 threads, 35 operations a second, a service
that can do 50, a time-out of a second. All run at the same time. About one minute. `--draw` draws it, with matplotlib.
Colours are close to those of Okabe and Ito, which the colour-blind can tell apart; lines differ in their style, too.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from . import command
from .outage_client import MOST_LATE, Episode, figures
from .outage_loopback import play_well

WHOLE = Episode("no retry", "hole, 10 s", before=10.0, lasts=10.0, after=30.0)
QUICK = replace(WHOLE, before=1.0, lasts=2.0, after=1.0)
GREY, INK = "#6b6b6b", "#222222"
LINES = {
    "no retry": ("no retries", GREY, (0, (3, 2)), 1.4),
    "tenacity": ("tenacity, 30 s", "#CC79A7", (0, (4, 1)), 2.0),
    "stamina": ("stamina", "#E69F00", (0, (1, 1)), 2.2),
    "urllib3 Retry": ("urllib3 Retry", "#D55E00", "-", 2.0),
    "AWS 2.1": ('RetryAdapter(retry_spec="2.1")', "#0072B2", "-", 2.2),
    "default": ("RetryAdapter()", "#007A5A", "-", 3.0),
}
"""By policy: what it is called, colour, style, width. The last is drawn on top."""
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.labelcolor": INK,
    "text.color": INK,
}
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "outage.png"
BIN = 2
"""Seconds that are averaged for one point: less noise, and still a divisor of the outage's ends."""


def measure(setting: Episode) -> dict[str, Any]:
    """Every line's counts per second, and its figures."""
    episodes = [replace(setting, policy=policy) for policy in LINES]
    lines = {}
    for episode, counts in zip(episodes, play_well(episodes, len(LINES)), strict=True):
        kept = {name: counts[name] for name in ("load", "wanted", "successes")}
        lines[episode.policy] = {**kept, "figures": figures(episode, counts), "valid": counts["late"] <= MOST_LATE}
    return {"setting": asdict(setting), "lines": lines}


def draw(result: dict[str, Any], file: Path) -> None:
    """Draw the server's load above success, with nothing in the file that changes from run to run."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    setting, begin = result["setting"], result["setting"]["before"]
    with pyplot.rc_context(STYLE):
        figure, (above, below) = pyplot.subplots(2, 1, figsize=(10, 6.4), sharex=True, layout="constrained")
        for name, (title, colour, style, width) in LINES.items():
            line = result["lines"][name]
            good, wanted = _means(line["successes"]), _means(line["wanted"])
            parts = [100 * done / max(all_of_them, 0.5) for done, all_of_them in zip(good, wanted, strict=True)]
            for axis, heights in ((above, _means(line["load"])), (below, parts)):
                places = [(number + 0.5) * BIN for number in range(len(heights))]
                axis.plot(places, heights, color=colour, linestyle=style, linewidth=width, label=title)
        for axis in (above, below):
            axis.axvspan(begin, begin + setting["lasts"], color="0.93", zorder=0)
            axis.grid(axis="y", color="0.88", linewidth=0.6)
            axis.set_axisbelow(True)
            axis.set_ylim(bottom=0)
        above.axhline(setting["rate"], color="0.45", linewidth=0.9, linestyle=":")
        above.text(0.3, setting["rate"] + 2, "what the service can do", va="bottom", fontsize=9, color="0.35")
        above.text(begin + 0.2, above.get_ylim()[1], "the service is silent", va="top", fontsize=9.5, color="0.35")
        above.set_ylabel("requests that reach\nthe server, per second")
        below.set_ylabel("operations begun then\nthat succeed, %")
        below.set_ylim(0, 105)
        below.set_xlim(0, begin + setting["lasts"] + setting["after"])
        below.set_xlabel("seconds")
        figure.legend(*above.get_legend_handles_labels(), loc="outside upper center", ncol=3, frameon=False)
        figure.savefig(file, dpi=144, metadata={"Software": None})
        pyplot.close(figure)


def _means(counts: list[int]) -> list[float]:
    return [sum(counts[start : start + BIN]) / BIN for start in range(0, len(counts) - BIN + 1, BIN)]


def main() -> int:
    """Play, print, and write what was asked for. Exit status 1: an episode is invalid."""
    parser = command.parser(__doc__, "an outage of two seconds: some seconds")
    parser.add_argument("--draw", action="store_true", help="draw the README's picture")
    options = parser.parse_args()
    result = measure(QUICK if options.quick else WHOLE)
    for name, line in result["lines"].items():
        validity = "" if line["valid"] else "   invalid: the load generator was late"
        print(f"{name:14} " + ", ".join(f"{what} {value:.2f}" for what, value in line["figures"].items()) + validity)
    command.write(result, options.json)
    if options.draw and not options.quick:
        draw(result, PICTURE)
    return int(not all(line["valid"] for line in result["lines"].values()))


if __name__ == "__main__":
    raise SystemExit(main())
