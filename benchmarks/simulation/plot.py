"""The picture: server load and goodput over time, one row per scenario, one line per policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .scenarios import BEGIN, END

if TYPE_CHECKING:
    from pathlib import Path

SMOOTH = 3
STYLES = ("-", "-", "-", "--", "-", "-", "-.", ":")
BROAD = "standard 2.1"
"""Drawn as a broad line behind the others, which lie on it where it does as well as they do."""


def draw(series: dict[str, dict[str, dict[str, list[int]]]], file: Path, capacity: float) -> None:
    """Draw ``series[scenario][policy]["load" or "goodput"]``, in counts per second.

    :param file: its ending says whether PNG or SVG.
    :param capacity: of the service, a dotted line.
    :raises ImportError: where there is no matplotlib.
    """
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "the same picture is the same file"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(series), 2, figsize=(15, 2.8 * len(series)), squeeze=False, sharex=True)
    for row, (scenario, policies) in zip(axes, series.items(), strict=True):
        for axis, what in zip(row, ("load", "goodput"), strict=True):
            for number, (policy, lines) in enumerate(policies.items()):
                values = lines[what]
                means = [sum(values[max(0, i - SMOOTH + 1) : i + 1]) / min(SMOOTH, i + 1) for i in range(len(values))]
                style = STYLES[number % len(STYLES)]  # lines that lie on each other stay visible
                broad = {"linewidth": 5, "alpha": 0.45, "zorder": 1} if policy == BROAD else {"linewidth": 1.4}
                color = "C3" if policy == BROAD else f"C{number + (number >= 3)}"
                axis.plot(means, label=policy, linestyle=style, color=color, **broad)
            axis.axvspan(BEGIN, END, color="0.92", zorder=0)
            axis.axhline(capacity, color="0.6", linewidth=0.7, linestyle=":")
            axis.set_title(f"{scenario}: {'attempts' if what == 'load' else 'operations that succeeded'} per second")
            axis.set_ylim(bottom=0)
            axis.set_xlim(40, 150)
    for axis in axes[-1]:
        axis.set_xlabel("seconds")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.35 / figure.get_figheight()))
    figure.legend(handles, labels, loc="upper center", ncol=len(labels), fontsize=9)
    figure.savefig(file, dpi=80, metadata={"Date": None} if file.suffix == ".svg" else None)
    pyplot.close(figure)
