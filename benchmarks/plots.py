"""Draws the pictures from the results, PNG and SVG: `python benchmarks/plots.py [FOLDER]`.

Nothing is measured here. `FOLDER` is where `python -m benchmarks` has left its JSON (benchmarks/results); a picture
whose file is not there is left out. Colours are close to those of Okabe and Ito, which the colour-blind can tell apart;
lines differ in their style as well, and are named where they run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from faults import OUTCOMES
from matplotlib import pyplot
from matplotlib.axes import Axes

HERE = Path(__file__).parent
RESULTS, PICTURES = HERE / "results", HERE.parent / "docs" / "explanation"
GREY, ORANGE, BLUE, GREEN, INK = "#6b6b6b", "#D55E00", "#0072B2", "#007A5A", "#222222"
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.labelcolor": INK,
    "text.color": INK,
    "svg.hashsalt": "requests-smithy-retry",
    "svg.fonttype": "path",
}
LOOK = {
    "no retry": ("no retries", GREY, (0, (3, 2)), 1.4),
    "urllib3 Retry": ("urllib3 Retry", ORANGE, "-", 2.0),
    "standard": ("RetryAdapter()", BLUE, "-", 2.6),
    "payoff": ('RetryAdapter(quota="payoff")', GREEN, (0, (2, 0.6)), 2.8),
}
"""By policy: what it is called, colour, style, width."""


def save(figure: Any, name: str, folder: Path = PICTURES) -> None:
    """Both formats, with nothing in them that changes from run to run."""
    figure.savefig(folder / f"{name}.png", dpi=144, metadata={"Software": None})
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)


BIN = 2
"""Seconds that are averaged for one point: less noise, and still a divisor of the outage's ends."""
COLUMNS = (
    ("{few} clients of {each} threads", ("urllib3 Retry", "standard", "no retry")),
    ("{threads} clients of one thread", ("urllib3 Retry", "standard, 400 clients", "payoff, 400 clients", "no retry")),
)
"""Heading, and what is drawn below it, the last on top."""
LABELS: dict[tuple[str, int, str], tuple[float, float]] = {
    ("load", 0, "urllib3 Retry"): (44, 262),
    ("load", 0, "standard"): (14, 128),
    ("load", 0, "no retry"): (16, 40),
    ("load", 1, "urllib3 Retry"): (12, 262),
    ("load", 1, "standard, 400 clients"): (42, 262),
    ("load", 1, "payoff, 400 clients"): (17, 128),
    ("load", 1, "no retry"): (16, 40),
    ("goodput", 0, "standard"): (43, 85),
    ("goodput", 0, "no retry"): (54, 47),
    ("goodput", 0, "urllib3 Retry"): (44, 5),
    ("goodput", 1, "payoff, 400 clients"): (29, 85),
    ("goodput", 1, "no retry"): (54, 47),
    ("goodput", 1, "standard, 400 clients"): (44, 18),
    ("goodput", 1, "urllib3 Retry"): (44, 5),
}
"""By panel and line, where its name is written: second, and height."""
PANELS = (
    ("load", "requests that reach\nthe server, per second", 320),
    ("goodput", "operations that succeed,\nper second", 100),
)


def outage(result: dict[str, Any]) -> Any:
    """Server load above goodput, for clients of many threads and of one."""
    setting, lines = result["setting"], result["lines"]
    begin, end = setting["before"], setting["before"] + setting["lasts"] + setting["after"]
    words = {
        "few": setting["clients"],
        "each": setting["threads"] // setting["clients"],
        "threads": setting["threads"],
    }
    figure, axes = pyplot.subplots(2, 2, figsize=(10, 6), sharex=True, sharey="row", layout="constrained")
    for column, (heading, names) in enumerate(COLUMNS):
        for row, (what, label, top) in enumerate(PANELS):
            axis: Axes = axes[row][column]
            axis.axvspan(begin, begin + setting["lasts"], color="0.93", zorder=0)
            for name in names:
                _line(axis, name, lines[name][what], LABELS[what, column, name])
            axis.set_xlim(0, end)
            axis.set_ylim(0, top)
            axis.grid(axis="y", color="0.88", linewidth=0.6)
            axis.set_axisbelow(True)
            if not column:
                axis.set_ylabel(label)
        above, below = axes[0][column], axes[1][column]
        above.set_title(heading.format(**words), fontsize=12, loc="left", fontweight="bold")
        above.text(begin + 1, 312, "the service answers nothing", va="top", fontsize=9.5, color="0.35")
        above.axhline(setting["rate"], color="0.55", linewidth=0.8, linestyle=":")
        above.text(end, setting["rate"] + 4, "what the service can do", ha="right", fontsize=9, color="0.35")
        below.set_xlabel("seconds")
    return figure


def _line(axis: Axes, name: str, counts: list[int], place: tuple[float, float]) -> None:
    title, colour, style, width = LOOK[name.partition(",")[0]]
    starts = range(0, len(counts) - BIN + 1, BIN)
    means = [sum(counts[start : start + BIN]) / BIN for start in starts]
    axis.plot([start + BIN / 2 for start in starts], means, color=colour, linestyle=style, linewidth=width)
    axis.text(*place, title, color=colour, fontweight="bold", fontsize=10)


def troubles(result: dict[str, Any]) -> Any:
    """Server load above goodput, a column for each kind of trouble, first round."""
    setting, series = result["setting"], result["series of the first round"]
    begin, end = setting["before"], setting["before"] + setting["lasts"] + setting["after"]
    figure, axes = pyplot.subplots(
        2, len(series), figsize=(12, 5.2), sharex=True, sharey="row", layout="constrained", squeeze=False
    )
    for column, (trouble, rows) in enumerate(series.items()):
        for row, (what, label, _) in enumerate(PANELS):
            axis: Axes = axes[row][column]
            axis.axvspan(begin, begin + setting["lasts"], color="0.93", zorder=0)
            for name in ("urllib3 Retry", "standard", "payoff", "no retry"):
                if name in rows:
                    title, colour, style, width = LOOK[name]
                    places = [second + 0.5 for second in range(len(rows[name][what]))]
                    axis.plot(places, rows[name][what], color=colour, linestyle=style, linewidth=width, label=title)
            axis.set_xlim(0, end)
            axis.grid(axis="y", color="0.88", linewidth=0.6)
            if not column:
                axis.set_ylabel(label)
        axes[0][column].set_title(trouble, fontsize=11, loc="left", fontweight="bold")
        axes[1][column].set_xlabel("seconds")
    for first, *_ in axes:
        first.set_ylim(bottom=0)  # of the whole row, now that every line is there
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncol=len(labels), frameon=False)
    return figure


def overhead(result: dict[str, Any]) -> Any:
    """Bytecodes that a first-try success executes beside plain."""
    added = {
        name: counts["bytecodes"]["median"]
        for name, counts in result["counts"].items()
        if name not in ("plain", "control")
    }
    ordered = sorted(added.items(), key=lambda item: -item[1])
    figure, axis = pyplot.subplots(figsize=(9, 0.32 * len(ordered) + 0.9), layout="constrained")
    colours = [BLUE if name.startswith("ours") else GREY for name, _ in ordered]
    bars = axis.barh([name for name, _ in ordered], [value for _, value in ordered], color=colours, height=0.65)
    axis.bar_label(bars, [f"{value:+,.0f}" for _, value in ordered], padding=4, fontsize=9.5)
    plain = result["counts"]["plain"]["bytecodes"]["absolute"]
    axis.set_xlabel(f"bytecodes added to the {plain:,.0f} of a plain session.get")
    axis.margins(x=0.1)
    axis.tick_params(axis="y", length=0)
    return figure


WORDS = {"applied twice": "twice", "wrong body": "wrong"}


def faults(result: dict[str, Any]) -> Any:
    """The fault table: blue where it could not be better, orange where harm is done, grey for an error beside that."""
    cells, clients = result["cells"], list(result["setup"])
    figure, axis = pyplot.subplots(figsize=(11.5, 0.3 * len(cells) + 1.1), layout="constrained")
    for row, (fault, found) in enumerate(cells.items()):
        for column, client in enumerate(clients):
            if client in found:
                outcome = max(found[client]["outcomes"], key=OUTCOMES.index)
                is_best, is_harm = outcome == result["best"][fault], outcome in OUTCOMES[2:]
                colour = "#bcdcf0" if is_best else "#f3a66b" if is_harm else "#e9e9e9"
                axis.add_patch(pyplot.Rectangle((column, row), 0.96, 0.92, color=colour))
                word = WORDS.get(outcome, outcome)
                weight = "bold" if is_harm and not is_best else "normal"
                axis.text(column + 0.48, row + 0.46, word, ha="center", va="center", fontsize=8.5, fontweight=weight)
    axis.set_xlim(0, len(clients))
    axis.set_ylim(len(cells), 0)
    axis.set_xticks(
        [number + 0.48 for number in range(len(clients))], [client.replace(", ", ",\n") for client in clients]
    )
    axis.set_yticks([number + 0.46 for number in range(len(cells))], [fault.replace("`", "") for fault in cells])
    axis.xaxis.tick_top()
    axis.tick_params(length=0, labelsize=9)
    for spine in axis.spines.values():
        spine.set_visible(False)
    return figure


PLOTS = {
    "picture": ("outage", outage),
    "outages": ("troubles", troubles),
    "overhead": ("overhead", overhead),
    "faults": ("faults", faults),
}
"""By result: the picture's name, and what draws it."""


def draw(results: Path = RESULTS, pictures: Path = PICTURES) -> list[str]:
    """Draw what there are results for; the names of the pictures."""
    drawn = []
    with pyplot.rc_context(STYLE):
        for result, (name, make) in PLOTS.items():
            file = results / f"{result}.json"
            if file.exists():
                save(make(json.loads(file.read_text(encoding="utf-8"))["result"]), name, pictures)
                drawn.append(name)
    return drawn


if __name__ == "__main__":
    print(", ".join(draw(*(Path(argument) for argument in sys.argv[1:]))))
