"""The figures of a right-sizing beside the front: learning curves, bounds, lineages."""

import math
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from markupsafe import Markup

from topiarist.report.curves import Run, Scale, learning_curves
from topiarist.report.forest import Difference, lower_bounds
from topiarist.report.lineage import lineage_curves, lineage_tree, topology_over_time
from topiarist.report.rightsizing_quotes import Record, is_number, look_up
from topiarist.report.wording import as_number

PERCENT = 100
WIDE, HIGH, EDGE = 240.0, 56.0, 3.0

Network = Mapping[str, Any]


def curves_of(networks: Sequence[Network]) -> Iterator[str]:
    """Draw how accuracy and loss of some networks went, epoch by epoch; nothing where no epoch is known."""
    wanted: tuple[tuple[str, str, Scale], ...] = (
        ("validation_accuracy", "Accuracy on the validation part", "linear"),
        ("validation_loss", "Loss on the validation part", "log"),
    )
    for field, title, scale in wanted:
        runs = {str(network["name"]): run_of(network, field) for network in networks}
        if any(is_number(value) for run in runs.values() for value in run):
            curves = {name: [run] for name, run in runs.items()}
            yield learning_curves(curves, title=title, y_label=field.replace("_", " "), y_scale=scale)


def run_of(network: Network, field: str) -> Run:
    """Give the values of a curve by their epochs, from 1 on, with None for a gap."""
    values = {int(point["epoch"]): point.get(field) for point in network.get("curve") or ()}
    return [values.get(epoch) for epoch in range(1, 1 + max(values, default=0))]


def bounds_of(record: Record) -> str | None:
    """Draw the difference and the lower bound of every rung, in points; None where there is none."""
    names = {network["id"]: str(network["name"]) for network in record["networks"]}
    rows = [
        Difference(
            name=names.get(rung["network"], str(rung["network"])),
            difference=PERCENT * as_number(rung["difference"]),
            low=PERCENT * as_number(rung["low"]),
            significant=bool(rung["proven"]),
        )
        for rung in look_up(record, "decision.rungs") or ()
        if is_number(rung["difference"])
    ]
    margin = PERCENT * as_number(look_up(record, "settings.max_drop"))
    if not rows or math.isnan(margin):
        return None
    return lower_bounds(rows, title="Accuracy against the baseline", unit="points of accuracy", margin=margin)


def lineage_figures(lineage: Mapping[str, Any]) -> Iterator[str]:
    """Draw a lineage: its topologies, its accuracies where there are any, its tree."""
    found = import_module("topiarist.methods.surgeon.lineage").Lineage.from_record(dict(lineage))  # loads torch
    yield topology_over_time(found)
    if any(node.points for node in found.nodes):
        yield lineage_curves(found)
    yield lineage_tree(found)


def small_curve(network: Network, *fields: str) -> Markup | None:
    """Draw some columns of a curve without axes, from the least to the largest value; None where there is nothing."""
    runs = [[(x, y) for x, y in enumerate(run_of(network, field)) if is_number(y)] for field in fields]
    places = [place for run in runs for place in run]
    if not places:
        return None
    right = max(x for x, _ in places)
    low, high = min(as_number(y) for _, y in places), max(as_number(y) for _, y in places)

    def spot(x: float, y: float) -> str:
        across = EDGE + (WIDE - 2 * EDGE) * (x / right if right else 0.5)
        return f"{across:.1f} {EDGE + (HIGH - 2 * EDGE) * ((high - y) / (high - low) if high > low else 0.5):.1f}"

    lines = Markup().join(
        Markup('<path class="line-{}" d="M{} h0"/>').format(number, "L".join(spot(x, as_number(y)) for x, y in run))
        for number, run in enumerate(runs)
        if run
    )
    head = Markup('<svg class="small-curve" viewBox="0 0 {:.0f} {:.0f}" aria-hidden="true">').format(WIDE, HIGH)
    return head + lines + Markup("</svg>")
