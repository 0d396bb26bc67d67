"""The power curves of simulated proofs, as a figure."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.proving.cells import CURVES, SAMPLES, SimulatedProof
from topiarist.statistics import find_metric

LINES = {"normal": "-", "t3": "--"}
COLOURS = ("#7aa6c2", "#3d7a4e", "#222222")


def draw_power(results: Sequence[SimulatedProof], path: Path) -> None:
    """Draw the share proven against the true difference: one panel per metric, one line per number of samples."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "proofs"  # the same figures make the same file
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 3, figsize=(10, 5.6), sharey=True, sharex=True, layout="constrained")
    for axis, (kind, name) in zip(axes.flat, CURVES, strict=True):
        metric = find_metric(kind, name)
        axis.axhline(0.05, color="#bbbbbb", linewidth=0.8)
        for shape, line in LINES.items():
            for samples, colour in zip(SAMPLES, COLOURS, strict=True):
                points = sorted(
                    (each.cell.difference, each.rate)
                    for each in results
                    if (each.cell.kind, each.cell.metric, each.cell.shape) == (kind, name, shape)
                    and each.cell.samples == samples
                    and each.cell.design == "one network"
                )
                if len(points) > 1:
                    label = f"{samples:,} samples, {shape}"
                    axis.plot(*zip(*points, strict=True), line, color=colour, marker=".", label=label)
        axis.set_title(f"{metric.title} (margin {metric.margin:g}{' relative' if metric.relative else ''})", size=10)
    for axis in axes[-1]:
        axis.set_xlabel("true difference, in margins")
    for axis in axes[:, 0]:
        axis.set_ylabel("share proven")
    figure.legend(
        *axes.flat[CURVES.index(("numbers", "rmse"))].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=6,
        fontsize=8,
        frameon=False,
    )
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else {})
    pyplot.close(figure)
