"""Draws the pictures from the results, PNG and SVG: `python benchmarks/plots.py [FOLDER]`.

Nothing is measured here. `FOLDER` is where `python -m benchmarks` has left its JSON (benchmarks/results); a picture
whose file is not there is left out. Colours are close to those of Okabe and Ito, which the colour-blind can tell apart;
lines differ in their style as well.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from faults import OUTCOMES
from harm_map import LATER, OURS, PLAIN, Figures, judged
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
    "tenacity": ("tenacity, 30 s", "#CC79A7", (0, (4, 1)), 2.0),
    "stamina": ("stamina", "#E69F00", (0, (1, 1)), 2.2),
    "urllib3 Retry": ("urllib3 Retry", ORANGE, "-", 2.0),
    "AWS 2.1": ('RetryAdapter(retry_spec="2.1")', BLUE, "-", 2.2),
    "default": ("RetryAdapter()", GREEN, "-", 3.0),
}
"""By policy: what it is called, colour, style, width. The last is drawn on top."""


def save(figure: Any, name: str, folder: Path = PICTURES) -> None:
    """Both formats, with nothing in them that changes from run to run."""
    figure.savefig(folder / f"{name}.png", dpi=144, metadata={"Software": None})
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)


BIN = 2
"""Seconds that are averaged for one point: less noise, and still a divisor of the outage's ends."""
LOAD, GOODPUT = "requests that reach\nthe server, per second", "operations that succeed,\nper second"


def outage(result: dict[str, Any]) -> Any:
    """Server load above success."""
    setting, lines = result["setting"], result["lines"]
    begin, end = setting["before"], setting["before"] + setting["lasts"] + setting["after"]
    figure, axes = pyplot.subplots(2, 1, figsize=(10, 6.4), sharex=True, layout="constrained")
    above, below = axes
    for name, look in LOOK.items():
        line = lines[name]
        _line(above, _means(line["load"]), look)
        parts = zip(_means(line["successes"]), _means(line["wanted"]), strict=True)
        _line(below, [100 * good / max(wanted, 0.5) for good, wanted in parts], look)
    for axis, label in ((above, LOAD), (below, "operations begun then\nthat succeed, %")):
        _trouble(axis, begin, begin + setting["lasts"], end)
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
    above.axhline(setting["rate"], color="0.45", linewidth=0.9, linestyle=":")
    above.text(0.3, setting["rate"] + 2, "what the service can do", va="bottom", fontsize=9, color="0.35")
    above.text(begin + 0.2, above.get_ylim()[1], "the service is silent", va="top", fontsize=9.5, color="0.35")
    below.set_ylim(0, 105)
    below.set_xlabel("seconds")
    _legend(figure, above, 3)
    return figure


def _means(counts: list[int]) -> list[float]:
    return [sum(counts[start : start + BIN]) / BIN for start in range(0, len(counts) - BIN + 1, BIN)]


def _line(axis: Axes, heights: list[float], look: tuple[Any, ...], width: int = BIN) -> None:
    title, colour, style, thickness = look
    places = [(number + 0.5) * width for number in range(len(heights))]
    axis.plot(places, heights, color=colour, linestyle=style, linewidth=thickness, label=title)


def _trouble(axis: Axes, begin: float, end: float, last: float) -> None:
    axis.axvspan(begin, end, color="0.93", zorder=0)
    axis.set_xlim(0, last)
    axis.grid(axis="y", color="0.88", linewidth=0.6)
    axis.set_axisbelow(True)


def _legend(figure: Any, axis: Axes, columns: int) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncol=columns, frameon=False)


def troubles(result: dict[str, Any]) -> Any:
    """Server load above goodput, a column for each kind of trouble, first round."""
    series = result["series of the first round"]
    figure, axes = pyplot.subplots(
        2, len(series), figsize=(12, 5.2), sharex="col", sharey="row", layout="constrained", squeeze=False
    )
    for column, (trouble, rows) in enumerate(series.items()):
        lasting = result["lasting"][trouble]
        begin, end = lasting["before"], lasting["before"] + lasting["lasts"]
        for row, (what, label) in enumerate((("load", LOAD), ("goodput", GOODPUT))):
            axis: Axes = axes[row][column]
            for name, look in LOOK.items():
                if name in rows:
                    _line(axis, rows[name][what], look, 1)
            _trouble(axis, begin, end, end + lasting["after"])
            if not column:
                axis.set_ylabel(label)
        axes[0][column].set_title(trouble, fontsize=11, loc="left", fontweight="bold")
        axes[1][column].set_xlabel("seconds")
    for first, *_ in axes:
        first.set_ylim(bottom=0)  # of the whole row, now that every line is there
    _legend(figure, axes[0][0], 4)
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


SHADES = {"worse": "#D55E00", "same": "#e9e9e9", "better": "#7fc3a6"}
"""By verdict of a cell of the map of harm."""


def harm(result: dict[str, Any]) -> Any:
    """The map of harm: a panel for each policy, a row for each trouble, columns by clients and load."""
    cells, policies = result["cells"], result["policies"]
    columns = [place.split(" client")[0] for place in next(iter(cells.values()))]
    labels = [place.replace(" clients", "").replace(" client", "") for place in next(iter(cells.values()))]
    # A gap parts the numbers of clients.
    places = [number + 0.4 * len(dict.fromkeys(columns[: number + 1])) for number in range(len(columns))]
    figure, axes = pyplot.subplots(2, 3, figsize=(16, 9), layout="constrained", sharey=True)
    for axis, name in zip(axes.flat, policies, strict=True):
        for row, each in enumerate(cells.values()):
            for at, rows in zip(places, each.values(), strict=True):
                word = judged(rows, name)
                axis.add_patch(pyplot.Rectangle((at, row), 0.92, 0.92, color=SHADES[word], linewidth=0))
                if word == "worse":
                    late = Figures(*rows[name]).late - Figures(*rows[PLAIN]).late
                    told = f"{late:.0f}" if late > LATER else "%"
                    axis.text(at + 0.46, row + 0.46, told, ha="center", va="center", fontsize=8, color="white")
        axis.set_xlim(places[0] - 0.1, places[-1] + 1)
        axis.set_ylim(len(cells), 0)
        axis.set_xticks([at + 0.46 for at in places], labels, rotation=90)
        axis.set_yticks([number + 0.46 for number in range(len(cells))], list(cells))
        axis.set_title("RetryAdapter()" if name == OURS else name, fontsize=11, loc="left", fontweight="bold")
        axis.tick_params(length=0, labelsize=8.5)
        for spine in axis.spines.values():
            spine.set_visible(False)
    axes[1][1].set_xlabel("clients, load in percent of what the service can do")
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=shade) for shade in SHADES.values()]
    names = ["worse than no retry (seconds later; %: fewer succeed)", "the same", "better: more succeed, or earlier"]
    figure.legend(handles, names, loc="outside lower center", ncol=3, frameon=False)
    return figure


PLOTS = {
    "picture": ("outage", outage),
    "outages": ("troubles", troubles),
    "overhead": ("overhead", overhead),
    "faults": ("faults", faults),
    "map": ("harm", harm),
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
