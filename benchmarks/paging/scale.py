"""docs/scale.md: what was measured in seconds, carried on by its exponents to sizes that nobody here could measure."""

from collections.abc import Mapping
from itertools import pairwise

from benchmarks.scaling import REFIT_WIDTHS, ScalingResults, ScalingRow

NEEDED = ("anatomy-units", "cut", "choice", "refit", "files", "study")
BILLION = 1_000_000_000
WIDEST = 16_384  # units of a layer that can be refitted: `topiarist.surgery` refuses wider ones
IMAGES = 1_281_167  # of ImageNet's training part
RESNET_50 = (
    4.1e9  # multiply-accumulates for an image of 224 × 224 (He et al., 2016: 3.8 to 4.1, by how they are counted)
)
RESNET_50_INPUTS = 9 * 512  # of its widest convolution that reads neighbourhoods
CALIBRATION = 1_024  # images
WORKERS = 100
BYTES = 8  # of a number in float64
HOUR, DAY = 3_600, 86_400


def scale_words(results: ScalingResults) -> Mapping[str, str]:
    """Return the figures of the page by name."""
    rows = {row.name: row for row in results.rows}
    wide = BILLION**0.5
    cell = rows["study"].seconds[-1] / (20 * rows["study"].sizes[-1])
    images = {"few": CALIBRATION, "all": IMAGES}
    return {
        "exponents": "\n".join(exponent_lines(results)),
        "wide": f"{wide:,.0f}",
        "anatomy": words(carried(rows["anatomy-units"], wide)),
        "cut": words(carried(rows["cut"], wide)),
        "files": words(carried(rows["files"], wide)),
        "choice": words(carried(rows["choice"], WIDEST)),
        "widest": f"{WIDEST:,}",
        "widest_moments": gigabytes(WIDEST**2),
        "wide_moments": gigabytes(BILLION),
        "doubled": gigabytes(BILLION),
        "rate": f"{refit_rate(rows['refit']) / 1e9:.2g}",
        "calibration": f"{CALIBRATION:,}",
        "images": f"{IMAGES:,}",
        **{f"images_{name}": words(count * RESNET_50 / refit_rate(rows["refit"])) for name, count in images.items()},
        "images_moments": gigabytes(RESNET_50_INPUTS**2),
        "images_inputs": f"{RESNET_50_INPUTS:,}",
        "workers": str(WORKERS),
        "cell": f"{1000 * cell:.0f} ms",
        "saturated": f"{WORKERS * cell:.1f} s",
        "million": words(carried(rows["study"], BILLION / 1000 / 20)),
    }


def carried(row: ScalingRow, size: float) -> float:
    """Return the seconds at a size: those at the largest that was measured, times the ratio to the exponent."""
    return row.seconds[-1] * float((size / row.sizes[-1]) ** row.exponent)


def refit_rate(row: ScalingRow) -> float:
    """Return how many multiply-accumulates of a forward pass are refitted in a second of the processor."""
    macs = sum(inputs * outputs for inputs, outputs in pairwise(REFIT_WIDTHS))
    return macs * row.sizes[-1] / row.seconds[-1]


def exponent_lines(results: ScalingResults) -> list[str]:
    """Return a row per job: what it grows with, and how."""
    lines = ["| job | grows with | exponent | largest that was measured |", "|---|---|---:|---:|"]
    for row in results.rows:
        largest = f"{row.sizes[-1]:,}: {words(row.seconds[-1])}"
        lines.append(f"| {row.title} | {row.counted} | {row.exponent:.2f} | {largest} |")
    return lines


def words(seconds: float) -> str:
    """Return a time as one says it."""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    for unit, name in ((DAY, "days"), (HOUR, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.2g} {name}"
    return f"{seconds:.2g} s"


def gigabytes(numbers: float) -> str:
    """Return what so many numbers take in float64."""
    size = numbers * BYTES / 1e9
    return f"{size:.2g} GB"
