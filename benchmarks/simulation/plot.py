"""The picture: server load and goodput over time, one row per scenario, one line per policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .scenarios import BEGIN, END

if TYPE_CHECKING:
    from pathlib import Path

SMOOTH = 3


def draw(series: dict[str, dict[str, dict[str, list[int]]]], file: Path, capacity: float) -> None:
    """Draw ``series[scenario][policy]["load" or "goodput"]``, in counts per second.

    :raises ImportError: where there is no matplotlib.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(series), 2, figsize=(15, 2.8 * len(series)), squeeze=False, sharex=True)
    for row, (scenario, policies) in zip(axes, series.items(), strict=True):
        for axis, what in zip(row, ("load", "goodput"), strict=True):
            for number, (policy, lines) in enumerate(policies.items()):
                values = lines[what]
                means = [sum(values[max(0, i - SMOOTH + 1) : i + 1]) / min(SMOOTH, i + 1) for i in range(len(values))]
                axis.plot(means, label=policy, linewidth=1.3, color=f"C{number}")
            axis.axvspan(BEGIN, END, color="0.92", zorder=0)
            axis.axhline(capacity, color="0.6", linewidth=0.7, linestyle=":")
            axis.set_title(f"{scenario}: {'attempts' if what == 'load' else 'operations that succeeded'} per second")
            axis.set_ylim(bottom=0)
            axis.set_xlim(40, 150)
    axes[0][1].legend(fontsize=7, ncol=2, loc="lower right")
    for axis in axes[-1]:
        axis.set_xlabel("seconds")
    figure.tight_layout()
    figure.savefig(file, dpi=80)
    pyplot.close(figure)
